"""Autoscaler (trimtab.dev/v1alpha1): a superset of autoscaling/v2; everything beyond it is optional."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec.structs import replace
from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError

from trimtab.errors import InvalidInput
from trimtab.kinds.amounts import DURATION, INT32, Count, CountOrZero, number_of
from trimtab.kinds.annotations import TUNING_UNDO
from trimtab.kinds.behavior import OurBehavior, written_rules
from trimtab.kinds.blend import BlendSpec
from trimtab.kinds.bridge import BRIDGE_RULES, NEEDS_CPU, BridgeSpec, sees_cpu
from trimtab.kinds.horizontal import LINE, MIN_AT_MOST_MAX, ZERO_NEEDS_EYES, ZERO_NEEDS_SERVICE_TIME, horizontal
from trimtab.kinds.manifest_part import FieldRule, ManifestPart, shown
from trimtab.kinds.meta import Kind, TargetRef
from trimtab.kinds.metric import MOST_METRICS, AutoscalerMetric, few_forecasts
from trimtab.kinds.objective import OBJECTIVE_RULES, ObjectiveSpec, bridged, guarding
from trimtab.kinds.schedule import MOST_PER_DAY, TOO_MANY, Schedule, events_per_day, expand_schedules
from trimtab.kinds.tuning import TUNING_RULES, TuningSpec
from trimtab.kinds.vertical import VerticalSpec
from trimtab.policy import Absence, Bounds, ForecastChoice, ForecastModel, Mode, Policy
from trimtab.quantity import parse_duration

STARTUP = "startup"
LONGEST_HORIZON_S = 3600  # Crane's own window; a pod that starts later is not saved by looking further
_HORIZON = f"^({STARTUP}|{DURATION[1:-1]})$"


def _check_horizon(value: object) -> object:
    whole = isinstance(value, int) and not isinstance(value, bool) and value > 0
    known = isinstance(value, str) and len(value) <= 32 and re.fullmatch(_HORIZON, value)
    if value == STARTUP or ((whole or known) and 0 < number_of(str(value), parse_duration) <= LONGEST_HORIZON_S):
        return value
    raise PydanticCustomError(
        "horizon", 'write "startup" (the measured start-up time), seconds, or a duration such as "5m", up to 1h'
    )


Horizon = Annotated[
    str | int,
    PlainValidator(_check_horizon),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": True,
            "pattern": _HORIZON,
            "minimum": 1,
            "maximum": LONGEST_HORIZON_S,
            "maxLength": 32,
            "default": STARTUP,
        }
    ),
]


EXACT_MODELS = ("linear", "holtWinters", "dsp", "percentile")  # those that another program has, too
LEARNED = ForecastChoice(model="learned")


class ForecastSpec(ManifestPart):
    """Which model looks ahead, and how far; what it expects may only add to what the load needs now."""

    model: ForecastModel
    """linear follows the last minutes, learned and seasonal days; dsp and percentile are Crane's, holtWinters
    PHPA's."""
    horizon: Horizon = STARTUP
    """startup: the measured start-up time of a pod; else seconds or a duration."""
    exact: bool = False
    """The program that the model comes from, quirks included: the thesis' line, Crane's DSP, PHPA's seasons."""

    rules: ClassVar = (
        FieldRule(
            lambda f: not f.exact or f.model in EXACT_MODELS,
            at="exact",
            fix=f"leave it out: only {', '.join(EXACT_MODELS)} follow another program",
            cel=f"!has(self.exact) || !self.exact || self.model in {list(EXACT_MODELS)}",
        ),
    )

    def choice(self) -> ForecastChoice:
        horizon_s = None if self.horizon == STARTUP else parse_duration(self.horizon)
        options = LINE.options if self.model == LINE.model and not self.exact else {}
        return ForecastChoice(model=self.model, horizon_s=horizon_s, exact=self.exact, options=options)


class Fallback(ManifestPart):
    """A floor while metrics are missing; with allowDecrease it may also lower the workload."""

    replicas: CountOrZero
    """At least so many."""
    allow_decrease: bool = False
    """Exactly so many, even if more run."""


