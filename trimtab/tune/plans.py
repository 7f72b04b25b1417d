"""What could be changed about a workload, each plan replayed on its own history.

Figures are in cores, so that plans with pods of different sizes compare: 1.0 is the optimum of the present size.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from trimtab.advisor.targets import is_cpu_utilization
from trimtab.core.advise import MeasuredWorkload
from trimtab.core.advise.formulas import least_replicas, most_replicas
from trimtab.core.advise.recommend import pod_usage, quantile
from trimtab.core.advise.records import ReplayFigures
from trimtab.errors import InvalidInput
from trimtab.kinds import Scaler, read
from trimtab.policy import Inspection, Policy
from trimtab.series import Frame
from trimtab.sim.grid import DAY_STEPS, MEAN_STEPS, STEP_S, delay_steps
from trimtab.sim.numba_engine import sweep
from trimtab.sim.oracle import optimum, pods_needed
from trimtab.sim.program import program, uncovered
from trimtab.sim.score import SLO, Actuator, Days, measure
from trimtab.sim.sliding_windows import trailing_mean
from trimtab.tune.candidates import TARGETS, Setting, in_the_lane, setting_of, windows_s, with_setting
from trimtab.tune.demand import Demand, demand_of
from trimtab.tune.policy_backtest import first_pods

LEAST_CORES = 0.01
LEVELS = (0.9, 0.95, 0.99, 0.999, 1.0)  # of the load, that pods of a fixed number may be sized for
UNBOUND = 100_000
Spec = dict[str, Any]


class AdvicePlan(NamedTuple):
    """Bounds and a target for an HPA, or CPU requests; what it would have done, and its mean number of pods."""

    then: ReplayFigures
    pods: float
    least: int | None = None
    most: int | None = None
    percent: int | None = None
    behavior: Spec | None = None
    sizes: dict[str, float] = {}  # cores by container


class Case(NamedTuple):
    """One workload with its demand in cores, and how its present settings did."""

    workload: MeasuredWorkload
    demand: Demand
    request: float  # cores of one pod
    lam: float
    startup_s: float
    optimum: float  # core-steps
    now: ReplayFigures
    pods: float  # now, on average

    def judged(self, days: Days, cores: float) -> ReplayFigures:
        """The figures of a run with pods of so many cores."""
        pods, load = float(days.pods.sum()), float(days.load.sum())
        return ReplayFigures(
            cores=pods * cores / len(self.demand.values),
            violations=100.0 * float(days.violating.sum()) / load if load > 0 else 0.0,
            cost=pods * cores / self.optimum,
            j=float(days.j(self.lam).sum()) * cores / self.optimum,
        )

    def mean_pods(self, days: Days) -> float:
        return float(days.pods.sum()) / len(self.demand.values)

    def replay(self, policies: list[Policy]) -> list[Days]:
        """Each policy on the total of the load."""
        values = self.demand.values
        programs = [program(policy, STEP_S) for policy in policies]
        load, signal = values / self.request, trailing_mean(values, MEAN_STEPS)
        first = first_pods(policies[0], float(load[0]))
        actuator = Actuator(delay_steps(self.startup_s))
        return [days for (days,) in sweep(load, signal, programs, first, [actuator], DAY_STEPS)]

    def standing(self, pods: int, cores: float) -> Days:
        """A fixed number of pods of one size."""
        values = self.demand.values
        return measure(values / cores, np.full(len(values), pods, dtype=np.int32), 0, DAY_STEPS)

    def policy(self, spec: Spec) -> Policy:
        return in_the_lane(policy_of(self.workload, spec, self.demand.start), self.request)


def case_of(workload: MeasuredWorkload, request: float, lam: float, startup_s: float) -> Case:
    row = f"{workload.namespace}/{workload.kind}/{workload.name}"
    demand = demand_of(Frame((row,), workload.start, workload.step_s, workload.cpu_cores[np.newaxis, :]), row)
    best = optimum(pods_needed(demand.values / request, 1), delay_steps(startup_s))
    unjudged = ReplayFigures(cores=0.0, violations=0.0, cost=0.0, j=0.0)
    case = Case(workload, demand, request, lam, startup_s, float(best.sum()) * request, unjudged, 0.0)
    days = case.replay([case.policy(workload.hpa)])[0] if workload.hpa else case.standing(workload.replicas, request)
    return case._replace(now=case.judged(days, request), pods=case.mean_pods(days))


def scaled_otherwise(workload: MeasuredWorkload) -> str:
    """Why an existing HPA cannot be replayed on the usage of CPU; empty where it can."""
    if workload.hpa is None:
        return ""
    metrics = workload.hpa.get("metrics") or []
    if len(metrics) > 1 or not all(map(is_cpu_utilization, metrics)):
        return ", ".join(str(metric.get("type")) for metric in metrics)
    try:
        return uncovered(in_the_lane(policy_of(workload, workload.hpa, 0.0), 1.0))
    except InvalidInput as error:
        return str(error)


def policy_of(workload: MeasuredWorkload, spec: Spec, start: float) -> Policy:
    target = {"apiVersion": "apps/v1", "kind": workload.kind, "name": workload.name}
    kind = read(
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": workload.name, "namespace": workload.namespace},
            "spec": {**spec, "scaleTargetRef": target},
        }
    )
    assert isinstance(kind, Scaler)
    return kind.to_policy(start)


# --- replicas that follow the load -----------------------------------------------------------------------------------


def follow_load(rules: Inspection, case: Case) -> Iterator[AdvicePlan]:
    """An HPA at the present size, tuned. What runs once, or has members, may not be able to run more often."""
    workload = case.workload
    if workload.hpa is None and (workload.kind in ("StatefulSet", "DaemonSet") or workload.replicas < 2):
        return
    spec = hpa_spec(rules, case, max(TARGETS), UNBOUND)
    base = case.policy(spec)
    tolerance = setting_of(base, case.request).tolerance
    family = [Setting(target, tolerance, window) for window in windows_s(base) for target in TARGETS]
    candidates = [with_setting(base, setting, case.request) for setting in family]
    totals = [float(days.j(case.lam).sum()) for days in case.replay(candidates)]
    best = family[int(np.argmin(totals))]
    spec = hpa_spec(rules, case, best.target, most_for(rules, case, best.target))
    behavior = deepcopy(spec.get("behavior") or {})
    behavior.setdefault("scaleDown", {})["stabilizationWindowSeconds"] = int(best.stabilise_s)
    (days,) = case.replay([case.policy(spec | {"behavior": behavior})])  # as it is written
    yield AdvicePlan(
        then=case.judged(days, case.request),
        pods=case.mean_pods(days),
        least=spec["minReplicas"],
        most=spec["maxReplicas"],
        percent=round(best.target * 100),
        behavior=behavior,
    )


def hpa_spec(rules: Inspection, case: Case, target: float, most: int) -> Spec:
    """The present HPA, or a new one, with this target."""
    present = case.workload.hpa or {}
    default = min(rules.default_min_replicas, case.workload.replicas)
    trough = float(case.workload.medians.min())
    least = present.get("minReplicas") or (
        1 if present else least_replicas(trough, case.request, rules.max_cpu_target_percent / 100, default)
    )
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": round(target * 100)}}
    behavior = {"behavior": present["behavior"]} if present.get("behavior") else {}
    bounds = {"minReplicas": least, "maxReplicas": max(least, most)}
    return bounds | {"metrics": [{"type": "Resource", "resource": cpu}]} | behavior


def most_for(rules: Inspection, case: Case, target: float) -> int:
    """Of a present HPA its own, unless the peak needs more; else document 000's, and never less than the peak needs."""
    peak = ceil(float(case.demand.values.max()) / (case.request * target))
    if case.workload.hpa:
        return max(peak, int(case.workload.hpa.get("maxReplicas") or 1))
    p95 = quantile(rules, case.workload.cpu_cores, rules.cpu_percentile)
    return most_replicas(p95, case.request, target, rules.max_replicas_factor, peak)


# --- pods of another size --------------------------------------------------------------------------------------------


def resize(rules: Inspection, case: Case) -> Iterator[AdvicePlan]:
    """As many pods as now, with CPU requests for some level of the load, and at least for what single pods use."""
    pods = case.workload.replicas
    floor = max(LEAST_CORES, pod_usage(rules, case.workload) * (1 + rules.request_margin))
    for level in np.unique(np.quantile(case.demand.values, LEVELS)):
        sizes = split(case.workload, max(floor, float(level) / (SLO * pods)))
        cores = sum(sizes.values())
        yield AdvicePlan(then=case.judged(case.standing(pods, cores), cores), pods=float(pods), sizes=sizes)


def split(workload: MeasuredWorkload, cores: float) -> dict[str, float]:
    """Among the containers as they use it, else as they request it; whole millicores."""
    used = {name: float(np.nanmean(values)) for name, values in workload.container_cpu.items() if len(values)}
    weights = used if set(used) == set(workload.requests) and sum(used.values()) > 0 else None
    weights = weights or {name: size.cpu_cores or 0.0 for name, size in workload.requests.items()}
    total = sum(weights.values())
    return {name: max(1, ceil(1000 * cores * weight / total - 1e-6)) / 1000 for name, weight in weights.items()}
