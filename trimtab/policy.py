"""Policy: what every kind compiles to. Frozen data, no behaviour; the five systems differ in the lists written here."""

from __future__ import annotations

import enum

import msgspec


class Record(msgspec.Struct, frozen=True, kw_only=True, tag_field="is", tag=True, gc=False):
    """The base of every record of ours: frozen, named fields, tagged so that a journal reads it back.

    Frozen records only ever point to older ones, so they cannot form cycles and need no garbage collector.
    """


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


# --- signals: how many replicas a metric asks for (stage `propose`) -------------------------------------------------


class Tolerance(Record, frozen=True):
    """No change while 1 - down <= ratio <= 1 + up, both ends inclusive (Kubernetes HPA)."""

    up: float = 0.1
    down: float = 0.1


class Utilization(Record, frozen=True):
    """Usage of each pod against its own request, in whole percent (autoscaling/v2 Resource averageUtilization)."""

    metric: Metric
    percent: int
    tolerance: Tolerance = Tolerance()


class PodAverage(Record, frozen=True):
    """A value of each pod against a target for each pod (Pods, and Resource averageValue)."""

    metric: Metric
    target: float
    tolerance: Tolerance = Tolerance()


class TotalAverage(Record, frozen=True):
    """One total shared by all replicas against a target for each (Object and External averageValue)."""

    metric: Metric
    target: float
    tolerance: Tolerance = Tolerance()


class Total(Record, frozen=True):
    """One value against one target: the ready pods are multiplied by the ratio (Object and External value)."""

    metric: Metric
    target: float
    tolerance: Tolerance = Tolerance()


class Factor(Record, frozen=True):
    """Document 002: current replicas times sample / target, not rounded."""

    metric: Metric
    target: float


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


class PodRules(Record, frozen=True):
    """When a pod counts as ready for a CPU signal (kube-controller-manager's two flags, and a grace for watermarks)."""

    cpu_init_s: float = 300.0
    readiness_delay_s: float = 30.0
    pending_grace_s: float | None = None  # Pending pods younger than this count as ready (watermarks)


# --- settle: what happens to the wish, in this order -----------------------------------------------------------------


class StabiliseMax(Record, frozen=True):
    """HPA without `behavior`: the highest wish that is not older than the window."""

    window_s: float = 300.0


class Stabilise(Record, frozen=True):
    """HPA with `behavior`: the lowest wish of the up window, the highest of the down window."""

    up_s: float = 0.0
    down_s: float = 300.0


class UpLimit(Record, frozen=True):
    """HPA without `behavior`: at most max(factor x current, minimum) in one step."""

    factor: float = 2.0
    minimum: float = 4.0


class Select(enum.StrEnum):
    MAX = "Max"
    MIN = "Min"
    DISABLED = "Disabled"


class RatePolicy(Record, frozen=True):
    """So many pods, or so many percent, within a period."""

    percent: bool
    value: int
    period_s: float


class Rates(Record, frozen=True):
    select: Select = Select.MAX
    policies: tuple[RatePolicy, ...] = ()


class Rate(Record, frozen=True):
    """HPA with `behavior`: how fast, in each direction."""

    up: Rates = Rates(
        policies=(
            RatePolicy(percent=False, value=4, period_s=15),
            RatePolicy(percent=True, value=100, period_s=15),
        )
    )
    down: Rates = Rates(policies=(RatePolicy(percent=True, value=100, period_s=15),))


class Velocity(Record, frozen=True):
    """Watermarks: at most a percentage of the current replicas in one step, at least one pod; 0 disables."""

    up_percent: float = 50.0
    down_percent: float = 20.0


class MaxFactor(Record, frozen=True):
    """Document 002: the step is capped at 1 + up and 1 - down times the current replicas."""

    up: float = 1.0
    down: float = 1.0


class MinFactor(Record, frozen=True):
    """Document 002: steps up to and including 1 + up and 1 - down are not worth it."""

    up: float = 0.1
    down: float = 0.1


class Cooldown(Record, frozen=True):
    """Rest after a scaling: of the same direction (document 002), or of any direction (watermarks)."""

    up_s: float = 15.0
    down_s: float = 15.0
    any_direction: bool = False


class Delay(Record, frozen=True):
    """Watermarks: a mark must have been crossed for this long."""

    above_s: float = 0.0
    below_s: float = 0.0


class RoundUp(Record, frozen=True):
    """Whole pods; epsilon forgives float noise (11.000000000000002 is 11), 0 is document 002's program exactly."""

    epsilon: float = 1e-9


Rule = (
    StabiliseMax | Stabilise | UpLimit | Rate | Velocity | MaxFactor | MinFactor | Cooldown | Delay | RoundUp
)


# --- vertical: how large each container should be (stage `resize`) ---------------------------------------------------


class Size(Record, frozen=True):
    """An amount of each resource; None means not set, which is not zero."""

    cpu_cores: float | None = None
    memory_bytes: float | None = None


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
    peak_margin: float = 1.2  # memory never falls below this times the peak of the last day
    oom_rest_s: float = 86400.0
    keep_memory: bool = False  # JVM images: memory is never lowered by itself


# --- blend: one plan from both axes ----------------------------------------------------------------------------------


class Stage(Record, frozen=True):
    """Document 001: between these replica counts, ends included, this share of the change is vertical."""

    vertical_share: float
    first: int
    last: int


class Weights(Record, frozen=True):
    """Document 001. `exact` follows the released program: no unconditional vertical step at maxReplicas, and sizes
    grow only while replicas cannot."""

    stages: tuple[Stage, ...]
    exact: bool = False


