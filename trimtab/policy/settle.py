"""What happens to a wish, in this order (stage `settle`)."""

from __future__ import annotations

import enum
from math import inf

from trimtab.policy.record import Record, require

SECONDS = "give a number of seconds that is not negative"


class StabiliseMax(Record, frozen=True):
    """HPA without `behavior`: the highest wish that is not older than the window."""

    window_s: float = 300.0

    def __post_init__(self) -> None:
        require(
            0 <= self.window_s < inf,
            "stabilizationWindowSeconds",
            self.window_s,
            "give a number of seconds that is not negative",
        )


class Stabilise(Record, frozen=True):
    """HPA with `behavior`: the lowest wish of the up window, the highest of the down window."""

    up_s: float = 0.0
    down_s: float = 300.0

    def __post_init__(self) -> None:
        for seconds in (self.up_s, self.down_s):
            require(
                0 <= seconds < inf,
                "stabilizationWindowSeconds",
                seconds,
                "give a number of seconds that is not negative",
            )


class UpLimit(Record, frozen=True):
    """HPA without `behavior`: at most max(factor x current, minimum) in one step."""

    factor: float = 2.0
    minimum: float = 4.0

    def __post_init__(self) -> None:
        require(self.factor >= 1, "factor", self.factor, "a limit below 1 could never grow")


class Select(enum.StrEnum):
    MAX = "Max"
    MIN = "Min"
    DISABLED = "Disabled"


class RatePolicy(Record, frozen=True):
    """So many pods, or so many percent, within a period."""

    percent: bool
    value: int
    period_s: float

    def __post_init__(self) -> None:
        require(self.value >= 0, "policies.value", self.value, "give a number that is not negative")
        require(self.period_s >= 0, "policies.periodSeconds", self.period_s, SECONDS)


class Rates(Record, frozen=True):
    select: Select = Select.MAX
    policies: tuple[RatePolicy, ...] = ()


class Rate(Record, frozen=True):
    """HPA with `behavior`: how fast, in each direction."""

    up: Rates = Rates(
        policies=(
            RatePolicy(percent=False, value=4, period_s=15),
            RatePolicy(percent=True, value=100, period_s=15),
        )
    )
    down: Rates = Rates(policies=(RatePolicy(percent=True, value=100, period_s=15),))

    def __post_init__(self) -> None:
        for rates in (self.up, self.down):
            allowed = bool(rates.policies) or rates.select is Select.DISABLED
            require(allowed, "policies", rates.policies, "give at least one policy, or select Disabled")


class Velocity(Record, frozen=True):
    """Watermarks: at most a percentage of the current replicas in one step, at least one pod; 0 disables."""

    up_percent: float = 50.0
    down_percent: float = 20.0

    def __post_init__(self) -> None:
        for percent in (self.up_percent, self.down_percent):
            require(percent >= 0, "scaleLimitFactor", percent, "give a percentage that is not negative")


class MaxFactor(Record, frozen=True):
    """Document 002: the step is capped at 1 + up and 1 - down times the current replicas."""

    up: float = 1.0
    down: float = 1.0

    def __post_init__(self) -> None:
        for factor in (self.up, self.down):
            require(factor >= 0, "maxFactor", factor, "give a fraction that is not negative")


class MinFactor(Record, frozen=True):
    """Document 002: steps up to and including 1 + up and 1 - down are not worth it."""

    up: float = 0.1
    down: float = 0.1

    def __post_init__(self) -> None:
        for factor in (self.up, self.down):
            require(factor >= 0, "minFactor", factor, "give a fraction that is not negative")


class Cooldown(Record, frozen=True):
    """Rest after a scaling: of the same direction (document 002), or of any direction (watermarks)."""

    up_s: float = 15.0
    down_s: float = 15.0
    any_direction: bool = False

    def __post_init__(self) -> None:
        for seconds in (self.up_s, self.down_s):
            require(0 <= seconds < inf, "cooldownSeconds", seconds, SECONDS)


class Delay(Record, frozen=True):
    """Watermarks: a mark must have been crossed for this long."""

    above_s: float = 0.0
    below_s: float = 0.0

    def __post_init__(self) -> None:
        for seconds in (self.above_s, self.below_s):
            require(0 <= seconds < inf, "delaySeconds", seconds, SECONDS)


class RoundUp(Record, frozen=True):
    """Whole pods; epsilon forgives float noise (11.000000000000002 is 11), 0 is document 002's program exactly."""

    epsilon: float = 1e-9


Rule = StabiliseMax | Stabilise | UpLimit | Rate | Velocity | MaxFactor | MinFactor | Cooldown | Delay | RoundUp
