"""Policy: what every kind compiles to. Frozen data that decides nothing; the systems differ in the lists it holds.

The records stand in the order of decide()'s stages. A record that contradicts itself cannot be made: it is refused
with the field, the value and the fix.
"""

from __future__ import annotations

import enum
from itertools import pairwise
from math import inf
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from trimtab.errors import InvalidPolicy


class Record(msgspec.Struct, frozen=True, kw_only=True, tag_field="is", tag=True, gc=False):
    """The base of every record: frozen, with named fields, and tagged so that a journal reads it back.

    Frozen records only point to older ones, so they form no cycles and need no garbage collector.
    """


def require(holds: bool, path: str, value: object, fix: str) -> None:
    """Refuse a record that contradicts itself. NaN fails every comparison, so it is refused too."""
    if not holds:
        raise InvalidPolicy(path, value, fix)


def require_seconds(path: str, *durations: float) -> None:
    for seconds in durations:
        require(0 <= seconds < inf, path, seconds, "give a number of seconds that is not negative")


def require_share(path: str, *shares: float) -> None:
    for share in shares:
        require(0 <= share < inf, path, share, "give a number that is not negative, such as 0.1")


def require_target(path: str, target: float) -> None:
    require(0 < target < inf, path, target, "give a number above zero")


# Axes. The only place that tells CPU and memory apart.


class Axis(enum.StrEnum):
    REPLICAS = "replicas"
    CPU = "cpu"
    MEMORY = "memory"
    BRIDGE = "bridge"  # how many times its written cpu a ready pod has for a while


RESOURCES = (Axis.CPU, Axis.MEMORY)


class Direction(enum.StrEnum):
    UP = "up"
    DOWN = "down"


class Size(Record, frozen=True):
    """An amount of each resource; None means not set, which is not zero."""

    cpu_cores: float | None = None
    memory_bytes: float | None = None

    def amount(self, axis: Axis) -> float | None:
        return self.cpu_cores if axis is Axis.CPU else self.memory_bytes

    def with_amount(self, axis: Axis, amount: float | None) -> Size:
        return replace(self, cpu_cores=amount) if axis is Axis.CPU else replace(self, memory_bytes=amount)


def fits(least: Size, most: Size) -> bool:
    """Whether nothing of `least` is above `most`, as far as both are set."""
    pairs = ((least.amount(axis), most.amount(axis)) for axis in RESOURCES)
    return all(low is None or high is None or low <= high for low, high in pairs)


# What is measured, and how many replicas a measurement means (stages `propose` and `combine`)


class MetricKind(enum.StrEnum):
    RESOURCE = "Resource"
    CONTAINER = "ContainerResource"
    PODS = "Pods"
    OBJECT = "Object"
    EXTERNAL = "External"
    PROMETHEUS = "Prometheus"


class Metric(Record, frozen=True):
    """What to measure: enough to fetch it and to name it in a message."""

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
        require_share("tolerance.up", self.up)
        require_share("tolerance.down", self.down)


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
        require_target("averageValue", self.target)


class TotalAverage(Record, frozen=True):
    """One total shared by all replicas against a target for each (Object and External averageValue)."""

    metric: Metric
    target: float
    tolerance: Tolerance = Tolerance()

    def __post_init__(self) -> None:
        require_target("averageValue", self.target)


class Total(Record, frozen=True):
    """One value against one target: the ready pods are multiplied by the ratio (Object and External value)."""

    metric: Metric
    target: float
    tolerance: Tolerance = Tolerance()

    def __post_init__(self) -> None:
        require_target("value", self.target)


class Factor(Record, frozen=True):
    """nanit custom-hpa: current replicas times sample / target, not rounded."""

    metric: Metric
    target: float

    def __post_init__(self) -> None:
        require_target("target.value", self.target)


class Converge(enum.StrEnum):
    HIGH = "highwatermark"
    LOW = "lowwatermark"


