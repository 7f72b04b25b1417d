"""Policy: what every kind compiles to. Frozen data that decides nothing; the systems differ in the lists it holds.

A record that contradicts itself cannot be made: it is refused with the field, the value and the fix.
"""

from __future__ import annotations

from trimtab.policy.axis import RESOURCES, Axis, Direction, Size
from trimtab.policy.blend import Blend, Bucket, Buckets, BucketSizing, Capacity, Margin, Margins, Stage, Weights
from trimtab.policy.bounds import Admit, Bounds, ForecastChoice, Mode, ScheduledBounds, WrittenSchedule
from trimtab.policy.bridge import Bridge
from trimtab.policy.gates import Gate, MaintenanceWindow, MinChange, Rest, Update, UpdateMode
from trimtab.policy.inspection import Advice, AdviceAlgorithm, Inspection
from trimtab.policy.objective import Objective
from trimtab.policy.record import Record
from trimtab.policy.settle import (
    Cooldown,
    Delay,
    MaxFactor,
    MinFactor,
    Rate,
    RatePolicy,
    Rates,
    RoundUp,
    Rule,
    Select,
    Stabilise,
    StabiliseMax,
    UpLimit,
    Velocity,
)
from trimtab.policy.signals import (
    Absence,
    Combine,
    Converge,
    Factor,
    Metric,
    MetricKind,
    PodAverage,
    PodRules,
    Signal,
    Tolerance,
    Total,
    TotalAverage,
    Utilization,
    Watermark,
)
from trimtab.policy.tuned import PricedBand, TunedSettings
from trimtab.policy.tuning import Tuning, TuningLimits, TuningMode, TuningRange
from trimtab.policy.vertical import Apply, ContainerRule, Gap, Limits, Vertical


class Policy(Record, frozen=True):
    """Everything decide() may look at besides what is seen and what is remembered."""

    signals: tuple[Signal, ...] = ()
    combine: Combine = Combine.MAXIMUM
    absence: Absence = Absence()
    pods: PodRules = PodRules()
    settle: tuple[Rule, ...] = (StabiliseMax(), UpLimit())
    vertical: Vertical | None = None
    bridge: Bridge | None = None
    blend: Blend | None = None
    gates: tuple[Gate, ...] = ()
    bounds: Bounds = Bounds()
    admit: Admit = Admit()
    forecast: ForecastChoice | None = None
    objective: Objective | None = None
    tuning: Tuning = Tuning()
    replays_noop: bool = False  # document 002's program: a scaling to the same number is still a scaling


def is_cpu(metric: Metric) -> bool:
    """Whether it measures the cpu of pods or of one of their containers."""
    return metric.name == "cpu" and metric.kind in (MetricKind.RESOURCE, MetricKind.CONTAINER)


def sees_without_pods(policy: Policy) -> bool:
    """Whether a signal can be read while no pod runs; without one nothing could wake the workload again."""
    return any(isinstance(signal, Total | TotalAverage) for signal in policy.signals)


__all__ = [
    "Absence",
    "Admit",
    "Advice",
    "AdviceAlgorithm",
    "Apply",
    "Axis",
    "Blend",
    "Bounds",
    "Bridge",
    "Bucket",
    "Buckets",
    "Capacity",
    "Combine",
    "ContainerRule",
    "Converge",
    "Cooldown",
    "Delay",
    "Direction",
    "Factor",
    "Gap",
    "Gate",
    "Inspection",
    "Limits",
    "Margin",
    "Margins",
    "MaxFactor",
    "Metric",
    "MetricKind",
    "MinChange",
    "MinFactor",
    "Mode",
    "ForecastChoice",
    "Objective",
    "PodAverage",
    "PricedBand",
    "PodRules",
    "Policy",
    "Rate",
    "RatePolicy",
    "Rates",
    "RESOURCES",
    "Record",
    "Rest",
    "RoundUp",
    "Rule",
    "Select",
    "Signal",
    "Size",
    "BucketSizing",
    "ScheduledBounds",
    "Stabilise",
    "StabiliseMax",
    "Stage",
    "Tolerance",
    "Total",
    "TotalAverage",
    "TunedSettings",
    "Tuning",
    "TuningLimits",
    "TuningMode",
    "TuningRange",
    "UpLimit",
    "Update",
    "UpdateMode",
    "Utilization",
    "Velocity",
    "Vertical",
    "Watermark",
    "Weights",
    "WrittenSchedule",
    "MaintenanceWindow",
    "is_cpu",
    "sees_without_pods",
]
