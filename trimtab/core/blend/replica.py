"""pod: the containers of one replica added up, and a size for the whole replica divided among them again.

Only containers with a recommendation count, and only they are written (HVPA buckets, "Pod with multiple containers").
A replica's size is split in proportion to the recommendations, evenly where they are all zero, in whole millicores and
kilobytes that add up to no less than the size.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, floor, inf, log
from typing import NamedTuple

from trimtab.core.blend.wishes import AxisWishes
from trimtab.core.limits import CPU_GRAIN, MEMORY_STEP, resized, rule_for
from trimtab.core.model import ContainerSize, RuleName, Step
from trimtab.policy import RESOURCES, Axis, ContainerRule, Size, Vertical

GRAIN = {Axis.CPU: 1.0 / CPU_GRAIN, Axis.MEMORY: MEMORY_STEP}
MARGIN = 1.15  # VPA's, on top of recent usage
STEP = 1.05  # sizes grow by whole steps of 5 %, so that noise does not resize pods at every look
SMALL = 0.1  # of a size: nothing shrinks by less
_NOISE = 1e-6  # of a grain


class ContainerNeed(NamedTuple):
    """One resource of one container: what it has, should have, and may have."""

    name: str
    present: float
    target: float
    least: float
    most: float  # inf: nothing bounds it
    recent: float | None = None  # what all pods use now, with the margin
    basis: float | None = None  # what one of the pods that the horizontal axis asks for stands for


class ReplicaNeed(NamedTuple):
    """The same of a whole replica: its containers added up."""

    present: float
    target: float
    least: float
    most: float
    parts: tuple[ContainerNeed, ...] = ()
    recent: float | None = None
    basis: float | None = None


def replica_needs(vertical: Vertical, wishes: AxisWishes) -> dict[Axis, ReplicaNeed]:
    """The resources that may move."""
    found = {axis: container_needs(vertical, wishes, axis) for axis in RESOURCES}
    return {axis: _need(vertical, axis, of) for axis, of in found.items() if of}


def container_needs(vertical: Vertical, wishes: AxisWishes, axis: Axis) -> list[ContainerNeed]:
    """Containers whose resource vertical has an opinion on and may write; a request that is not set is zero."""
    found = []
    for name, recommended in wishes.targets.items():
        target, size = recommended.amount(axis), wishes.sizes.get(name)
        rule = rule_for(vertical, name) if target is not None and size is not None else None
        if target is None or size is None or rule is None or not rule.controls(axis):
            continue
        present, recent = size.requests.amount(axis) or 0.0, _recent(name, wishes, axis)
        basis = _basis(name, present, recent, wishes, axis)
        found.append(ContainerNeed(name, present, target, *_allowed(rule, size, axis), recent, basis))
    return found


def total(need: ReplicaNeed, wishes: AxisWishes, axis: Axis) -> float:
    """What all replicas need: the higher of recent usage and what the horizontal axis asks for.

    A horizontal recommendation counts in pods as large as a metric assumes (`_basis`), so the total never multiplies
    a size that grew by an earlier decision; no more than maxReplicas of them count.
    """
    vertical = need.target * wishes.current if need.recent is None else need.recent
    if axis not in wishes.speaks_for or (wishes.blind and need.recent is not None):
        return vertical  # what is kept while nothing is measured asks for nothing: it would grow with every pod
    asked = wishes.asked.get(axis)
    pods = wishes.wanted if asked is None else asked.pods
    return max(vertical, min(pods, wishes.max_replicas) * (need.present if need.basis is None else need.basis))


def followed(size: float, need: ReplicaNeed | ContainerNeed, wishes: AxisWishes) -> float:
    """The size without noise: it grows by steps, falls no lower than the histograms say, and never blindly."""
    if need.recent is None:
        return size
    if size > need.present * (1.0 + _NOISE):
        return stepped(size)
    lower = max(size, min(need.present, need.target))
    return lower if wishes.complete and not wishes.blind and lower < need.present * (1.0 - SMALL) else need.present


def stepped(amount: float) -> float:
    """The next whole power of 1.05."""
    return STEP ** ceil(log(amount, STEP) - _NOISE) if amount > 0.0 else 0.0


def _recent(name: str, wishes: AxisWishes, axis: Axis) -> float | None:
    found = wishes.recent[name].amount(axis) if name in wishes.recent else None
    return None if found is None else found * wishes.recent_margin.get(axis, MARGIN)


def _basis(name: str, present: float, recent: float | None, wishes: AxisWishes, axis: Axis) -> float:
    """The size of one pod that the horizontal axis asks for.

    A share of requests speaks of the requests that pods have. Any other metric assumes pods as the user wrote them, or
    smaller ones where a pod at the metric's target uses less, margin included.
    """
    asked = wishes.asked.get(axis)
    if asked is None or asked.measured is None:
        requested = wishes.requested[name].amount(axis) if name in wishes.requested else None
        return present if requested is None else requested
    written_size = wishes.written[name].amount(axis) if name in wishes.written else None
    basis = present if written_size is None else written_size
    return basis if recent is None or asked.measured <= 0.0 else min(basis, recent / asked.measured)


def write(
    vertical: Vertical,
    wishes: AxisWishes,
    found: dict[Axis, ReplicaNeed],
    replica: dict[Axis, float],
    why: RuleName,
    steps: list[Step],
) -> dict[str, ContainerSize]:
    """The sizes of all containers when one replica gets this much; limits follow by the vertical policy."""
    split = {axis: _divide(found[axis].parts, size, GRAIN[axis]) for axis, size in replica.items()}
    return written(vertical, wishes, split, why, steps)


def written(
    vertical: Vertical, wishes: AxisWishes, split: dict[Axis, dict[str, float]], why: RuleName, steps: list[Step]
) -> dict[str, ContainerSize]:
    """The sizes of all containers when each gets these requests; a step wherever that is not what vertical asked."""
    cpu, memory = split.get(Axis.CPU, {}), split.get(Axis.MEMORY, {})
    sizes = dict(wishes.sizes)
    for name in wishes.targets:
        rule = rule_for(vertical, name)
        if rule is None or name not in wishes.sizes:
            continue
        request = Size(cpu_cores=_cpu(cpu.get(name), rule), memory_bytes=memory.get(name))
        sizes[name] = resized(wishes.sizes[name], request, rule, vertical.limits)
        steps += _differences(name, wishes.targets[name], sizes[name].requests, split, why)
    return sizes


def _allowed(rule: ContainerRule, size: ContainerSize, axis: Axis) -> tuple[float, float]:
    """The smallest and the largest request; a limit that may not move is a bound too."""
    most = rule.most.amount(axis)
    fixed = size.limits.amount(axis) if rule.requests_only else None
    return rule.least.amount(axis) or 0.0, min(inf if most is None else most, fixed or inf)


def _need(vertical: Vertical, axis: Axis, of: list[ContainerNeed]) -> ReplicaNeed:
    least = max(sum(part.least for part in of), vertical.floor.amount(axis) or 0.0)
    sums = sum(part.present for part in of), sum(part.target for part in of)
    recent, basis = _sum(part.recent for part in of), _sum(part.basis for part in of)
    return ReplicaNeed(*sums, least, sum(part.most for part in of), tuple(of), recent, basis)


def _sum(amounts: Iterable[float | None]) -> float | None:
    known = list(amounts)
    return None if None in known else sum(amount for amount in known if amount is not None)


def _divide(of: tuple[ContainerNeed, ...], size: float, grain: float) -> dict[str, float]:
    bounds = {part.name: (part.least, part.most) for part in of}
    shares = proportional(size, {part.name: part.target for part in of}, grain, bounds)
    close = all(abs(shares[part.name] - part.present) < 2 * grain for part in of)
    if close and size <= sum(part.present for part in of) + _NOISE * grain:
        return {part.name: part.present for part in of}  # it has that already, to the last grain
    return shares


def proportional(
    size: float, targets: dict[str, float], grain: float, bounds: dict[str, tuple[float, float]] | None = None
) -> dict[str, float]:
    """Whole grains in proportion to the targets, within bounds, that add up to the size rounded up.

    Largest remainders are rounded up first: rounding each part up by itself would add a grain at every decision.
    """
    grains = ceil(size / grain - _NOISE)
    found = bounds or dict.fromkeys(targets, (0.0, inf))
    limits = {name: (least / grain, most / grain) for name, (least, most) in found.items()}
    parts = _fill(grains, targets if any(targets.values()) else dict.fromkeys(targets, 1.0), limits)
    whole = {name: floor(part + _NOISE) for name, part in parts.items()}
    left = max(0, ceil(sum(parts.values()) - _NOISE) - sum(whole.values()))
    for name in sorted(parts, key=lambda name: whole[name] - parts[name])[:left]:
        whole[name] += 1
    return {name: _from_grains(part, grain) for name, part in whole.items()}


def _fill(size: float, weights: dict[str, float], bounds: dict[str, tuple[float, float]]) -> dict[str, float]:
    """Shares by weight; what one may not take, or must have, goes to or comes from the others (as flex boxes do)."""
    filled: dict[str, float] = {}
    while len(filled) < len(weights):
        free = [name for name in weights if name not in filled]
        left, total = size - sum(filled.values()), sum(weights[name] for name in free)
        shares = {name: left * weights[name] / total if total else left / len(free) for name in free}
        clamped = {name: min(max(shares[name], bounds[name][0]), bounds[name][1]) for name in free}
        excess = sum(clamped[name] - shares[name] for name in free)
        if excess:  # settle those on the heavier side, and share out the rest anew
            clamped = {name: clamped[name] for name in free if (clamped[name] - shares[name]) * excess > 0}
        filled |= clamped
    return filled


def _from_grains(grains: int, grain: float) -> float:
    return grains * grain if grain >= 1.0 else grains / round(1.0 / grain)


def _cpu(cores: float | None, rule: ContainerRule) -> float | None:
    return float(ceil(cores - _NOISE)) if cores is not None and rule.whole_cores else cores


def _differences(
    name: str, target: Size, after: Size, split: dict[Axis, dict[str, float]], why: RuleName
) -> list[Step]:
    found = []
    for axis in (axis for axis, requests in split.items() if name in requests):
        before, now = target.amount(axis), after.amount(axis)
        if before is not None and now is not None and abs(before - now) >= GRAIN[axis]:
            found.append(_step(why, axis, before, now, name))
    return found


def _step(rule: RuleName, axis: Axis, before: float, after: float, container: str) -> Step:
    return Step(rule=rule, axis=axis, before=before, after=after, container=container)
