"""Tuning in words: settings, and what they are worth."""

from __future__ import annotations

from trimtab.core.nights import TuningEvidence
from trimtab.policy import PricedBand, TunedSettings
from trimtab.quantity import format_duration, format_number


def settings_text(settings: TunedSettings, percent: bool = False) -> str:
    """ "target 60, tolerance 0.05, window 5m, bridge at 0.75"; the target in percent where that is its unit."""
    parts = [
        f"target {format_number(settings.target)}{' %' if percent else ''}",
        f"tolerance {settings.tolerance:g}",
        f"window {format_duration(settings.window_s)}",
    ]
    if settings.ceiling is not None:
        parts.append(f"bridge at {settings.ceiling:g}")
    return ", ".join([*parts, _priced(settings.band)] if settings.priced else parts)


def _priced(band: PricedBand | None) -> str:
    return "priced" if band is None else f"priced (start {band.start:g}, keep {band.keep:g})"


def gain_text(evidence: TuningEvidence) -> str:
    before, after = evidence.before, evidence.after
    return (
        f"J {before.j:.2f} -> {after.j:.2f}, violations {before.violations:.2f} -> {after.violations:.2f} %,"
        f" cost {before.cost:.2f} -> {after.cost:.2f}, churn per day {before.churn_per_day:.0f} ->"
        f" {after.churn_per_day:.0f} over {evidence.days} days"
    )
