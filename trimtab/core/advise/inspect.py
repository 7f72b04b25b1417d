"""Crane's four inspections: enough replicas, enough running pods, enough usage, enough fluctuation."""

from __future__ import annotations

import numpy as np

from trimtab.core.advise.formulas import available, fluctuation
from trimtab.core.advise.records import Against, MeasuredWorkload, Objection
from trimtab.policy import Advice, Inspection

DAY_S = 86400.0


def inspect_pods(rules: Inspection, workload: MeasuredWorkload, at: float) -> list[Objection]:
    """Kind, replicas and availability; all of them are looked at, none hides another."""
    if workload.kind != "DaemonSet":
        return _replicas(rules, workload) + _availability(rules, workload, at)
    if rules.advice not in (Advice.RESOURCE, Advice.BOTH):  # one pod a node: only their size can be advised on
        return [Objection(reason=Against.UNSUPPORTED_KIND, detail="a DaemonSet")]
    return _availability(rules, workload, at)


def _replicas(rules: Inspection, workload: MeasuredWorkload) -> list[Objection]:
    limits = [(rules.workload_min_replicas, "workload-min-replicas")]
    if workload.kind == "Deployment":
        limits.append((rules.deployment_min_replicas, "deployment-min-replicas"))
    if workload.kind == "StatefulSet":
        limits.append((rules.statefulset_min_replicas, "statefulset-min-replicas"))
    return [
        Objection(reason=Against.LOW_REPLICAS, value=workload.replicas, limit=limit, detail=key)
        for limit, key in limits
        if workload.replicas < limit
    ]


def _availability(rules: Inspection, workload: MeasuredWorkload, at: float) -> list[Objection]:
    good = sum(available(pod, rules.pod_min_ready_s, at) for pod in workload.pods)
    finding = availability(len(workload.pods), good, rules.pod_available_ratio)
    return [finding] if finding else []


def availability(pods: int, good: int, ratio: float) -> Objection | None:
    """What speaks against advising on so many pods, so many of them available."""
    if pods == 0:
        return Objection(reason=Against.NO_PODS)
    if good == 0:
        return Objection(reason=Against.NO_AVAILABLE_PODS)
    if good / pods < ratio:
        return Objection(reason=Against.LOW_AVAILABILITY, value=good / pods, limit=ratio)
    return None


def inspect_usage(rules: Inspection, workload: MeasuredWorkload) -> list[Objection]:
    """Whether there is load to scale with, and whether it moves."""
    values = workload.cpu_cores
    if not np.any(np.isfinite(values)):
        return [Objection(reason=Against.NO_HISTORY)]
    medians = workload.medians
    even = low_fluctuation(float(medians.min()), float(medians.max()), rules.fluctuation_threshold)
    if even is not None:
        even = too_short(workload, DAY_S) or even  # hours that nobody has seen may be the busy ones
    checks = (low_usage(float(np.nanmax(values)), rules.min_cpu_usage_cores), even)
    return measured(workload) + scaled_already(workload) + [finding for finding in checks if finding is not None]


def scaled_already(workload: MeasuredWorkload) -> list[Objection]:
    """An HPA beside an object of ours would fight with it; what that one should be is tuning's to say."""
    detail = f"{workload.scaled_by}, which `trimtab tune` judges"
    return [Objection(reason=Against.SCALED_OTHERWISE, detail=detail)] if workload.scaled_by else []


def too_short(workload: MeasuredWorkload, least_s: float) -> Objection | None:
    """From the first sample to the last."""
    present = np.flatnonzero(np.isfinite(workload.cpu_cores))
    span_s = (present[-1] + 1 - present[0]) * workload.step_s if len(present) else 0.0
    if span_s >= least_s:
        return None
    return Objection(reason=Against.SHORT_HISTORY, value=span_s / DAY_S, limit=least_s / DAY_S)


def measured(workload: MeasuredWorkload) -> list[Objection]:
    """The sum over half of the pods looks like half the load."""
    running, missing = len(workload.pods), len(workload.unmeasured)
    if not missing:
        return []
    seen, unmeasured = running - missing, workload.unmeasured[0]
    return [Objection(reason=Against.PARTIAL_HISTORY, value=seen, limit=running, detail=unmeasured)]


def low_usage(peak_cores: float, limit: float) -> Objection | None:
    return Objection(reason=Against.LOW_USAGE, value=peak_cores, limit=limit) if peak_cores < limit else None


def low_fluctuation(lowest: float, highest: float, limit: float) -> Objection | None:
    ratio = fluctuation(lowest, highest)
    return Objection(reason=Against.LOW_FLUCTUATION, value=ratio, limit=limit) if ratio < limit - 1e-9 else None
