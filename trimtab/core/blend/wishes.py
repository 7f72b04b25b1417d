"""wishes: what both axes want, in one place, and for which resources the horizontal signals speak."""

from __future__ import annotations

from typing import NamedTuple

from trimtab.core.model import ContainerSize, Plan, RuleName, Step
from trimtab.policy import RESOURCES, Axis, MetricKind, Signal, Size

_OF_PODS = (MetricKind.RESOURCE, MetricKind.CONTAINER)


class AxisWishes(NamedTuple):
    """What both axes want, in one place; replicas are HPA's normalised number."""

    current: int
    wanted: int
    sizes: dict[str, ContainerSize]  # now
    targets: dict[str, Size]  # what vertical recommends, containers that may move only
    min_replicas: int
    max_replicas: int
    overloaded: bool
    speaks_for: frozenset[Axis] = frozenset(RESOURCES)  # resources whose total `wanted` tells something about
    stuck: bool = False  # the horizontal axis cannot grow: at its maximum and asking for more, or switched off
    smallest: dict[tuple[str, Axis], float] = {}  # what a container's change must reach to happen; inf: none may
    awaited_until: float | None = None  # sizes that may answer `wanted` are awaited no longer
    blind: bool = False  # the horizontal signal is missing: no fewer replicas than `wanted`, which is what is kept


def speaks_for(signals: tuple[Signal, ...]) -> frozenset[Axis]:
    """A signal on a pod's CPU says nothing about memory; one on requests or a queue speaks for the whole replica."""
    names = {signal.metric.name if signal.metric.kind in _OF_PODS else "" for signal in signals}
    return frozenset(axis for axis in RESOURCES if axis.value in names or names - {"cpu", "memory"})


def clamped(replicas: int, wishes: AxisWishes, steps: list[Step]) -> int:
    """Within the bounds in force, before sizes are computed from it; says so, because a total may not fit."""
    if wishes.blind and replicas < wishes.wanted:
        steps.append(Step(rule=RuleName.METRICS_MISSING, axis=Axis.REPLICAS, before=replicas, after=wishes.wanted))
        replicas = wishes.wanted
    bounded = max(wishes.min_replicas, min(wishes.max_replicas, replicas))
    if bounded != replicas:
        rule = RuleName.MIN_REPLICAS if bounded > replicas else RuleName.MAX_REPLICAS
        steps.append(Step(rule=rule, axis=Axis.REPLICAS, before=replicas, after=bounded))
    return bounded


def horizontal_only(wishes: AxisWishes, steps: list[Step]) -> Plan:
    """Nothing is known about sizes, so they stay."""
    return Plan(replicas=clamped(wishes.wanted, wishes, steps), sizes=wishes.sizes)
