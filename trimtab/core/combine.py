"""combine: one wish from many proposals. With a missing one the wish may rise, never fall (Kubernetes HPA)."""

from __future__ import annotations

from math import floor

from trimtab.core.model import Missing, Proposal, Reason
from trimtab.policy import Combine

_NOTHING = Missing(reason=Reason.NOT_CONFIGURED)


def combine(how: Combine, proposals: list[Proposal], current: int) -> Proposal | Missing:
    """The proposal that carries, or why none may. Forecasts only ever add to what is needed now."""
    reactive = [proposal for proposal in proposals if not proposal.forecast]
    good = [proposal for proposal in reactive if not isinstance(proposal.replicas, Missing)]
    failed = [proposal.replicas for proposal in reactive if isinstance(proposal.replicas, Missing)]
    if not good:
        return failed[0] if failed else _NOTHING
    chosen = _chosen(how, good)
    for proposal in proposals:
        if proposal.forecast and not isinstance(proposal.replicas, Missing) and proposal.replicas > chosen.number():
            chosen = proposal
    if failed and chosen.number() < current:
        return failed[0]
    return chosen


def _chosen(how: Combine, good: list[Proposal]) -> Proposal:
    if how is Combine.MAXIMUM:
        return max(good, key=Proposal.number)
    if how is Combine.MINIMUM:
        return min(good, key=Proposal.number)
    replicas = combined([proposal.number() for proposal in good], how)
    return Proposal(source=str(how), replicas=replicas)


def combined(wishes: list[float], how: Combine) -> float:
    """Maximum, minimum, mean (rounded half up) or median (an even count: the truncated mean of the middle two)."""
    if not wishes:
        return 0
    if how is Combine.MAXIMUM:
        return max(wishes)
    if how is Combine.MINIMUM:
        return min(wishes)
    if how is Combine.MEAN:
        return floor(sum(wishes) / len(wishes) + 0.5)
    ordered, middle = sorted(wishes), len(wishes) // 2
    return ordered[middle] if len(ordered) % 2 else int((ordered[middle - 1] + ordered[middle]) / 2)
