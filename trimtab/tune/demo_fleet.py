"""The demo's fleet, a small simulated shop: four workloads over two weeks, each scaled by default HPA and by trimtab.

trimtab is tuned on the first week only; both are scored on the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from msgspec import structs

from trimtab.core.explain import sentence
from trimtab.core.model import ContainerSize, Decision, Memory, Observation
from trimtab.policy import (
    Bounds,
    Bridge,
    ContainerRule,
    ForecastChoice,
    Metric,
    MetricKind,
    Objective,
    Policy,
    Rate,
    Stabilise,
    TotalAverage,
    Utilization,
    Vertical,
)
from trimtab.policy.objective import BRIDGED_START_SHARE
from trimtab.quantity import GIB
from trimtab.sim.cluster import Run, run
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.generate import LoadShape, generate
from trimtab.sim.grid import DAY_STEPS, STEP_S
from trimtab.sim.prices import OBJECTIVES
from trimtab.tune.demand import DEFAULT_TARGET, Demand
from trimtab.tune.policy_backtest import BacktestOutcome, first_pods, judged
from trimtab.tune.rolling_choice import GAIN
from trimtab.tune.tuner import tune

WEEK = 7 * DAY_STEPS
PRICE = OBJECTIVES["balanced"]
BOUNDS = Bounds(min_replicas=2, max_replicas=100)
RULES = (Stabilise(), Rate())
SLOW_S = 300.0  # from here on it is worth to look ahead
FORECAST_AFTER = 3 * DAY_STEPS  # before that a forecast knows too little to be judged
BRIDGED_OBJECTIVE = {
    "objective": Objective(price=PRICE, start_share=BRIDGED_START_SHARE),
    "forecast": ForecastChoice(model="learned"),
    "bridge": Bridge(),
}


@dataclass(frozen=True)
class DemoWorkload:
    name: str
    about: str
    demand: Demand
    cluster: ClusterSpec
    default: Policy
    better: Policy  # what trimtab starts from before it tunes


class DemoResult(NamedTuple):
    """Both policies in the second week, and how trimtab's came about."""

    workload: DemoWorkload
    default: BacktestOutcome
    ours: BacktestOutcome
    how: str
    decisions: tuple[str, ...]
    policy: Policy  # trimtab's


def demo_fleet() -> list[DemoWorkload]:
    """The same four workloads every time."""
    return [_web(), _worker(), _search(), _cache()]


def play(workload: DemoWorkload) -> DemoResult:
    """Tune on the first week, then replay both weeks and score the second."""
    first_week = workload.demand._replace(values=workload.demand.values[:WEEK])
    tuned = tune(workload.better, first_week, workload.cluster, PRICE)
    how = [f"target {tuned.setting.target:.0%}, tolerance {tuned.setting.tolerance:g}"]
    ours, found, said = tuned.policy, *_watched(tuned.policy, workload)
    if workload.cluster.startup_s >= SLOW_S:
        priced = structs.replace(workload.better, **BRIDGED_OBJECTIVE)
        priced_run, told = _watched(priced, workload)
        if _j_of_first_week(priced, priced_run, workload) < (1 - GAIN) * _j_of_first_week(ours, found, workload):
            ours, found, said = priced, priced_run, told
            how = [f"an objective (price {PRICE:g}) with its learned forecast, and the bridge"]
    if ours.vertical is not None:
        how.append("memory sized by use")
    before = _simulate(workload.default, workload)
    return DemoResult(
        workload,
        judged("HPA", workload.default, before, 0.0, workload.cluster, PRICE, WEEK),
        judged("trimtab", ours, found, 0.0, workload.cluster, PRICE, WEEK),
        ", ".join(how),
        said,
        ours,
    )


def _j_of_first_week(policy: Policy, found: Run, workload: DemoWorkload) -> float:
    return judged("", policy, found.until(WEEK), 0.0, workload.cluster, PRICE, FORECAST_AFTER).score.j


def _simulate(policy: Policy, workload: DemoWorkload) -> Run:
    first = first_pods(policy, float(workload.demand.values[0]))
    return run(policy, workload.demand.values, workload.cluster, first_pods=first, seed=1)


