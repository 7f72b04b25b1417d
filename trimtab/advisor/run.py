"""run: one round of advice over many workloads, in chunks, so that memory does not grow with their number.

While one chunk is analysed the next one is on its way. What goes wrong with one workload is that workload's outcome.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from trimtab.advisor.targets import AdvisedTarget
from trimtab.advisor.workloads import HistoryWindow, PastLoad, assemble, fetch_past, pod_share
from trimtab.core.advise import MeasuredWorkload, Objections, WorkloadAdvice, advise
from trimtab.core.advise.records import Against
from trimtab.errors import MetricsUnavailable, Refused, TrimtabError, Unavailable
from trimtab.history.source import HistorySource
from trimtab.policy import Inspection
from trimtab.series import Floats
from trimtab.wire.prometheus import Prometheus

CHUNK = 100
ROWS = 1000.0  # of a week in minutes: 80 MB
PATIENCE = 3  # chunks in a row that cannot be fetched: then the source is gone, not the chunk
SKEW_S = 60.0
HOUR_S = 3600.0
PODLESS = (Against.NO_PODS, Against.NO_AVAILABLE_PODS)
log = logging.getLogger(__name__)

Judge = Callable[[Inspection, MeasuredWorkload, float], WorkloadAdvice | Objections]


class Failed(NamedTuple):
    """No advice because something broke; `error` says what to do about it."""

    error: TrimtabError | None
    text: str

    @property
    def reason(self) -> str:
        return type(self.error).__name__ if self.error else "InternalError"


class Advised(NamedTuple):
    """What came of one target, with its hourly usage for charts."""

    target: AdvisedTarget
    result: WorkloadAdvice | Objections | Failed
    start: float = 0.0
    usage: tuple[float, ...] = ()  # NaN where there was no sample

    @property
    def unread(self) -> bool:
        """Nobody knows the usage yet: this is no answer, so that Once has not happened."""
        return isinstance(self.result, Failed) and isinstance(self.result.error, Unavailable | Refused)

    @property
    def without_pods(self) -> bool:
        """They may be starting: an Analytics is often applied together with its Deployment."""
        result = self.result
        return isinstance(result, Objections) and any(each.reason in PODLESS for each in result.reasons)


class ChunkWorkers(NamedTuple):
    """Who analyses chunks: a thread of this process, or an executor with so many chunks at once."""

    executor: Executor | None = None
    at_once: int = 1

    async def outcomes(
        self,
        rules: Inspection,
        chunk: Sequence[AdvisedTarget],
        past: PastLoad | TrimtabError,
        at: float,
        judge: Judge,
    ) -> list[Advised]:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self.executor, analyse, rules, chunk, past, at, judge)
        except TrimtabError as error:  # the worker is gone, not the workloads
            return [Advised(target, Failed(error, str(error))) for target in chunk]


async def advise_all(
    rules: Inspection,
    targets: Sequence[AdvisedTarget],
    source: HistorySource,
    window: HistoryWindow,
    at: float,
    judge: Judge = advise,
    workers: ChunkWorkers | None = None,
) -> AsyncIterator[list[Advised]]:
    """Outcomes chunk by chunk, in the order of the targets; raises only when no chunk could be fetched at all."""
    chunks, workers = chunked(targets, rules), workers or ChunkWorkers()
    running: deque[asyncio.Task[list[Advised]]] = deque()
    coming = asyncio.create_task(_fetch(source, chunks[0], rules, window)) if chunks else None
    lost = 0
    try:
        for number, chunk in enumerate(chunks):
            assert coming is not None
            past = await coming
            if isinstance(past, TrimtabError):
                lost += 1
                if lost == number + 1 and (lost == PATIENCE or lost == len(chunks)):
                    raise past
            if number + 1 < len(chunks):
                coming = asyncio.create_task(_fetch(source, chunks[number + 1], rules, window))
            running.append(asyncio.create_task(workers.outcomes(rules, chunk, past, at, judge)))
            if len(running) == workers.at_once:
                yield await running.popleft()
        while running:
            yield await running.popleft()
    finally:
        for task in (*running, *([coming] if coming is not None else ())):
            task.cancel()


def chunked(targets: Sequence[AdvisedTarget], rules: Inspection) -> list[list[AdvisedTarget]]:
    """As many targets as one query should ask for, fewer where their pods would fill the memory."""
    chunks: list[list[AdvisedTarget]] = []
    room = 0.0
    for target in targets:
        rows = 1.0 + len(target.pods) * max(1, len(target.requests)) * pod_share(rules)
        if not chunks or rows > room or len(chunks[-1]) == CHUNK:
            chunks.append([])
            room = ROWS
        chunks[-1].append(target)
        room -= rows
    return chunks


async def _fetch(
    source: HistorySource, chunk: Sequence[AdvisedTarget], rules: Inspection, window: HistoryWindow
) -> PastLoad | TrimtabError:
    try:
        return await fetch_past(source, chunk, rules, window)
    except TrimtabError as error:
        return error


def analyse(
    rules: Inspection,
    chunk: Sequence[AdvisedTarget],
    past: PastLoad | TrimtabError,
    at: float,
    judge: Judge = advise,
) -> list[Advised]:
    if isinstance(past, TrimtabError):
        return [Advised(target, Failed(past, str(past))) for target in chunk]
    return [_advise(rules, target, past, at, judge) for target in chunk]


def _advise(rules: Inspection, target: AdvisedTarget, past: PastLoad, at: float, judge: Judge) -> Advised:
    usage = hourly(past.cpu.get(target.row, np.empty(0)), past.step_s)
    try:
        result: WorkloadAdvice | Objections | Failed = judge(rules, assemble(target, past, rules, at), at)
    except TrimtabError as error:
        result = Failed(error, str(error))
    except Exception as error:  # the one place: a workload that breaks us must not cost the others
        log.exception("advice on %s", target.key)
        result = Failed(None, f"this is a mistake in trimtab, please report it: {error!r}")
    return Advised(target, result, past.start, usage)


def hourly(values: Floats, step_s: float) -> tuple[float, ...]:
    """Means of the hours from the first sample on; an hour without samples is NaN."""
    width = max(1, round(HOUR_S / step_s))
    whole = values[: len(values) // width * width].reshape(-1, width)
    present = np.isfinite(whole)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(present, whole, 0.0).sum(axis=1) / present.sum(axis=1)
    return tuple(means.tolist())


async def server_time(prometheus: Prometheus, local: float) -> tuple[float, str]:
    """Now on the clock that stamped the samples, and a warning where it is not ours."""
    answer = await prometheus.query("time()")
    if len(answer) != 1:
        raise MetricsUnavailable(f"{prometheus.access.url} does not know the time: is this Prometheus?")
    ahead = answer[0].value - local
    if abs(ahead) <= SKEW_S:
        return local, ""
    word = "ahead of" if ahead > 0 else "behind"
    return answer[0].value, f"Prometheus' clock is {abs(ahead):.0f} s {word} this machine's: its own time is used"