class Sizing(enum.StrEnum):
    """How large each of the new replicas becomes; the share is total / replicas."""

    GUARDED = "Guarded"  # the share; scaling out never takes away what vertical recommends
    SHARE = "Share"
    MAX_OF_VPA_AND_SHARE = "MaxOfVpaAndShare"
    NEVER_SHRINK = "NeverShrink"  # the share; nothing shrinks while the totals grow (hvpa-v2)


class Bucket(Record, frozen=True, kw_only=True):
    """Document 004: replicas and the size of each replica, both ends included.

    A minimum left open starts where the bucket before it ended; a maximum left open leaves that resource out.
    """

    replicas_min: int
    replicas_max: int
    least: Size = Size()
    most: Size


class Margin(Record, frozen=True):
    """The larger of a share of something and an amount."""

    percent: float = 0.0
    value: float = 0.0


class Margins(Record, frozen=True):
    cpu: Margin = Margin()
    memory: Margin = Margin()


class Buckets(Record, frozen=True):
    """Document 004. `overlap` lowers the edge at which replicas are removed again, against flapping; without any,
    buckets are divided linearly and nothing else. `base` is what a replica uses without doing any work."""

    buckets: tuple[Bucket, ...]
    sizing: Sizing = Sizing.GUARDED
    overlap: Margins = Margins(cpu=Margin(percent=10.0), memory=Margin(percent=10.0))
    base: Margins = Margins()


class Capacity(Record, frozen=True):
    """Ours: total demand first, then replicas and size on one monotone path with one hysteresis."""

    base: Size = Size()  # what a replica uses without doing any work
    hysteresis: float = 0.1
    preferred: Size | None = None  # grow each replica to this size first; None: to the largest size allowed


Blend = Weights | Buckets | Capacity


# --- gates: may it happen now? ---------------------------------------------------------------------------------------


class Axis(enum.StrEnum):
    REPLICAS = "replicas"
    CPU = "cpu"
    MEMORY = "memory"


class Direction(enum.StrEnum):
    UP = "up"
    DOWN = "down"


class UpdateMode(enum.StrEnum):
    AUTO = "Auto"
    OFF = "Off"
    WINDOW = "MaintenanceWindow"


class Window(Record, frozen=True):
    """Every day from begin to end in UTC seconds of the day, both included; may cross midnight."""

    begin_s: int
    end_s: int


class Update(Record, frozen=True):
    """Document 001: an axis and direction that is switched off, or only open in the maintenance window."""

    axis: Axis
    direction: Direction
    mode: UpdateMode
    window: Window | None = None


class Rest(Record, frozen=True):
    """Document 001: nothing on this axis and direction within window_s of the last scaling of any kind."""

    axis: Axis
    direction: Direction
    window_s: float


class MinChange(Record, frozen=True):
    """Document 001: changes below the smaller of value and percent of the current request are not worth it."""

    axis: Axis
    direction: Direction
    value: float | None = None
    percent: float | None = None


Gate = Update | Rest | MinChange


# --- bounds, schedules, pins -----------------------------------------------------------------------------------------


class Span(Record, frozen=True):
    """A schedule at work: from start to end (UTC, end excluded) these bounds hold beside the usual ones."""

    name: str
    start: float
    end: float
    min_replicas: int | None = None
    max_replicas: int | None = None


class Bounds(Record, frozen=True):
    min_replicas: int = 1
    max_replicas: int = 10
    spans: tuple[Span, ...] = ()


class Mode(enum.StrEnum):
    AUTO = "Auto"
    SHADOW = "Shadow"
    PAUSED = "Paused"


class Admit(Record, frozen=True):
    """Whether to decide at all, and a pin that overrules every signal."""

    mode: Mode = Mode.AUTO
    paused_until: float | None = None
    pin: int | None = None
    pin_until: float | None = None


class OutlookChoice(Record, frozen=True):
    """Which model looks ahead, and how far; `exact` is the program of its source, quirks included."""

    model: str = "linear"
    horizon_s: float | None = None  # None: the measured start-up time
    quantile: float = 0.5
    exact: bool = False
    options: dict[str, float] = {}  # of the model, by the names of its `Options`


class Policy(Record, frozen=True):
    """Everything decide() may look at besides what is seen and what is remembered."""

    signals: tuple[Signal, ...] = ()
    combine: Combine = Combine.MAXIMUM
    absence: Absence = Absence()
    pods: PodRules = PodRules()
    settle: tuple[Rule, ...] = (StabiliseMax(), UpLimit())
    vertical: Vertical | None = None
    blend: Blend | None = None
    gates: tuple[Gate, ...] = ()
    bounds: Bounds = Bounds()
    admit: Admit = Admit()
    outlook: OutlookChoice | None = None
    replays_noop: bool = False  # document 002's program: a scaling to the same number is still a scaling


def sees_without_pods(policy: Policy) -> bool:
    """Whether a signal can be read while no pod runs; without one nothing could wake the workload again."""
    return any(isinstance(signal, Total | TotalAverage) for signal in policy.signals)


# --- inspections: what an Analytics compiles to (document 000) -------------------------------------------------------


class Advice(enum.StrEnum):
    HPA = "HPA"
    RESOURCE = "Resource"
    REPLICAS = "Replicas"


class Algorithm(enum.StrEnum):
    EXACT = "exact"  # as document 000 writes it
    CRANE = "crane"  # as its program computes it: bucketed, load-weighted percentiles with a margin


class Inspection(Record, frozen=True):
    """Document 000's configuration, one field a key, with its defaults; then the keys of its later versions."""

    advice: Advice = Advice.HPA
    algorithm: Algorithm = Algorithm.EXACT
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
    def crane(self) -> bool:
        return self.algorithm is Algorithm.CRANE
