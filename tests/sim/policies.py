"""Policies on one total demand, for tests of the simulator."""

from __future__ import annotations

from trimtab.policy import (
    Absence,
    Bounds,
    Metric,
    MetricKind,
    Policy,
    Rate,
    Rule,
    Stabilise,
    Tolerance,
    TotalAverage,
    Utilization,
)

LOAD = Metric(kind=MetricKind.EXTERNAL, name="load")
CPU = Metric(kind=MetricKind.RESOURCE, name="cpu")


def on_load(
    target: float = 0.7,
    tolerance: float = 0.1,
    settle: tuple[Rule, ...] = (Stabilise(), Rate()),
    least: int = 2,
    most: int = 200,
    absence: Absence | None = None,
) -> Policy:
    signal = TotalAverage(metric=LOAD, target=target, tolerance=Tolerance(up=tolerance, down=tolerance))
    return Policy(
        signals=(signal,),
        settle=settle,
        bounds=Bounds(min_replicas=least, max_replicas=most),
        absence=absence or Absence(),
    )


def on_cpu(percent: int = 70, least: int = 2, most: int = 200) -> Policy:
    return Policy(
        signals=(Utilization(metric=CPU, percent=percent),),
        settle=(Stabilise(), Rate()),
        bounds=Bounds(min_replicas=least, max_replicas=most),
    )
