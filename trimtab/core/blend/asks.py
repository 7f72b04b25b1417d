"""asks: what the horizontal axis asks for, in pods before rounding, for each resource that its signals speak for."""

from __future__ import annotations

from math import ceil

from trimtab.core.blend.replica import MARGIN
from trimtab.core.blend.wishes import PodsAsked, axes_of
from trimtab.core.model import Missing, Observation, Proposal
from trimtab.policy import RESOURCES, Axis, Policy, Signal, Size, Utilization


def horizontal_asks(
    policy: Policy, seen: Observation, proposals: list[Proposal], chosen: Proposal | Missing, wanted: int
) -> dict[Axis, PodsAsked]:
    """By resource: the most that a signal which speaks for it asks for, no more than the rules allow.

    It counts before it is rounded up: else one pod of 2 cores that uses 0.6 would stay for ever, because there is no
    less than one pod.
    """
    if isinstance(chosen, Missing):
        return {}
    pairs = [
        (signal, proposal)
        for signal, proposal in zip(policy.signals, proposals, strict=False)
        if not isinstance(proposal.replicas, Missing)
    ]
    found: dict[Axis, PodsAsked] = {}
    for axis in RESOURCES:
        speaking = [(signal, proposal) for signal, proposal in pairs if axis in axes_of(signal)]
        if speaking:
            signal, best = max(speaking, key=lambda pair: _exact(pair[1], seen))
            carries = chosen.source not in {other.metric.label for other, _ in pairs} - _labels(speaking)
            exact = _exact(best, seen)
            asked = min(_exact(chosen, seen) if carries else exact, wanted)
            found[axis] = PodsAsked(asked, None if isinstance(signal, Utilization) else exact)
    return found


def held_by_rules(chosen: Proposal | Missing, wanted: int) -> int:
    """The replicas that a window or a rate keeps although fewer are asked for; no size grows for them."""
    return 0 if isinstance(chosen, Missing) or wanted <= ceil(chosen.number() - 1e-9) else wanted


def margins_of(policy: Policy) -> dict[Axis, float]:
    """How much more than its usage a pod should have where a share of requests is the target: 1 / share."""
    found: dict[Axis, float] = {}
    for signal in policy.signals:
        if isinstance(signal, Utilization):
            for axis in axes_of(signal):
                found[axis] = max(found.get(axis, MARGIN), 100.0 / signal.percent)
    return found


def mean_requests(seen: Observation) -> dict[str, Size]:
    """The mean request of each container over the pods; utilization is a share of these, whatever is in force."""
    living = [pod for pod in seen.pods if not pod.deleting]
    return {name: size for name in seen.sizes if (size := _mean([pod.containers.get(name) for pod in living]))}


def _labels(pairs: list[tuple[Signal, Proposal]]) -> set[str]:
    return {signal.metric.label for signal, _ in pairs}


def _exact(proposal: Proposal, seen: Observation) -> float:
    return proposal.number() if proposal.ratio is None else proposal.ratio * seen.spec_replicas


def _mean(sizes: list[Size | None]) -> Size | None:
    known = [size for size in sizes if size is not None]
    if not known:
        return None
    cpu = [size.cpu_cores for size in known if size.cpu_cores is not None]
    memory = [size.memory_bytes for size in known if size.memory_bytes is not None]
    return Size(
        cpu_cores=sum(cpu) / len(cpu) if cpu else None, memory_bytes=sum(memory) / len(memory) if memory else None
    )
