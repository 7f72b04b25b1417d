"""advise: Crane's answer to: should this workload be autoscaled, and with which min, max, target and requests?

Four inspections, then the formulas. A workload that fails an inspection gets every reason at once; one that passes gets
advice that carries its evidence.
"""

from __future__ import annotations

from trimtab.core.advise.inspect import inspect_pods, inspect_usage
from trimtab.core.advise.recommend import recommend_hpa, recommend_replicas, recommend_resources
from trimtab.core.advise.records import MeasuredWorkload, Objections, WorkloadAdvice
from trimtab.policy import Advice, Inspection

_RECOMMEND = {
    Advice.HPA: recommend_hpa,
    Advice.RESOURCE: recommend_resources,
    Advice.REPLICAS: recommend_replicas,
}


def advise(inspection: Inspection, workload: MeasuredWorkload, at: float) -> WorkloadAdvice | Objections:
    """The recommendation, or everything that speaks against one."""
    against = inspect_pods(inspection, workload, at)
    if inspection.advice is Advice.HPA and workload.kind != "DaemonSet":  # nothing could follow from its usage
        against += inspect_usage(inspection, workload)
    if against:
        return Objections(reasons=tuple(against))
    return _RECOMMEND[inspection.advice](inspection, workload)


__all__ = ["Objections", "WorkloadAdvice", "MeasuredWorkload", "advise"]
