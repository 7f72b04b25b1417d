"""Nightly tuning as plain records and rules: what the operator asks, what a night answers, and who may switch.

Switches are rolled out. The first night moves one workload or 5 % of the fleet, a fair share of each namespace. Once
those have been judged by a day like the one that begins (weekday or weekend) and keep their promise, the share
doubles; otherwise it is halved. After two bad nights nothing switches for a week.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import ceil
from statistics import median

from msgspec.structs import replace

from trimtab.core.figures import Figures
from trimtab.core.overload import Yardstick
from trimtab.policy import Policy, Record, TunedSettings

FIRST_SHARE = 0.05  # of the fleet
JUDGED_SHARE = 0.8  # of those that switched last
BAD_NIGHTS = 2
PAUSE_S = 7 * 86400.0
NIGHT_S = 20 * 3600.0  # the nights of all time zones
LEAST_SPREAD = 0.01  # of the promise: days of a backtest may be equal to the last digit


class Promise(Record, frozen=True):
    """What a backtest expects of settings: J over the optimum of a day, and its standard deviation between days."""

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

    uid: str
    workload: str  # as people call it
    policy: Policy
    start: float
    demand: bytes
    pod: Yardstick | None  # None: what one carries is not known
    startup_s: float
    in_force: InForce | None = None
    lived: LivedDay | None = None  # None: it was not seen for most of the day
    rests: bool = False  # it was rolled back lately


class VerdictKind(enum.StrEnum):
    SWITCHED = "Switched"
    ADVISED = "Advised"  # it would be better; the mode is Advise
    WAITS = "Waits"  # it would be better; others switch first
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

    uid: str
    kind: VerdictKind
    reason: str = ""
    settings: TunedSettings | None = None  # better ones, or those it goes back to
    present: TunedSettings | None = None
    evidence: TuningEvidence | None = None
    promise: Promise | None = None
    realized_j: float | None = None  # of the last day, where settings of tuning were in force and most of it was seen

    @property
    def gain(self) -> float:
        """The part of J that the new settings save."""
        return 1.0 - self.evidence.after.j / self.evidence.before.j if self.evidence else 0.0


class JudgedDay(Record, frozen=True):
    """A day under tuned settings: what it cost, in promised standard deviations above what was promised."""

    j: float
    excess: float
    weekend: bool
    at: float  # its end

    @classmethod
    def of(cls, j: float, promise: Promise, weekend: bool, at: float) -> JudgedDay:
        spread = max(promise.spread, LEAST_SPREAD * promise.j)
        return cls(j=j, excess=(j - promise.j) / spread, weekend=weekend, at=at)


class Rollout(Record, frozen=True):
    """How far the fleet's switches have come; it outlives the operator."""

    share: float = FIRST_SHARE  # of the fleet that may switch tonight
    night_at: float | None = None  # when the share was last decided
    batch_at: float | None = None  # since when the last batch has been switching
    allowed: bool = True  # False: the last batch has to be judged first
    bad_nights: int = 0  # in a row
    paused_until: float | None = None

    def paused(self, at: float) -> bool:
        return self.paused_until is not None and at < self.paused_until

    def is_same_night(self, at: float) -> bool:
        return self.night_at is not None and 0.0 <= at - self.night_at < NIGHT_S

    def limit(self, workloads: int, at: float) -> int:
        """How many of so many workloads may switch in the whole night."""
        return 0 if self.paused(at) or not self.allowed else max(1, ceil(self.share * workloads - 1e-9))


def next_night(rollout: Rollout, batch: Sequence[Sequence[JudgedDay]], at: float, weekend: bool) -> Rollout:
    """The rollout of the night that begins at `at`, before a day on a `weekend` or not.

    `batch` are the workloads that switched last, each with the days that it was judged by since.
    """
    if rollout.is_same_night(at):
        return rollout
    tonight = replace(rollout, night_at=at)
    if rollout.paused(at):
        return tonight
    if rollout.paused_until is not None:  # it is over: begin anew
        return Rollout(night_at=at)
    if rollout.batch_at is None or not batch:
        return replace(tonight, allowed=True)
    fresh = [[day for day in days if day.at > (rollout.night_at or 0.0)] for days in batch]
    newest = [days[-1].excess for days in fresh if days]
    if len(newest) >= JUDGED_SHARE * len(batch) and median(newest) > 1.0:
        return _after_a_bad_night(tonight, at)
    alike = [day.excess for days in batch for day in days[::-1] if day.weekend is weekend]
    judged = sum(any(day.weekend is weekend for day in days) for days in batch)
    if judged >= JUDGED_SHARE * len(batch):
        if median(alike) > 1.0:
            return replace(tonight, share=tonight.share / 2.0, allowed=True)
        return replace(tonight, share=min(1.0, 2.0 * tonight.share), allowed=True, bad_nights=0)
    if at - rollout.batch_at > PAUSE_S:  # a week without enough of them judged
        return replace(tonight, share=tonight.share / 2.0, allowed=True)
    return replace(tonight, allowed=False)


def _after_a_bad_night(tonight: Rollout, at: float) -> Rollout:
    bad, share = tonight.bad_nights + 1, tonight.share / 2.0
    if bad >= BAD_NIGHTS:
        return replace(tonight, share=share, bad_nights=bad, paused_until=at + PAUSE_S, allowed=False)
    return replace(tonight, share=share, bad_nights=bad, allowed=True)


def let_switch(findings: Sequence[Verdict], namespaces: Mapping[str, str], left: int, why: str) -> list[Verdict]:
    """What becomes of the findings where so many more may switch; the others wait, and `why` says for what.

    Namespaces take turns, each with its workload that gains most, so no tenant takes the places of the others.
    """
    by_place: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in sorted(findings, key=lambda verdict: (-verdict.gain, verdict.uid)):
        if verdict.kind is VerdictKind.SWITCHED:
            by_place[namespaces[verdict.uid]].append(verdict)
    turns = [(turn, -each.gain, each.uid) for place in by_place.values() for turn, each in enumerate(place)]
    chosen = {uid for _, _, uid in sorted(turns)[:left]}
    return [
        replace(verdict, kind=VerdictKind.WAITS, reason=why)
        if verdict.kind is VerdictKind.SWITCHED and verdict.uid not in chosen
        else verdict
        for verdict in findings
    ]