class Watermark(Record, frozen=True):
    """Watermarks: scale up above the high mark and down below the low mark; between them nothing changes."""

    metric: Metric
    low: float
    high: float
    tolerance: float = 0.01
    average: bool = False  # usage is sum / ready instead of the sum
    modulo: int = 1  # proposals are rounded up to a multiple of this
    converge: Converge | None = None  # between the marks, move toward this one
    min_available_percent: int = 0  # refuse to act while fewer pods are ready

    def __post_init__(self) -> None:
        require(0 < self.low <= self.high < inf, "lowWatermark", self.low, "put it above zero and below highWatermark")
        require(self.modulo >= 1, "modulo", self.modulo, "give at least 1")
        require_share("tolerance", self.tolerance)


class Backlog(Record, frozen=True):
    """Work that waits in a queue: items that arrive per second, and items that are waiting.

    A pod works on `concurrency` items at once, each for the service time, and is full at `share` of that. `metric` is
    the arrivals, which do not depend on how they are served; the length of a queue does.
    """

    metric: Metric
    waiting: Metric
    service_time: Metric | None = None  # measured; None: `service_time_s`
    service_time_s: float = 0.0
    concurrency: int = 1
    share: float = 0.8
    wait_s: float = 60.0  # no item shall wait longer
    drain_s: float | None = None  # a backlog is worked off within; None: `wait_s` or the start-up time, the longer
    tolerance: Tolerance = Tolerance()

    def __post_init__(self) -> None:
        require(self.concurrency >= 1, "concurrency", self.concurrency, "give at least 1")
        require(0 < self.share <= 1, "targetUtilization", self.share, "give a percentage above 0, at most 100")
        require_target("waitBelow", self.wait_s)
        if self.service_time is None:
            require_target("serviceTime", self.service_time_s)
        if self.drain_s is not None:
            require_target("drainWithin", self.drain_s)


Signal = Utilization | PodAverage | TotalAverage | Total | Factor | Watermark | Backlog


def metrics_of(signal: Signal) -> tuple[Metric, ...]:
    """Return everything that is measured for a signal, its demand first."""
    if not isinstance(signal, Backlog):
        return (signal.metric,)
    measured = () if signal.service_time is None else (signal.service_time,)
    return (signal.metric, signal.waiting, *measured)


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
        require_seconds("holdSeconds", self.hold_s)
        require((self.then_replicas or 0) >= 0, "then.replicas", self.then_replicas, "give a number of replicas")


class PodRules(Record, frozen=True):
    """When a pod counts as ready for a CPU signal (kube-controller-manager's two flags, and a grace for watermarks)."""

    cpu_init_s: float = 300.0
    readiness_delay_s: float = 30.0
    pending_grace_s: float | None = None  # Pending pods younger than this count as ready (watermarks)


# What may change a recommendation, rule by rule (stage `settle`)


class StabiliseMax(Record, frozen=True):
    """HPA without `behavior`: the highest recommendation of the window."""

    window_s: float = 300.0

    def __post_init__(self) -> None:
        require_seconds("stabilizationWindowSeconds", self.window_s)


class Stabilise(Record, frozen=True):
    """HPA with `behavior`: the lowest recommendation of the scale-up window, the highest of the scale-down window."""

    up_s: float = 0.0
    down_s: float = 300.0

    def __post_init__(self) -> None:
        require_seconds("stabilizationWindowSeconds", self.up_s, self.down_s)


class UpLimit(Record, frozen=True):
    """HPA without `behavior`: scale to at most max(factor x current, minimum) in one step."""

    factor: float = 2.0
    minimum: float = 4.0

    def __post_init__(self) -> None:
        require(self.factor >= 1, "factor", self.factor, "a limit below 1 could never scale up")


class Select(enum.StrEnum):
    MAX = "Max"
    MIN = "Min"
    DISABLED = "Disabled"


class RatePolicy(Record, frozen=True):
    """A number of pods, or a percentage of the replicas, that may be added or removed within a period."""

    percent: bool
    value: int
    period_s: float

    def __post_init__(self) -> None:
        require(self.value >= 0, "policies.value", self.value, "give a number that is not negative")
        require_seconds("policies.periodSeconds", self.period_s)


class Rates(Record, frozen=True):
    select: Select = Select.MAX
    policies: tuple[RatePolicy, ...] = ()


