"""workloads: targets and their past usage become what the core advises on.

The whole workload's usage is on a grid of a minute, that of single pods of five minutes: their percentile needs the
shape of a week, not its minutes, and there are many more of them. Upstream's numbers (`crane`) and advice on requests
look at every minute of every pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from math import ceil
from typing import NamedTuple

import numpy as np

from trimtab.advisor.targets import AdvisedTarget
from trimtab.core.advise import MeasuredWorkload
from trimtab.core.model import RUNNING
from trimtab.history.source import HistorySource, Level, Metric, Selection
from trimtab.kinds.cron import zone_of
from trimtab.policy import Advice, Inspection
from trimtab.series import Floats, Frame

STEP_S, POD_STEP_S = 60.0, 300.0
QUARTER_S = 900.0  # no zone's offset changes within a quarter of an hour
YOUNG_S = 900.0  # a pod that runs for less need not have samples yet


EVERYTHING: frozenset[tuple[Metric, Level]] = frozenset(
    [("cpu", "workload"), ("memory", "workload"), ("cpu", "pod"), ("memory", "pod")]
)


class HistoryWindow(NamedTuple):
    """Which past is looked at, and what the source knows of it."""

    start: float
    end: float
    step_s: float = STEP_S
    knows: frozenset[tuple[Metric, Level]] = EVERYTHING
    earlier_s: float = 0.0  # how long before its start the forecast looks back

    @staticmethod
    def before(at: float, rules: Inspection) -> HistoryWindow:
        """Whole steps, so that all levels of one history begin and end together."""
        end = at - at % POD_STEP_S
        return HistoryWindow(end - rules.history_s, end, earlier_s=rules.forecast_history_s - rules.history_s)


class PastLoad(NamedTuple):
    """Rows of frames, by their names; single pods as (container, pod) of their workload's row."""

    start: float
    step_s: float
    cpu: dict[str, Floats]
    memory: dict[str, Floats]
    pod_cpu: dict[str, dict[tuple[str, str], Floats]]
    pod_memory: dict[str, dict[tuple[str, str], Floats]]
    earlier_cpu: dict[str, Floats] = {}  # before `start`


async def fetch_past(
    source: HistorySource, targets: Sequence[AdvisedTarget], rules: Inspection, window: HistoryWindow
) -> PastLoad:
    """Everything this kind of advice needs to know of these targets: two to four selections, whatever their number."""
    namespaces = tuple(sorted({target.namespace for target in targets}))
    wanted = frozenset(target.row for target in targets)
    single_s = max(window.step_s, pod_step_s(rules))

    async def read(
        metric: Metric, level: Level, step_s: float, needed: bool = True, earlier_s: float = 0.0
    ) -> list[Frame]:
        if not needed or (metric, level) not in window.knows:
            return []
        selection = Selection(metric, level, namespaces, wanted)
        return [frame async for frame in source.pages(selection, window.start - earlier_s, window.end, step_s)]

    cpu, memory, pod_cpu, pod_memory = await asyncio.gather(
        read("cpu", "workload", window.step_s, earlier_s=window.earlier_s),
        read("memory", "workload", window.step_s, rules.advice is Advice.REPLICAS),
        read("cpu", "pod", single_s, rules.advice is not Advice.REPLICAS),
        read("memory", "pod", single_s, rules.advice in (Advice.RESOURCE, Advice.BOTH)),
    )
    begun = cpu[0].start if cpu else window.start
    before = max(0, ceil((window.start - begun) / window.step_s))
    rows = _rows(cpu)
    return PastLoad(
        start=begun + before * window.step_s,
        step_s=window.step_s,
        cpu={name: values[before:] for name, values in rows.items()},
        memory=_rows(memory),
        pod_cpu=_pods(pod_cpu),
        pod_memory=_pods(pod_memory),
        earlier_cpu={name: values[:before] for name, values in rows.items()},
    )


