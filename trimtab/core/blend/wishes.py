"""wishes: what both axes want, in one place, and for which resources the horizontal signals speak."""

from __future__ import annotations

from typing import NamedTuple

from trimtab.core.model import ContainerSize, Plan, RuleName, Step
from trimtab.policy import RESOURCES, Axis, MetricKind, Signal, Size

_OF_PODS = (MetricKind.RESOURCE, MetricKind.CONTAINER)


class PodsAsked(NamedTuple):
    """How many pods the horizontal axis asks for on behalf of one resource, before rounding.

    `measured` is what the metric asks for by itself now; None where the metric is a share of requests, so that it falls
    when pods grow.
    """

    pods: float
    measured: float | None = None


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
    asked: dict[Axis, PodsAsked] = {}  # by resource; `wanted`, as a share of requests, where it is not said
    recent: dict[str, Size] = {}  # what all pods use now, by container; the histograms speak where it is not known
    recent_margin: dict[Axis, float] = {}  # more than MARGIN where a share of requests aims at less
    complete: bool = True  # nothing of it is missing, so replicas and sizes may be lowered
    held: int = 0  # replicas kept by rules for scale-downs: what was asked for within the stabilization window
    written: dict[str, Size] = {}  # requests as the user wrote them, where ours are in force
    requested: dict[str, Size] = {}  # the mean request of the pods, where not all have the size in force


def speaks_for(signals: tuple[Signal, ...]) -> frozenset[Axis]:
    """A signal on a pod's CPU says nothing about memory; one on requests or a queue speaks for the whole replica."""
    return frozenset(axis for signal in signals for axis in axes_of(signal))


def axes_of(signal: Signal) -> frozenset[Axis]:
    """The resources whose total one signal tells something about."""
    name = signal.metric.name if signal.metric.kind in _OF_PODS else ""
    return frozenset(axis for axis in RESOURCES if axis.value == name) or frozenset(RESOURCES)


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


def joint_replicas(replicas: int, wishes: AxisWishes, steps: list[Step]) -> int:
    """Up at once; down when the stabilization window has passed, and never while usage is incomplete."""
    if replicas < wishes.current:
        kept = min(wishes.current, max(replicas, wishes.held))
        if kept != replicas:
            steps.append(Step(rule=RuleName.STABILISE, axis=Axis.REPLICAS, before=replicas, after=kept))
        if not wishes.complete and kept < wishes.current:
            steps.append(Step(rule=RuleName.METRICS_MISSING, axis=Axis.REPLICAS, before=kept, after=wishes.current))
            kept = wishes.current
        replicas = kept
    return clamped(replicas, wishes, steps)


def horizontal_only(wishes: AxisWishes, steps: list[Step]) -> Plan:
    """Sizes stay; where usage is missing, so does a number of replicas that was chosen by it."""
    replicas = wishes.wanted if wishes.complete else max(wishes.wanted, wishes.current)
    return Plan(replicas=clamped(replicas, wishes, steps), sizes=wishes.sizes)
