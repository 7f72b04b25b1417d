"""Tuning: whether better settings are looked for at night, and how far they may go."""

from __future__ import annotations

import enum

from trimtab.policy.record import Record, require


class TuningMode(enum.StrEnum):
    OFF = "Off"
    ADVISE = "Advise"  # only say what it would do
    NIGHTLY = "Nightly"


class TuningRange(Record, frozen=True):
    """From least to most, both included; None: as far as the candidates go."""

    least: float | None = None
    most: float | None = None

    def __post_init__(self) -> None:
        ordered = self.least is None or self.most is None or self.least <= self.most
        require(ordered, "tuning.limits.min", self.least, f"must not be above max ({self.most})")

    def __contains__(self, value: float) -> bool:
        return (self.least is None or self.least <= value) and (self.most is None or value <= self.most)


class TuningLimits(Record, frozen=True):
    """`target` is in the unit of the metric's own target: percent of the request, or its average value."""

    target: TuningRange = TuningRange()
    tolerance: TuningRange = TuningRange()
    window_s: TuningRange = TuningRange()  # how long a lower wish must have lasted


class Tuning(Record, frozen=True):
    mode: TuningMode = TuningMode.OFF
    limits: TuningLimits = TuningLimits()
    timezone: str = "UTC"  # in which it is night