def pod_step_s(rules: Inspection) -> float:
    return STEP_S if rules.crane or rules.advice is Advice.RESOURCE else POD_STEP_S


def pod_share(rules: Inspection) -> float:
    """The room that one container of one pod takes, compared with a row of minutes."""
    metrics = {Advice.HPA: 1, Advice.RESOURCE: 2, Advice.REPLICAS: 0, Advice.BOTH: 2}[rules.advice]
    return metrics * STEP_S / pod_step_s(rules)


def _rows(frames: Iterable[Frame]) -> dict[str, Floats]:
    return {name: frame.values[row] for frame in frames for row, name in enumerate(frame.names)}


def _pods(frames: Iterable[Frame]) -> dict[str, dict[tuple[str, str], Floats]]:
    found: dict[str, dict[tuple[str, str], Floats]] = {}
    for name, values in _rows(frames).items():
        workload, container, pod = name.rsplit("/", 2)
        found.setdefault(workload, {})[container, pod] = values
    return found


def assemble(target: AdvisedTarget, past: PastLoad, rules: Inspection, at: float) -> MeasuredWorkload:
    """One workload as the core knows it."""
    cpu = past.cpu.get(target.row, np.empty(0))
    single = past.pod_cpu.get(target.row, {})
    return MeasuredWorkload(
        kind=target.kind,
        namespace=target.namespace,
        name=target.name,
        replicas=target.replicas,
        pods=target.pods,
        requests=target.requests,
        pod_level=target.pod_level,
        template=target.template,
        start=past.start,
        step_s=past.step_s,
        cpu_cores=cpu,
        earlier_cores=past.earlier_cpu.get(target.row, np.empty(0)),
        memory_bytes=past.memory.get(target.row),
        container_cpu=_pooled(single, target.requests),
        container_memory=_pooled(past.pod_memory.get(target.row, {}), target.requests),
        hours=hours_in(rules.timezone, past.start, past.step_s, len(cpu)),
        oom_bytes=target.oom_bytes,
        metrics=target.metrics,
        behavior=target.behavior,
        hpa=target.hpa,
        scaled_by=target.scaled_by,
        unmeasured=_unmeasured(target, {pod for _, pod in single}, at),
    )


def _pooled(single: dict[tuple[str, str], Floats], requests: Iterable[str]) -> dict[str, Floats]:
    """The samples of all pods for each container of the template; injected sidecars have no request to compare with.

    The same place of two containers is the same moment of one pod, so that they can be added up.
    """
    wanted = set(requests)
    rows = {key: values for key, values in single.items() if key[0] in wanted}
    pods = {pod: np.full_like(values, np.nan) for (_, pod), values in rows.items()}
    names = dict.fromkeys(container for container, _ in rows)
    return {name: np.concatenate([rows.get((name, pod), hole) for pod, hole in pods.items()]) for name in names}


def _unmeasured(target: AdvisedTarget, measured: set[str], at: float) -> tuple[str, ...]:
    if not measured:
        return ()
    grown = (
        pod
        for pod in target.pods
        if pod.phase == RUNNING and pod.ready and not pod.deleting and at - (pod.ready_since or at) > YOUNG_S
    )
    return tuple(pod.name for pod in grown if pod.name not in measured)


@lru_cache(maxsize=8)
def hours_in(zone: str, start: float, step_s: float, count: int) -> Floats:
    """The hour of the day of each sample on that zone's clock; worked out once for all workloads of a round."""
    times: Floats = start + step_s * np.arange(count, dtype=np.float64)
    quarters, which = np.unique(times // QUARTER_S, return_inverse=True)
    offsets = np.array([_offset_s(zone, float(quarter) * QUARTER_S) for quarter in quarters])
    hours: Floats = (times + offsets[which]) // 3600 % 24 if count else times
    return hours


def _offset_s(zone: str, at: float) -> float:
    offset = datetime.fromtimestamp(at, UTC).astimezone(zone_of(zone)).utcoffset()
    return offset.total_seconds() if offset else 0.0
