"""PredictiveHorizontalPodAutoscaler (jamiethompson.me/v1alpha1): an HPA whose replicas models look ahead of.

Linted, replayed and converted, never served. Its first model becomes a forecast of the load, which only adds replicas
(its decisionType maximum); other decision types and models are reported as lost.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from trimtab.kinds.amounts import Count, CountOrZero, Fraction, Text
from trimtab.kinds.autoscaler import LONGEST_HORIZON_S
from trimtab.kinds.behavior import LONGEST_WINDOW_S, Behavior, ScalingRules
from trimtab.kinds.foreign import SCALING, ForeignKind, Manifest, exact_parts
from trimtab.kinds.horizontal import MIN_AT_MOST_MAX, ZERO_NEEDS_EYES
from trimtab.kinds.ledger import Ledger, without_none
from trimtab.kinds.manifest_part import FieldRule, ManifestPart
from trimtab.kinds.meta import TargetRef
from trimtab.kinds.metric import MetricSpec
from trimtab.policy import PodRules, Rate, RatePolicy, Rates, Rule, Stabilise

SYNC_MS, DAY_S = 15_000, 86_400
_TYPES = {"additive": "add", "add": "add", "multiplicative": "mul", "mul": "mul"}
# What behavior leaves open are HPA's rates, but over a minute, not over 15 s.
UP = (("Pods", 4), ("Percent", 100))
DOWN = (("Percent", 100),)
PERIOD_S, DEFAULT_WINDOW_S = 60, 300
_NOTHING = ScalingRules()
_PLACES = {f"spec.behavior.scale{way}.tolerance": "spec.tolerance" for way in ("Up", "Down")} | {
    f"spec.behavior.scale{way}.policies": "spec.behavior" for way in ("Up", "Down")
}
_WHOLE_HISTORY = "the whole history counts"
_CHOSEN = "the model chooses its own start, and damps nothing"
_IGNORED_OF_MODELS = {
    "calculationTimeout": "the model runs in this program",
    "startInterval": _WHOLE_HISTORY,
    "resetDuration": _WHOLE_HISTORY,
    "holtWinters.storedSeasons": _WHOLE_HISTORY,
    "holtWinters.runtimeTuningFetchHook": "no hook is called for coefficients",
    "holtWinters.dampedTrend": _CHOSEN,
    "holtWinters.initializationMethod": _CHOSEN,
    "holtWinters.initialLevel": _CHOSEN,
    "holtWinters.initialTrend": _CHOSEN,
    "holtWinters.initialSeasonal": _CHOSEN,
}
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

    @property
    def options(self) -> dict[str, Any]:
        """The model's settings by the names of its options."""
        if self.linear:
            return {"history_size": self.linear.history_size}
        assert self.holt_winters is not None
        season = self.holt_winters
        types = {"trend": _TYPES[season.trend], "seasonal": _TYPES[season.seasonal]}
        options = {name: kind for name, kind in types.items() if kind != "add"}  # the model's own default
        return options | without_none(alpha=season.alpha, beta=season.beta, gamma=season.gamma)


class PredictiveHpaSpec(ManifestPart):
    scale_target_ref: TargetRef
    min_replicas: CountOrZero = 1
    max_replicas: Count
    metrics: Annotated[list[MetricSpec], Field(max_length=50)] | None = None
    behavior: Behavior | None = None
    downscale_stabilization: CountOrZero = DEFAULT_WINDOW_S
    """Seconds; as the releases before behavior had it."""
    cpu_initialization_period: CountOrZero = 30
    initial_readiness_delay: CountOrZero = 30
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


