"""Where `trimtab recommend` gets its answers: a cluster and its Prometheus, or a file and what people say about it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import NamedTuple

import msgspec
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from trimtab.advisor.run import Advised, ChunkWorkers, Failed, Judge, advise_all, server_time
from trimtab.advisor.scalers import OURS, SCALING, OwnScaler, read_scalers, with_scalers
from trimtab.advisor.targets import AdvisedTarget, read_targets, target_of
from trimtab.advisor.workloads import STEP_S, HistoryWindow
from trimtab.cli.option_groups import ClusterOptions, PrometheusOptions
from trimtab.cli.recommend import MOST_REPLICAS, FileOptions, ScopeOptions
from trimtab.cli.workers import EngineOptions
from trimtab.core.model import Pod
from trimtab.errors import InvalidInput, MetricsUnavailable, NotEnoughData, Refused
from trimtab.history.files import POD_LEVEL, FileReading, Files
from trimtab.history.read_file import read_file
from trimtab.history.series_names import ASSUMED_KIND, kind_of, workload_row
from trimtab.history.source import HistorySource, Level, Metric
from trimtab.history.workload_history import WorkloadHistory
from trimtab.kinds import without_nulls
from trimtab.kinds.convert import convert
from trimtab.kinds.lint.layout import is_patch, patch_files
from trimtab.kinds.yaml import Document, load
from trimtab.policy import Advice, Inspection, Size
from trimtab.quantity import parse_quantity
from trimtab.series import Frame
from trimtab.wire.access import Access
from trimtab.wire.discover import find_prometheus
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Custom, WireWorkload
from trimtab.wire.prometheus import Prometheus
from trimtab.wire.resources import DEPLOYMENTS, KNOWN

WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet")
SCALERS = ("HorizontalPodAutoscaler", "ScaledObject")
UNSEEN = {"type": "External"}  # something else than CPU, which no file of usage shows


def read_manifests(paths: Sequence[str]) -> list[Document]:
    """Everything in these files and folders but kustomize's patches; what cannot be read is said with its place."""
    found = [document for path in paths for document in load(path)]
    for document in found:
        if document.error is not None:
            where = f"{document.file}: {document.error.path}".removeprefix(f"{document.file}: {document.file}")
            raise InvalidInput(where or document.file, document.error.value, document.error.fix)
    patches = patch_files(found)
    whole = [document for document in found if not is_patch(document, patches)]
    if paths and not any(_kind(document) in WORKLOADS for document in whole):
        raise InvalidInput("--filename", ", ".join(paths), "it holds no Deployment, StatefulSet or DaemonSet")
    return whole


def manifests(documents: Sequence[Document], namespace: str) -> list[AdvisedTarget]:
    """Deployments and the like, each with the HPA, ScaledObject or object of ours that scales it."""
    hpas = [_hpa(document, namespace) for document in documents if _kind(document) in SCALERS]
    ours = [_own_scaler(document, namespace) for document in documents if _kind(document) in SCALING]
    targets = [_target(document, hpas, namespace) for document in documents if _kind(document) in WORKLOADS]
    return with_scalers(targets, ours)


def _kind(document: Document) -> str:
    manifest = document.value if isinstance(document.value, dict) else {}
    groups = ("apps/", "autoscaling/", "keda.sh/", *(f"{resource.group}/" for resource in OURS))
    return str(manifest.get("kind")) if str(manifest.get("apiVersion")).startswith(groups) else ""


def _own_scaler(document: Document, namespace: str) -> OwnScaler:
    manifest = document.value
    meta, spec = (part if isinstance(part := manifest.get(name), dict) else {} for name in ("metadata", "spec"))
    return OwnScaler(manifest["kind"], meta.get("namespace") or namespace, str(meta.get("name")), spec)


def _hpa(document: Document, namespace: str) -> Custom:
    """As autoscaling/v2 what there is now: an HPA of any version, or a ScaledObject, whatever it goes by."""
    try:
        made = convert(document.value, "hpa")
        if made.loses_signal:
            made.manifest["spec"]["metrics"] = [UNSEEN]
        hpa = msgspec.convert(made.manifest, Custom, strict=False)
    except InvalidInput as error:
        raise InvalidInput(f"{document.file}:{document.line} {error.path}".strip(), error.value, error.fix) from None
    meta = msgspec.structs.replace(hpa.metadata, namespace=hpa.metadata.namespace or namespace)
    return msgspec.structs.replace(hpa, metadata=meta)


