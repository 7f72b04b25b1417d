"""Where `trimtab recommend` gets its answers: a cluster and its Prometheus, or a file and what people say about it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from trimtab.advisor.run import Advised, ChunkWorkers, Failed, Judge, advise_all, server_time
from trimtab.advisor.scalers import read_scalers, with_scalers
from trimtab.advisor.targets import AdvisedTarget, read_targets
from trimtab.advisor.workloads import STEP_S, HistoryWindow
from trimtab.cli.option_groups import ClusterOptions, PrometheusOptions
from trimtab.cli.recommend_files import described, home_of, read_files
from trimtab.cli.recommend_manifests import read_manifests
from trimtab.cli.recommend_options import FileOptions, ScopeOptions
from trimtab.cli.workers import EngineOptions
from trimtab.errors import InvalidInput, MetricsUnavailable, NotEnoughData, Refused
from trimtab.history.files import Files
from trimtab.history.series_names import kind_of
from trimtab.history.source import HistorySource, Level
from trimtab.history.workload_history import WorkloadHistory
from trimtab.policy import Inspection
from trimtab.wire.access import Access
from trimtab.wire.discover import find_prometheus
from trimtab.wire.kube import Kube
from trimtab.wire.prometheus import Prometheus

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
