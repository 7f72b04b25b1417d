"""What is asked, and how many replicas an answer means (stages `propose` and `combine`)."""

from __future__ import annotations

import enum
from math import inf

from trimtab.policy.axis import Axis
from trimtab.policy.record import Record, require


class MetricKind(enum.StrEnum):
    RESOURCE = "Resource"
    CONTAINER = "ContainerResource"
    PODS = "Pods"
    OBJECT = "Object"
    EXTERNAL = "External"
    PROMETHEUS = "Prometheus"


class Metric(Record, frozen=True):
    """What to ask for: enough to fetch it and to name it to a person."""

    kind: MetricKind
    name: str = ""
    container: str = ""
    selector: str = ""
    object: str = ""  # apiVersion/Kind/name of an Object metric
    query: str = ""

    @property
    def label(self) -> str:
        return f"{self.container}/{self.name}" if self.container else self.name or "query"

    @property
    def axis(self) -> Axis:
        """Which request of a pod a resource metric is compared with."""
        return Axis.CPU if self.name == "cpu" else Axis.MEMORY


class Tolerance(Record, frozen=True):
    """No change while 1 - down <= ratio <= 1 + up, both ends inclusive (Kubernetes HPA)."""

    up: float = 0.1
    down: float = 0.1

    def __post_init__(self) -> None:
        require(0 <= self.up < inf, "tolerance.up", self.up, "give a fraction that is not negative, such as 0.1")
        require(0 <= self.down < inf, "tolerance.down", self.down, "give a fraction that is not negative, such as 0.1")


class Utilization(Record, frozen=True):
    """Usage of each pod against its own request, in whole percent (autoscaling/v2 Resource averageUtilization)."""

    metric: Metric
    percent: int
    tolerance: Tolerance = Tolerance()

    def __post_init__(self) -> None:
        require(self.percent >= 1, "averageUtilization", self.percent, "give a percentage of at least 1")


class PodAverage(Record, frozen=True):
    """A value of each pod against a target for each pod (Pods, and Resource averageValue)."""

    metric: Metric
    target: float
    tolerance: Tolerance = Tolerance()

    def __post_init__(self) -> None:
        require(0 < self.target < inf, "averageValue", self.target, "give a number above zero")


class TotalAverage(Record, frozen=True):
    """One total shared by all replicas against a target for each (Object and External averageValue)."""

    metric: Metric
    target: float
    tolerance: Tolerance = Tolerance()

    def __post_init__(self) -> None:
        require(0 < self.target < inf, "averageValue", self.target, "give a number above zero")


class Total(Record, frozen=True):
    """One value against one target: the ready pods are multiplied by the ratio (Object and External value)."""

    metric: Metric
    target: float
    tolerance: Tolerance = Tolerance()

    def __post_init__(self) -> None:
        require(0 < self.target < inf, "value", self.target, "give a number above zero")


class Factor(Record, frozen=True):
    """Document 002: current replicas times sample / target, not rounded."""

    metric: Metric
    target: float

    def __post_init__(self) -> None:
        require(0 < self.target < inf, "target.value", self.target, "give a number above zero")


class Converge(enum.StrEnum):
    HIGH = "highwatermark"
    LOW = "lowwatermark"


class Watermark(Record, frozen=True):
    """Two marks with a quiet zone between: grow above the high one, shrink below the low one."""

    metric: Metric
    low: float
    high: float
    tolerance: float = 0.01
    average: bool = False  # usage is sum / ready instead of the sum
    modulo: int = 1  # proposals are rounded up to a multiple of this
    converge: Converge | None = None  # drift towards one mark inside the quiet zone
    min_available_percent: int = 0  # refuse to act while fewer pods are ready

    def __post_init__(self) -> None:
        require(0 < self.low <= self.high < inf, "lowWatermark", self.low, "put it above zero and below highWatermark")
        require(self.modulo >= 1, "modulo", self.modulo, "give at least 1")
        require(self.tolerance >= 0, "tolerance", self.tolerance, "give a fraction that is not negative")


Signal = Utilization | PodAverage | TotalAverage | Total | Factor | Watermark


class Combine(enum.StrEnum):
    MAXIMUM = "maximum"
    MINIMUM = "minimum"
    MEAN = "mean"
    MEDIAN = "median"


class Absence(Record, frozen=True):
    """What a missing signal means. Nothing here lowers a workload unless `allow_decrease` says so."""

    stale_after_s: float | None = None  # older samples are missing; None: the source has judged already
    zero_is_missing: bool = False
    hold_s: float = 300.0
    then_replicas: int | None = None
    allow_decrease: bool = False

    def __post_init__(self) -> None:
        require(self.hold_s >= 0, "holdSeconds", self.hold_s, "give a number of seconds")
        require((self.then_replicas or 0) >= 0, "then.replicas", self.then_replicas, "give a number of replicas")


class PodRules(Record, frozen=True):
    """When a pod counts as ready for a CPU signal (kube-controller-manager's two flags, and a grace for watermarks)."""

    cpu_init_s: float = 300.0
    readiness_delay_s: float = 30.0
    pending_grace_s: float | None = None  # Pending pods younger than this count as ready (watermarks)
