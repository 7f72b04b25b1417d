"""The nouns of a decision: what is seen, what is remembered, what is proposed, changed and planned."""

from __future__ import annotations

import enum
from typing import NamedTuple

from trimtab.policy import Axis, Direction, Record, Size


class Reason(enum.StrEnum):
    """Why there is no value. Each has its own sentence in `explain`."""

    ABSENT = "Absent"  # the source answered without a value
    UNREACHABLE = "Unreachable"  # the source did not answer
    STALE = "Stale"
    NOT_FINITE = "NotFinite"
    NEGATIVE = "Negative"
    ZERO = "Zero"  # where the policy says that zero is no answer
    AMBIGUOUS = "Ambiguous"  # more than one series
    PARTIAL = "Partial"  # the source warned that its answer is incomplete
    NO_REQUEST = "NoRequest"  # a container has no request to compare with
    NO_READY_PODS = "NoReadyPods"  # every sample belongs to a pod that does not count yet
    NOT_ALLOWED = "NotAllowed"  # the administrator lets nobody of this namespace ask
    UNSUPPORTED = "Unsupported"  # a metric type nobody knows
    NOT_ENOUGH_HISTORY = "NotEnoughHistory"
    NOT_PREDICTABLE = "NotPredictable"
    BEING_READ = "BeingRead"  # a new leader does not know yet what the one before knew
    EXPIRED = "Expired"
    NOT_CONFIGURED = "NotConfigured"


class Missing(Record, frozen=True):
    """No value, and why; `detail` names the culprit (a pod, a container, an address)."""

    reason: Reason
    since: float | None = None
    detail: str = ""


PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"


class Pod(Record, frozen=True):
    """Facts of one pod; immutable, shared by reference between ticks."""

    name: str
    phase: str = RUNNING
    ready: bool | None = True  # None: there is no Ready condition yet
    created_at: float | None = None
    scheduled_at: float | None = None  # when it got its node
    waits_since: float | None = None  # the scheduler finds no node for it
    waits_for: str = ""  # and what the nodes lack, such as "insufficient cpu"
    started_at: float | None = None
    ready_since: float | None = None  # last transition of the Ready condition
    deleting: bool = False
    requests: Size = Size()  # of the whole pod
    containers: dict[str, Size] = {}  # request of each container
    cpu_limits: dict[str, float] = {}  # written limit of each container that has one; "": of the pod as a whole
    bridge: float = 1.0  # how many times its written cpu it has
    no_request: str = ""  # the container that lacks a request, where one does

    def cpu_limit(self, container: str = "") -> float | None:
        """As written: of one container, or of the pod where it or each of its containers has one."""
        if container in self.cpu_limits:
            return self.cpu_limits[container]
        names = (container,) if container else tuple(self.containers)
        known = [self.cpu_limits[name] for name in names if name in self.cpu_limits]
        return sum(known) if known and len(known) == len(names) else None


class PodSamples(Record, frozen=True):
    """One value for each pod; `times` and `windows_s` of single pods where they are not those of all.

    Values are whole multiples of `grain`, rounded up; 0: as they are.
    """

    values: dict[str, float]
    at: float
    grain: float = 0.0
    times: dict[str, float] = {}
    window_s: float = 60.0
    windows_s: dict[str, float] = {}


class TotalSample(Record, frozen=True):
    value: float
    at: float


class QueueSample(Record, frozen=True):
    """A queue: items that arrive per second, items that are waiting, and seconds of work for each."""

    value: float
    at: float
    waiting: float | Missing
    service_time_s: float


Samples = PodSamples | TotalSample | QueueSample


class Quantile(NamedTuple):
    probability: float
    value: float


