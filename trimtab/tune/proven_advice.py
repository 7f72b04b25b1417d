"""Advice that proves itself: both axes of a workload, chosen by replaying its own history before it is shown.

Either an HPA follows the load at the size that pods have, with the settings that `trimtab tune` finds, or pods get
another CPU request and their number stays. Never both: a target is a share of the request. What the replay finds worse,
or not 2 % better, is not advised.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from trimtab.advisor.targets import is_cpu_utilization
from trimtab.core.advise import MeasuredWorkload, Objections, WorkloadAdvice
from trimtab.core.advise.formulas import after_oom, least_replicas, most_replicas
from trimtab.core.advise.inspect import DAY_S, inspect_pods, measured, scaled_already, too_short
from trimtab.core.advise.recommend import pod_request, pod_usage, quantile
from trimtab.core.advise.records import Against, Evidence, Objection
from trimtab.core.figures import Figures, JudgedSettings
from trimtab.core.model import Pod
from trimtab.core.requests import ContainerRequest, with_requests
from trimtab.errors import InvalidInput, InvalidPolicy
from trimtab.kinds import Scaler, read
from trimtab.policy import Inspection, Policy, Size
from trimtab.quantity import MIB
from trimtab.series import Frame
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.grid import DAY_STEPS
from trimtab.sim.score import Days, measure
from trimtab.tune.case import Case
from trimtab.tune.demand import demand_of
from trimtab.tune.judge import cluster_of, judged_pod
from trimtab.tune.manifest import tunable_manifest, with_new_settings, writable_space
from trimtab.tune.rolling_choice import GAIN
from trimtab.tune.search import TARGETS, Trial, search, space_of

LEAST_DAYS = 2.0
HISTORY_S = 14 * DAY_S  # two weeks show whether weekdays differ
TOLERABLE = 0.5  # percent of the load; more violations than that, and than now, are no saving
LEAST_CORES = 0.01
LEVELS = (0.9, 0.95, 0.99, 0.999, 1.0)  # of the load, that pods of a fixed number may be sized for
UNBOUND = 100_000
LEAST_CHANGE = 0.05  # of the memory request: less is not worth a restart
Spec = dict[str, Any]


class AdvicePlan(NamedTuple):
    """Bounds and settings for an HPA, or CPU requests; what it would have done, and its mean number of pods."""

    then: Figures
    pods: float
    advice: WorkloadAdvice
    without_tolerance: JudgedSettings | None = None  # the best where the API server drops `tolerance`
    tuned: JudgedSettings | None = None  # of an HPA that exists: what `trimtab tune` finds better


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
        advised = AdvisedCase(rules, workload, request, self)
        return _advice(advised, _best(advised))


class AdvisedCase:
    """One workload with its demand in cores, and how its present replicas or HPA did."""

    def __init__(self, rules: Inspection, workload: MeasuredWorkload, request: float, terms: AdviceTerms) -> None:
        self.rules, self.workload, self.request = rules, workload, request
        row = f"{workload.namespace}/{workload.kind}/{workload.name}"
        frame = Frame((row,), workload.start, workload.step_s, workload.cpu_cores[np.newaxis, :])
        demand = demand_of(frame, row).last_whole_days()
        spec = workload.hpa or new_hpa(rules, workload, request, max(TARGETS), UNBOUND)
        self.manifest = tunable_manifest(hpa_manifest(workload, spec))
        policy = policy_of(self.manifest.manifest, demand.start)
        self.pod = judged_pod(policy, template_of(workload)).judged
        self.case = Case(demand, policy, cluster_of(self.pod, startup_s=terms.startup_s), terms.lam)
        self.now, self.pods = self._replay() if workload.hpa else self.standing(workload.replicas, request)

    def replayed(self, manifest: Spec) -> tuple[Figures, float]:
        """What another HPA would have done, and its mean number of pods."""
        return self._replay(policy_of(manifest, self.case.demand.start))

    def _replay(self, policy: Policy | None = None) -> tuple[Figures, float]:
        (days,) = self.case.days([policy or self.case.policy])
        assert days is not None
        return self._figures(days, self.request)

    def standing(self, pods: int, cores: float) -> tuple[Figures, float]:
        """A fixed number of pods of one size."""
        values, spec = self.case.demand.values, self.case.pods
        replicas = np.full(len(values), pods, dtype=np.int32)
        share, most, scored = spec.level_share, spec.ceiling_share, self.case.scored
        days = measure(values / cores, replicas, 0, DAY_STEPS, share, ceiling=most, scored=scored)
        return self._figures(days, cores)

    def _figures(self, days: Days, cores: float) -> tuple[Figures, float]:
        """Pods of another size are counted in cores: the optimum is that of the present size."""
        steps = float(self.case.scored.sum()) or len(self.case.demand.values)
        found, pods = self.case.figures(days), float(days.pods.sum()) / steps
        share = cores / self.request
        return replace(found, j=found.j * share, cost=found.cost * share, cores=pods * cores), pods


def template_of(workload: MeasuredWorkload) -> Pod:
    """A pod of its template; where that is not known, one with its requests and without limits."""
    if workload.template is not None:
        return workload.template
    containers = [ContainerRequest(name=name, request=size) for name, size in workload.requests.items()]
    return with_requests(Pod(name=workload.name), containers, workload.pod_level)


def _against(rules: Inspection, workload: MeasuredWorkload, at: float) -> list[Objection]:
    against = inspect_pods(rules, workload, at) + measured(workload) + scaled_already(workload)
    if short := too_short(workload, LEAST_DAYS * DAY_S):
        against.append(short if short.value else Objection(reason=Against.NO_HISTORY))
    if why := scaled_otherwise(workload):
        against.append(Objection(reason=Against.SCALED_OTHERWISE, detail=why))
    return against


def scaled_otherwise(workload: MeasuredWorkload) -> str:
    """Why an existing HPA cannot be replayed on the usage of CPU; empty where it can."""
    if workload.hpa is None:
        return ""
    metrics = workload.hpa.get("metrics") or []
    if len(metrics) > 1 or not all(map(is_cpu_utilization, metrics)):
        return ", ".join(str(metric.get("type")) for metric in metrics)
    try:
        manifest = tunable_manifest(hpa_manifest(workload, workload.hpa)).manifest
        flat = Frame(("",), 0.0, 60.0, np.ones((1, 2 * 1440)))
        case = Case(demand_of(flat, ""), policy_of(manifest, 0.0), ClusterSpec(), 1.0)
        Trial(case, space_of(case.policy, case.pods))
    except (InvalidInput, InvalidPolicy) as error:
        return str(error)
    return ""


def hpa_manifest(workload: MeasuredWorkload, spec: Spec) -> Spec:
    target = {"apiVersion": "apps/v1", "kind": workload.kind, "name": workload.name}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": workload.name, "namespace": workload.namespace},
        "spec": {**spec, "scaleTargetRef": target},
    }


def policy_of(manifest: Spec, start: float) -> Policy:
    kind = read(manifest)
    assert isinstance(kind, Scaler)
    return kind.to_policy(start)


class BestPlan(NamedTuple):
    """The cheapest plan that is better than what there is, if there is one, and what was refused."""

    plan: AdvicePlan | None
    refused: JudgedSettings | None  # what `trimtab tune` finds, where it would overload more than recommend allows


def _best(advised: AdvisedCase) -> BestPlan:
    plans = [*follow_load(advised)]
    # The target of an HPA is a share of the request: another request would move it. One of the pod as a whole stays.
    if advised.workload.hpa is None and advised.workload.pod_level.cpu_cores is None:
        plans += resize(advised)
    better = [plan for plan in plans if _better(plan, advised.now)]
    refused = next((plan.tuned for plan in plans if plan not in better), None)
    return BestPlan(min(better, key=lambda plan: plan.then.j, default=None), refused)


def _better(plan: AdvicePlan, now: Figures) -> bool:
    gains = plan.tuned is not None or plan.then.j < (1 - GAIN) * now.j
    return gains and plan.then.violations <= max(now.violations, TOLERABLE)


# --- replicas that follow the load -----------------------------------------------------------------------------------


def follow_load(advised: AdvisedCase) -> Iterator[AdvicePlan]:
    """An HPA at the present size, with the settings that `trimtab tune` finds. What runs once, or has members, may not
    be able to run more often."""
    workload, case = advised.workload, advised.case
    if workload.hpa is None and (workload.kind in ("StatefulSet", "DaemonSet") or workload.replicas < 2):
        return
    in_force = workload.hpa is not None
    choice = search(case, writable_space("HorizontalPodAutoscaler", case.policy, case.pods), careful=in_force)
    if in_force and not choice.changed:
        return
    written = with_new_settings(advised.manifest, choice.was, choice.now)
    spec = written.manifest["spec"]
    if not in_force:
        spec["maxReplicas"] = max(spec["minReplicas"], most_for(advised, choice.now.target / 100))
    then, pods = advised.replayed(written.manifest)
    tuned = JudgedSettings(settings=choice.now, figures=choice.after)
    advice = WorkloadAdvice(
        min_replicas=spec.get("minReplicas", 1),
        max_replicas=spec["maxReplicas"],
        target_percent=round(choice.now.target),
        behavior=spec.get("behavior"),
    )
    yield AdvicePlan(then, pods, advice, choice.without_tolerance, tuned if in_force else None)


def new_hpa(rules: Inspection, workload: MeasuredWorkload, request: float, target: float, most: int) -> Spec:
    """An HPA for a workload that has none, with the floor of Crane's rules."""
    default = min(rules.default_min_replicas, workload.replicas)
    trough = float(workload.medians.min())
    least = least_replicas(trough, request, rules.max_cpu_target_percent / 100, default)
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": round(target * 100)}}
    metrics = [{"type": "Resource", "resource": cpu}]
    return {"minReplicas": least, "maxReplicas": max(least, most), "metrics": metrics}


