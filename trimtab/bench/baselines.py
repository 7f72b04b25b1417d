"""The policies others run, as policies of ours, on the benchmark's load: one pod carries 1 at 100 %.

Each is a function of the load's warm-up days (only a schedule looks at them) and of the start-up time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec.structs import replace

from trimtab.bench.protocol import MAX_PODS, MIN_PODS, Load
from trimtab.core.requests import USUAL_TARGET
from trimtab.policy import (
    Blend,
    Bounds,
    Bridge,
    Bucket,
    Buckets,
    Capacity,
    ContainerRule,
    Cooldown,
    Delay,
    Factor,
    ForecastChoice,
    MaxFactor,
    Metric,
    MetricKind,
    MinFactor,
    PodAverage,
    Policy,
    Rate,
    RoundUp,
    Rule,
    ScheduledBounds,
    Signal,
    Size,
    Stabilise,
    StabiliseMax,
    Stage,
    Tolerance,
    TotalAverage,
    UpLimit,
    Utilization,
    Velocity,
    Vertical,
    Watermark,
    Weights,
)
from trimtab.sim.grid import DAY_STEPS
from trimtab.sim.oracle import pods_needed

Baseline = Callable[[Load], Policy]

LOAD = Metric(kind=MetricKind.EXTERNAL, name="load")
CPU = Metric(kind=MetricKind.RESOURCE, name="cpu")
BOUNDS = Bounds(min_replicas=MIN_PODS, max_replicas=MAX_PODS)
BEHAVIOR = (Stabilise(), Rate())
SIZES = ContainerRule(memory=False, least=Size(cpu_cores=0.5), most=Size(cpu_cores=4.0))
HOUR_S = 3600.0


def hpa(target: float = USUAL_TARGET, tolerance: float = 0.1, stabilise_s: float = 300.0) -> Policy:
    """HPA on request rate with its default behaviour: at most max(2n, n + 4) in a step, slowly down."""
    signal = TotalAverage(metric=LOAD, target=target, tolerance=Tolerance(up=tolerance, down=tolerance))
    return _policy(signal, (Stabilise(down_s=stabilise_s), Rate()))


def _policy(signal: Signal, rules: tuple[Rule, ...] = BEHAVIOR) -> Policy:
    return Policy(signals=(signal,), settle=rules, bounds=BOUNDS)


def on_cpu(rules: tuple[Rule, ...] = BEHAVIOR) -> Policy:
    return _policy(Utilization(metric=CPU, percent=round(USUAL_TARGET * 100)), rules)


def keda() -> Policy:
    """KEDA writes an HPA on an external metric, without `behavior` unless it is asked for."""
    return _policy(TotalAverage(metric=LOAD, target=USUAL_TARGET), (StabiliseMax(), UpLimit()))


def scheduled(load: Load) -> Policy:
    """No signal at all: each hour of the day has the pods that it needed at most on the warm-up days."""
    warmup = load.values[: load.warmup_days * DAY_STEPS]
    by_hour = pods_needed(warmup, MIN_PODS).reshape(load.warmup_days, 24, -1).max(axis=(0, 2)).tolist()
    hours = np.arange(load.days * 24) * HOUR_S + load.start
    spans = tuple(
        ScheduledBounds(name=f"hour {number % 24}", start=at, end=at + HOUR_S, min_replicas=pods, max_replicas=pods)
        for number, at in enumerate(hours.tolist())
        if (pods := min(MAX_PODS, by_hour[number % 24]))
    )
    return Policy(settle=(), bounds=replace(BOUNDS, spans=spans))


def custom_hpa() -> Policy:
    """Nanit custom-hpa with its chart's defaults."""
    rules = (MaxFactor(up=1.0, down=1.0), Cooldown(up_s=15.0, down_s=15.0), MinFactor(up=0.1, down=0.1), RoundUp())
    return _policy(Factor(metric=LOAD, target=USUAL_TARGET), rules)


def predictive(exact: bool) -> Policy:
    """Predictive HPA (McNaughton): a line of best fit over CPU utilization, with the forbidden windows of its time."""
    rules = (Cooldown(up_s=180.0, down_s=300.0, any_direction=True),)
    return replace(on_cpu(rules), forecast=ForecastChoice(model="linear", exact=exact))


def looking_ahead(model: str, horizon_s: float | None = None, exact: bool = False, quantile: float = 0.5) -> Policy:
    return replace(hpa(), forecast=ForecastChoice(model=model, horizon_s=horizon_s, exact=exact, quantile=quantile))


def watermarks() -> Policy:
    """The watermark autoscaler's defaults around 70 %."""
    signal = Watermark(metric=LOAD, low=0.6, high=0.75, average=True)
    rules = (Delay(), Velocity(), Cooldown(up_s=60.0, down_s=300.0, any_direction=True))
    return _policy(signal, rules)


def both_axes(blend: Blend | None, signal: Signal | None = None) -> Policy:
    """CPU by number and by size, from half a core to four."""
    chosen = signal or Utilization(metric=CPU, percent=round(USUAL_TARGET * 100))
    return replace(_policy(chosen), vertical=Vertical(containers=(SIZES,)), blend=blend)


def hvpa_weights() -> Policy:
    """HVPA weights: half of every change by size, half by number."""
    return both_axes(Weights(stages=(Stage(vertical_share=0.5, first=MIN_PODS, last=MAX_PODS),)))


def hvpa_buckets() -> Policy:
    """HVPA buckets: up to eight pods grow to two cores each, then more of them to four."""
    small = Bucket(replicas_min=MIN_PODS, replicas_max=8, least=Size(cpu_cores=0.5), most=Size(cpu_cores=2.0))
    large = Bucket(replicas_min=8, replicas_max=50, most=Size(cpu_cores=4.0))
    policy = both_axes(Buckets(buckets=(small, large)))
    return replace(policy, bounds=replace(BOUNDS, max_replicas=50))


def vpa_and_hpa() -> Policy:
    """HVPA's successor: VPA sizes, HPA counts on an average value, which a resize does not move."""
    return both_axes(None, PodAverage(metric=CPU, target=USUAL_TARGET))


def _always(policy: Policy) -> Baseline:
    return lambda load: policy


BASELINES: dict[str, Baseline] = {
    "hpa-default": _always(hpa()),
    "hpa-default-bridge": _always(replace(hpa(), bridge=Bridge(ceiling=0.70))),
    "hpa-cpu": _always(on_cpu()),
    "keda": _always(keda()),
    "schedule": scheduled,
    "custom-hpa": _always(custom_hpa()),
    "predictive-hpa": _always(predictive(exact=False)),
    "predictive-hpa-exact": _always(predictive(exact=True)),
    "holt-winters": _always(looking_ahead("holtWinters", exact=True)),
    "ehpa": _always(looking_ahead("dsp", horizon_s=HOUR_S, exact=True)),
    "hpa-seasonal": _always(looking_ahead("seasonal", quantile=0.9)),
    "watermark": _always(watermarks()),
    "hvpa-weights": _always(hvpa_weights()),
    "hvpa-buckets": _always(hvpa_buckets()),
    "vpa-hpa": _always(vpa_and_hpa()),
    "capacity": _always(both_axes(Capacity())),
}
