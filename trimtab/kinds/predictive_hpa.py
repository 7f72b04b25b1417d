"""PredictiveHorizontalPodAutoscaler (jamiethompson.me/v1alpha1): an HPA whose replicas models look ahead of.

Read to be linted, replayed and converted. Its first model is followed, as a forecast of the load that only adds, which
is its decisionType maximum; the other decision types and models are named where it is converted.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec.structs import replace
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from trimtab.kinds.amounts import Count, CountOrZero, Fraction, Text
from trimtab.kinds.behavior import Behavior
from trimtab.kinds.horizontal import MIN_AT_MOST_MAX, ZERO_NEEDS_EYES, horizontal
from trimtab.kinds.manifest_part import FieldRule, ManifestPart
from trimtab.kinds.meta import Kind, TargetRef
from trimtab.kinds.metric import MetricSpec, signals_of
from trimtab.policy import ForecastChoice, PodRules, Policy, Rate, RatePolicy, Rates, Stabilise, Tolerance

SYNC_MS, DAY_S = 15_000, 86_400
_TYPES = {"additive": "add", "add": "add", "multiplicative": "mul", "mul": "mul"}
# Without behavior it follows HPA's rates over a minute, not over 15 s.
_RATES = Rate(
    up=Rates(
        policies=(
            RatePolicy(percent=False, value=4, period_s=60),
            RatePolicy(percent=True, value=100, period_s=60),
        )
    ),
    down=Rates(policies=(RatePolicy(percent=True, value=100, period_s=60),)),
)


class LinearModel(ManifestPart):
    history_size: Count
    look_ahead: CountOrZero
    """Milliseconds."""


class HoltWintersModel(ManifestPart):
    model_config = ConfigDict(extra="allow", strict=True, frozen=True, alias_generator=to_camel)

    alpha: Fraction | None = None
    beta: Fraction | None = None
    gamma: Fraction | None = None
    trend: Literal["additive", "add", "multiplicative", "mul"] = "add"
    seasonal: Literal["additive", "add", "multiplicative", "mul"] = "add"
    seasonal_periods: Count
    stored_seasons: Count


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
        weights = {"alpha": given.alpha, "beta": given.beta, "gamma": given.gamma}
        options |= {name: weight for name, weight in weights.items() if weight is not None}
        return ForecastChoice(model="holtWinters", horizon_s=sync_s, options=options)


class PredictiveHpaSpec(ManifestPart):
    scale_target_ref: TargetRef
    min_replicas: CountOrZero = 1
    max_replicas: Count
    metrics: Annotated[list[MetricSpec], Field(max_length=50)] | None = None
    behavior: Behavior | None = None
    downscale_stabilization: CountOrZero = 300
    """Seconds; as the releases before behavior had it."""
    cpu_initialization_period: CountOrZero = 300
    initial_readiness_delay: CountOrZero = 30
    tolerance: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 0.1
    sync_period: Count = SYNC_MS
    """Milliseconds."""
    models: Annotated[list[PredictionModel], Field(min_length=1)]
    decision_type: Literal["maximum", "minimum", "mean", "median"] = "maximum"

    rules: ClassVar[tuple[FieldRule, ...]] = (MIN_AT_MOST_MAX, ZERO_NEEDS_EYES)


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
        policy = horizontal(spec.min_replicas, spec.max_replicas, spec.metrics, spec.behavior)
        if spec.behavior is None:
            policy = replace(policy, settle=(Stabilise(down_s=float(spec.downscale_stabilization)), _RATES))
        pods = PodRules(
            cpu_init_s=float(spec.cpu_initialization_period), readiness_delay_s=float(spec.initial_readiness_delay)
        )
        signals = signals_of(spec.metrics, Tolerance(up=spec.tolerance, down=spec.tolerance))
        forecast = spec.models[0].choice(spec.sync_period / 1000)
        return replace(policy, signals=signals, pods=pods, forecast=forecast, admit=self.admit())
