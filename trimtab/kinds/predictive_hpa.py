"""PredictiveHorizontalPodAutoscaler (jamiethompson.me/v1alpha1): an HPA whose replicas models look ahead of.

Read to be linted, replayed and converted. Its first model is followed, as a forecast of the load that only adds, which
is its decisionType maximum; the other decision types and models are named where it is converted.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from trimtab.kinds.amounts import Count, CountOrZero, Fraction, Text
from trimtab.kinds.behavior import Behavior, ScalingRules
from trimtab.kinds.horizontal import MIN_AT_MOST_MAX, ZERO_NEEDS_EYES
from trimtab.kinds.manifest_part import FieldRule, ManifestPart
from trimtab.kinds.meta import Kind, TargetRef
from trimtab.kinds.metric import MetricSpec, signals_of
from trimtab.policy import (
    Bounds,
    ForecastChoice,
    PodRules,
    Policy,
    Rate,
    RatePolicy,
    Rates,
    Rule,
    Stabilise,
    Tolerance,
)

SYNC_MS, DAY_S = 15_000, 86_400
_TYPES = {"additive": "add", "add": "add", "multiplicative": "mul", "mul": "mul"}
# What behavior leaves open are HPA's rates, but over a minute, not over 15 s.
UP = (("Pods", 4), ("Percent", 100))
DOWN = (("Percent", 100),)
PERIOD_S, DEFAULT_WINDOW_S, DEFAULT_CPU_INIT_S, DEFAULT_READINESS_S = 60, 300, 30, 30
_NOTHING = ScalingRules()
Start = Annotated[float, Field(ge=-1e9, le=1e9, allow_inf_nan=False)]


class LinearModel(ManifestPart):
    history_size: Count
    look_ahead: Count
    """Milliseconds."""


class HoltWintersModel(ManifestPart):
    alpha: Fraction | None = None
    beta: Fraction | None = None
    gamma: Fraction | None = None
    trend: Literal["additive", "add", "multiplicative", "mul"] = "add"
    seasonal: Literal["additive", "add", "multiplicative", "mul"] = "add"
    seasonal_periods: Count
    stored_seasons: Count
    damped_trend: bool | None = None
    initialization_method: Text | None = None
    initial_level: Start | None = None
    initial_trend: Start | None = None
    initial_seasonal: Start | None = None
    runtime_tuning_fetch_hook: dict[str, Any] | None = None


class PredictionModel(ManifestPart):
    type: Literal["Linear", "HoltWinters"]
    name: Text
    calculation_timeout: Count | None = None
    per_sync_period: Count = 1
    start_interval: str | None = None
    reset_duration: str | None = None
    linear: LinearModel | None = None
    holt_winters: HoltWintersModel | None = None

    rules: ClassVar[tuple[FieldRule, ...]] = (
        FieldRule(
            lambda m: (m.linear if m.type == "Linear" else m.holt_winters) is not None,
            at="type",
            fix="add linear or holtWinters, whichever type names",
        ),
    )

    def choice(self, sync_s: float) -> ForecastChoice:
        if self.linear:
            options: dict[str, Any] = {"history_size": self.linear.history_size}
            return ForecastChoice(model="linear", horizon_s=self.linear.look_ahead / 1000, options=options)
        assert self.holt_winters is not None
        given = self.holt_winters
        options = {"trend": _TYPES[given.trend], "seasonal": _TYPES[given.seasonal]}
        options = {name: kind for name, kind in options.items() if kind != "add"}  # as the model has them
        weights = {"alpha": given.alpha, "beta": given.beta, "gamma": given.gamma}
        options |= {name: weight for name, weight in weights.items() if weight is not None}
        return ForecastChoice(model="holtWinters", horizon_s=sync_s, options=options)


class PredictiveHpaSpec(ManifestPart):
    scale_target_ref: TargetRef
    min_replicas: CountOrZero = 1
    max_replicas: Count
    metrics: Annotated[list[MetricSpec], Field(max_length=50)] | None = None
    behavior: Behavior | None = None
    downscale_stabilization: CountOrZero = DEFAULT_WINDOW_S
    """Seconds; as the releases before behavior had it."""
    cpu_initialization_period: CountOrZero = DEFAULT_CPU_INIT_S
    initial_readiness_delay: CountOrZero = DEFAULT_READINESS_S
    tolerance: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 0.1
    sync_period: Count = SYNC_MS
    """Milliseconds."""
    models: Annotated[list[PredictionModel], Field(min_length=1)]
    decision_type: Literal["maximum", "minimum", "mean", "median"] = "maximum"

    rules: ClassVar[tuple[FieldRule, ...]] = (
        MIN_AT_MOST_MAX,
        ZERO_NEEDS_EYES,
        FieldRule(
            lambda s: all(side is None or side.tolerance is None for side in s.sides),
            at="behavior",
            fix="it has no tolerance of its own: write spec.tolerance",
        ),
    )

    @property
    def sides(self) -> tuple[ScalingRules | None, ScalingRules | None]:
        return (self.behavior.scale_up, self.behavior.scale_down) if self.behavior else (None, None)

    def settle(self) -> tuple[Rule, ...]:
        up, down = (side or _NOTHING for side in self.sides)
        window_s = down.stabilization_window_seconds
        if window_s is None:
            window_s = DEFAULT_WINDOW_S if self.behavior else self.downscale_stabilization
        stabilise = Stabilise(up_s=float(up.stabilization_window_seconds or 0), down_s=float(window_s))
        return (stabilise, Rate(up=up.rates(_rates(UP)), down=down.rates(_rates(DOWN))))


def _rates(policies: tuple[tuple[str, int], ...]) -> Rates:
    made = (RatePolicy(percent=kind == "Percent", value=value, period_s=PERIOD_S) for kind, value in policies)
    return Rates(policies=tuple(made))


class PredictiveHpa(Kind):
    api_version: Literal["jamiethompson.me/v1alpha1"]
    kind: Literal["PredictiveHorizontalPodAutoscaler"]
    spec: PredictiveHpaSpec

    crd: ClassVar[bool] = False

    @property
    def target(self) -> TargetRef:
        return self.spec.scale_target_ref

    def to_policy(self, at: float) -> Policy:
        spec = self.spec
        return Policy(
            signals=signals_of(spec.metrics, Tolerance(up=spec.tolerance, down=spec.tolerance)),
            pods=PodRules(
                cpu_init_s=float(spec.cpu_initialization_period), readiness_delay_s=float(spec.initial_readiness_delay)
            ),
            settle=spec.settle(),
            bounds=Bounds(min_replicas=spec.min_replicas, max_replicas=spec.max_replicas),
            forecast=spec.models[0].choice(spec.sync_period / 1000),
            admit=self.admit(),
        )