class Forecast(Record, frozen=True):
    """What one signal is expected to need at its horizon: total demand, or per-pod utilization for a predictive HPA.

    `keep` is the highest demand until a pod that is let go now could be back; empty where a model does not tell.
    """

    made_at: float
    expires_at: float
    demand: tuple[Quantile, ...]
    model: str
    per_pod: bool = False
    keep: tuple[Quantile, ...] = ()
    level: float | None = None  # the demand when it was made, where it speaks of growth
    note: str = ""  # what its reader should know

    def at_quantile(self, probability: float) -> float:
        """The value of the first quantile that reaches the wanted probability."""
        return next((q.value for q in self.demand if q.probability >= probability), self.demand[-1].value)


class Startup(Record, frozen=True):
    """How long pods take to become ready, `waits` for a node included; those are also told apart."""

    made_at: float
    expires_at: float
    quantiles: tuple[Quantile, ...]
    pods: int = 0
    waits: tuple[Quantile, ...] = ()


class Estimate(Record, frozen=True):
    """What one container needs, from its histograms, with the facts that the safety rules ask for."""

    target: Size
    lower: Size = Size()
    upper: Size = Size()
    observed_s: float = 0.0
    memory_window_s: float = 86400.0
    memory_peak_bytes: float | None = (
        None  # the highest working set of eight days; None while a day was not watched without a hole
    )
    oom_at: float | None = None
    oom_need_bytes: float | None = None  # what would have survived the OOM kills of the last eight days


class RecentUsage(Record, frozen=True):
    """The highest minute mean of the last five minutes, of all ready pods together, by container.

    Not complete: five minutes were not watched yet, or a ready pod has no sample. Then nothing is lowered by it.
    """

    totals: dict[str, Size]
    complete: bool = True


class UsageEstimates(Record, frozen=True, tag="Usage"):  # the tag is in stored journals
    """What the containers of one workload need, by name, and until when that may be used."""

    made_at: float
    expires_at: float
    containers: dict[str, Estimate]
    sampled_at: float | None = None  # the newest sample in it; None: not known
    recent: RecentUsage | None = None


class ContainerSize(Record, frozen=True):
    requests: Size
    limits: Size = Size()


class Veto(Record, frozen=True):
    """A fact from outside that forbids a direction now: a conflict, a rollout, a quota, the fleet breaker."""

    axis: Axis
    direction: Direction | None  # None: both
    reason: str
    detail: str = ""
    until: float | None = None


class Observation(Record, frozen=True):
    """What is seen at `at`, which is now. `samples` and `forecasts` are aligned with policy.signals."""

    at: float
    spec_replicas: int
    status_replicas: int
    pods: tuple[Pod, ...] = ()
    sizes: dict[str, ContainerSize] = {}
    written_for: dict[str, Size] = {}  # requests a utilisation target was written for, where ours are in force
    samples: tuple[Samples | Missing, ...] = ()
    forecasts: tuple[Forecast | Missing, ...] = ()
    usage: UsageEstimates | Missing = Missing(reason=Reason.NOT_CONFIGURED)
    startup: Startup | Missing = Missing(reason=Reason.NOT_CONFIGURED)
    vetoes: tuple[Veto, ...] = ()


Event = tuple[float, int]  # (at, replicas or change)


class Memory(Record, frozen=True):
    """What outlives a tick; a restart loses nothing because this is written to the object's status."""

    version: int = 1
    wanted: tuple[Event, ...] = ()  # raw wishes, for stabilisation
    planned: tuple[Event, ...] = ()  # replicas that buckets or capacity asked for, for stabilisation
    grown: tuple[Event, ...] = ()  # pods added, for rate limits
    shrunk: tuple[Event, ...] = ()
    up_at: float | None = None
    down_at: float | None = None
    resized_at: float | None = None
    failing_since: float | None = None
    above_since: float | None = None  # over the high watermark
    below_since: float | None = None
    followed_since: float | None = None  # sizes are as recommended, and replicas are wished for
    zeroed: bool = False  # we scaled it to zero, so we may wake it
    overloaded: bool = False  # OOM kill or eviction since the last scaling
    overloaded_at: float | None = None  # the last of them
    bridge: float = 1.0  # the factor in force on ready pods
    bridge_needed: tuple[tuple[float, float], ...] = ()  # levels above 1, each with when it was last needed
    bridge_moves: tuple[float, ...] = ()  # when the factor was changed, within the last hour

    @property
    def scaled_at(self) -> float | None:
        """The last act of any kind."""
        return max((at for at in (self.up_at, self.down_at, self.resized_at) if at is not None), default=None)


