"""The nouns of advice: what is known of a workload, what speaks against advising, and what is advised."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from trimtab.core.advise.formulas import hourly_medians, hours_utc
from trimtab.core.figures import Figures, JudgedSettings
from trimtab.core.model import Pod
from trimtab.policy import Record, Size
from trimtab.series import Floats

NO_SAMPLES: Floats = np.empty(0)  # never written to


class Against(enum.StrEnum):
    """Why there is no recommendation; one sentence each in `text`."""

    UNSUPPORTED_KIND = "UnsupportedKind"
    LOW_REPLICAS = "LowReplicas"
    NO_PODS = "NoPods"
    NO_AVAILABLE_PODS = "NoAvailablePods"
    LOW_AVAILABILITY = "LowAvailability"
    NO_HISTORY = "NoHistory"
    SHORT_HISTORY = "TooLittleHistory"
    PARTIAL_HISTORY = "PartialHistory"
    LOW_USAGE = "LowUsage"
    LOW_FLUCTUATION = "LowFluctuation"
    NO_REQUEST = "NoRequest"
    NOT_PREDICTABLE = "NotPredictable"
    SCALED_OTHERWISE = "ScaledOtherwise"


_TEXTS = {
    Against.UNSUPPORTED_KIND: "{detail} cannot be scaled; only Deployments, StatefulSets and scalable resources can",
    Against.LOW_REPLICAS: "{value:g} replicas are fewer than {limit:g} ({detail})",
    Against.NO_PODS: "there are no pods",
    Against.NO_AVAILABLE_PODS: "no pod is available",
    Against.LOW_AVAILABILITY: "only {value:.2f} of the pods are available, {limit:g} are needed (pod-available-ratio)",
    Against.NO_HISTORY: "there is no usage history",
    Against.SHORT_HISTORY: "{value:.1f} days of history are too little, {limit:g} are needed",
    Against.PARTIAL_HISTORY: "only {value:g} of {limit:g} running pods have samples: the rest of the load is not seen"
    " ({detail} for one)",
    Against.LOW_USAGE: "the peak usage of {value:.3g} cores is under {limit:g} (min-cpu-usage-threshold)",
    Against.LOW_FLUCTUATION: "the busiest hour is {value:.2f} times the quietest, {limit:g} is needed"
    " (fluctuation-threshold)",
    Against.NO_REQUEST: "container {detail} has no CPU request to compare its usage with: give it one",
    Against.NOT_PREDICTABLE: "the usage is not predictable: {detail}",
    Against.SCALED_OTHERWISE: "it is scaled otherwise than by an HPA on CPU ({detail}): usage alone cannot judge it",
}


class Objection(Record, frozen=True):
    """One reason against, with the number that was found and the one that was needed."""

    reason: Against
    value: float = 0.0
    limit: float = 0.0
    detail: str = ""

    @property
    def text(self) -> str:
        return _TEXTS[self.reason].format(value=self.value, limit=self.limit, detail=self.detail)


class Objections(Record, frozen=True):
    reasons: tuple[Objection, ...]

    @property
    def text(self) -> str:
        return "; ".join(objection.text for objection in self.reasons)


@dataclass(frozen=True, eq=False)
class MeasuredWorkload:
    """What is known of one workload. Usage is on one grid of `step_s`; holes are NaN."""

    kind: str
    namespace: str
    name: str
    replicas: int
    pods: tuple[Pod, ...]
    requests: dict[str, Size]  # of each container and sidecar of the pod template
    start: float
    step_s: float
    cpu_cores: Floats  # of all pods together
    pod_level: Size = field(default_factory=Size)  # what the template requests for the pod as a whole
    template: Pod | None = None  # a pod of the template
    earlier_cores: Floats = field(default_factory=lambda: NO_SAMPLES)  # before `start`, for the forecast alone
    memory_bytes: Floats | None = None
    container_cpu: dict[str, Floats] = field(default_factory=dict)  # samples of single pods, one after the other
    container_memory: dict[str, Floats] = field(default_factory=dict)
    hours: Floats | None = None  # hour of the day of each sample in the wanted zone; None: UTC
    oom_bytes: dict[str, float] = field(default_factory=dict)  # memory at the last OOM kill of the week
    metrics: tuple[dict[str, Any], ...] = ()  # of an existing HPA
    behavior: dict[str, Any] | None = None
    hpa: dict[str, Any] | None = None  # the spec of an existing HPA
    scaled_by: str = ""  # an object of our own kinds that scales it already
    unmeasured: tuple[str, ...] = ()  # pods that run but have no samples

    @cached_property
    def medians(self) -> Floats:
        """Of each hour of the day, in cores."""
        hours = self.hours
        if hours is None:
            hours = hours_utc(self.start, self.step_s, len(self.cpu_cores))
        return hourly_medians(self.cpu_cores, hours)


class Evidence(Record, frozen=True):
    """The numbers behind a recommendation, for people and for charts."""

    coverage: float | None = None  # the share of the history that has samples
    pod_request_cores: float | None = None
    level: str = ""  # above which a pod is overloaded
    pod_usage_cores: float | None = None  # the percentile that became the target
    hourly_medians: tuple[float, ...] = ()
    peak_cores: float | None = None
    p95_cores: float | None = None
    prediction: str = ""  # why there is none, or what was found
    forecast: tuple[float, ...] = ()  # of the coming days, a mean for each hour
    replicas_before: float | None = None
    replicas_after: float | None = None  # mean over the history with the recommended settings
    days: float | None = None  # that were replayed
    present: Figures | None = None
    then: Figures | None = None
    without_tolerance: JudgedSettings | None = None  # the best where the API server drops `behavior.*.tolerance`
    refused: JudgedSettings | None = None  # what `trimtab tune` finds, but it overloads more than recommend allows


class WorkloadAdvice(Record, frozen=True):
    """What to write. Of type HPA: bounds, target, inherited parts; of the others: sizes or replicas. Nothing: stay."""

    min_replicas: int | None = None
    max_replicas: int | None = None
    target_percent: int | None = None
    metrics: tuple[dict[str, Any], ...] = ()
    behavior: dict[str, Any] | None = None
    predictable: bool = False
    sizes: dict[str, Size] = {}
    replicas: int | None = None
    evidence: Evidence = Evidence()
    saved_cores: float = 0.0
    saved_bytes: float = 0.0
