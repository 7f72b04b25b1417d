"""Tuning as users write it: a field of the Autoscaler, an annotation of kinds that have no field for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from trimtab.errors import InvalidInput
from trimtab.kinds import cron
from trimtab.kinds.amounts import BareQuantity, Target, amount
from trimtab.kinds.manifest_part import FieldRule, ManifestPart, shown
from trimtab.policy import Tuning, TuningLimits, TuningMode, TuningRange
from trimtab.quantity import parse_quantity

WindowSeconds = Annotated[int, Field(ge=0, le=3600)]
_MODES = ("Advise", "Nightly")


def _ordered(cel: str = "") -> FieldRule:
    return FieldRule(
        lambda r: r.min is None or r.max is None or parse_quantity(r.min) <= parse_quantity(r.max),
        at="min",
        fix="must not be above max",
        cel=cel,
    )


class _Limits(ManifestPart):
    """From min to max, both included."""

    min: Any = None
    max: Any = None

    rules: ClassVar = (_ordered(),)

    def range(self) -> TuningRange:
        return TuningRange(least=amount(self.min), most=amount(self.max))


class TargetLimits(_Limits):
    """In the unit of the metric's own target: percent of the request, or its average value."""

    min: Target | None = None
    """Never lower."""
    max: Target | None = None
    """Never higher."""


class ToleranceLimits(_Limits):
    """As in behavior."""

    min: BareQuantity | None = None
    """Never lower."""
    max: BareQuantity | None = None
    """Never higher."""


class WindowLimits(_Limits):
    """In seconds."""

    min: WindowSeconds | None = None
    """Never lower."""
    max: WindowSeconds | None = None
    """Never higher."""

    rules: ClassVar = (_ordered("!has(self.min) || !has(self.max) || self.min <= self.max"),)


class TuningLimitsSpec(ManifestPart):
    """How far tuning may move what it tunes; left out: as far as its candidates go."""

    target: TargetLimits | None = None
    tolerance: ToleranceLimits | None = None
    stabilization_window_seconds: WindowLimits | None = None
    """Of scaling down."""

    def limits(self) -> TuningLimits:
        written = (self.target, self.tolerance, self.stabilization_window_seconds)
        target, tolerance, window_s = (TuningRange() if each is None else each.range() for each in written)
        return TuningLimits(target=target, tolerance=tolerance, window_s=window_s)


class TuningSpec(ManifestPart):
    """Better settings from the workload's own days."""

    mode: Literal["Advise", "Nightly"]
    """Nightly moves target, tolerance and windows at 02:00; Advise only says what it would do."""
    limits: TuningLimitsSpec | None = None
    timezone: Annotated[str, Field(min_length=1, max_length=64)] = "UTC"
    """In which it is night."""

    def problems(self) -> Iterator[InvalidInput]:
        yield from super().problems()
        try:
            cron.zone_of(self.timezone, "timezone")
        except InvalidInput as problem:
            yield problem

    def tuning(self) -> Tuning:
        limits = self.limits.limits() if self.limits else TuningLimits()
        return Tuning(mode=TuningMode(self.mode), limits=limits, timezone=self.timezone)


TUNING_RULES = (
    FieldRule(
        lambda s: s.tuning is None or s.max_replicas is not None,
        at="tuning",
        fix="it is for workloads whose number of pods trimtab scales: set maxReplicas, or leave it out",
        cel="!has(self.tuning) || has(self.maxReplicas)",
    ),
)


def no_tuning(text: str | None, path: str) -> None:
    """Of an Hvpa, whose gates no backtest of a night knows."""
    if text is not None:
        raise InvalidInput(path, shown(text), "an Hvpa cannot be tuned: leave it out, or write an Autoscaler")
