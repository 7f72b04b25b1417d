"""Why a backtest shows violations, where a setting alone makes them."""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.policy import PodAverage, Signal, TotalAverage, Utilization
from trimtab.tune.case import Case, Outcome
from trimtab.tune.demand import load_signal


def causes(outcome: Outcome, case: Case) -> Iterator[str]:
    """A bridge that is not applied, and what of its settings makes violations whatever the load does."""
    if case.policy.bridge is not None and not case.pods.bridge_counts:
        why = "pods may use more than they request, so a larger size carries no more"
        yield f"{outcome.policy}: the bridge is not applied: {why}"
    if not outcome.figures.violations:
        return
    policy, cluster = case.policy, case.pods
    needed, most = int(outcome.best.max()), policy.bounds.max_replicas
    if needed > most:
        yield f"{outcome.policy}: the load needs up to {needed:,} pods, and maxReplicas is {most:,}"
    signal = load_signal(policy)
    by_load = policy.objective is None and not cluster.queue
    share = share_of(signal, cluster.pod_capacity) if by_load else None
    if share is not None and share >= cluster.level_share:
        yield (
            f"{outcome.policy}: its target keeps pods at {share:.0%} of what they carry, and a violation begins above"
            f" {cluster.level_share:.0%}: lower the target, or see `trimtab tune`"
        )


def share_of(signal: Signal | None, pod_capacity: float) -> float | None:
    """The target as a share of what one pod carries; None where it is none of one pod."""
    if isinstance(signal, Utilization):
        return signal.percent / 100
    return signal.target / pod_capacity if isinstance(signal, PodAverage | TotalAverage) else None