class Rate(Record, frozen=True):
    """HPA with `behavior`: the rate policies of each direction."""

    up: Rates = Rates(
        policies=(
            RatePolicy(percent=False, value=4, period_s=15),
            RatePolicy(percent=True, value=100, period_s=15),
        )
    )
    down: Rates = Rates(policies=(RatePolicy(percent=True, value=100, period_s=15),))

    def __post_init__(self) -> None:
        for rates in (self.up, self.down):
            allowed = bool(rates.policies) or rates.select is Select.DISABLED
            require(allowed, "policies", rates.policies, "give at least one policy, or select Disabled")


class Velocity(Record, frozen=True):
    """Watermarks: at most a percentage of the current replicas in one step, at least one pod; 0 disables."""

    up_percent: float = 50.0
    down_percent: float = 20.0

    def __post_init__(self) -> None:
        require_share("scaleLimitFactor", self.up_percent, self.down_percent)


class MaxFactor(Record, frozen=True):
    """nanit custom-hpa: a step is capped at 1 + up and 1 - down times the current replicas."""

    up: float = 1.0
    down: float = 1.0

    def __post_init__(self) -> None:
        require_share("maxFactor", self.up, self.down)


class MinFactor(Record, frozen=True):
    """nanit custom-hpa: steps up to and including 1 + up and 1 - down times the current replicas are skipped."""

    up: float = 0.1
    down: float = 0.1

    def __post_init__(self) -> None:
        require_share("minFactor", self.up, self.down)


class Cooldown(Record, frozen=True):
    """Wait after a scaling of the same direction (nanit custom-hpa), or of any direction (watermarks)."""

    up_s: float = 15.0
    down_s: float = 15.0
    any_direction: bool = False

    def __post_init__(self) -> None:
        require_seconds("cooldownSeconds", self.up_s, self.down_s)


class Delay(Record, frozen=True):
    """Watermarks: scale only after a mark has been crossed for this long."""

    above_s: float = 0.0
    below_s: float = 0.0

    def __post_init__(self) -> None:
        require_seconds("delaySeconds", self.above_s, self.below_s)


class RoundUp(Record, frozen=True):
    """Whole pods; epsilon forgives float noise (11.000000000000002 is 11), 0 is what nanit custom-hpa does."""

    epsilon: float = 1e-9


Rule = StabiliseMax | Stabilise | UpLimit | Rate | Velocity | MaxFactor | MinFactor | Cooldown | Delay | RoundUp


# The level above which a pod is overloaded (`core.overload`), and the objective


SLO = 0.8  # the share of a limit up to which a pod still answers in time


def level_of(request: float, limit: float | None) -> float:
    """Return the CPU above which a container is overloaded."""
    return request if limit is None else min(request, SLO * limit)


def limit_sets_level(request: float, limit: float | None) -> bool:
    """Return whether a larger size of these pods carries more: elsewhere they can burst already."""
    return limit is not None and SLO * limit <= request * (1.0 + 1e-9)


START_SHARE, BRIDGED_START_SHARE = 0.25, 0.125


class LatencyPromise(Record, frozen=True):
    """Latency stays below this in 99 % of the minutes. `level` is the usage up to which one pod keeps the promise."""

    metric: Metric
    below_s: float
    level: float | None = None  # as far as it was learned (`core.latency`)
    text: str = ""  # what was learned, in words

    def __post_init__(self) -> None:
        require(self.below_s > 0.0, "objective.latency.below", self.below_s, "give a time above zero")


class Objective(Record, frozen=True):
    """How many pod-minutes you would pay to avoid one pod-minute of overloaded traffic.

    A pod is overloaded above `service_level`, a share of its request; None: above its level (`core.overload`).
    Starting a pod uses only a share of the price, because the pod may turn out not to be needed; with a bridge half of
    that share, because ready pods can carry more meanwhile. `settle` holds only the rules the user wrote: the defaults
    of Kubernetes suit a target, not a price.
    """

    price: float = 32.0
    service_level: float | None = None
    start_share: float = START_SHARE
    keep_share: float = 1.0
    settle: tuple[Rule, ...] = ()
    latency: LatencyPromise | None = None

    def __post_init__(self) -> None:
        require(0.0 < self.price < 1e6, "objective.price", self.price, "give a number of pod-minutes above zero")
        for share in (self.start_share, self.keep_share):
            require(0.0 < share < 1e6, "objective.shares", share, "give a share of the price above zero")
        level = self.service_level
        fix = "give a share of a pod's request above 0"
        require(level is None or 0.0 < level < 100.0, "objective.serviceLevel", level, fix)