class PredictiveHpa(ForeignKind):
    api_version: Literal["jamiethompson.me/v1alpha1"]
    kind: Literal["PredictiveHorizontalPodAutoscaler"]
    spec: PredictiveHpaSpec

    crd: ClassVar[bool] = False
    ignored: ClassVar = {f"spec.models[].{name}": why for name, why in _IGNORED_OF_MODELS.items()}

    def as_autoscaler(self, metadata: Manifest, ledger: Ledger) -> Manifest:
        """An HPA with a forecast of the first model, which only adds replicas."""
        spec, written = self.spec, self.spec.manifest()
        ledger.places(_PLACES)
        made = {name: part for name, part in written.items() if name in SCALING}
        made["behavior"] = self._behavior(written.get("behavior") or {}, ledger)
        model = spec.models[0]
        ahead = "spec.models[0].linear.lookAhead" if model.linear else "spec.syncPeriod"
        ledger.places({"spec.forecast": "spec.models[0]", "spec.forecast.horizon": ahead})
        ahead_ms = model.linear.look_ahead if model.linear else spec.sync_period
        most_ms = ledger.at_most("spec.forecast.horizon", ahead_ms, LONGEST_HORIZON_S * 1000)
        horizon = most_ms // 1000 if most_ms % 1000 == 0 else f"{most_ms}ms"
        made["forecast"] = {"model": "linear" if model.linear else "holtWinters", "horizon": horizon}
        _lose(spec, written, ledger)
        cpu_init_s, readiness_s = float(spec.cpu_initialization_period), float(spec.initial_readiness_delay)
        return made | exact_parts(
            pods={"cpu_init_s": cpu_init_s, "readiness_delay_s": readiness_s},
            forecast={"horizon_s": ahead_ms / 1000, "options": model.options},
            settle=spec.settle(),
        )

    def _behavior(self, written: Manifest, ledger: Ledger) -> Manifest:
        """What behavior leaves open is written out: rates over a minute, where HPA's are over 15 s."""
        tolerance = self.spec.tolerance if "tolerance" in self.spec.model_fields_set else None
        window_s = DEFAULT_WINDOW_S
        if self.spec.behavior is None:
            path = "spec.behavior.scaleDown.stabilizationWindowSeconds"
            ledger.place(path, "spec.downscaleStabilization")
            window_s = ledger.at_most(path, self.spec.downscale_stabilization, LONGEST_WINDOW_S)
        made = {}
        for way, policies in (("scaleUp", UP), ("scaleDown", DOWN)):
            usual = [{"type": kind, "value": value, "periodSeconds": PERIOD_S} for kind, value in policies]
            rules = {"policies": usual} | written.get(way, {}) | without_none(tolerance=tolerance)
            made[way] = {"stabilizationWindowSeconds": window_s} | rules if way == "scaleDown" else rules
        return made


def _lose(spec: PredictiveHpaSpec, written: Manifest, ledger: Ledger) -> None:
    if spec.decision_type != "maximum":
        ledger.lose("spec.decisionType", f"a forecast only adds replicas: {spec.decision_type} could also remove some")
    for index in range(1, len(spec.models)):
        ledger.lose(f"spec.models[{index}]", "only the first model is used")
    if spec.models[0].per_sync_period != 1:
        ledger.lose("spec.models[0].perSyncPeriod", "the model runs on every tick")
    season = spec.models[0].holt_winters
    if season and season.seasonal_periods * spec.sync_period != DAY_S * 1000:
        ledger.lose("spec.models[0].holtWinters.seasonalPeriods", "a season is one day")
    if spec.behavior and "downscaleStabilization" in written:
        ledger.lose("spec.downscaleStabilization", "the window of behavior.scaleDown counts")
    if spec.sync_period != SYNC_MS:
        ledger.approximate("spec.syncPeriod", "metrics are read on every tick of the operator (--tick)")
    member = "linear" if spec.models[0].linear else "holtWinters"
    chosen = ("historySize", "alpha", "beta", "gamma", "trend", "seasonal")
    ledger.approximate_written(f"spec.models[0].{member}", written["models"][0][member], chosen, "is chosen here")
    usual = PodRules()
    for name, option, ours_s, theirs_s in (
        ("cpuInitializationPeriod", "cpu-initialization-period", usual.cpu_init_s, spec.cpu_initialization_period),
        ("initialReadinessDelay", "initial-readiness-delay", usual.readiness_delay_s, spec.initial_readiness_delay),
    ):
        if theirs_s != ours_s:
            ledger.approximate(f"spec.{name}", f"is the operator's setting (--{option}, {ours_s:.0f} s)")
