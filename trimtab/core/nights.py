"""What the operator tells tuning at night, and what it hears in the morning. Plain records: both sides know them."""

from __future__ import annotations

import enum

from trimtab.core.figures import Figures
from trimtab.policy import Policy, Record, TunedSettings


class Promise(Record, frozen=True):
    """What a backtest expects of settings: J over the optimum of a day, and how much days differ (one deviation)."""

    j: float
    spread: float


class InForce(Record, frozen=True):
    """Settings that tuning put in the place of others."""

    settings: TunedSettings
    replaced: TunedSettings
    promise: Promise
    since: float
    before: InForce | None = None  # what tuning itself had put there before; None: what is written


class LivedDay(Record, frozen=True):
    """What the last day cost in earnest, in pod-steps and load-steps of 15 s."""

    pods: float
    violating: float
    starts: float
    resized: float


class NightCase(Record, frozen=True):
    """One workload at night: its policy as written, and its demand by minute as 32-bit floats, NaN where unknown."""

    name: str
    policy: Policy
    start: float
    demand: bytes
    pod_capacity: float
    startup_s: float
    in_force: InForce | None = None
    lived: LivedDay | None = None  # None: it was not seen for most of the day
    rests: bool = False  # it went back lately


class Fleet(Record, frozen=True):
    """What bounds a night."""

    workloads: int  # all that are served
    switched: int = 0  # already tonight


class VerdictKind(enum.StrEnum):
    SWITCHED = "Switched"
    ADVISED = "Advised"  # it would be better; the mode is Advise
    WAITS = "Waits"  # it would be better; enough others switch tonight
    KEPT = "Kept"
    WENT_BACK = "WentBack"
    UNKNOWN = "Unknown"  # not yet
    UNTUNABLE = "Untunable"  # no night can compare its settings: what is written steers


class TuningEvidence(Record, frozen=True):
    days: int
    before: Figures
    after: Figures


class Verdict(Record, frozen=True):
    """What a night found for one workload."""

    name: str
    kind: VerdictKind
    reason: str = ""
    settings: TunedSettings | None = None  # better ones, or those it goes back to
    present: TunedSettings | None = None
    evidence: TuningEvidence | None = None
    promise: Promise | None = None

    @property
    def gain(self) -> float:
        """The part of J that the new settings save."""
        return 1.0 - self.evidence.after.j / self.evidence.before.j if self.evidence else 0.0