def _watched(policy: Policy, workload: DemoWorkload) -> tuple[Run, tuple[str, ...]]:
    """A run with its two most telling decisions of the second week: the largest step up, and one that was held back."""
    best: dict[str, tuple[float, float, str]] = {}

    def watch(seen: Observation, memory: Memory, decision: Decision) -> None:
        if seen.at < WEEK * STEP_S:
            return
        for kind, weight in _telling(seen, decision):
            if weight > best.get(kind, (0.0, 0.0, ""))[0]:
                best[kind] = (weight, seen.at, sentence(policy, seen, memory, decision))

    first = first_pods(policy, float(workload.demand.values[0]))
    found = run(policy, workload.demand.values, workload.cluster, first_pods=first, seed=1, watch=watch)
    return found, tuple(f"{_clock(at)}  {said}" for _, at, said in best.values())


def _telling(seen: Observation, decision: Decision) -> list[tuple[str, float]]:
    """Which kinds of story a decision tells, and how strongly."""
    change = decision.change
    if change is not None and change.sizes:
        return [("resize", max(_growth(seen, name, size) for name, size in change.sizes.items()))]
    if change is not None and change.replicas is not None and change.replicas > seen.spec_replicas:
        return [("up", float(change.replicas - seen.spec_replicas))]
    held = [step.before for step in decision.steps if step.until is not None and step.after == seen.spec_replicas]
    return [("held", abs(seen.spec_replicas - held[0]))] if held else []


def _growth(seen: Observation, name: str, size: ContainerSize) -> float:
    before, after = seen.sizes[name].requests.memory_bytes, size.requests.memory_bytes
    return abs(after / before - 1) if before and after else 0.0


def _clock(at: float) -> str:
    return f"day {int(at // 86400) + 1} {int(at % 86400 // 3600):02d}:{int(at % 3600 // 60):02d}"


def _on_rate() -> Policy:
    metric = Metric(kind=MetricKind.EXTERNAL, name="requests")
    return Policy(signals=(TotalAverage(metric=metric, target=DEFAULT_TARGET),), settle=RULES, bounds=BOUNDS)


def _web() -> DemoWorkload:
    shape = LoadShape(peak=30, valley=0.2, weekend=0.6, noise=0.06, bursts_a_day=1, burst=0.3, seed=11)
    cluster = ClusterSpec(startup_s=60, startup_jitter=(0.7, 1.6))
    demand = Demand("web", generate(shape), 0.0)
    return DemoWorkload("web", "a shop front: days and weekends", demand, cluster, _on_rate(), _on_rate())


def _worker() -> DemoWorkload:
    shape = LoadShape(peak=20, valley=0.5, noise=0.15, bursts_a_day=12, burst=0.8, burst_minutes=15, seed=12)
    cluster = ClusterSpec(startup_s=30, startup_jitter=(0.7, 1.6))
    demand = Demand("worker", generate(shape), 0.0)
    return DemoWorkload("worker", "a queue worker: bursts at any time", demand, cluster, _on_rate(), _on_rate())


def _search() -> DemoWorkload:
    shape = LoadShape(peak=24, valley=0.15, weekend=0.8, steep=3.5, noise=0.05, seed=13)
    cluster = ClusterSpec(startup_s=600, startup_jitter=(0.8, 1.3))
    demand = Demand("search", generate(shape), 0.0)
    return DemoWorkload("search", "ten minutes to load its index", demand, cluster, _on_rate(), _on_rate())


def _cache() -> DemoWorkload:
    """Somebody gave it four gibibytes per pod to be safe; it needs less, but not always equally much."""
    load = generate(LoadShape(peak=9, valley=0.3, noise=0.05, seed=14))
    content = generate(
        LoadShape(peak=5.6, valley=0.8, noise=0.01, bursts_a_day=3, burst=0.4, burst_minutes=20, seed=15)
    )
    cluster = ClusterSpec(
        startup_s=60,
        startup_jitter=(0.7, 1.6),
        pod_memory_bytes=4.0 * GIB,
        base_memory_bytes=0.25 * GIB,
        memory_load=content * GIB,
    )
    cpu = Utilization(metric=Metric(kind=MetricKind.RESOURCE, name="cpu"), percent=70)
    policy = Policy(signals=(cpu,), settle=RULES, bounds=BOUNDS)
    memory_only = Vertical(containers=(ContainerRule(cpu=False),))
    better = structs.replace(policy, vertical=memory_only)
    return DemoWorkload(
        "cache", "more memory than it needs, to be safe", Demand("cache", load, 0.0), cluster, policy, better
    )
