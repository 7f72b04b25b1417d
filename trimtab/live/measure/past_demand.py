"""past_demand: what signals demanded before the operator saw them, read back from Prometheus in the background.

At first sight of an object: a tick waits for nothing, and what we saw ourselves stays. Whether Prometheus remembers an
object is what it gave back, not what somebody configured: all that we know, as far back as the object's forecast looks
or the workload is old, up to now. It is asked again all the while, a few objects at a time, and with them whether it
answers at all. Whom it does not remember, a checkpoint keeps.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from trimtab.core.demand import is_per_pod, keys_of, remembers_demand
from trimtab.core.demand.log import AskedPast, is_whole
from trimtab.core.forecast.demand_forecasts import DemandForecasts
from trimtab.errors import TrimtabError
from trimtab.history.pod_owners import EVERYTHING, SeriesMatchers
from trimtab.live.look.subject import Subject
from trimtab.live.measure.background import Background, Lane
from trimtab.live.measure.demand_reader import DAYS, HOUR, DemandReader, Found, PastSignal
from trimtab.live.measure.tenancy import QueryTenancy
from trimtab.live.object_tick import ObjectTick
from trimtab.policy import MetricKind, Policy, TuningMode
from trimtab.series import Series
from trimtab.wire.access import Access
from trimtab.wire.kube import Kube

ASK_AGAIN_S = 60.0  # while Prometheus answers nobody
TRY_AGAIN_S, LONGEST_REST_S = 300.0, 3600.0  # after a failure of one object
LOOK_AGAIN_S, ROUND_S = 300.0, 86400.0  # at some of those that it remembers; at all of them
READ_BACK = (MetricKind.RESOURCE, MetricKind.CONTAINER, MetricKind.PROMETHEUS)
log = logging.getLogger(__name__)


class RetryRest(NamedTuple):
    """After so many fruitless looks in a row."""

    looks: int = 0
    since: float = float("-inf")
    longest_s: float = LONGEST_REST_S

    def over(self, at: float) -> bool:
        """By a clock that may be set."""
        rest_s = min(TRY_AGAIN_S * 2.0 ** min(self.looks - 1, 20), self.longest_s)
        return not 0.0 <= at - self.since < rest_s

    def after(self, at: float, longest_s: float) -> RetryRest:
        return RetryRest(self.looks + 1, at, longest_s)


class PastLook(NamedTuple):
    """What was found at the last look at these signals."""

    keys: tuple[str, ...]
    at: float
    remembered: bool


class PastDemand(Background):
    """Call `follow` in every tick: the past of each new object, or of one with new signals, is read."""

    def __init__(
        self,
        access: Access,
        kube: Kube,
        demand: DemandForecasts,
        queries: Access | None = None,
        tenancy: QueryTenancy = QueryTenancy(),  # noqa: B008  (frozen)
        matchers: SeriesMatchers = EVERYTHING,
        lane: Lane | None = None,
    ) -> None:
        super().__init__()
        self.demand = demand  # `queries` are tenants' own
        self.reader = DemandReader(access, kube, queries or access, tenancy, matchers, lane)
        self._looks: dict[str, PastLook] = {}  # by uid
        self._rests: dict[str, RetryRest] = {}  # by uid
        self._outdated: set[str] = set()  # of these another workload is being read
        self._whole: set[str] = set()  # keys of which all was given back in the round under way
        self._doubted: set[str] = set()  # of these we have learned more meanwhile
        self._answers, self._asked_at, self._looked_at = True, float("-inf"), float("-inf")

    def remembers(self, subject: Subject) -> bool:
        """Whether a new operator would be given all that we know of it."""
        look = self._looks.get(subject.uid)
        same = look is not None and look.remembered and look.keys == keys_of(subject.uid, subject.policy)
        return self._answers and same

    def has_looked(self, tick: ObjectTick) -> bool:
        """Whether this object's past was asked for since we lead, whatever came of it."""
        uid = tick.subject.uid
        return not self._answers or not wanted(tick) or uid in self._looks or uid in self._rests

    def follow(self, ticks: Sequence[ObjectTick], at: float) -> None:
        ticks = [tick for tick in ticks if wanted(tick)]
        keys = {tick.subject.uid: keys_of(tick.subject.uid, tick.subject.policy) for tick in ticks}
        self._looks = {uid: look for uid, look in self._looks.items() if keys.get(uid) == look.keys}
        self._rests = {uid: rest for uid, rest in self._rests.items() if uid in keys}
        if not self.idle or (not self._answers and 0.0 <= at - self._asked_at < ASK_AGAIN_S):
            return
        due = [*(tick for tick in ticks if self._is_unread(tick.subject, at)), *self._oldest(ticks, at)]
        if due or (ticks and not self._answers):
            self._outdated.clear()
            self._doubted.clear()
            self.start(self._run(due, at))

    def begin_anew(self, uid: str) -> None:
        """What is being read of it is read again, of whom it is now."""
        self._outdated.add(uid)
        self._looks.pop(uid, None)
        self._rests.pop(uid, None)

    def doubt(self, uid: str) -> None:
        """We have learned something of it that was not known at the last look."""
        self._doubted.add(uid)
        if uid in self._looks and self._looks[uid].remembered:
            self._looks[uid] = self._looks[uid]._replace(remembered=False)

    def take_over(self) -> None:
        """Another leader may have watched meanwhile: what we have missed is read back."""
        self.close()
        self._looks.clear()
        self._rests.clear()

    def _is_unread(self, subject: Subject, at: float) -> bool:
        look = self._looks.get(subject.uid)
        settled = look is not None and (look.remembered or not all_read_back(subject.policy))
        return not settled and self._rests.get(subject.uid, RetryRest()).over(at)

    def _oldest(self, ticks: Sequence[ObjectTick], at: float) -> list[ObjectTick]:
        """Of those that it remembers who was not looked at for longest: what it keeps may shrink, or get lost."""
        if self._answers and 0.0 <= at - self._looked_at < LOOK_AGAIN_S:
            return []
        self._looked_at = at
        known = [tick for tick in ticks if (look := self._looks.get(tick.subject.uid)) and look.remembered]
        # Those of one namespace together: their pods are listed once.
        known.sort(key=lambda tick: (self._looks[tick.subject.uid].at, tick.subject.name.namespace))
        return known[: ceil(len(known) * LOOK_AGAIN_S / ROUND_S)]

    async def _run(self, ticks: Sequence[ObjectTick], at: float) -> None:
        self._asked_at, silence = at, await self.reader.silence(at)
        if silence is not None:  # who waited for each query would wait long
            self._fall_silent(silence)
            return
        if not self._answers:
            self._rests.clear()
        await self._look(ticks, at)
        self._answers = True

    def _fall_silent(self, silence: TrimtabError) -> None:
        if self._answers:
            log.warning("demand before now cannot be read back, checkpoints keep it until then: %s", silence)
        self._answers = False

    async def _look(self, ticks: Sequence[ObjectTick], at: float) -> None:
        signals = [signal for tick in ticks for signal in _signals(tick)]
        self._whole.clear()
        try:
            failed = await self.reader.read(signals, at, self._found(at))
        except Exception:
            log.exception("demand before now cannot be read back: a bug of trimtab; forecasts learn from now on")
            failed = {tick.subject.uid for tick in ticks}
        news = sum(tick.subject.uid not in self._looks for tick in ticks)
        self._note([tick.subject for tick in ticks if tick.subject.uid not in self._outdated], failed, at)
        level = logging.INFO if news else logging.DEBUG
        log.log(level, "demand before now was read back: objects %d, to be tried again %d", len(ticks), len(failed))

    def _found(self, at: float) -> Found:
        def found(signal: PastSignal, past: Series) -> None:
            if signal.subject.uid not in self._outdated:
                self._take(signal, past, at)

        return found

    def _take(self, signal: PastSignal, past: Series, at: float) -> None:
        subject, (span_s, step_s) = signal.subject, signal.time_range
        asked = AskedPast(at, span_s, step_s, signal.time_range.late_s, signal.born)
        if signal.is_longest and is_whole(past, asked, self.demand.log, signal.key):
            self._whole.add(signal.key)
        self.demand.restore(subject.uid, subject.policy, signal.key, past, step_s)

    def _note(self, subjects: Sequence[Subject], failed: set[str], at: float) -> None:
        read = {subject.uid for subject in subjects} - failed
        before = {uid for uid in read if uid in self._looks and self._looks[uid].remembered}
        for subject in subjects:
            uid, keys = subject.uid, keys_of(subject.uid, subject.policy)
            rest = self._rests.pop(uid, RetryRest())
            if uid in failed:
                self._looks.pop(uid, None)
                self._rests[uid] = rest.after(at, LONGEST_REST_S)
                continue
            sure = self._whole.issuperset(keys) and uid not in self._doubted
            self._looks[uid] = look = PastLook(keys, at, sure)
            if not look.remembered:
                self._rests[uid] = rest.after(at, ROUND_S)
        if before and not any(self._looks[uid].remembered for uid in before):
            # It was emptied, or keeps less now: nobody can be sure of it.
            self._looks = {uid: look for uid, look in self._looks.items() if not look.remembered}