# One plan from replicas and sizes (stage `blend`)


class Stage(Record, frozen=True):
    """HVPA weights: between these replica counts, both included, this share of a change is vertical.

    A stage without a start or an end lasts until sizes reach minAllowed or maxAllowed.
    """

    vertical_share: float
    first: int
    last: int
    until_least: bool = False  # no startReplicaCount
    until_most: bool = False  # no lastReplicaCount

    def __post_init__(self) -> None:
        require(0 <= self.vertical_share <= 1, "vpaWeight", self.vertical_share, "give a weight from 0 to 1")
        require(self.first <= self.last, "startReplicaCount", self.first, "it must not be above lastReplicaCount")


class Weights(Record, frozen=True):
    """HVPA weights.

    `exact` follows the released program: no unconditional vertical step at maxReplicas, sizes grow only while replicas
    cannot, and a stage of weight 1 ends as soon as the horizontal recommendation points out of it.
    """

    stages: tuple[Stage, ...]
    exact: bool = False

    def __post_init__(self) -> None:
        require(bool(self.stages), "weightBasedScalingIntervals", [], "give at least one stage")


class BucketSizing(enum.StrEnum):
    """How large each replica becomes; its share is total / replicas."""

    GUARDED = "Guarded"  # the share; a scale-up never goes below the vertical recommendation
    SHARE = "Share"
    MAX_OF_VPA_AND_SHARE = "MaxOfVpaAndShare"
    NEVER_SHRINK = "NeverShrink"  # the share; nothing shrinks while the totals grow (hvpa-v2)


class Bucket(Record, frozen=True, kw_only=True):
    """HVPA buckets: a range of replicas and of the size of each replica, all ends included.

    A missing minimum starts where the previous bucket ended; a missing maximum leaves that resource alone.
    """

    replicas_min: int
    replicas_max: int
    least: Size = Size()
    most: Size

    def __post_init__(self) -> None:
        require(
            0 < self.replicas_min <= self.replicas_max,
            "replicas.min",
            self.replicas_min,
            "put it from 1 to replicas.max",
        )
        require(fits(self.least, self.most), "buckets", self.least, "a minimum must not be above its maximum")


class Margin(Record, frozen=True):
    """The larger of a share of something and an amount."""

    percent: float = 0.0
    value: float = 0.0


class Margins(Record, frozen=True):
    cpu: Margin = Margin()
    memory: Margin = Margin()

    def of(self, axis: Axis) -> Margin:
        return self.cpu if axis is Axis.CPU else self.memory


class Buckets(Record, frozen=True):
    """HVPA buckets.

    `overlap` lowers the edge at which replicas are removed again, against flapping; without it, totals are divided by
    replicas and nothing else. `base` is what a replica uses without doing any work. With `grow_past_last`, sizes exceed
    the last maximum when no more replicas are allowed.
    """

    buckets: tuple[Bucket, ...]
    sizing: BucketSizing = BucketSizing.GUARDED
    overlap: Margins = Margins(cpu=Margin(percent=10.0), memory=Margin(percent=10.0))
    base: Margins = Margins()
    grow_past_last: bool = False

    def __post_init__(self) -> None:
        require(bool(self.buckets), "buckets", [], "give at least one bucket")
        for before, after in pairwise(self.buckets):
            ordered = before.replicas_max <= after.replicas_min
            require(ordered, "buckets.replicas.min", after.replicas_min, "order the buckets by replicas")


class Capacity(Record, frozen=True):
    """Replicas and sizes on one monotone path over total demand, with one hysteresis."""

    base: Size = Size()  # what a replica uses without doing any work
    hysteresis: float = 0.1
    preferred: Size | None = None  # grow each replica to this size first; None: to the largest size allowed

    def __post_init__(self) -> None:
        require(0 <= self.hysteresis < 1, "hysteresis", self.hysteresis, "give a fraction below 1")


Blend = Weights | Buckets | Capacity


# How large each container should be (stage `resize`)


