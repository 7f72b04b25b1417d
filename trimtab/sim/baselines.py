"""The policies others run, as policies of ours, on the benchmark's load: one pod carries 1 at 100 %."""

from __future__ import annotations

from trimtab.policy import Bounds, Metric, MetricKind, Policy, Rate, Stabilise, Tolerance, TotalAverage
from trimtab.sim.protocol import DEFAULT_TARGET, MAX_PODS, MIN_PODS

LOAD = Metric(kind=MetricKind.EXTERNAL, name="load")
BOUNDS = Bounds(min_replicas=MIN_PODS, max_replicas=MAX_PODS)


def hpa(target: float = DEFAULT_TARGET, tolerance: float = 0.1, stabilise_s: float = 300.0) -> Policy:
    """HPA on request rate with its default behaviour: at most max(2n, n + 4) in a step, slowly down."""
    signal = TotalAverage(metric=LOAD, target=target, tolerance=Tolerance(up=tolerance, down=tolerance))
    return Policy(signals=(signal,), settle=(Stabilise(down_s=stabilise_s), Rate()), bounds=BOUNDS)
