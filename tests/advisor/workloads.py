"""Workloads and their past, made up: what the advisor's tests look at."""

from __future__ import annotations

from collections.abc import AsyncIterator

import numpy as np

from trimtab.advisor.targets import AdvisedTarget
from trimtab.advisor.workloads import HistoryWindow
from trimtab.core.model import Pod
from trimtab.errors import MetricsUnavailable
from trimtab.history.source import Selection
from trimtab.policy import Inspection, Size
from trimtab.series import Floats, Frame

END = 1_700_006_400.0 + 7 * 86400  # a midnight
STEPS = 7 * 1440
WINDOW = HistoryWindow(END - 7 * 86400, END)
OPEN = Inspection(min_cpu_usage_cores=0.0, fluctuation_threshold=0.0)


def office_hours(night: float = 2.0, day: float = 8.0) -> Floats:
    hours = np.arange(STEPS) // 60 % 24
    return np.where((hours >= 8) & (hours < 20), day, night).astype(np.float64)


def target(name: str, replicas: int = 10, cpu: float | None = 1.0, **rest: object) -> AdvisedTarget:
    since = END - 86400.0
    pods = tuple(Pod(name=f"{name}-{index}", started_at=since, ready_since=since) for index in range(replicas))
    size = Size(cpu_cores=cpu, memory_bytes=2.0**30)
    given: dict[str, object] = {"requests": {"app": size}, "pods": pods, "uid": name} | rest
    return AdvisedTarget("apps/v1", "Deployment", "shop", name, replicas, **given)  # type: ignore[arg-type]


class Remembered:
    """A Source over rows in memory; it refuses to speak of some workloads, and counts what it is asked."""

    def __init__(self, rows: dict[str, Floats], broken: frozenset[str] = frozenset()) -> None:
        self.rows, self.broken, self.asked = rows, broken, list[Selection]()

    async def pages(self, selection: Selection, start: float, end: float, step_s: float) -> AsyncIterator[Frame]:
        self.asked.append(selection)
        if selection.workloads & self.broken:
            raise MetricsUnavailable("503 from the metrics server")
        slashes = {"workload": 2, "container": 3, "pod": 4}[selection.level]
        names = tuple(
            name
            for name in self.rows
            if name.count("/") == slashes and "/".join(name.split("/")[:3]) in selection.workloads
        )
        if names:
            width = round(step_s / 60)
            values = np.stack([self.rows[name] for name in names])[:, ::width]
            yield Frame(names, start, step_s, values)