def _target(document: Document, hpas: Sequence[Custom], namespace: str) -> AdvisedTarget:
    manifest, where = without_nulls(document.value), f"{document.file}:{document.line}"
    try:
        resource = KNOWN.get((str(manifest.get("apiVersion")), str(manifest.get("kind"))))
        if resource is None:
            raise InvalidInput("apiVersion", manifest.get("apiVersion"), "write apps/v1")
        workload = msgspec.convert(manifest, WireWorkload, strict=False)
        named = msgspec.structs.replace(workload.metadata, namespace=workload.metadata.namespace or namespace)
        target = target_of(resource, msgspec.structs.replace(workload, metadata=named), (), hpas, 0.0)
    except msgspec.ValidationError as error:
        raise InvalidInput(where, manifest["kind"], str(error)) from None
    except InvalidInput as error:  # a quantity, which does not know where it stands
        raise InvalidInput(f"{where} {error.path}".strip(), error.value, error.fix) from None
    if not 0 <= target.replicas <= MOST_REPLICAS:
        raise InvalidInput(f"{where} spec.replicas", target.replicas, f"write a number from 0 to {MOST_REPLICAS}")
    return replace(target, metrics=tuple(metric for metric in target.metrics if metric != UNSEEN))


DESCRIBE = "give a manifest of it with -f, or --replicas and --cpu-request for all"


def read_files(
    options: FileOptions, rules: Inspection, namespaces: Sequence[str], home: str, documents: Sequence[Document]
) -> tuple[dict[Metric, Frame], tuple[str, ...]]:
    """Of each metric the rows of these namespaces; what names none is in the first of them. And what was assumed."""
    files: dict[Metric, str | None] = {"cpu": options.file, "memory": options.memory_file}
    if rules.advice is Advice.RESOURCE and not options.memory_file:
        fix = "requests need the memory of each pod as well: give it with --memory-history FILE"
        raise InvalidInput("--type", "resource", fix)
    reading = FileReading(options.step_s, options.time_column, home)
    frames = {metric: (_named(read_file(path, reading), reading), path) for metric, path in files.items() if path}
    inside = {metric: _inside(frame, path, namespaces) for metric, (frame, path) in frames.items()}
    described = [target.key for target in manifests(documents, home)]
    return (inside, ()) if len(described) != 1 else _of_the_only_one(inside, described[0])


def _of_the_only_one(frames: dict[Metric, Frame], key: str) -> tuple[dict[Metric, Frame], tuple[str, ...]]:
    """One series that names no workload, and one workload: it can only be its."""
    unnamed = {metric: frame for metric, frame in frames.items() if len(frame.names) == 1 and "/" not in frame.names[0]}
    others = dict.fromkeys(frame.names[0] for frame in unnamed.values() if frame.names[0] != key.rpartition("/")[2])
    notes = tuple(f"{name} is taken for the usage of {key}, the only workload of -f" for name in others)
    return frames | {metric: replace(frame, names=(key,)) for metric, frame in unnamed.items()}, notes


def _named(frame: Frame, reading: FileReading) -> Frame:
    """Series that people have named after workloads, as ours are."""
    rows = tuple(workload_row(name, reading.namespace) for name in frame.names)
    return Frame(rows, frame.start, frame.step_s, frame.values) if len(set(rows)) == len(rows) else frame


def home_of(namespaces: Sequence[str], documents: Sequence[Document]) -> str:
    """Where that is which says no namespace: in the first that is asked for, else in the only one of the manifests."""
    if namespaces:
        return namespaces[0]
    named = {target.namespace for target in manifests(documents, "default")}
    return named.pop() if len(named) == 1 else "default"


def _inside(frame: Frame, path: str, namespaces: Sequence[str]) -> Frame:
    if not namespaces:
        return frame
    rows = [row for row, name in enumerate(frame.names) if "/" not in name or name.split("/")[0] in namespaces]
    if not rows:
        known = sorted({name.split("/")[0] for name in frame.names})
        raise InvalidInput("--namespace", ", ".join(namespaces), f"{path} has {', '.join(known[:5])}")
    return Frame(tuple(frame.names[row] for row in rows), frame.start, frame.step_s, frame.values[rows])


def described(
    options: FileOptions, names: Sequence[str], frame: Frame, documents: Sequence[Document], namespace: str
) -> tuple[list[AdvisedTarget], tuple[str, ...]]:
    """Replicas and requests of each row: from a manifest of that name, else from the options; who is left out."""
    rows = [name for name in frame.names if name.count("/") in (0, 2)]
    rows = [row for row in rows if not names or row.rpartition("/")[2] in names]
    known = {target.key: target for target in manifests(documents, namespace)}
    targets, unknown = [], []
    for row in rows:
        found = [target for key, target in known.items() if row in (key, target.name)] or _of_any_kind(known, row)
        if not found and (options.replicas is None or options.cpu_request is None):
            unknown.append(row)
            continue
        target = found[0] if found else _assumed(options, row, namespace)
        targets.append(replace(target, row=row, pods=_running(target, frame, row)))
    if unknown and not targets:
        fix = f"its replicas and requests are not known: {DESCRIBE}"
        raise InvalidInput(f"{options.file} series", unknown[0], fix)
    notes = (f"left out, for nothing is known of their replicas and requests: {', '.join(unknown)}; {DESCRIBE}",)
    return targets, notes if unknown else ()


