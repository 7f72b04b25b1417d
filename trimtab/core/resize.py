"""resize: how large each container should be, from its usage estimate, its bounds and the vertical safety rules.

Up after ten minutes of samples, or at once after an OOM kill. Down only after a day and a full memory window, never
below 1.2 times the memory peak of that window, not within a day of an OOM kill. The bounds come last and always hold.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, isfinite
from typing import NamedTuple

from trimtab.core.limits import CPU_GRAIN, MEMORY_GRAIN, round_down, rule_for, within
from trimtab.core.model import ContainerSize, Estimate, Memory, Missing, Observation, RuleName, Step
from trimtab.policy import RESOURCES, Axis, ContainerRule, Size, Vertical


class ResizeContext(NamedTuple):
    """One resource of one container, with everything its rules look at."""

    vertical: Vertical
    estimate: Estimate
    axis: Axis
    whole_cores: bool
    current: float
    floor: float
    at: float
    overloaded: bool

    @property
    def is_memory(self) -> bool:
        return self.axis is Axis.MEMORY


Settled = tuple[float, float | None]  # the amount a rule leaves, and until when where that is known


def resize(vertical: Vertical, seen: Observation, memory: Memory, steps: list[Step]) -> dict[str, Size]:
    """The recommended requests of each container that may move, by name; empty when nothing is known."""
    usage = seen.usage
    if isinstance(usage, Missing) or usage.expires_at <= seen.at:
        return {}
    rules = {name: rule_for(vertical, name) for name in sorted(seen.sizes) if name in usage.containers}
    movable = {name: rule for name, rule in rules.items() if rule is not None}
    floor = floor_share(vertical.floor, len(movable))
    sizes = {}
    for name, rule in movable.items():
        now, estimate = seen.sizes[name], usage.containers[name]
        contexts = _contexts(vertical, estimate, floor, now, rule, seen.at, memory.overloaded)
        size = _size(name, rule, now, contexts, steps)
        if size != Size():
            sizes[name] = size
    return sizes


def floor_share(floor: Size, containers: int) -> Size:
    """The smallest pod, shared evenly by its containers in whole millicores and bytes (VPA)."""
    count = max(containers, 1)
    return Size(
        cpu_cores=round_down((floor.cpu_cores or 0.0) / count, CPU_GRAIN),
        memory_bytes=round_down((floor.memory_bytes or 0.0) / count, MEMORY_GRAIN),
    )


def _contexts(
    vertical: Vertical,
    estimate: Estimate,
    floor: Size,
    now: ContainerSize,
    rule: ContainerRule,
    at: float,
    overloaded: bool,
) -> list[ResizeContext]:
    """The controlled resources; a missing request counts as 0."""
    return [
        ResizeContext(
            vertical,
            estimate,
            axis,
            rule.whole_cores,
            now.requests.amount(axis) or 0.0,
            floor.amount(axis) or 0.0,
            at,
            overloaded,
        )
        for axis in RESOURCES
        if rule.controls(axis)
    ]


def _size(name: str, rule: ContainerRule, now: ContainerSize, contexts: list[ResizeContext], steps: list[Step]) -> Size:
    amounts: dict[Axis, float] = {}
    for context in contexts:
        wish = context.estimate.target.amount(context.axis)
        if wish is None or not (isfinite(wish) and wish >= 0):
            continue
        if now.requests == Size():
            steps.append(Step(rule=RuleName.ADVISED, axis=context.axis, before=wish, after=0.0, container=name))
            continue
        settled = _settle(name, context, wish, steps)
        if settled > 0.0:  # a request that is not set stays so until something is known
            amounts[context.axis] = settled
    return _bounded(name, rule, amounts, steps)


def _settle(name: str, context: ResizeContext, wish: float, steps: list[Step]) -> float:
    for rule, apply in RULES:
        settled, until = apply(context, wish)
        if settled != wish:
            steps.append(Step(rule=rule, axis=context.axis, before=wish, after=settled, until=until, container=name))
        wish = settled
    return wish


def _bounded(name: str, rule: ContainerRule, amounts: dict[Axis, float], steps: list[Step]) -> Size:
    size = within(Size(cpu_cores=amounts.get(Axis.CPU), memory_bytes=amounts.get(Axis.MEMORY)), rule.least, rule.most)
    for axis in RESOURCES:
        after = size.amount(axis)
        if after is not None and after != amounts[axis]:
            steps.append(Step(rule=RuleName.ALLOWED, axis=axis, before=amounts[axis], after=after, container=name))
    return size


# --- the rules, in order; each takes the wish and says what is left of it --------------------------------------------


def _oom_need(context: ResizeContext, wish: float) -> Settled:
    """One kill among many pods hardly moves a percentile, but the next one dies of the same size."""
    return max(wish, context.estimate.oom_need_bytes or 0.0) if context.is_memory else wish, None


def _floor(context: ResizeContext, wish: float) -> Settled:
    return max(wish, context.floor), None


def _whole_cores(context: ResizeContext, wish: float) -> Settled:
    return (float(ceil(wish)) if context.whole_cores and not context.is_memory else wish), None


def _warm_up(context: ResizeContext, wish: float) -> Settled:
    observed_s, vertical = context.estimate.observed_s, context.vertical
    if wish > context.current:
        needed_s = vertical.up_after_s
        if context.is_memory and (context.overloaded or context.estimate.oom_at is not None):
            needed_s = 0.0
    else:
        needed_s = vertical.down_after_s
        if context.is_memory:
            needed_s = max(needed_s, context.estimate.memory_window_s)
    if observed_s >= needed_s:
        return wish, None
    return context.current, context.at + needed_s - observed_s if isfinite(observed_s) else None


def _oom_rest(context: ResizeContext, wish: float) -> Settled:
    if wish >= context.current:
        return wish, None
    if context.estimate.oom_at is not None:
        until = context.estimate.oom_at + context.vertical.oom_rest_s
        if context.at < until:
            return context.current, until
    return (context.current if context.overloaded else wish), None


def _keep_memory(context: ResizeContext, wish: float) -> Settled:
    keeps = context.is_memory and context.vertical.keep_memory
    return (max(wish, context.current) if keeps else wish), None


def _peak(context: ResizeContext, wish: float) -> Settled:
    """An unknown peak may be any peak, so nothing is lowered."""
    if not context.is_memory or wish >= context.current:
        return wish, None
    peak = context.estimate.memory_peak_bytes
    if peak is None or not isfinite(peak):
        return context.current, None
    return max(wish, min(context.current, peak * context.vertical.peak_margin)), None


RULES: tuple[tuple[RuleName, Callable[[ResizeContext, float], Settled]], ...] = (
    (RuleName.OOM_NEED, _oom_need),
    (RuleName.FLOOR, _floor),
    (RuleName.WHOLE_CORES, _whole_cores),
    (RuleName.WARM_UP, _warm_up),
    (RuleName.OOM_REST, _oom_rest),
    (RuleName.KEEP_MEMORY, _keep_memory),
    (RuleName.PEAK, _peak),
)