class ContainerRule(Record, frozen=True):
    """Bounds and mode of one container, or of all the others when the name is "*"."""

    name: str = "*"
    off: bool = False
    least: Size = Size()
    most: Size = Size()
    cpu: bool = True  # controlled resources
    memory: bool = True
    requests_only: bool = False  # limits stay as they are
    whole_cores: bool = False  # CPU is rounded up to whole cores, for pinned CPUs (VPA's integerCPU)

    def __post_init__(self) -> None:
        require(fits(self.least, self.most), "minAllowed", self.least, "it must not be above maxAllowed")

    def controls(self, axis: Axis) -> bool:
        return self.cpu if axis is Axis.CPU else self.memory


class Gap(Record, frozen=True):
    """How far the limit stays above the request: the larger of a share and an amount."""

    percent: float = 0.0
    value: float = 0.0


class Limits(Record, frozen=True):
    """What happens to limits when requests move; without a gap the ratio limit : request is kept."""

    cpu: Gap | None = None
    memory: Gap | None = None


class Apply(enum.StrEnum):
    IN_PLACE = "InPlace"
    RECREATE = "Recreate"
    IN_PLACE_OR_RECREATE = "InPlaceOrRecreate"
    NEVER = "Never"


class Vertical(Record, frozen=True):
    """Which containers may be resized, how far, and how patiently."""

    containers: tuple[ContainerRule, ...] = (ContainerRule(),)
    limits: Limits = Limits()
    apply: Apply = Apply.IN_PLACE
    floor: Size = Size(cpu_cores=0.010, memory_bytes=32 * 1024**2)  # of a pod, shared by its containers
    most: Size = Size()  # where a container's own rule leaves the maximum open
    up_after_s: float = 600.0
    down_after_s: float = 86400.0
    peak_margin: float = 1.2  # memory never falls below this times the peak of the last eight days
    oom_rest_s: float = 86400.0
    keep_memory: bool = False  # JVM images: memory is never lowered by itself


# The bridge


class Bridge(Record, frozen=True):
    """How far ready pods may grow, and which share of their written CPU they carry before they do.

    The ceiling lies a little below the service level: the bridge guards the service, the target steers.
    """

    max_factor: float = 1.5
    ceiling: float = 0.75
    resizes_per_hour: int | None = None  # of one pod; None: as many as it takes

    def __post_init__(self) -> None:
        require(1.0 < self.max_factor <= 2.0, "bridge.maxFactor", self.max_factor, "give a factor above 1, at most 2")
        require(0.0 < self.ceiling < 1.0, "bridge.ceiling", self.ceiling, "give a share of a pod between 0 and 1")
        most = self.resizes_per_hour
        require(most is None or most >= 2, "bridge.resizesPerHour", most, "give 2 or more: one up, one down")


# May the change be made now? (stage `gate`)


class UpdateMode(enum.StrEnum):
    AUTO = "Auto"
    OFF = "Off"
    WINDOW = "MaintenanceWindow"


class MaintenanceWindow(Record, frozen=True, tag="Window"):  # the tag is in stored journals
    """Every day from begin to end in UTC seconds of the day, both included; may cross midnight."""

    begin_s: int
    end_s: int

    def __post_init__(self) -> None:
        for second in (self.begin_s, self.end_s):
            require(0 <= second < 86400, "maintenanceTimeWindow", second, "give a time of the day")


class Update(Record, frozen=True):
    """HVPA: an axis and direction that is switched off, or open only in the maintenance window."""

    axis: Axis
    direction: Direction
    mode: UpdateMode
    window: MaintenanceWindow | None = None


class Rest(Record, frozen=True):
    """HVPA: no change on this axis and direction within window_s of the last scaling of any kind."""

    axis: Axis
    direction: Direction
    window_s: float

    def __post_init__(self) -> None:
        require_seconds("stabilizationDuration", self.window_s)


class MinChange(Record, frozen=True):
    """HVPA: skip changes below the smaller of value and percent of the current request."""

    axis: Axis
    direction: Direction
    value: float | None = None
    percent: float | None = None

    def __post_init__(self) -> None:
        for amount in (self.value, self.percent):
            require((amount or 0) >= 0, "minChange", amount, "give an amount that is not negative")


Gate = Update | Rest | MinChange


