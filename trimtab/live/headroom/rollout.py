"""rollout: when a pod template is left alone: while a rollout runs, after one failed, while a budget forbids it."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import ValidationError

from trimtab.kinds.selector import Selector
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.wire.from_kubernetes import FINISHED, condition
from trimtab.wire.objects import Custom, WireWorkload
from trimtab.wire.resources import DEPLOYMENTS


class Blocker(NamedTuple):
    """Why a template is left alone: a reason to filter for, and the sentence."""

    reason: str
    detail: str


def blocker(cluster: WatchedCluster, target: ScaleTarget) -> Blocker | None:
    """The first thing that speaks against a new template; None when nothing does."""
    assert target.workload is not None
    return _of_rollout(target) or _of_budgets(cluster, target)


def _of_rollout(target: ScaleTarget) -> Blocker | None:
    assert target.workload is not None
    progressing = condition(target.workload.status.conditions, "Progressing")
    if progressing is not None and progressing.reason == "ProgressDeadlineExceeded":
        text = "its last rollout has failed (ProgressDeadlineExceeded): mend it first"
        return Blocker("RolloutFailed", f"{target.text}: {text}")
    if under_way(target.workload):
        return Blocker("RolloutUnderWay", f"{target.text}: a rollout is under way, and another waits for its end")
    return None


def under_way(workload: WireWorkload) -> bool:
    meta, status = workload.metadata, workload.status
    wanted = 1 if workload.spec.replicas is None else workload.spec.replicas
    return status.observed_generation < meta.generation or status.updated_replicas < wanted or status.replicas > wanted


def surges(target: ScaleTarget) -> bool:
    """A Deployment that may miss no pod starts a new one beside the old ones, and both count."""
    workload = target.workload
    if workload is None or target.resource is not DEPLOYMENTS or workload.spec.strategy.type == "Recreate":
        return False
    rolling = workload.spec.strategy.rolling_update
    missing = "25%" if rolling is None or rolling.max_unavailable is None else rolling.max_unavailable
    if isinstance(missing, str):
        missing = int(missing.rstrip("%")) * target.replicas // 100
    return missing == 0


def _of_budgets(cluster: WatchedCluster, target: ScaleTarget) -> Blocker | None:
    """A PodDisruptionBudget of these pods that allows nobody to be taken away now."""
    pods = [pod for pod in cluster.members.pods(target.namespace, target.uid) if pod.status.phase not in FINISHED]
    for budget in cluster.disruption_budgets.store:
        here = budget.metadata.namespace == target.namespace and forbids(budget)
        if here and any(_selects(budget, pod.metadata.labels or {}) for pod in pods):
            return Blocker("DisruptionForbidden", _text(budget, target))
    return None


def _text(budget: Custom, target: ScaleTarget) -> str:
    return (
        f"PodDisruptionBudget {budget.metadata.namespace}/{budget.metadata.name} allows no disruption of {target.text} "
        "now: a rollout waits until it does; apply: InPlace needs none"
    )


def forbids(budget: Custom) -> bool:
    """It has been counted for what it says now, and nothing is left."""
    seen = int(budget.status.get("observedGeneration") or 0) >= budget.metadata.generation
    return seen and budget.status.get("disruptionsAllowed") == 0


def _selects(budget: Custom, labels: dict[str, str]) -> bool:
    """Without a selector it selects nothing, with an empty one everything."""
    found = budget.spec.get("selector")
    if found is None:
        return False
    try:
        return Selector.model_validate(found).matches(labels)
    except ValidationError:
        return False
