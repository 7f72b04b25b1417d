"""Advice that proves itself: both axes of a workload, chosen by replaying its own history before it is shown.

Either an HPA follows the load at the size that pods have, its target and stabilisation tuned, or pods get another CPU
request and their number stays. Never both: a target is a share of the request. What the replay finds worse, or not 2 %
better, is not advised.
"""

from __future__ import annotations

from typing import NamedTuple

from trimtab.core.advise import MeasuredWorkload, Objections, WorkloadAdvice
from trimtab.core.advise.inspect import DAY_S, inspect_pods, measured, scaled_already, too_short
from trimtab.core.advise.recommend import pod_request, pod_usage
from trimtab.core.advise.records import Against, Evidence, Objection, ReplayFigures
from trimtab.policy import Inspection, Size
from trimtab.tune.memory_advice import memory_sizes
from trimtab.tune.plans import AdvicePlan, Case, case_of, follow_load, resize, scaled_otherwise
from trimtab.tune.rolling_choice import GAIN

LEAST_DAYS = 2.0
HISTORY_S = 14 * DAY_S  # two weeks show whether weekdays differ
TOLERABLE = 0.5  # percent of the load; more violations than that, and than now, are no saving


class AdviceTerms(NamedTuple):
    """What a violated pod-minute is worth in pod-minutes, and how long a pod takes to serve."""

    lam: float
    startup_s: float

    def prove(self, rules: Inspection, workload: MeasuredWorkload, at: float) -> WorkloadAdvice | Objections:
        """Replicas or CPU requests, and memory, each better than what is there; or what speaks against advising."""
        against = _against(rules, workload, at)
        request = pod_request(workload)
        if isinstance(request, Objection):
            against.append(request)
        if against or isinstance(request, Objection):
            return Objections(reasons=tuple(against))
        case = case_of(workload, request, self.lam, self.startup_s)
        best = _best(rules, case)
        return _advice(rules, case, best)


def _against(rules: Inspection, workload: MeasuredWorkload, at: float) -> list[Objection]:
    against = inspect_pods(rules, workload, at) + measured(workload) + scaled_already(workload)
    if short := too_short(workload, LEAST_DAYS * DAY_S):
        against.append(short if short.value else Objection(reason=Against.NO_HISTORY))
    if why := scaled_otherwise(workload):
        against.append(Objection(reason=Against.SCALED_OTHERWISE, detail=why))
    return against


def _best(rules: Inspection, case: Case) -> AdvicePlan | None:
    """The cheapest plan that is better than what there is, if there is one."""
    plans = [*follow_load(rules, case)]
    # The target of an HPA is a share of the request: another request would move it. One of the pod as a whole stays.
    if case.workload.hpa is None and case.workload.pod_level.cpu_cores is None:
        plans += resize(rules, case)
    better = [plan for plan in plans if _better(plan.then, case.now)]
    return min(better, key=lambda plan: plan.then.j, default=None)


def _better(then: ReplayFigures, now: ReplayFigures) -> bool:
    return then.j < (1 - GAIN) * now.j and then.violations <= max(now.violations, TOLERABLE)


def _advice(rules: Inspection, case: Case, best: AdvicePlan | None) -> WorkloadAdvice:
    workload, now = case.workload, case.now
    then = best.then if best else now
    pods_after = best.pods if best else case.pods
    memory = memory_sizes(rules, workload, _busier(rules, case, best))
    cores = best.sizes if best else {}
    sizes = {
        name: Size(cpu_cores=cores.get(name), memory_bytes=memory.get(name))
        for name in workload.requests
        if name in cores or name in memory
    }
    old_bytes = {name: size.memory_bytes for name, size in workload.requests.items() if size.memory_bytes}
    saved_bytes = sum(case.pods * size - pods_after * memory.get(name, size) for name, size in old_bytes.items())
    return WorkloadAdvice(
        min_replicas=best.least if best else None,
        max_replicas=best.most if best else None,
        target_percent=best.percent if best else None,
        behavior=best.behavior if best else None,
        sizes=sizes,
        evidence=Evidence(
            pod_request_cores=case.request,
            pod_usage_cores=pod_usage(rules, workload),
            peak_cores=float(case.demand.values.max()),
            replicas_before=case.pods,
            replicas_after=pods_after,
            days=case.demand.days,
            present=now,
            then=then if best else None,
        ),
        saved_cores=now.cores - then.cores,
        saved_bytes=saved_bytes,
    )


def _busier(rules: Inspection, case: Case, best: AdvicePlan | None) -> float:
    """How many times as much each pod would carry: its memory may grow as much."""
    if best is None or best.percent is None:
        return 1.0
    usage = pod_usage(rules, case.workload)
    return max(1.0, best.percent / 100 * case.request / usage) if usage > 0 else 1.0
