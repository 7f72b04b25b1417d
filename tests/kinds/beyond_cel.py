"""Which refusals the API server leaves to us, because no CEL can say them: the tests of the CRDs excuse these alone."""

from __future__ import annotations

import re
from typing import NamedTuple


class Beyond(NamedTuple):
    """A refusal the API server leaves to us; `[]` in a path is every item, `$` its end."""

    path: str
    what: str


BEYOND_CEL = (
    Beyond("spec.schedules[].start", "a cron expression"),
    Beyond("spec.schedules[].end", "a cron expression"),
    Beyond("spec.schedules[].timezone", "a time zone"),
    Beyond("spec.schedules$", "how often all of them come"),
    Beyond("spec.crons$", "how often all of them come"),
    Beyond("spec.forecast.horizon", "a duration of an hour at most"),
    Beyond("spec.*.matchLabels", "keys of labels"),
    Beyond("spec.crons[].start", "a cron expression"),
    Beyond("spec.crons[].end", "a cron expression"),
    Beyond("spec.crons[].timezone", "a time zone"),
    Beyond("spec.prediction.predictionAlgorithm.dsp.sampleInterval", "a second to an hour"),
    Beyond("spec.prediction.predictionAlgorithm.dsp.historyLength", "two to fifteen days"),
    Beyond("spec.prediction.predictionAlgorithm.percentile.percentile", "a ratio"),
    Beyond("spec.prediction.predictionAlgorithm.percentile.histogram", "sizes that go together"),
    Beyond("spec.prediction.predictionAlgorithm.percentile.targetUtilization", "a ratio"),
    Beyond("spec.tuning.timezone", "a time zone"),
    Beyond("spec.tuning.limits.target", "quantities, and which is larger"),
    Beyond("spec.tuning.limits.tolerance", "quantities, and which is larger"),
    Beyond("spec.config", "keys and units of Crane's HPA recommendation"),
    Beyond("spec.metrics[].*.averageValue", "a flag, a list or a mapping where a quantity belongs"),
    Beyond("spec.metrics[].*.value", "a flag, a list or a mapping where a quantity belongs"),
    Beyond("spec.behavior.*.tolerance", "a flag, a list or a mapping where a quantity belongs"),
    Beyond("spec.*.metrics[].*.averageValue", "a flag, a list or a mapping where a quantity belongs"),
    Beyond("spec.*.metrics[].*.value", "a flag, a list or a mapping where a quantity belongs"),
    Beyond("spec.*.metrics[].*.targetAverageValue", "a flag, a list or a mapping where a quantity belongs"),
    Beyond("metadata.annotations", "the annotations of trimtab.dev"),
)


def beyond_cel(path: str) -> bool:
    """Whether a refusal at this path is ours alone."""
    return any(re.match(_pattern(beyond.path), path) for beyond in BEYOND_CEL)


def _pattern(path: str) -> str:
    inner = re.escape(path.removesuffix("$")).replace(r"\[\]", r"\[\d+\]").replace(r"\*", ".+")
    return inner + ("$" if path.endswith("$") else r"($|[.\[])")
