"""What an EffectiveHPA may say of its prediction (Crane's program): `dsp` or `percentile`, with their settings.

Numbers are texts, as upstream has them. What is left out is the model's own default.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log1p
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from trimtab.errors import InvalidInput
from trimtab.kinds.amounts import Count, Duration
from trimtab.kinds.manifest_part import FieldRule, ManifestPart
from trimtab.quantity import parse_duration

NumberText = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?$", max_length=32)]
MOST_BUCKETS = 10_000
DEFAULT_MOST, DEFAULT_FIRST, DEFAULT_GROWTH = 1e12, 1e-3, 0.05  # of growing buckets, as the model has them

Options = dict[str, Any]


class Histogram(ManifestPart):
    """Where samples are counted: buckets of one size up to maxValue, or growing ones from the first, as upstream reads
    it where maxValue, firstBucketSize and bucketSizeGrowthRatio are all written."""

    max_value: NumberText | None = None
    """Where the buckets end."""
    epsilon: NumberText | None = None
    """Buckets with less weight count as empty."""
    half_life: Duration | None = None
    """After this long a sample counts half."""
    bucket_size: NumberText | None = None
    """The size of all buckets."""
    first_bucket_size: NumberText | None = None
    """The size of the first bucket."""
    bucket_size_growth_ratio: NumberText | None = None
    """How much larger each bucket is than the one before, as a share."""

    def problems(self) -> Iterator[InvalidInput]:
        yield from super().problems()
        sizes = {
            "maxValue": self.max_value,
            "bucketSize": self.bucket_size,
            "firstBucketSize": self.first_bucket_size,
            "bucketSizeGrowthRatio": self.bucket_size_growth_ratio,
        }
        for name, value in sizes.items():
            if value is not None and float(value) <= 0:
                yield InvalidInput(name, value, "write a number above zero")
                return
        if self.half_life is not None and parse_duration(self.half_life) <= 0:
            yield InvalidInput("halfLife", self.half_life, "write a duration above zero")
        yield from self._counted()

    @property
    def equal_size(self) -> str | None:
        grows = self.max_value and self.first_bucket_size and self.bucket_size_growth_ratio
        return None if grows else self.bucket_size

    def _counted(self) -> Iterator[InvalidInput]:
        if self.equal_size is None:
            yield from self._growing()
        elif self.max_value is None:
            yield InvalidInput("maxValue", None, "set it: buckets of one size must end somewhere")
        elif not 1 <= ceil(float(self.max_value) / float(self.equal_size)) <= MOST_BUCKETS:
            yield InvalidInput("bucketSize", self.bucket_size, f"choose one that gives 1 to {MOST_BUCKETS} buckets")

    def _growing(self) -> Iterator[InvalidInput]:
        most, first = float(self.max_value or DEFAULT_MOST), float(self.first_bucket_size or DEFAULT_FIRST)
        growth = float(self.bucket_size_growth_ratio or DEFAULT_GROWTH)
        if first > most:
            yield InvalidInput(
                "firstBucketSize", self.first_bucket_size or first, f"must not be above maxValue ({most:g})"
            )
        elif log1p(most * growth / first) > MOST_BUCKETS * log1p(growth) or 1.0 + growth == 1.0:
            fix = f"choose a larger one: these are more than {MOST_BUCKETS} buckets up to maxValue ({most:g})"
            yield InvalidInput("bucketSizeGrowthRatio", self.bucket_size_growth_ratio or growth, fix)

    def options(self) -> Options:
        decay = {} if self.half_life is None else {"half_life_s": parse_duration(self.half_life)}
        return decay | numbers(
            max_value=self.max_value,
            epsilon=self.epsilon,
            bucket_size=self.equal_size,
            first_bucket_size=self.first_bucket_size,
            growth=self.bucket_size_growth_ratio,
        )


def numbers(**given: str | int | None) -> Options:
    return {
        name: float(value) if isinstance(value, str) else value for name, value in given.items() if value is not None
    }


LEAST_HISTORY_S, LONGEST_HISTORY_S = 48 * 3600.0, 15 * 86400.0
LEAST_SAMPLE_S, LONGEST_SAMPLE_S = 1.0, 3600.0
LONGEST_WINDOW_S = 3600


class MaxValueEstimator(ManifestPart):
    """The largest value of each time of the day (or week)."""

    margin_fraction: NumberText | None = None
    """Added to what is expected, as a share."""

    def options(self) -> Options:
        return {"is": "MaxValue"} | numbers(margin=self.margin_fraction)


class FftEstimator(ManifestPart):
    """The load without its weak, fast tones."""

    margin_fraction: NumberText | None = None
    """Added to what is expected, as a share."""
    low_amplitude_threshold: NumberText | None = None
    """Tones weaker than this are noise, if they are fast."""
    high_frequency_threshold: NumberText | None = None
    """In hertz: slower tones always count."""
    min_num_of_spectrum_items: Count | None = None
    """At least so many tones are kept."""
    max_num_of_spectrum_items: Count | None = None
    """At most so many tones are kept."""

    def options(self) -> Options:
        return {"is": "Fft"} | numbers(
            margin=self.margin_fraction,
            low_amplitude=self.low_amplitude_threshold,
            high_frequency_hz=self.high_frequency_threshold,
            min_items=self.min_num_of_spectrum_items,
            max_items=self.max_num_of_spectrum_items,
        )


class Estimators(ManifestPart):
    """Those to choose among; without any, eight of the second kind."""

    max_value: Annotated[list[MaxValueEstimator], Field(max_length=10)] | None = None
    """The largest value of each time of the day."""
    fft: Annotated[list[FftEstimator], Field(max_length=10)] | None = None
    """The load without its weak, fast tones."""

    def options(self) -> list[Options]:
        largest = [estimator.options() for estimator in self.max_value or []]
        return largest + [estimator.options() for estimator in self.fft or []]


class Dsp(ManifestPart):
    """Periodic load from its spectrum; the estimator is chosen by its error on the last period."""

    sample_interval: Duration | None = None
    """Not read: the source of the history decides."""
    history_length: Duration | None = None
    """How far back, from 48h to 15d."""
    estimators: Estimators | None = None
    """Those to choose among."""

    def problems(self) -> Iterator[InvalidInput]:
        yield from super().problems()
        if self.sample_interval and not LEAST_SAMPLE_S <= parse_duration(self.sample_interval) <= LONGEST_SAMPLE_S:
            yield InvalidInput("sampleInterval", self.sample_interval, "must be between 1s and 1h")
        if self.history_length and not LEAST_HISTORY_S <= parse_duration(self.history_length) <= LONGEST_HISTORY_S:
            fix = "must be between 48h (two days show a daily cycle) and 15d"
            yield InvalidInput("historyLength", self.history_length, fix)

    def options(self) -> Options:
        given: Options = {"history_s": parse_duration(self.history_length)} if self.history_length else {}
        chosen = self.estimators.options() if self.estimators else []
        return given | ({"estimators": chosen} if chosen else {})


class Percentile(ManifestPart):
    """A percentile of the past, with a margin."""

    aggregated: bool | None = None
    """Not read: demand is that of the whole workload."""
    sample_interval: Duration | None = None
    """Not read: the source of the history decides."""
    history_length: Duration | None = None
    """Not read: all history counts, decayed."""
    min_sample_weight: NumberText | None = None
    """The least weight of a sample."""
    margin_fraction: NumberText | None = None
    """Added to the percentile, as a share."""
    percentile: NumberText | None = None
    """A ratio, such as 0.99."""
    target_utilization: NumberText | None = None
    """What is expected is divided by it."""
    histogram: Histogram | None = None
    """Where samples are counted."""

    def problems(self) -> Iterator[InvalidInput]:
        yield from super().problems()
        for name, value in (("percentile", self.percentile), ("targetUtilization", self.target_utilization)):
            if value is not None and not 0 < float(value) <= 1:
                yield InvalidInput(name, value, 'write a ratio above 0 and up to 1, such as "0.99"')

    def options(self) -> Options:
        given = numbers(
            percentile=self.percentile,
            margin=self.margin_fraction,
            target_utilization=self.target_utilization,
            least_weight=self.min_sample_weight,
        )
        return given | (self.histogram.options() if self.histogram else {})


class PredictionAlgorithm(ManifestPart):
    algorithm_type: Literal["dsp", "percentile"]
    """dsp or percentile."""
    dsp: Dsp | None = None
    """Settings of dsp."""
    percentile: Percentile | None = None
    """Settings of percentile."""

    rules: ClassVar = (
        FieldRule(
            lambda a: (
                (a.dsp is None or a.algorithm_type == "dsp")
                and (a.percentile is None or a.algorithm_type == "percentile")
            ),
            at="algorithmType",
            fix="the settings given are of the other algorithm",
            cel="(!has(self.dsp) || self.algorithmType == 'dsp')"
            " && (!has(self.percentile) || self.algorithmType == 'percentile')",
        ),
    )


class Prediction(ManifestPart):
    """The largest load expected within the window counts as well as the present one."""

    prediction_window_seconds: Annotated[int, Field(ge=1, le=LONGEST_WINDOW_S)] = 3600
    """How far ahead."""
    prediction_algorithm: PredictionAlgorithm
    """Which model, and its settings."""

    def options(self) -> Options:
        """The settings by the names of the model's options."""
        settings = self.prediction_algorithm.dsp or self.prediction_algorithm.percentile
        return settings.options() if settings else {}
