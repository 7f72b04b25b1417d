"""Where `trimtab recommend` gets its answers: a cluster and its Prometheus, or a file and what people say about it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from trimtab.advisor.run import Advised, Judge, advise_all, server_time
from trimtab.advisor.targets import AdvisedTarget, read_targets, target_of
from trimtab.advisor.workloads import STEP_S, HistoryWindow
from trimtab.cli.option_groups import ClusterOptions, PrometheusOptions
from trimtab.cli.recommend_options import MOST_REPLICAS, FileOptions, ScopeOptions
from trimtab.core.model import Pod
from trimtab.errors import InvalidInput, MetricsUnavailable, NotEnoughData, Refused
from trimtab.history.csv import read_csv
from trimtab.history.files import Files
from trimtab.history.parquet import read_parquet
from trimtab.history.source import HistorySource, Level, Metric
from trimtab.history.workload_history import WorkloadHistory
from trimtab.kinds.yaml import load
from trimtab.policy import Advice, Inspection, Size
from trimtab.quantity import parse_quantity
from trimtab.series import Frame
from trimtab.wire.access import Access
from trimtab.wire.discover import find_prometheus
from trimtab.wire.kube import Kube
from trimtab.wire.objects import WireWorkload
from trimtab.wire.prometheus import Prometheus
from trimtab.wire.resources import DEPLOYMENTS, KNOWN, Resource

TIMEOUT_S = 120.0  # a page of a week is a lot of work for a small Prometheus
DESCRIBE = "give a manifest of it with -f, or --replicas and --cpu-request for all"
FULL = {"deploy": "deployment", "sts": "statefulset", "ds": "daemonset"}


class WorkloadQuestion(NamedTuple):
    """Which workloads are asked about, and where to look for them."""

    names: tuple[str, ...]
    cluster: ClusterOptions
    prometheus: PrometheusOptions
    scope: ScopeOptions
    file: FileOptions


class GatheredAdvice(NamedTuple):
    outcomes: list[Advised]
    where: str
    notes: tuple[str, ...] = ()


class Place(NamedTuple):
    """What is advised on, and where its past comes from."""

    targets: list[AdvisedTarget]
    source: HistorySource
    window: HistoryWindow
    at: float
    where: str
    notes: tuple[str, ...] = ()


async def gather(question: WorkloadQuestion, rules: Inspection, judge: Judge, console: Console) -> GatheredAdvice:
    """All outcomes, with a progress bar while they come."""
    async with _place(question, rules) as place:
        if not place.targets:
            raise NotEnoughData(f"no workload to advise on in {place.where}: check -n, -A, -l and the names")
        outcomes: list[Advised] = []
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task(place.where, total=len(place.targets))
            async for some in advise_all(rules, place.targets, place.source, place.window, place.at, judge):
                outcomes += some
                progress.advance(task, len(some))
        return GatheredAdvice(outcomes, place.where, place.notes)


@asynccontextmanager
async def _place(question: WorkloadQuestion, rules: Inspection) -> AsyncIterator[Place]:
    if question.file.file:
        yield _from_file(question.file, question.names, rules)
        return
    access, scope = question.cluster.connect(), question.scope
    async with Kube(access, timeout_s=TIMEOUT_S) as kube:
        found, where = await _prometheus(question.prometheus, kube)
        async with Prometheus(found, timeout_s=TIMEOUT_S) as prometheus:
            at, skew = await server_time(prometheus, time.time())
            namespaces = ("",) if scope.all_namespaces else scope.namespaces or (access.namespace,)
            targets = named(await read_targets(kube, namespaces, time.time(), labels=scope.selector), question.names)
            source = WorkloadHistory(prometheus, kube, scope.matchers)
            window = HistoryWindow.before(at, rules.history_s)
            notes = (*(() if question.prometheus.url else (f"history from {where}",)), *((skew,) if skew else ()))
            yield Place(targets, source, window, time.time(), where, notes)


async def _prometheus(options: PrometheusOptions, kube: Kube) -> tuple[Access, str]:
    if (access := options.access()) is not None:
        return access, access.url
    try:
        found = await find_prometheus(kube)
    except Refused as refusal:
        raise Refused(
            f"Services cannot be listed to find Prometheus ({refusal}): give --prometheus URL", HTTPStatus.FORBIDDEN
        ) from None
    if not found:
        raise MetricsUnavailable(
            "no Prometheus, Thanos, Mimir or VictoriaMetrics was found among the Services: give --prometheus URL, "
            "or --history FILE with usage you have elsewhere"
        )
    return replace(found[0].through(kube.access), headers=options.headers), f"{found[0].product} {found[0].url}"


def named(targets: Sequence[AdvisedTarget], wanted: Sequence[str]) -> list[AdvisedTarget]:
    """Only NAME or KIND/NAME; a name nobody has is a mistake."""
    if not wanted:
        return list(targets)
    chosen = [target for target in targets if any(_is(target, text) for text in wanted)]
    for text in wanted:
        if not any(_is(target, text) for target in chosen):
            raise InvalidInput("KIND/NAME", text, "there is no such workload; `kubectl get deploy,sts` lists them")
    return chosen


def _name(text: str) -> str:
    return text.rpartition("/")[2]


def _is(target: AdvisedTarget, text: str) -> bool:
    kind, _, name = text.rpartition("/")
    kind = kind.partition(".")[0].lower()  # deployment.apps/web, as kubectl prints it
    kind = FULL.get(kind, kind.removesuffix("s"))
    return name == target.name and kind in ("", target.kind.lower())


# --- from a file -----------------------------------------------------------------------------------------------------


def _from_file(options: FileOptions, wanted: Sequence[str], rules: Inspection) -> Place:
    assert options.file
    frames = _read_files(options, rules)
    frame = frames["cpu"]
    levels: dict[int, Level] = {0: "workload", 2: "workload", 4: "pod"}
    knows = {
        (metric, levels[name.count("/")])
        for metric, held in frames.items()
        for name in held.names
        if name.count("/") in levels
    }
    at = frame.end
    start = max(frame.start, at - rules.history_s)
    window = HistoryWindow(start, at, max(STEP_S, *(held.step_s for held in frames.values())), frozenset(knows))
    described, notes = _described(options, wanted, frame, at)
    return Place(named(described, wanted), Files(frames), window, at, options.file, notes)


def _read_files(options: FileOptions, rules: Inspection) -> dict[Metric, Frame]:
    files: dict[Metric, str | None] = {"cpu": options.file, "memory": options.memory_file}
    if rules.advice is Advice.RESOURCE and not options.memory_file:
        fix = "requests need the memory of each pod as well: give it with --memory-history FILE"
        raise InvalidInput("--type", "resource", fix)
    return {
        metric: read_parquet(path) if path.endswith(".parquet") else read_csv(path)
        for metric, path in files.items()
        if path
    }


def _described(
    options: FileOptions, wanted: Sequence[str], frame: Frame, at: float
) -> tuple[list[AdvisedTarget], tuple[str, ...]]:
    """Replicas and requests of each row: from a manifest of that name, else from the options; who is left out."""
    rows = [name for name in frame.names if name.count("/") in (0, 2)]
    rows = [row for row in rows if not wanted or _name(row) in {_name(text) for text in wanted}]
    known = {target.key: target for target in _manifests(options.manifests)} if options.manifests else {}
    targets, unknown = [], []
    for row in rows:
        found = [target for key, target in known.items() if row in (key, target.name)]
        if not found and (options.replicas is None or options.cpu_request is None):
            unknown.append(row)
            continue
        target = found[0] if found else _assumed(options, row)
        targets.append(replace(target, row=row, pods=_running(target, frame, row, at)))
    if unknown and not targets:
        fix = f"its replicas and requests are not known: {DESCRIBE}"
        raise InvalidInput(f"{options.file} series", unknown[0], fix)
    notes = (f"left out, for nothing is known of their replicas and requests: {', '.join(unknown)}; {DESCRIBE}",)
    return targets, notes if unknown else ()


def _assumed(options: FileOptions, row: str) -> AdvisedTarget:
    namespace, kind, name = row.split("/") if "/" in row else ("default", "Deployment", row)
    memory = _above_zero(options.memory_request, "--memory-request") if options.memory_request else None
    size = Size(cpu_cores=_above_zero(options.cpu_request or "", "--cpu-request"), memory_bytes=memory)
    resource = next((resource for resource in KNOWN.values() if resource.kind == kind), DEPLOYMENTS)
    return AdvisedTarget(resource.api_version, kind, namespace, name, options.replicas or 0, {"app": size}, ())


def _above_zero(text: str, option: str) -> float:
    value = parse_quantity(text, option)
    if value <= 0:
        raise InvalidInput(option, text, "write a quantity above zero")
    return value


def _running(target: AdvisedTarget, frame: Frame, row: str, at: float) -> tuple[Pod, ...]:
    """As many as it has replicas: the pods at the end of the file, then some without a history."""
    last = (
        name.rpartition("/")[2]
        for name, values in zip(frame.names, frame.values, strict=True)
        if name.startswith(f"{row}/") and name.count("/") == 4 and np.isfinite(values[-2:]).any()
    )
    names = dict.fromkeys([*last, *(f"{target.name}-{index}" for index in range(target.replicas))])
    since = at - 86400.0
    return tuple(Pod(name=name, started_at=since, ready_since=since) for name in list(names)[: target.replicas])


def _manifests(path: str) -> list[AdvisedTarget]:
    """Deployments and the like of a YAML file."""
    found = []
    for document in load(path):
        if document.error is not None:
            raise document.error
        manifest = document.value if isinstance(document.value, dict) else {}
        resource = KNOWN.get((str(manifest.get("apiVersion")), str(manifest.get("kind"))))
        if resource is not None and manifest.get("kind") in ("Deployment", "StatefulSet", "DaemonSet"):
            found.append(_target(resource, manifest, f"{document.file}:{document.line}"))
    if not found:
        raise InvalidInput("--filename", path, "it holds no Deployment, StatefulSet or DaemonSet")
    return found


def _target(resource: Resource, manifest: dict[str, Any], where: str) -> AdvisedTarget:
    try:
        target = target_of(resource, msgspec.convert(manifest, WireWorkload, strict=False), (), (), 0.0)
    except msgspec.ValidationError as error:
        raise InvalidInput(where, manifest["kind"], str(error)) from None
    except InvalidInput as error:  # a quantity, which does not know where it stands
        raise InvalidInput(f"{where} {error.path}".strip(), error.value, error.fix) from None
    if not 0 <= target.replicas <= MOST_REPLICAS:
        raise InvalidInput(f"{where} spec.replicas", target.replicas, f"write a number from 0 to {MOST_REPLICAS}")
    return replace(target, namespace=target.namespace or "default")