class MetricFailure(ManifestPart):
    """First hold, then fall back."""

    hold_seconds: Annotated[int, Field(ge=0, le=86400)] = 300
    """Keep the size for so long."""
    then: Fallback | None = None
    """Afterwards at least so many replicas."""

    def absence(self) -> Absence:
        hold_s = float(self.hold_seconds)
        if self.then is None:
            return Absence(hold_s=hold_s)
        return Absence(hold_s=hold_s, then_replicas=self.then.replicas, allow_decrease=self.then.allow_decrease)


class AutoscalerSpec(ManifestPart):
    scale_target_ref: TargetRef
    """The workload: anything with a scale subresource."""
    min_replicas: CountOrZero = 1
    """The floor; zero needs a metric that has a value without pods."""
    max_replicas: Count | None = None
    """The ceiling; may only be left out with vertical, which then acts alone."""
    metrics: Annotated[list[AutoscalerMetric], Field(max_length=MOST_METRICS)] | None = None
    """As in autoscaling/v2, or a Prometheus query; the metric that needs most replicas counts. None: CPU at 80 %."""
    behavior: OurBehavior | None = None
    """As in autoscaling/v2, with cooldownSeconds, minFactor and maxFactor beside it."""
    mode: Literal["Auto", "Shadow", "Paused"] = "Auto"
    """Auto acts. Shadow decides and records but writes only status. Paused does nothing."""
    forecast: ForecastSpec | None = None
    """A look ahead that may only add replicas."""
    objective: ObjectiveSpec | None = None
    """What a violated minute of load is worth; then pods are started and kept by a forecast's odds. Left out: no."""
    tuning: TuningSpec | None = None
    """Are target, tolerance and windows tuned at night? Left out: no."""
    vertical: VerticalSpec | None = None
    """Sizes of containers."""
    bridge: BridgeSpec | None = None
    """May ready pods grow in place for a while, until new ones are ready? Left out: no."""
    blend: BlendSpec | None = None
    """How both axes become one plan: weights, buckets or capacity."""
    schedules: Annotated[list[Schedule], Field(max_length=30)] | None = None
    """Floors and ceilings by the clock."""
    on_metric_failure: MetricFailure | None = None
    """What happens while no metric can be read."""
    exact: SkipJsonSchema[dict[str, Any] | None] = None
    """Parts of the policy that replace what the fields above say of them, in the words of the journal. Other kinds are
    read into it where their programs do what no field offers; it has no place in the CustomResourceDefinition."""

    rules: ClassVar = (
        MIN_AT_MOST_MAX,
        ZERO_NEEDS_EYES,
        ZERO_NEEDS_SERVICE_TIME,
        few_forecasts("forecast"),
        *BRIDGE_RULES,
        *OBJECTIVE_RULES,
        *TUNING_RULES,
        FieldRule(
            lambda s: events_per_day(s.schedules) <= MOST_PER_DAY,
            at="schedules",
            fix=TOO_MANY,
        ),
        FieldRule(
            lambda s: s.max_replicas is not None or s.vertical is not None,
            at="maxReplicas",
            fix="set it; only an Autoscaler with `vertical` may leave the number of pods to others",
            cel="has(self.maxReplicas) || has(self.vertical)",
        ),
        FieldRule(
            lambda s: s.max_replicas is not None or not (s.metrics or s.behavior or s.forecast or s.blend),
            at="maxReplicas",
            fix="set it: metrics, behavior, forecast and blend move the number of pods",
            cel="has(self.maxReplicas) || !((has(self.metrics) && self.metrics.size() > 0)"
            " || has(self.behavior) || has(self.forecast) || has(self.blend))",
        ),
        FieldRule(
            lambda s: s.blend is None or s.vertical is not None,
            at="blend",
            fix="blend needs vertical: without it there is nothing to blend",
            cel="!has(self.blend) || has(self.vertical)",
        ),
        FieldRule(
            lambda s: len({schedule.name for schedule in s.schedules or []}) == len(s.schedules or []),
            at="schedules",
            fix="each schedule needs a name of its own",
            cel="!has(self.schedules) || self.schedules.all(a, self.schedules.exists_one(b, a.name == b.name))",
        ),
    )


