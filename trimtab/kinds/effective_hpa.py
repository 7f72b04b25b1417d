"""EffectiveHorizontalPodAutoscaler (autoscaling.crane.io/v1alpha1, Crane): HPA, crons, prediction, Preview.

Crons are floors reached exactly, without HPA's tolerance. The forecast only adds replicas. Preview decides and writes
nothing but specificReplicas.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from trimtab.errors import InvalidInput
from trimtab.kinds.amounts import Count, CountOrZero
from trimtab.kinds.annotations import BRIDGE, CRANE_QUERY, PIN, PIN_UNTIL, TUNING, TUNING_UNDO
from trimtab.kinds.behavior import Behavior
from trimtab.kinds.foreign import SCALING, ForeignKind, Manifest, annotate, exact_parts, unannotate
from trimtab.kinds.horizontal import MIN_AT_MOST_MAX, ZERO_NEEDS_EYES
from trimtab.kinds.ledger import Ledger, without_none
from trimtab.kinds.manifest_part import FieldRule, ManifestPart
from trimtab.kinds.meta import TargetRef
from trimtab.kinds.metric import MOST_METRICS, MetricSpec, few_forecasts
from trimtab.kinds.prediction import Prediction
from trimtab.kinds.schedule import (
    MOST_PER_DAY,
    TOO_MANY,
    events_per_day,
    schedule_problems,
    schedules_alone,
    zone_name,
)
from trimtab.policy import WrittenSchedule

_LONGEST_NAME = 128  # of a schedule


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

    def schedule(self, index: int) -> Manifest:
        name = self.name[:_LONGEST_NAME] or f"cron-{index}"
        times = without_none(timezone=self.timezone or None, start=self.start, end=self.end)
        return {"name": name} | times | {"minReplicas": self.target_replicas}

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


class EffectiveHpa(ForeignKind):
    """Executed here: no child HPA, no prediction object, no metrics API."""

    api_version: Literal["autoscaling.crane.io/v1alpha1"]
    kind: Literal["EffectiveHorizontalPodAutoscaler"]
    spec: EffectiveHpaSpec

    ignored: ClassVar = {
        f"spec.prediction.predictionAlgorithm.{setting}": why
        for setting, why in (
            ("dsp.sampleInterval", "the source of the history decides"),
            ("percentile.sampleInterval", "the source of the history decides"),
            ("percentile.historyLength", "the whole history that is kept counts, decayed"),
            ("percentile.aggregated", "demand is always the demand of the whole workload"),
        )
    }

    @property
    def own_annotations(self) -> tuple[str, ...]:
        return (BRIDGE, TUNING, TUNING_UNDO)

    @property
    def preview(self) -> bool:
        return self.spec.scale_strategy == "Preview"

    def as_autoscaler(self, metadata: Manifest, ledger: Ledger) -> Manifest:
        """Crons become schedules, prediction a forecast, Preview the mode Shadow."""
        spec, crons = self.spec, self.spec.crons or []
        ledger.places(
            {"spec.schedules": "spec.crons", "spec.forecast": "spec.prediction", "spec.mode": "spec.scaleStrategy"}
        )
        made = {name: part for name, part in spec.manifest().items() if name in SCALING} | self.annotated_parts(ledger)
        if crons:
            made["schedules"] = [cron.schedule(index) for index, cron in enumerate(crons)]
        alone = bool(crons) and not spec.metrics and spec.prediction is None
        if alone:  # no metric was written, so none is followed
            made["metrics"] = [schedules_alone()]
            ledger.places({"spec.metrics": "spec.crons", "spec.metrics[0]": "spec.crons"})
            if made.pop("bridge", None):
                ledger.lose(ledger.source_of("spec.bridge"), "crons alone follow no metric, so ready pods never grow")
        self._preview(made, metadata, ledger)
        self.lose_annotations(metadata, CRANE_QUERY, "the history is asked for here", ledger)
        return made | exact_parts(
            signals=[] if alone else None,
            bounds={"alone": alone, "schedules": [cron.written() for cron in crons]} if crons else None,
            forecast=self._forecast(made, ledger),
        )

    def _preview(self, made: Manifest, metadata: Manifest, ledger: Ledger) -> None:
        specific = self.spec.specific_replicas
        if self.preview:
            made["mode"] = "Shadow"
        if specific is not None and self.preview:
            unannotate(metadata, PIN_UNTIL)
            annotate(metadata, PIN, str(specific))
        elif specific is not None:
            ledger.lose("spec.specificReplicas", "only counts with scaleStrategy: Preview")

    def _forecast(self, made: Manifest, ledger: Ledger) -> Manifest | None:
        """Add the forecast; return the model's settings, which an Autoscaler chooses itself."""
        prediction = self.spec.prediction
        if prediction is None:
            return None
        algorithm, path = prediction.prediction_algorithm, "spec.prediction.predictionAlgorithm"
        made["forecast"] = {"model": algorithm.algorithm_type, "horizon": prediction.prediction_window_seconds}
        ledger.place("spec.forecast.horizon", "spec.prediction.predictionWindowSeconds")
        ledger.approximate_written(path, algorithm.manifest(), ("dsp", "percentile"), "is chosen here")
        histogram = algorithm.percentile.histogram if algorithm.percentile else None
        if histogram and histogram.bucket_size and not histogram.equal_size:
            ledger.lose(f"{path}.percentile.histogram.bucketSize", "the growing sizes win, as in Crane")
        options = prediction.options()
        return {"options": options} if options else None