class Proposal(Record, frozen=True):
    """What one source asks for, before any rule."""

    source: str
    replicas: float | Missing
    value: float | None = None
    target: float | None = None
    forecast: bool = False
    load_pods: float | None = None  # where load is priced: what it is now, in what one pod carries at 100 %
    ratio: float | None = None  # to the current replicas, before rounding; None: that of `replicas`

    def number(self) -> float:
        """The replicas of a proposal that is known to have some."""
        assert not isinstance(self.replicas, Missing)
        return self.replicas


class RuleName(enum.StrEnum):
    """Everything that can change a wish; one sentence each in `explain`."""

    PAUSED = "Paused"
    SWITCHED_OFF = "ScalingDisabled"
    PIN = "Pin"
    ABOVE_MAX = "AboveMax"
    BELOW_MIN = "BelowMin"
    METRICS_MISSING = "MetricsMissing"
    FALLBACK = "Fallback"
    STABILISE = "Stabilise"
    UP_LIMIT = "UpLimit"
    RATE = "Rate"
    VELOCITY = "Velocity"
    MAX_FACTOR = "MaxFactor"
    MIN_FACTOR = "MinFactor"
    COOLDOWN = "Cooldown"
    DELAY = "Delay"
    ROUND_UP = "RoundUp"
    SETTLING = "SettlingRule"  # a rule without a name of its own; `detail` says which
    WEIGHTS = "Weights"
    VERTICAL_FIRST = "VerticalFirst"
    BUCKETS = "Buckets"
    CAPACITY = "Capacity"
    WARM_UP = "WarmUp"
    PEAK = "Peak"
    OOM_REST = "OOMRest"
    OOM_NEED = "OOMNeed"
    KEEP_MEMORY = "KeepMemory"
    ADVISED = "OnlyAdvised"
    WHOLE_CORES = "WholeCores"
    FLOOR = "Floor"
    ALLOWED = "Allowed"
    CAPPED_BY_BUCKET = "CappedByBucket"
    BUCKET_MINIMUM = "BucketMinimum"
    PARADOX = "ParadoxicalScaling"
    UPDATE_MODE = "UpdatePolicy"
    MAINTENANCE_WINDOW = "MaintenanceWindow"
    REST = "StabilizationWindow"
    MIN_CHANGE = "MinChange"
    VETO = "Veto"
    SCHEDULE = "Schedule"
    MIN_REPLICAS = "TooFewReplicas"
    MAX_REPLICAS = "TooManyReplicas"
    BRIDGE = "Bridge"
    BRIDGE_LIMIT = "BridgeLimit"


class Step(Record, frozen=True):
    """One rule changed one number; `container` is set on the vertical axes."""

    rule: RuleName
    axis: Axis
    before: float
    after: float
    until: float | None = None
    container: str = ""
    detail: str = ""
    veto: str = ""  # of a veto: which one, by the reason that users filter for

    @property
    def reason(self) -> str:
        return self.veto or str(self.rule)


class Plan(Record, frozen=True):
    replicas: int
    sizes: dict[str, ContainerSize] = {}
    joint: bool = False  # replicas and sizes were chosen together: half of it may be too little
    bridge: float = 1.0  # how many times their written cpu ready pods have; never part of a size


class Change(Record, frozen=True):
    """What to write; None means leave that axis alone."""

    was: int  # the replicas this change was decided on
    replicas: int | None = None
    sizes: dict[str, ContainerSize] | None = None
    bridge: float | None = None
    upward: bool = False  # of a scaling to the same number: whether its factor asks for more


class Decision(Record, frozen=True):
    plan: Plan
    change: Change | None
    proposals: tuple[Proposal, ...] = ()
    steps: tuple[Step, ...] = ()
    memory: Memory = Memory()
