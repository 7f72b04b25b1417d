"""EffectiveHorizontalPodAutoscaler (autoscaling.crane.io/v1alpha1, document 000): HPA, crons, prediction, Preview.

Crons are floors reached exactly, without HPA's tolerance; the forecast may only add; Preview decides and writes nothing
but specificReplicas.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from msgspec.structs import replace
from pydantic import Field

from trimtab.errors import InvalidInput
from trimtab.kinds.amounts import Count, CountOrZero
from trimtab.kinds.behavior import Behavior
from trimtab.kinds.bridge import annotated, bridge_problems
from trimtab.kinds.horizontal import MIN_AT_MOST_MAX, ZERO_NEEDS_EYES, horizontal
from trimtab.kinds.manifest_part import FieldRule, ManifestPart
from trimtab.kinds.meta import Kind, TargetRef
from trimtab.kinds.metric import MOST_METRICS, MetricSpec, few_forecasts, signals_of
from trimtab.kinds.prediction import Prediction
from trimtab.kinds.schedule import (
    MOST_PER_DAY,
    TOO_MANY,
    events_per_day,
    laid_out,
    schedule_problems,
    zone_name,
)
from trimtab.kinds.tuning import annotated_tuning, tuning_problems
from trimtab.policy import Mode, Policy, Tolerance, WrittenSchedule


class CronSpec(ManifestPart):
    """From start to end at least targetReplicas."""

    name: Annotated[str, Field(max_length=253, pattern=r"^[^\x00-\x1f\x7f]*$")] = ""
    """One of its own in this object."""
    description: Annotated[str, Field(max_length=1024)] | None = None
    """For people."""
    timezone: Annotated[str, Field(max_length=64)] | None = None
    """An IANA name; UTC by default."""
    start: Annotated[str, Field(max_length=100)]
    """A cron expression: from then on."""
    end: Annotated[str, Field(max_length=100)]
    """A cron expression: until then."""
    target_replicas: CountOrZero
    """At least so many replicas."""

    def problems(self) -> Iterator[InvalidInput]:
        yield from schedule_problems(self.start, self.end, self.timezone)

    def written(self) -> WrittenSchedule:
        floor = self.target_replicas
        return WrittenSchedule(
            name=self.name, start=self.start, end=self.end, timezone=zone_name(self.timezone), min_replicas=floor
        )


def _names(crons: list[CronSpec] | None) -> list[str]:
    """Crane makes a metric name of each, in which case is lost."""
    return [cron.name.lower() for cron in crons or []]


class EffectiveHpaSpec(ManifestPart):
    scale_target_ref: TargetRef
    """The workload."""
    min_replicas: CountOrZero = 1
    """The floor."""
    max_replicas: Count
    """The ceiling."""
    scale_strategy: Literal["Auto", "Preview"] = "Auto"
    """Auto acts; Preview only says what it would do."""
    specific_replicas: CountOrZero | None = None
    """With Preview: the replicas to set."""
    metrics: Annotated[list[MetricSpec], Field(max_length=MOST_METRICS)] | None = None
    """As in autoscaling/v2; the metric that needs most replicas counts. None: CPU at 80 %."""
    behavior: Behavior | None = None
    """As in autoscaling/v2."""
    crons: Annotated[list[CronSpec], Field(max_length=30)] | None = None
    """Floors by the clock."""
    prediction: Prediction | None = None
    """A look ahead that may only add replicas."""

    rules: ClassVar[tuple[FieldRule, ...]] = (
        MIN_AT_MOST_MAX,
        ZERO_NEEDS_EYES,
        few_forecasts("prediction"),
        FieldRule(
            lambda s: events_per_day(s.crons) <= MOST_PER_DAY,
            at="crons",
            fix=TOO_MANY,
        ),
        FieldRule(
            lambda s: len(set(_names(s.crons))) == len(_names(s.crons)),
            at="crons",
            fix="each cron needs a name of its own, upper and lower case aside",
            cel="!has(self.crons) || self.crons.all(a, self.crons.exists_one(b,"
            " (has(a.name) ? a.name.lowerAscii() : '') == (has(b.name) ? b.name.lowerAscii() : '')))",
        ),
    )


class EffectiveHpa(Kind):
    """Executed here: no child HPA, no prediction object, no metrics API."""

    api_version: Literal["autoscaling.crane.io/v1alpha1"]
    kind: Literal["EffectiveHorizontalPodAutoscaler"]
    spec: EffectiveHpaSpec

    def problems(self) -> Iterator[InvalidInput]:
        yield from super().problems()
        yield from bridge_problems(self.metadata.annotations, signals_of(self.spec.metrics, Tolerance()))
        yield from tuning_problems(self.metadata.annotations)

    @property
    def target(self) -> TargetRef:
        return self.spec.scale_target_ref

    @property
    def preview(self) -> bool:
        return self.spec.scale_strategy == "Preview"

    def to_policy(self, at: float) -> Policy:
        spec = self.spec
        policy = horizontal(spec.min_replicas, spec.max_replicas, spec.metrics, spec.behavior)
        crons = tuple(cron.written() for cron in spec.crons or [])
        alone = bool(crons) and not spec.metrics and spec.prediction is None
        if alone:  # no metric was written, so that none is followed
            policy = replace(policy, signals=())
        admit = self.admit(Mode.SHADOW if self.preview else Mode.AUTO)
        if self.preview and spec.specific_replicas is not None:
            admit = replace(admit, pin=spec.specific_replicas, pin_until=None)
        forecast = spec.prediction.forecast() if spec.prediction else None
        bounds = replace(policy.bounds, schedules=crons, alone=alone)
        policy = laid_out(replace(policy, bounds=bounds, admit=admit, forecast=forecast), at, at)
        notes = self.metadata.annotations
        return replace(policy, bridge=annotated(notes), tuning=annotated_tuning(notes))