def most_for(advised: AdvisedCase, target: float) -> int:
    """The ceiling of Crane's rules, and never less than the peak needs."""
    rules, request = advised.rules, advised.request
    peak = ceil(float(advised.case.demand.values.max()) / (request * target))
    p95 = quantile(rules, advised.workload.cpu_cores, rules.cpu_percentile)
    return most_replicas(p95, request, target, rules.max_replicas_factor, peak)


# --- pods of another size --------------------------------------------------------------------------------------------


def resize(advised: AdvisedCase) -> Iterator[AdvicePlan]:
    """As many pods as now, with CPU requests for some level of the load, and at least for what single pods use."""
    rules, workload, values = advised.rules, advised.workload, advised.case.demand.values
    floor = max(LEAST_CORES, pod_usage(rules, workload) * (1 + rules.request_margin))
    for level in np.unique(np.quantile(values, LEVELS)):
        sizes = split(workload, max(floor, float(level) / (advised.pod.share * workload.replicas)))
        then, pods = advised.standing(workload.replicas, sum(sizes.values()))
        yield AdvicePlan(
            then, pods, WorkloadAdvice(sizes={name: Size(cpu_cores=cores) for name, cores in sizes.items()})
        )


def split(workload: MeasuredWorkload, cores: float) -> dict[str, float]:
    """Among the containers as they use it, else as they request it; whole millicores."""
    known = {name: values[np.isfinite(values)] for name, values in workload.container_cpu.items()}
    used = {name: float(values.mean()) for name, values in known.items() if len(values)}
    weights = used if set(used) == set(workload.requests) and sum(used.values()) > 0 else None
    weights = weights or {name: size.cpu_cores or 0.0 for name, size in workload.requests.items()}
    total = sum(weights.values())
    return {name: max(1, ceil(1000 * cores * weight / total - 1e-6)) / 1000 for name, weight in weights.items()}


