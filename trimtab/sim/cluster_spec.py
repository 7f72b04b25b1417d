"""What the simulated cluster is like: pods, metrics, and their faults. The defaults are the benchmark's."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from trimtab.quantity import GIB
from trimtab.series import Floats
from trimtab.sim.grid import MEAN_S
from trimtab.sim.score import SLO


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


@dataclass(frozen=True)
class ClusterSpec:
    """One pod carries `pod_capacity` of load at 100 % of `pod_cores`, and of `memory_load` what fits its limit."""

    startup_s: float = 120.0
    startup_jitter: tuple[float, float] = (1.0, 1.0)  # each start-up is multiplied by a draw from this range
    slo: float = SLO
    pod_capacity: float = 1.0
    pod_cores: float = 1.0  # request of a pod before any resize
    burst: float = 1.0  # limit over request: how far a pod may use more than it asked for
    pod_memory_bytes: float = 1.0 * GIB
    base_memory_bytes: float = 0.25 * GIB  # what a pod uses without doing any work
    memory_load: Floats | None = None  # bytes that all pods share, started or not, step by step
    mean_s: float = MEAN_S  # metrics are means of the last minute ...
    scrape_delay_s: float = 0.0  # ... seen this much later
    retry_share: float = 0.0  # of violating load that comes again in the next step
    resize_refusal: float = 0.0  # probability that a pod cannot be resized in place
    faults: tuple[Fault, ...] = ()

    def __post_init__(self) -> None:
        assert self.startup_s >= 0 and self.pod_capacity > 0 and self.pod_cores > 0
        assert 0 <= self.retry_share < 1 and 0 <= self.resize_refusal <= 1
