"""Where `trimtab recommend` gets its answers: a cluster and its Prometheus, or a file and what people say about it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from trimtab.advisor.run import Advised, advise_all, server_time
from trimtab.advisor.targets import AdvisedTarget, read_targets, target_of
from trimtab.advisor.workloads import STEP_S, HistoryWindow
from trimtab.core.model import Pod
from trimtab.errors import InvalidInput, MetricsUnavailable, NotEnoughData, Refused
from trimtab.history.csv import read_csv
from trimtab.history.parquet import read_parquet
from trimtab.history.source import Level, Metric, Source
from trimtab.history.table import Files
from trimtab.history.workloads import WorkloadHistory
from trimtab.kinds.yaml import load
from trimtab.policy import Advice, Inspection, Size
from trimtab.quantity import parse_quantity
from trimtab.series import Frame
from trimtab.wire.access import Access, prometheus_access
from trimtab.wire.discover import find_prometheus
from trimtab.wire.kube import Kube
from trimtab.wire.kubeconfig import connect
from trimtab.wire.objects import Workload
from trimtab.wire.prometheus import Prometheus
from trimtab.wire.resources import DEPLOYMENTS, KNOWN, Resource

TIMEOUT_S = 120.0  # a page of a week is a lot of work for a small Prometheus
MOST_REPLICAS = 100_000  # more pods than a cluster of Kubernetes holds
FULL = {"deploy": "deployment", "sts": "statefulset", "ds": "daemonset"}


class Ask(NamedTuple):
    """The options, as they were given."""

    workloads: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    selector: str = ""
    context: str | None = None
    kubeconfig: str | None = None
    url: str = ""
    user: str = ""
    password: str = ""
    token_file: str = ""
    ca_file: str = ""
    headers: dict[str, str] = {}  # never changed
    matchers: str = ""
    file: str | None = None
    memory_file: str | None = None
    manifests: str | None = None
    replicas: int | None = None
    cpu_request: str | None = None
    memory_request: str | None = None


class Gathered(NamedTuple):
    outcomes: list[Advised]
    where: str
    notes: tuple[str, ...] = ()


class Place(NamedTuple):
    """What is advised on, and where its past comes from."""

    targets: list[AdvisedTarget]
    source: Source
    window: HistoryWindow
    at: float
    where: str
    notes: tuple[str, ...] = ()


async def gather(ask: Ask, rules: Inspection, console: Console) -> Gathered:
    """All outcomes, with a progress bar while they come."""
    async with _place(ask, rules) as place:
        if not place.targets:
            raise NotEnoughData(f"no workload to advise on in {place.where}: check -n, -A, -l and the names")
        outcomes: list[Advised] = []
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task(place.where, total=len(place.targets))
            async for some in advise_all(rules, place.targets, place.source, place.window, place.at):
                outcomes += some
                progress.advance(task, len(some))
        return Gathered(outcomes, place.where, place.notes)


@asynccontextmanager
async def _place(ask: Ask, rules: Inspection) -> AsyncIterator[Place]:
    if ask.file:
        yield _from_file(ask, rules)
        return
    access = connect(ask.context, ask.kubeconfig)
    async with Kube(access, timeout_s=TIMEOUT_S) as kube:
        found, where = await _prometheus(ask, kube)
        async with Prometheus(found, timeout_s=TIMEOUT_S) as prometheus:
            at, skew = await server_time(prometheus, time.time())
            namespaces = ask.namespaces or (access.namespace,)
            targets = named(await read_targets(kube, namespaces, time.time(), labels=ask.selector), ask.workloads)
            source = WorkloadHistory(prometheus, kube, ask.matchers)
            window = HistoryWindow.before(at, rules.history_s)
            notes = (*(() if ask.url else (f"history from {where}",)), *((skew,) if skew else ()))
            yield Place(targets, source, window, time.time(), where, notes)


async def _prometheus(ask: Ask, kube: Kube) -> tuple[Access, str]:
    if ask.url:
        access = prometheus_access(
            ask.url,
            username=ask.user,
            password=ask.password,
            token_file=ask.token_file,
            ca_file=ask.ca_file,
            headers=ask.headers,
        )
        return access, ask.url
    try:
        found = await find_prometheus(kube)
    except Refused as refusal:
        raise Refused(f"Services cannot be listed to find Prometheus ({refusal}): give --prometheus URL", 403) from None
    if not found:
        raise MetricsUnavailable(
            "no Prometheus, Thanos, Mimir or VictoriaMetrics was found among the Services: give --prometheus URL, "
            "or --history FILE with usage you have elsewhere"
        )
    return replace(found[0].through(kube.access), headers=ask.headers), f"{found[0].product} {found[0].url}"


def named(targets: Sequence[AdvisedTarget], wanted: Sequence[str]) -> list[AdvisedTarget]:
    """Only NAME or KIND/NAME; a name nobody has is a mistake."""
    if not wanted:
        return list(targets)
    chosen = [one for one in targets if any(_is(one, text) for text in wanted)]
    for text in wanted:
        if not any(_is(one, text) for one in chosen):
            raise InvalidInput("KIND/NAME", text, "there is no such workload; `kubectl get deploy,sts` lists them")
    return chosen


def _name(text: str) -> str:
    return text.rpartition("/")[2]


def _is(target: AdvisedTarget, text: str) -> bool:
    kind, _, name = text.rpartition("/")
    kind = kind.lower().removesuffix("s") if kind.lower() not in FULL else FULL[kind.lower()]
    return name == target.name and kind in ("", target.kind.lower())


# --- from a file -----------------------------------------------------------------------------------------------------


def _from_file(ask: Ask, rules: Inspection) -> Place:
    assert ask.file
    frames = _read_files(ask, rules)
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
    targets = named(_described(ask, frame, at), ask.workloads)
    return Place(targets, Files(frames), window, at, ask.file)


def _read_files(ask: Ask, rules: Inspection) -> dict[Metric, Frame]:
    files: dict[Metric, str | None] = {"cpu": ask.file, "memory": ask.memory_file}
    if rules.advice is Advice.RESOURCE and not ask.memory_file:
        fix = "requests need the memory of each pod as well: give it with --memory-history FILE"
        raise InvalidInput("--type", "resource", fix)
    return {
        metric: read_parquet(path) if path.endswith(".parquet") else read_csv(path)
        for metric, path in files.items()
        if path
    }


def _described(ask: Ask, frame: Frame, at: float) -> list[AdvisedTarget]:
    """Replicas and requests of each row: from a manifest of that name, else from the options."""
    rows = [name for name in frame.names if name.count("/") in (0, 2)]
    rows = [row for row in rows if not ask.workloads or any(row.split("/")[-1] == _name(one) for one in ask.workloads)]
    known = {one.key: one for one in _manifests(ask.manifests)} if ask.manifests else {}
    targets = []
    for row in rows:
        found = [one for key, one in known.items() if row in (key, one.name)]
        if not found and (ask.replicas is None or ask.cpu_request is None):
            fix = "give a manifest of it with -f, or --replicas and --cpu-request for all"
            raise InvalidInput(f"{ask.file} series", row, f"its replicas and requests are not known: {fix}")
        target = found[0] if found else _assumed(ask, row)
        targets.append(replace(target, row=row, pods=_running(target, frame, row, at)))
    return targets


def _assumed(ask: Ask, row: str) -> AdvisedTarget:
    namespace, kind, name = row.split("/") if "/" in row else ("default", "Deployment", row)
    memory = _above_zero(ask.memory_request, "--memory-request") if ask.memory_request else None
    size = Size(cpu_cores=_above_zero(ask.cpu_request or "", "--cpu-request"), memory_bytes=memory)
    resource = next((one for one in KNOWN.values() if one.kind == kind), DEPLOYMENTS)
    return AdvisedTarget(resource.api_version, kind, namespace, name, ask.replicas or 0, {"app": size}, ())


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
    for one in load(path):
        if one.error is not None:
            raise one.error
        document = one.value if isinstance(one.value, dict) else {}
        resource = KNOWN.get((str(document.get("apiVersion")), str(document.get("kind"))))
        if resource is not None and document.get("kind") in ("Deployment", "StatefulSet", "DaemonSet"):
            found.append(_target(resource, document, f"{one.file}:{one.line}"))
    if not found:
        raise InvalidInput("--filename", path, "it holds no Deployment, StatefulSet or DaemonSet")
    return found


def _target(resource: Resource, document: dict[str, Any], where: str) -> AdvisedTarget:
    try:
        target = target_of(resource, msgspec.convert(document, Workload, strict=False), (), (), 0.0)
    except msgspec.ValidationError as error:
        raise InvalidInput(where, document["kind"], str(error)) from None
    except InvalidInput as error:  # a quantity, which does not know where it stands
        raise InvalidInput(f"{where} {error.path}".strip(), error.value, error.fix) from None
    if not 0 <= target.replicas <= MOST_REPLICAS:
        raise InvalidInput(f"{where} spec.replicas", target.replicas, f"write a number from 0 to {MOST_REPLICAS}")
    return replace(target, namespace=target.namespace or "default")