def wanted(tick: ObjectTick) -> bool:
    """Whether there is a past to read: predictive HPA's own line looks at minutes of single pods, and starts anew."""
    policy = tick.subject.policy
    if not remembers_demand(policy) or is_per_pod(policy):
        return False
    return any(signal.metric.kind in READ_BACK for signal in policy.signals)


def all_read_back(policy: Policy) -> bool:
    """Whether Prometheus may remember every signal."""
    return all(signal.metric.kind in READ_BACK for signal in policy.signals)


def _signals(tick: ObjectTick) -> list[PastSignal]:
    subject, target = tick.subject, tick.target
    forecast, tuning = subject.policy.forecast, subject.policy.tuning
    only_a_line = forecast is not None and forecast.model == "linear" and tuning.mode is TuningMode.OFF
    time_ranges = (HOUR,) if only_a_line else (HOUR, DAYS)
    workload = f"{target.namespace}/{target.resource.kind}/{target.name}"
    pairs = list(zip(keys_of(subject.uid, subject.policy), subject.policy.signals, strict=True))
    return [
        PastSignal(subject, key, signal.metric, workload, each, _born(tick), each is time_ranges[-1])
        for each in time_ranges
        for key, signal in pairs
    ]


def _born(tick: ObjectTick) -> float:
    """Since when there may be demand: a workload that is made anew under its name is the same. Unknown: for ever."""
    workload, ours = tick.target.workload, tick.subject.object.metadata.creation_timestamp
    made = workload.metadata.creation_timestamp if workload is not None else None
    if made is None:
        return float("-inf")
    return min(made.timestamp(), ours.timestamp()) if ours is not None else made.timestamp()