# Minimum, maximum, schedules, pins, pauses and the forecast


class ScheduledBounds(Record, frozen=True, tag="Span"):  # the tag is in stored journals
    """One run of a schedule: from start to end (UTC, end excluded) these bounds hold beside the usual ones."""

    name: str
    start: float
    end: float
    min_replicas: int | None = None
    max_replicas: int | None = None

    def __post_init__(self) -> None:
        require(self.start < self.end, f"schedules.{self.name}", self.start, "it must start before it ends")


class WrittenSchedule(Record, frozen=True):
    """A schedule as the user wrote it: two cron expressions in a time zone."""

    name: str
    start: str
    end: str
    timezone: str = "UTC"
    min_replicas: int | None = None
    max_replicas: int | None = None


class Bounds(Record, frozen=True):
    min_replicas: int = 1
    max_replicas: int = 10
    spans: tuple[ScheduledBounds, ...] = ()
    schedules: tuple[WrittenSchedule, ...] = ()  # the spans come from these; replays expand them again
    alone: bool = False  # no metric beside the schedules: their minimum is the maximum too

    def __post_init__(self) -> None:
        ordered = 0 <= self.min_replicas <= self.max_replicas
        require(ordered, "minReplicas", self.min_replicas, f"put it from 0 to maxReplicas ({self.max_replicas})")


class Mode(enum.StrEnum):
    AUTO = "Auto"
    SHADOW = "Shadow"
    PAUSED = "Paused"


class Admit(Record, frozen=True):
    """Whether to decide at all, and a pinned replica count that overrules every signal."""

    mode: Mode = Mode.AUTO
    paused_until: float | None = None
    pin: int | None = None
    pin_until: float | None = None

    def __post_init__(self) -> None:
        require((self.pin or 0) >= 0, "pin", self.pin, "give a number of replicas")


# The models of `spec.forecast`; `core.forecast` has a module of the same name for each.
ForecastModel = Literal["linear", "seasonal", "holtWinters", "dsp", "percentile", "learned"]


class ForecastChoice(Record, frozen=True):
    """Which model looks ahead, and how far; `exact` is the program of its source, quirks included."""

    model: str = "linear"
    horizon_s: float | None = None  # None: the measured start-up time
    quantile: float = 0.5
    exact: bool = False
    options: dict[str, Any] = {}  # of the model, by the names of its own options

    def __post_init__(self) -> None:
        require(0 < self.quantile < 1, "quantile", self.quantile, "give a probability between 0 and 1")
        require(
            self.horizon_s is None or self.horizon_s > 0,
            "horizon",
            self.horizon_s,
            "give a number of seconds above zero",
        )


# Tuning


class TuningMode(enum.StrEnum):
    OFF = "Off"
    ADVISE = "Advise"  # only report what it would do
    NIGHTLY = "Nightly"


class TuningRange(Record, frozen=True):
    """From least to most, both included; None: no limit of the user's."""

    least: float | None = None
    most: float | None = None

    def __post_init__(self) -> None:
        ordered = self.least is None or self.most is None or self.least <= self.most
        require(ordered, "tuning.limits.min", self.least, f"must not be above max ({self.most})")

    def __contains__(self, value: float) -> bool:
        return (self.least is None or self.least <= value) and (self.most is None or value <= self.most)


class TuningLimits(Record, frozen=True):
    """`target` is in the unit of the metric's own target: percent of the request, or its average value."""

    target: TuningRange = TuningRange()
    tolerance: TuningRange = TuningRange()
    window_s: TuningRange = TuningRange()  # stabilization window of scale-downs


class Tuning(Record, frozen=True):
    mode: TuningMode = TuningMode.OFF
    limits: TuningLimits = TuningLimits()
    timezone: str = "UTC"  # decides when it is night


class PricedBand(Record, frozen=True):
    """The price of one overloaded pod-minute, in pod-minutes, for starting a pod and for keeping one."""

    start: float
    keep: float

    def __post_init__(self) -> None:
        for price in (self.start, self.keep):
            require(0.0 < price < 1e9, "tuned.band", price, "give a number of pod-minutes above zero")