def _of_any_kind(known: dict[str, AdvisedTarget], row: str) -> list[AdvisedTarget]:
    """Of the same namespace and name, where there is one: who writes shop/db does not say that it is a StatefulSet."""
    alike = [target for target in known.values() if row == f"{target.namespace}/{ASSUMED_KIND}/{target.name}"]
    return alike if len(alike) == 1 else []


def _assumed(options: FileOptions, row: str, namespace: str) -> AdvisedTarget:
    where = row if "/" in row else f"{namespace}/{ASSUMED_KIND}/{row}"
    namespace, kind, name = where.split("/")
    memory = _above_zero(options.memory_request, "--memory-request") if options.memory_request else None
    size = Size(cpu_cores=_above_zero(options.cpu_request or "", "--cpu-request"), memory_bytes=memory)
    resource = next((resource for resource in KNOWN.values() if resource.kind == kind), DEPLOYMENTS)
    return AdvisedTarget(resource.api_version, kind, namespace, name, options.replicas or 0, {"app": size}, ())


def _above_zero(text: str, option: str) -> float:
    value = parse_quantity(text, option)
    if value <= 0:
        raise InvalidInput(option, text, "write a quantity above zero")
    return value


def _running(target: AdvisedTarget, frame: Frame, row: str) -> tuple[Pod, ...]:
    """As many as it has replicas: the pods at the end of the file, then some without a history."""
    last = (
        name.rpartition("/")[2]
        for name, values in zip(frame.names, frame.values, strict=True)
        if name.startswith(f"{row}/") and name.count("/") == POD_LEVEL and np.isfinite(values[-2:]).any()
    )
    names = dict.fromkeys([*last, *(f"{target.name}-{index}" for index in range(target.replicas))])
    since = frame.end - 86400.0
    return tuple(Pod(name=name, started_at=since, ready_since=since) for name in list(names)[: target.replicas])


AT_ONCE = 8  # chunks of 100 workloads on their way to workers
TIMEOUT_S = 120.0  # a page of a week is a lot of work for a small Prometheus


class WorkloadQuestion(NamedTuple):
    """Which workloads are asked about, and where to look for them."""

    names: tuple[str, ...]
    cluster: ClusterOptions
    prometheus: PrometheusOptions
    scope: ScopeOptions
    file: FileOptions
    engine: EngineOptions = EngineOptions()


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
            with _workers(question.engine) as workers:
                asked = (rules, place.targets, place.source, place.window, place.at, judge, workers)
                async for some in advise_all(*asked):
                    outcomes += some
                    progress.advance(task, len(some))
        failed = [f"{each.target.key}: {each.result.text}" for each in outcomes if isinstance(each.result, Failed)]
        return GatheredAdvice(outcomes, place.where, (*place.notes, *failed))


@contextmanager
def _workers(engine: EngineOptions) -> Iterator[ChunkWorkers]:
    """On this machine a thread, whose replays use all cores by themselves."""
    if engine == EngineOptions():
        yield ChunkWorkers()
        return
    with engine.executor(AT_ONCE) as executor:
        yield ChunkWorkers(executor, AT_ONCE)


@asynccontextmanager
async def _place(question: WorkloadQuestion, rules: Inspection) -> AsyncIterator[Place]:
    if question.file.file:
        yield _from_file(question, rules)
        return
    access, scope = question.cluster.connect(), question.scope
    async with Kube(access, timeout_s=TIMEOUT_S) as kube:
        found, where = await _prometheus(question.prometheus, kube)
        async with Prometheus(found, timeout_s=TIMEOUT_S) as prometheus:
            at, skew = await server_time(prometheus, time.time())
            namespaces = ("",) if scope.all_namespaces else scope.namespaces or (access.namespace,)
            found_there = await read_targets(kube, namespaces, time.time(), labels=scope.selector)
            targets = with_scalers(named(found_there, question.names), await read_scalers(kube, namespaces))
            source = WorkloadHistory(prometheus, kube, scope.series)
            window = HistoryWindow.before(at, rules)
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
            "or --history FILE with usage you have elsewhere (--recipe says which)"
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


def _is(target: AdvisedTarget, text: str) -> bool:
    kind, _, name = text.rpartition("/")
    return name == target.name and (not kind or kind_of(kind) == target.kind)


def _from_file(question: WorkloadQuestion, rules: Inspection) -> Place:
    options, namespaces = question.file, question.scope.namespaces
    assert options.file
    documents = read_manifests(options.manifests)
    home = home_of(namespaces, documents)
    frames, assumed = read_files(options, rules, namespaces, home, documents)
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
    step_s = max(STEP_S, *(held.step_s for held in frames.values()))
    earlier_s = max(0.0, start - max(frame.start, at - rules.forecast_history_s))
    window = HistoryWindow(start, at, step_s, frozenset(knows), earlier_s)
    names = [text.rpartition("/")[2] for text in question.names]
    targets, notes = described(options, names, frame, documents, home)
    return Place(named(targets, question.names), Files(frames), window, at, options.file, (*assumed, *notes))
