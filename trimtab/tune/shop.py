"""A small simulated shop: four workloads over two weeks, each scaled by default HPA and by trimtab.

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
    ContainerRule,
    ForecastChoice,
    Metric,
    MetricKind,
    Policy,
    Rate,
    Stabilise,
    TotalAverage,
    Utilization,
    Vertical,
)
from trimtab.quantity import GIB
from trimtab.sim.generate import Shape, generate
from trimtab.sim.protocol import DAY_STEPS
from trimtab.sim.run import Run, run
from trimtab.sim.score import LAMBDAS
from trimtab.sim.world import World
from trimtab.tune.backtest import Outcome, first_pods, judged
from trimtab.tune.candidates import TARGETS, with_setting
from trimtab.tune.demand import Demand
from trimtab.tune.rolling import GAIN
from trimtab.tune.tuner import tune

WEEK = 7 * DAY_STEPS
LAMBDA = LAMBDAS["balanced"]
BOUNDS = Bounds(min_replicas=2, max_replicas=100)
RULES = (Stabilise(), Rate())
SLOW_S = 300.0  # from here on it is worth to look ahead
FORESEEN_AFTER = 3 * DAY_STEPS  # before that a daily forecast knows too little to be judged


@dataclass(frozen=True)
class Workload:
    name: str
    about: str
    demand: Demand
    world: World
    default: Policy
    better: Policy  # what trimtab starts from before it tunes


class Result(NamedTuple):
    """Both policies in the second week, and how trimtab's came about."""

    workload: Workload
    default: Outcome
    ours: Outcome
    how: str
    decisions: tuple[str, ...]


def shop() -> list[Workload]:
    """The same four workloads every time."""
    return [_web(), _worker(), _search(), _cache()]


def play(workload: Workload) -> Result:
    """Tune on the first week, then replay both weeks and score the second."""
    first_week = workload.demand._replace(values=workload.demand.values[:WEEK])
    tuned = tune(workload.better, first_week, workload.world, LAMBDA)
    how = [f"target {tuned.setting.target:.0%}, tolerance {tuned.setting.tolerance:g}"]
    ours, found, said = tuned.policy, *_watched(tuned.policy, workload)
    if workload.world.startup_s >= SLOW_S:
        fuller = tuned.setting._replace(target=_next_target(tuned.setting.target))
        ahead = with_setting(workload.better, fuller, workload.world.pod_capacity)
        ahead = structs.replace(ahead, forecast=ForecastChoice(model="seasonal", quantile=0.9))
        foreseen, told = _watched(ahead, workload)
        if _j_of_first_week(ahead, foreseen, workload) < (1 - GAIN) * _j_of_first_week(ours, found, workload):
            ours, found, said = ahead, foreseen, told
            how = [f"target {fuller.target:.0%}, tolerance {fuller.tolerance:g}, a seasonal forecast"]
    if ours.vertical is not None:
        how.append("memory sized by use")
    before = _simulate(workload.default, workload)
    return Result(
        workload,
        judged("HPA", workload.default, before, 0.0, workload.world, LAMBDA, WEEK),
        judged("trimtab", ours, found, 0.0, workload.world, LAMBDA, WEEK),
        ", ".join(how),
        said,
    )


def _next_target(target: float) -> float:
    """Who sees the load coming needs less in reserve."""
    return next((one for one in TARGETS if one > target), target)


def _j_of_first_week(policy: Policy, found: Run, workload: Workload) -> float:
    return judged("", policy, found.until(WEEK), 0.0, workload.world, LAMBDA, FORESEEN_AFTER).score.j


def _simulate(policy: Policy, workload: Workload) -> Run:
    first = first_pods(policy, float(workload.demand.values[0]))
    return run(policy, workload.demand.values, workload.world, first_pods=first, seed=1)


def _watched(policy: Policy, workload: Workload) -> tuple[Run, tuple[str, ...]]:
    """A run with its two most telling decisions of the second week: the largest step up, and one that was held back."""
    best: dict[str, tuple[float, float, str]] = {}

    def watch(seen: Observation, memory: Memory, decision: Decision) -> None:
        if seen.at < WEEK * 15.0:
            return
        for kind, weight in _telling(seen, decision):
            if weight > best.get(kind, (0.0, 0.0, ""))[0]:
                best[kind] = (weight, seen.at, sentence(policy, seen, memory, decision))

    first = first_pods(policy, float(workload.demand.values[0]))
    found = run(policy, workload.demand.values, workload.world, first_pods=first, seed=1, watch=watch)
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
    return Policy(signals=(TotalAverage(metric=metric, target=0.7),), settle=RULES, bounds=BOUNDS)


def _web() -> Workload:
    shape = Shape(peak=30, valley=0.2, weekend=0.6, noise=0.06, bursts_a_day=1, burst=0.3, seed=11)
    world = World(startup_s=60, startup_jitter=(0.7, 1.6))
    demand = Demand("web", generate(shape), 0.0)
    return Workload("web", "a shop front: days and weekends", demand, world, _on_rate(), _on_rate())


def _worker() -> Workload:
    shape = Shape(peak=20, valley=0.5, noise=0.15, bursts_a_day=12, burst=0.8, burst_minutes=15, seed=12)
    world = World(startup_s=30, startup_jitter=(0.7, 1.6))
    demand = Demand("worker", generate(shape), 0.0)
    return Workload("worker", "a queue worker: bursts at any time", demand, world, _on_rate(), _on_rate())


def _search() -> Workload:
    shape = Shape(peak=24, valley=0.15, weekend=0.8, steep=3.5, noise=0.05, seed=13)
    world = World(startup_s=600, startup_jitter=(0.8, 1.3))
    demand = Demand("search", generate(shape), 0.0)
    return Workload("search", "ten minutes to load its index", demand, world, _on_rate(), _on_rate())


def _cache() -> Workload:
    """Somebody gave it four gibibytes a pod to be safe; it needs less, but not always equally much."""
    load = generate(Shape(peak=9, valley=0.3, noise=0.05, seed=14))
    content = generate(Shape(peak=5.6, valley=0.8, noise=0.01, bursts_a_day=3, burst=0.4, burst_minutes=20, seed=15))
    world = World(
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
    return Workload("cache", "more memory than it needs, to be safe", Demand("cache", load, 0.0), world, policy, better)
