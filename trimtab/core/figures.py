"""Figures: what a run of a workload cost and how much of its load met too few pods."""

from __future__ import annotations

from trimtab.policy import Record, TunedSettings


class Figures(Record, frozen=True, tag="TuningFigures"):  # the tag is stored in the status of objects
    """Cost and J are ratios to the optimum of the same load; violations are percent of the load."""

    j: float
    violations: float
    cost: float
    churn_per_day: float
    starts_per_day: float = 0.0
    resizes_per_pod_day: float = 0.0
    optimum: float = 0.0  # pod-steps
    cores: float = 0.0  # requested, on average

    @property
    def regret(self) -> float:
        return self.j - 1.0


class JudgedSettings(Record, frozen=True):
    """Settings, and what they would have done."""

    settings: TunedSettings
    figures: Figures