# --- memory, and what all of it comes to -----------------------------------------------------------------------------


def _advice(advised: AdvisedCase, found: BestPlan) -> WorkloadAdvice:
    workload, now, best = advised.workload, advised.now, found.plan
    advice, then, pods_after = (best.advice, best.then, best.pods) if best else (WorkloadAdvice(), now, advised.pods)
    memory = memory_sizes(advised.rules, workload, _busier(advised, advice))
    sizes = {
        name: Size(cpu_cores=advice.sizes.get(name, Size()).cpu_cores, memory_bytes=memory.get(name))
        for name in workload.requests
        if name in advice.sizes or name in memory
    }
    old_bytes = {name: size.memory_bytes for name, size in workload.requests.items() if size.memory_bytes}
    saved_bytes = sum(advised.pods * size - pods_after * memory.get(name, size) for name, size in old_bytes.items())
    return replace(
        advice,
        sizes=sizes,
        evidence=Evidence(
            pod_request_cores=advised.request,
            level=str(advised.pod),
            pod_usage_cores=pod_usage(advised.rules, workload),
            peak_cores=float(advised.case.demand.values.max()),
            replicas_before=advised.pods,
            replicas_after=pods_after,
            days=advised.case.demand.days,
            present=now,
            then=then if best else None,
            without_tolerance=best.without_tolerance if best else None,
            refused=found.refused,
        ),
        saved_cores=now.cores - then.cores,
        saved_bytes=saved_bytes,
    )


def _busier(advised: AdvisedCase, advice: WorkloadAdvice) -> float:
    """How many times as much each pod would carry: its memory may grow as much."""
    if advice.target_percent is None:
        return 1.0
    usage = pod_usage(advised.rules, advised.workload)
    return max(1.0, advice.target_percent / 100 * advised.request / usage) if usage > 0 else 1.0


def memory_sizes(rules: Inspection, workload: MeasuredWorkload, busier: float) -> dict[str, float]:
    """New requests in bytes by container, of those that should change: the highest usage with a margin on top."""
    found: dict[str, float] = {}
    for name, size in workload.requests.items():
        used = workload.container_memory.get(name)
        if used is None or not np.any(np.isfinite(used)):
            continue
        need = float(np.nanmax(used)) * (1 + rules.request_margin)
        need = after_oom(need, workload.oom_bytes.get(name), rules.oom_bump_ratio)
        new = _new_request(need, need * busier, size.memory_bytes)
        if new is not None:
            found[name] = ceil(new / MIB) * float(MIB)
    return found


def _new_request(need: float, busy_need: float, present: float | None) -> float | None:
    """What pods use now is needed in any case; what they might use is only a reason not to lower."""
    if not present or need > present:
        return need
    return busy_need if busy_need < (1 - LEAST_CHANGE) * present else None
