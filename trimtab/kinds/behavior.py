"""How fast and how far: `behavior` of autoscaling/v2, and the words of nanit custom-hpa that Autoscaler adds.

Without `behavior` an HPA follows other rules than with an empty one (Kubernetes fills defaults only into the latter).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from pydantic.alias_generators import to_camel

from trimtab.kinds.amounts import INT32, BareQuantity, Count, Fraction
from trimtab.kinds.manifest_part import ManifestPart
from trimtab.policy import (
    Cooldown,
    MaxFactor,
    MinFactor,
    Rate,
    RatePolicy,
    Rates,
    Rule,
    Select,
    Stabilise,
    StabiliseMax,
    Tolerance,
    UpLimit,
)
from trimtab.quantity import parse_quantity

LONGEST_WINDOW_S = 3600  # Kubernetes' own limit
LONGEST_REST_S = 86400
_UNCAPPED = float(INT32)  # a factor nobody reaches; JSON has no infinity


class ScalingPolicy(ManifestPart):
    """So many pods, or so many percent, within a period."""

    type: Literal["Pods", "Percent"]
    """Pods or Percent of the replicas."""
    value: Count
    """So many."""
    period_seconds: Annotated[int, Field(ge=1, le=1800)]
    """Within so many seconds."""


class ScalingRules(ManifestPart):
    """One direction, as autoscaling/v2 has it."""

    stabilization_window_seconds: Annotated[int, Field(ge=0, le=LONGEST_WINDOW_S)] | None = None
    """The calmest wish of the last so many seconds counts."""
    select_policy: Literal["Max", "Min", "Disabled"] | None = None
    """Which policy counts where several are given; Disabled switches the direction off."""
    policies: Annotated[list[ScalingPolicy], Field(min_length=1, max_length=20)] | None = None
    """How fast: so many pods, or percent, within a period."""
    tolerance: BareQuantity | None = None
    """How far a metric may be from its target before anything happens; 0.1 by default."""

    def rates(self, default: Rates) -> Rates:
        if self.policies is None:
            policies = default.policies
        else:
            policies = tuple(
                RatePolicy(percent=policy.type == "Percent", value=policy.value, period_s=policy.period_seconds)
                for policy in self.policies
            )
        return Rates(select=Select(self.select_policy or "Max"), policies=policies)


class OurScalingRules(ScalingRules):
    """One direction of an Autoscaler: a rest after a step, the smallest step worth it, the largest allowed."""

    cooldown_seconds: Annotated[int, Field(ge=0, le=LONGEST_REST_S)] | None = None
    """Rest so long after a step in this direction."""
    min_factor: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] | None = None
    """Steps up to this share of the replicas are not worth it."""
    max_factor: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)] | None = None
    """No step is larger than this share of the replicas."""


class OurDownRules(OurScalingRules):
    min_factor: Fraction | None = None
    """Steps up to this share of the replicas are not worth it."""
    max_factor: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | None = None
    """No step is larger than this share of the replicas."""


class Behavior(ManifestPart):
    """Both directions, as autoscaling/v2 has them."""

    scale_up: ScalingRules | None = None
    """Rules for growing."""
    scale_down: ScalingRules | None = None
    """Rules for shrinking."""

    def settle(self) -> tuple[Rule, ...]:
        up, down = self.scale_up or _NOTHING, self.scale_down or _NOTHING
        window_s = down.stabilization_window_seconds
        stabilise = Stabilise(
            up_s=float(up.stabilization_window_seconds or 0), down_s=300.0 if window_s is None else float(window_s)
        )
        return (stabilise, Rate(up=up.rates(_RATE.up), down=down.rates(_RATE.down)))

    def tolerance(self) -> Tolerance:
        up, down = self.scale_up or _NOTHING, self.scale_down or _NOTHING
        usual = Tolerance()
        return Tolerance(
            up=usual.up if up.tolerance is None else parse_quantity(up.tolerance),
            down=usual.down if down.tolerance is None else parse_quantity(down.tolerance),
        )


class OurBehavior(Behavior):
    """Both directions of an Autoscaler."""

    scale_up: OurScalingRules | None = None
    """Rules for growing."""
    scale_down: OurDownRules | None = None
    """Rules for shrinking."""

    def settle(self) -> tuple[Rule, ...]:
        """HPA's rules, then custom-hpa's."""
        return super().settle() + self.of_ours()

    def of_ours(self) -> tuple[Rule, ...]:
        """Custom-hpa's rules in its own order: cap, rest, worth it."""
        up, down = self.scale_up or _OURS, self.scale_down or _OURS
        extra: list[Rule] = []
        if (up.max_factor, down.max_factor) != (None, None):
            extra.append(MaxFactor(up=_or(up.max_factor, _UNCAPPED), down=_or(down.max_factor, 1.0)))
        if (up.cooldown_seconds, down.cooldown_seconds) != (None, None):
            extra.append(Cooldown(up_s=_or(up.cooldown_seconds, 0.0), down_s=_or(down.cooldown_seconds, 0.0)))
        if (up.min_factor, down.min_factor) != (None, None):
            extra.append(MinFactor(up=_or(up.min_factor, 0.0), down=_or(down.min_factor, 0.0)))
        return tuple(extra)


def _or(value: float | None, default: float) -> float:
    return default if value is None else float(value)


OUR_WORDS = tuple(to_camel(name) for name in OurScalingRules.model_fields if name not in ScalingRules.model_fields)
_RATE = Rate()
_ANY_RATE = Rates(policies=(RatePolicy(percent=True, value=INT32, period_s=1),))
_NOTHING = ScalingRules()
_OURS = OurScalingRules()


def written_rules(behavior: OurBehavior | None) -> tuple[Rule, ...]:
    """The rules of what is written alone, without what Kubernetes fills in."""
    up = (behavior and behavior.scale_up) or _OURS
    down = (behavior and behavior.scale_down) or _OURS
    rules: list[Rule] = []
    windows = up.stabilization_window_seconds or 0, down.stabilization_window_seconds or 0
    if any(windows):
        rules.append(Stabilise(up_s=float(windows[0]), down_s=float(windows[1])))
    if any(side.policies or side.select_policy for side in (up, down)):
        rules.append(Rate(up=up.rates(_ANY_RATE), down=down.rates(_ANY_RATE)))
    return (*rules, *(behavior.of_ours() if behavior else ()))


def settle_of(behavior: Behavior | None) -> tuple[Rule, ...]:
    return (StabiliseMax(), UpLimit()) if behavior is None else behavior.settle()


def tolerance_of(behavior: Behavior | None) -> Tolerance:
    return Tolerance() if behavior is None else behavior.tolerance()
