"""What the simulated cluster is like: pods, metrics, and their faults. The defaults are the benchmark's."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from msgspec.structs import replace

from trimtab.core.tuned import unbridged
from trimtab.policy import SLO, Policy, level_of, limit_sets_level
from trimtab.quantity import GIB
from trimtab.series import Floats
from trimtab.sim.grid import MEAN_S, STEP_S
from trimtab.sim.queue import WorkQueue


class FaultKind(enum.StrEnum):
    MISSING = "missing"  # the source answers without a value
    NAN = "nan"
    NEGATIVE = "negative"
    ZERO = "zero"
    STALE = "stale"  # the last value before the fault, with its old date
    LATE = "late"  # values come `amount` seconds after their time
    REFUSED = "refused"  # the API server refuses what we write, with probability `amount`
    NODE_LOSS = "node loss"  # at the start a share `amount` of the pods is gone and comes back as new ones
    OPERATOR_DOWN = "operator down"  # nobody decides; afterwards the memory is read back as it was written


@dataclass(frozen=True)
class Fault:
    """One fault from `start_s` to `end_s`, counted from the beginning of the run."""

    kind: FaultKind
    start_s: float
    end_s: float
    amount: float = 0.0

    def holds(self, second: float) -> bool:
        return self.start_s <= second < self.end_s


METRIC_DELAY_S = float(STEP_S)  # no operator sees the newest scrape


@dataclass(frozen=True)
class ClusterSpec:
    """What every pod is like, in the load's own unit, and how the metrics reach the policy.

    `pod_capacity` is the load at which a pod uses 100 % of its request `pod_cores`. Above `level` a pod is overloaded:
    by default as `core.overload` has it. `own_level` is the same as an objective that writes no service level knows it.
    `limit` is the most it can serve; a pod without a limit serves up to `burst` times its request.
    """

    startup_s: float = 120.0
    startup_jitter: tuple[float, float] = (1.0, 1.0)  # each start-up is multiplied by a draw from this range
    pod_capacity: float = 1.0
    level: float | None = None
    own_level: float | None = None  # where it is not `level`
    limit: float | None = None
    pod_cores: float = 1.0  # request of a pod before any resize
    burst: float = 1.0
    pod_memory_bytes: float = 1.0 * GIB
    base_memory_bytes: float = 0.25 * GIB  # what a pod uses without doing any work
    memory_load: Floats | None = None  # bytes that all pods share, started or not, step by step
    mean_s: float = MEAN_S  # metrics are means of the last minute ...
    metric_delay_s: float = METRIC_DELAY_S  # ... and this old when a policy or a bridge sees them
    retry_share: float = 0.0  # of violating load that comes again in the next step
    resize_refusal: float = 0.0  # probability that a pod cannot be resized in place
    faults: tuple[Fault, ...] = ()
    queue: WorkQueue | None = None  # work waits for a pod, and a violation is waiting too long

    def __post_init__(self) -> None:
        assert self.startup_s >= 0 and self.pod_capacity > 0 and self.pod_cores > 0
        assert 0 <= self.retry_share < 1 and 0 <= self.resize_refusal <= 1
        assert (self.level is None or self.level > 0) and (self.limit is None or self.limit > 0)

    @property
    def mean_steps(self) -> int:
        return max(1, round(self.mean_s / STEP_S))

    @property
    def metric_delay_steps(self) -> int:
        return round(self.metric_delay_s / STEP_S)

    @property
    def level_share(self) -> float:
        """The load above which a pod is overloaded, as a share of its request; never above what it can serve."""
        if self.queue:
            return self.ceiling_share
        return min(self._usual_level if self.level is None else self.level / self.pod_capacity, self.ceiling_share)

    @property
    def _usual_level(self) -> float:
        return level_of(1.0, self.ceiling_share if self._limited else None)

    @property
    def _limited(self) -> bool:
        """Whether there is a limit; one that equals the request where neither a limit nor a burst is given."""
        return self.limit is not None or self.burst == 1.0

    @property
    def own_share(self) -> float:
        return self.level_share if self.own_level is None else self.own_level / self.pod_capacity

    @property
    def shown_limit(self) -> float | None:
        """The limit of a pod as an operator sees it, as a share of its request."""
        if self.own_share < 1.0:
            return self.own_share / SLO
        return self.ceiling_share if self._limited else None

    @property
    def ceiling_share(self) -> float:
        """The most that a pod serves, as a share of its request."""
        return self.burst if self.limit is None else self.limit / self.pod_capacity

    @property
    def bridge_counts(self) -> bool:
        """Whether a larger size carries more: where the limit sets the level, as it does by default."""
        return limit_sets_level(1.0, self.ceiling_share if self._limited else None)

    def fitted(self, policy: Policy) -> Policy:
        """The policy as it acts on these pods: with a level for its objective, without a bridge that adds nothing."""
        if policy.bridge is not None and not self.bridge_counts:
            policy = replace(policy, bridge=None, objective=policy.objective and unbridged(policy.objective))
        if policy.objective is None or policy.objective.service_level is not None:
            return policy
        return replace(policy, objective=replace(policy.objective, service_level=self.own_share))