def _always(forecast: ForecastChoice) -> ForecastChoice:
    """The same without silence: an objective needs to know what is coming even where that is what is there."""
    return replace(forecast, options={name: value for name, value in forecast.options.items() if name != "abstains"})


def overridden(policy: Policy, exact: Mapping[str, Any] | None) -> Policy:
    """The policy with these parts; a mapping replaces only the fields of a part that it names."""
    if not exact:
        return policy
    made = msgspec.to_builtins(policy)
    for name, part in msgspec.to_builtins(exact).items():
        made[name] = {**(made[name] or {}), **part} if isinstance(part, dict) else part
    return msgspec.convert(made, Policy)


class Autoscaler(Kind):
    """One object for one workload, both axes: the only kind that compiles to a policy."""

    api_version: Literal["trimtab.dev/v1alpha1"]
    kind: Literal["Autoscaler"]
    spec: AutoscalerSpec

    def problems(self) -> Iterator[InvalidInput]:
        yield from super().problems()
        exact = self.spec.exact
        if not exact:
            return
        if unknown := sorted(set(exact) - set(Policy.__struct_fields__)):
            yield InvalidInput("spec.exact", unknown[0], f"a policy has {', '.join(Policy.__struct_fields__)}")
            return
        try:
            policy = overridden(self._written(), exact)
            if policy.bridge and not sees_cpu(policy.signals):
                yield InvalidInput("spec.bridge", shown(self.spec.bridge), NEEDS_CPU)
        except (msgspec.ValidationError, InvalidInput) as error:
            yield InvalidInput("spec.exact", shown(exact), f"make it what a policy holds: {error}")

    @property
    def own_annotations(self) -> tuple[str, ...]:
        return (TUNING_UNDO,)

    @property
    def target(self) -> TargetRef:
        return self.spec.scale_target_ref

    def to_policy(self, at: float) -> Policy:
        """What it means at this time: its schedules are spans around it."""
        policy = replace(self._written(), admit=self.admit(Mode(self.spec.mode)))
        return expand_schedules(overridden(policy, self.spec.exact), at, at)

    def _written(self) -> Policy:
        policy, spec = self._replicas(), self.spec
        if spec.forecast:
            policy = replace(policy, forecast=spec.forecast.choice())
        if spec.vertical:
            policy = replace(policy, vertical=spec.vertical.vertical(), gates=spec.vertical.gates())
        if spec.bridge:
            policy = replace(policy, bridge=spec.bridge.bridge())
        if spec.objective:
            policy = self._priced(policy, spec.objective)
        if spec.tuning:
            policy = replace(policy, tuning=spec.tuning.tuning())
        if spec.blend:
            policy = replace(policy, blend=spec.blend.blend(spec.min_replicas, spec.max_replicas or INT32))
        if spec.on_metric_failure:
            policy = replace(policy, absence=spec.on_metric_failure.absence())
        return policy

    def _priced(self, policy: Policy, written: ObjectiveSpec) -> Policy:
        """The learned forecast unless another is written; of the rules those that are written."""
        objective = replace(written.objective(), settle=written_rules(self.spec.behavior))
        priced = replace(policy, objective=objective, forecast=_always(policy.forecast or LEARNED))
        if policy.bridge is None or self.spec.bridge is None:
            return priced
        bridge = policy.bridge if self.spec.bridge.ceiling else guarding(policy.bridge, objective)
        return replace(priced, objective=bridged(objective), bridge=bridge)

    def _replicas(self) -> Policy:
        spec = self.spec
        if spec.max_replicas is None:  # vertical only: no signal moves the pods, the floor still holds
            policy = Policy(settle=(), bounds=Bounds(min_replicas=spec.min_replicas, max_replicas=INT32))
        else:
            policy = horizontal(spec.min_replicas, spec.max_replicas, spec.metrics, spec.behavior)
        schedules = tuple(schedule.written() for schedule in spec.schedules or [])
        return replace(policy, bounds=replace(policy.bounds, schedules=schedules))
