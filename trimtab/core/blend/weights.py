"""HVPA weights: in each stage of replicas a share w of the change is vertical, the rest horizontal.

replicas = current + (wanted - current) * (1 - w), ceil when growing, floor when shrinking;
request = current + trunc((target - current) * w). Whole millicores, and memory rounded up to whole kilobytes.
At maxReplicas an upward recommendation is followed in full, whatever the stage says (the document's mitigation).
A stage of weight 1 is purely vertical while the vertical recommendation has anything to give, or has not seen the load
yet (`vertical_first`); then replicas leave it by the weight of the next stage. One without an end lasts until sizes
have reached maxAllowed, one without a begin until minAllowed. Sizes always follow the stage that the replicas are in.
With w between 0 and 1 both axes answer the same need, so the total overshoots (1 x 1 core that needs 5 becomes 3 x 3);
`capacity` and `buckets` do not.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from math import ceil, floor

from trimtab.core.blend.replica import GRAIN, ContainerNeed, container_needs, followed, written
from trimtab.core.blend.wishes import AxisWishes, clamped
from trimtab.core.model import Plan, RuleName, Step
from trimtab.policy import RESOURCES, Axis, Stage, Vertical, Weights

ENOUGH = 0.1  # of a request: a smaller change is nothing to wait for, where no smallest change is set
_NOISE = 1e-9
_WHOLE = {Axis.CPU: 1000.0, Axis.MEMORY: 1.0}  # parts that an amount is counted in: millicores, bytes


class SizeAnswer(enum.Enum):
    """What sizes have to give in a stage of weight 1."""

    MORE = "more"
    FOLLOWED = "followed"  # they are as recommended
    NOTHING = "nothing"  # at a bound, vetoed, or nothing is recommended


def _purely_vertical(stage: Stage) -> bool:
    return stage.vertical_share == 1.0


def plan(rule: Weights, vertical: Vertical, wishes: AxisWishes, steps: list[Step]) -> Plan:
    wanted = clamped(wishes.wanted, wishes, steps)  # HPA never recommends more than its maximum
    share, leaving = _shares(rule, vertical, wishes, wanted)
    replicas = weighted_replicas(wishes.current, wanted, leaving)
    if replicas != wanted:
        why = RuleName.WEIGHTS if wishes.awaited_until is None else RuleName.VERTICAL_FIRST
        steps.append(Step(rule=why, axis=Axis.REPLICAS, before=wanted, after=replicas, until=wishes.awaited_until))
    replicas = clamped(replicas, wishes, steps)
    split = {axis: _requests(rule, vertical, wishes, share, axis, replicas, steps) for axis in RESOURCES}
    sizes = written(vertical, wishes, split, RuleName.WEIGHTS, steps)
    return Plan(replicas=replicas, sizes=sizes)


def share_at(
    stages: tuple[Stage, ...], current: int, wanted: int, over: Callable[[Stage], bool] = _purely_vertical
) -> float:
    """The weight of the first stage that holds the current replicas, 0 where none does.

    A stage that is over leads to the others, those before it in the list to shrink and those after it to grow: the
    nearest that holds the current replicas too, else the nearest. Where there is none, a stage without an end has ended
    all the same, and any other stays.
    """
    index = next((i for i, stage in enumerate(stages) if _holds(stage, current)), None)
    if index is None:
        return 0.0
    here = stages[index]
    if wanted == current or not over(here):
        return here.vertical_share
    beyond = stages[index + 1 :] if wanted > current else stages[:index][::-1]
    ahead = sorted((stage for stage in beyond if not over(stage)), key=lambda stage: not _holds(stage, current))
    return ahead[0].vertical_share if ahead else 0.0 if _open(here, wanted > current) else here.vertical_share


def _shares(rule: Weights, vertical: Vertical, wishes: AxisWishes, wanted: int) -> tuple[float, float]:
    """The weight of the sizes, and that of the replicas, which may be leaving."""
    if rule.exact:
        share = share_at(rule.stages, wishes.current, wanted)
        return share, share
    up = wanted > wishes.current
    needs = _spoken_for(rule, vertical, wishes)
    bounded = bool(needs) and all(_at_bound(need, up) for _, need in needs)
    gives = wishes.awaited_until is not None or any(_gives(need, axis, wishes, up) for axis, need in needs)

    def over(stage: Stage) -> bool:
        ended = bounded and _open(stage, up) and stage.vertical_share > 0.0
        return ended or (_purely_vertical(stage) and not gives)

    share = share_at(rule.stages, wishes.current, wishes.current)
    return share, share_at(rule.stages, wishes.current, wanted, over)


def answer(rule: Weights, vertical: Vertical, wishes: AxisWishes) -> SizeAnswer:
    """By sizes, to the wish for other replicas; nothing as well where nothing is asked, in any other stage."""
    wanted = clamped(wishes.wanted, wishes, [])
    here = next((stage for stage in rule.stages if _holds(stage, wishes.current)), None)
    if rule.exact or wanted == wishes.current or here is None or not _purely_vertical(here):
        return SizeAnswer.NOTHING
    up, needs = wanted > wishes.current, _spoken_for(rule, vertical, wishes)
    if any(_gives(need, axis, wishes, up) for axis, need in needs):
        return SizeAnswer.MORE
    free = any(not _at_bound(need, up) and not _large(need, ENOUGH * need.present, up) for _, need in needs)
    return SizeAnswer.FOLLOWED if free else SizeAnswer.NOTHING


def _spoken_for(rule: Weights, vertical: Vertical, wishes: AxisWishes) -> list[tuple[Axis, ContainerNeed]]:
    current = wishes.current
    return [(axis, need) for axis in wishes.speaks_for for need in _needs(rule, vertical, wishes, axis, current)]


def _needs(rule: Weights, vertical: Vertical, wishes: AxisWishes, axis: Axis, replicas: int) -> list[ContainerNeed]:
    """What containers should have: what the histograms say, and at least what so many replicas use now.

    Where a share of requests is the horizontal target, both axes aim at that share; else sizes would shrink to 87 % of
    use, and replicas be added for it, until there are many tiny pods.
    """
    needs = container_needs(vertical, wishes, axis)
    return needs if rule.exact else [_following(need, wishes, replicas) for need in needs]


def _following(need: ContainerNeed, wishes: AxisWishes, replicas: int) -> ContainerNeed:
    if need.recent is None:
        return need
    target = max(need.target, need.recent / max(replicas, 1))
    return need._replace(target=followed(target, need, wishes))


def _holds(stage: Stage, replicas: int) -> bool:
    return stage.first <= replicas <= stage.last


def _open(stage: Stage, up: bool) -> bool:
    return stage.until_most if up else stage.until_least


def _at_bound(need: ContainerNeed, up: bool) -> bool:
    return need.present >= need.most if up else need.present <= need.least


def _gives(need: ContainerNeed, axis: Axis, wishes: AxisWishes, up: bool) -> bool:
    """Whether the recommendation changes the request in this direction, enough to happen at all."""
    least = wishes.smallest.get((need.name, axis), ENOUGH * need.present)
    return _large(need, max(least, GRAIN[axis]), up)


def _large(need: ContainerNeed, least: float, up: bool) -> bool:
    change = min(max(need.target, need.least), need.most) - need.present
    return (change > 0) is up and abs(change) >= least * (1.0 - _NOISE)


def weighted_replicas(current: int, wanted: int, share: float) -> int:
    moved = current + (wanted - current) * (1.0 - share)
    return ceil(moved - _NOISE) if wanted > current else floor(moved + _NOISE)


def weighted_request(now: float, target: float, share: float, axis: Axis) -> float:
    """The change is truncated towards zero to whole millicores or bytes."""
    whole = _WHOLE[axis]
    diff = (target - now) * share * whole
    moved = floor(diff + _NOISE * whole) if diff > 0 else ceil(diff - _NOISE * whole)
    return round(now * whole + moved) / whole


def _requests(
    rule: Weights, vertical: Vertical, wishes: AxisWishes, share: float, axis: Axis, replicas: int, steps: list[Step]
) -> dict[str, float]:
    """The new requests of the containers that move, and a step for each that wants to and may not."""
    moved: dict[str, float] = {}
    for name, present, target, least, most, _, _ in _needs(rule, vertical, wishes, axis, replicas):
        part = _share_of(rule, wishes, share, up=target > present)
        request = min(max(weighted_request(present, target, part, axis), least), most)
        if part == 0.0:
            if abs(target - present) >= GRAIN[axis]:
                steps.append(_step(RuleName.WEIGHTS, axis, target, present, name))
        elif rule.exact and request > present and not (wishes.stuck or wishes.overloaded):
            steps.append(_step(RuleName.UPDATE_MODE, axis, request, present, name, "replicas can still grow"))
        else:
            moved[name] = request
    return moved


def _share_of(rule: Weights, wishes: AxisWishes, share: float, up: bool) -> float:
    """Upward only: in full at maxReplicas, and in full out of a horizontal stage after an OOM kill or eviction."""
    if up and wishes.current >= wishes.max_replicas and not rule.exact:
        return 1.0
    return 1.0 if up and wishes.overloaded and share == 0.0 else share


def _step(rule: RuleName, axis: Axis, before: float, after: float, container: str = "", detail: str = "") -> Step:
    return Step(rule=rule, axis=axis, before=before, after=after, container=container, detail=detail)