class TunedSettings(Record, frozen=True):
    """What tuning may change of a policy; everything else stays as the user wrote it.

    `target` is in the unit of its metric (percent of the request, or an average value). `ceiling` is the bridge's;
    None switches the bridge off. With `priced`, the objective decides instead of the target, in a `band` of its own if
    one is given.
    """

    target: float
    tolerance: float
    window_s: float  # stabilization window of scale-downs
    ceiling: float | None = None
    priced: bool = False
    band: PricedBand | None = None

    def __post_init__(self) -> None:
        require(self.target > 0.0, "tuned.target", self.target, "give a number above zero")
        require(0.0 <= self.tolerance < 1.0, "tuned.tolerance", self.tolerance, "give a share from 0 on, below 1")
        require_seconds("tuned.window", self.window_s)


# Advice (Analytics)


TWO_WEEKS_S = 1209600.0


class Advice(enum.StrEnum):
    HPA = "HPA"
    RESOURCE = "Resource"
    REPLICAS = "Replicas"
    BOTH = "Both"  # replicas and requests together, checked by a backtest; only `recommend` asks for it


class AdviceAlgorithm(enum.StrEnum):
    EXACT = "exact"  # as Crane documents it
    CRANE = "crane"  # as Crane's program computes it: bucketed, load-weighted percentiles with a margin


class Inspection(Record, frozen=True):
    """The configuration of Crane's recommendations, one field per key; then the keys of its later versions."""

    advice: Advice = Advice.HPA
    algorithm: AdviceAlgorithm = AdviceAlgorithm.EXACT
    deployment_min_replicas: int = 1
    statefulset_min_replicas: int = 1
    workload_min_replicas: int = 1
    pod_min_ready_s: float = 30.0
    pod_available_ratio: float = 0.5
    default_min_replicas: int = 2
    max_replicas_factor: float = 3.0
    min_cpu_usage_cores: float = 10.0
    fluctuation_threshold: float = 1.5
    min_cpu_target_percent: int = 30
    max_cpu_target_percent: int = 75
    reference_hpa: bool = True
    must_be_predictable: bool = False
    cpu_percentile: float = 0.95  # of the whole workload: for maxReplicas, and for advice on replicas
    cpu_target_ratio: float = 0.5  # advice on replicas
    memory_target_ratio: float = 0.5
    request_percentile: float = 0.99  # of each container: for the target, and for advice on requests
    request_margin: float = 0.15
    history_s: float = 604800.0
    oom_protection: bool = True
    oom_bump_ratio: float = 1.2
    size_ladder: tuple[tuple[float, float], ...] = ()  # (cores, bytes); requests are rounded up to one of them
    timezone: str = "UTC"  # in which the hours of the day are counted

    @property
    def forecast_history_s(self) -> float:
        """How much history the forecast reads: two weeks show a weekly pattern, one week cannot."""
        return max(self.history_s, TWO_WEEKS_S) if self.advice is Advice.HPA and not self.crane else self.history_s

    @property
    def crane(self) -> bool:
        return self.algorithm is AdviceAlgorithm.CRANE


class Policy(Record, frozen=True):
    """Everything decide() uses besides the observation and the memory."""

    signals: tuple[Signal, ...] = ()
    combine: Combine = Combine.MAXIMUM
    absence: Absence = Absence()
    pods: PodRules = PodRules()
    settle: tuple[Rule, ...] = (StabiliseMax(), UpLimit())
    vertical: Vertical | None = None
    bridge: Bridge | None = None
    blend: Blend | None = None
    gates: tuple[Gate, ...] = ()
    bounds: Bounds = Bounds()
    admit: Admit = Admit()
    forecast: ForecastChoice | None = None
    objective: Objective | None = None
    tuning: Tuning = Tuning()
    replays_noop: bool = False  # nanit custom-hpa: a scaling to the same number is still a scaling


def is_cpu(metric: Metric) -> bool:
    """Return whether the metric measures the CPU of pods or of one of their containers."""
    return metric.name == "cpu" and metric.kind in (MetricKind.RESOURCE, MetricKind.CONTAINER)


def sees_without_pods(policy: Policy) -> bool:
    """Return whether a signal can be read while no pod runs; without one, nothing could scale up from zero."""
    return any(isinstance(signal, Total | TotalAverage | Backlog) for signal in policy.signals)
