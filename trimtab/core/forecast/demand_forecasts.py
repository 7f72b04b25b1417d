"""DemandForecasts: from what was observed to what is expected, the one way for the operator and the simulator.

A line and the learned forecast are computed in the tick that asks for them, the learned one for all workloads at once,
from studies that are made between ticks. Models that cost more are made between two ticks: what was known at one tick
serves from the next one on, and is made again before it expires.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from math import ceil
from typing import NamedTuple

import msgspec

from trimtab.core.demand import checkpoint, demands, is_per_pod, is_running, keys_of, names_of
from trimtab.core.demand.log import DemandLog
from trimtab.core.forecast import FORECASTERS, Forecaster, forecast_rows, options_of
from trimtab.core.forecast.forecaster import FINE_S, InTick
from trimtab.core.forecast.horizon import horizon_s
from trimtab.core.forecast.learned import model as learned
from trimtab.core.forecast.learned.features import BLOCK, lead_minutes
from trimtab.core.forecast.learned.study import Study, halves_due
from trimtab.core.model import Forecast, Missing, Observation, Reason
from trimtab.core.overload import yardstick
from trimtab.policy import ForecastChoice, Policy
from trimtab.series import Frame, Series

LAST_FIFTH = 0.8  # of its validity: then a forecast is made again ...
OLDEST_S = 240.0  # ... or at this age
TRY_AGAIN_S = 60.0
BATCH_POINTS = 500_000  # of one frame: 4 MB
ROUND_POINTS = 10_000_000  # between two ticks; the rest comes after the next one
STUDY_COST, FIRST_STUDY_COST = 0.2, 10.0  # of one point of history; a workload without a study costs so many times more
SAME_SIZE = 1.25  # pods that carry more or less by less than this are as large as they were

RESTING = Missing(reason=Reason.NOT_ENOUGH_HISTORY, detail="the pods have just changed")
NOT_MADE_YET = learned.NOT_STUDIED
BEING_READ = Missing(reason=Reason.BEING_READ, detail="what the leader before knew is being read")

Answers = tuple[Forecast | Missing, ...]


class ForecastWish(NamedTuple):
    """What one object wants to know."""

    owner: str
    choice: ForecastChoice
    keys: tuple[str, ...]
    horizon_s: float
    at: float
    carries: tuple[float, ...] = ()  # of each signal: what one pod carries at 100 %, for the learned forecast


class ForecastBatch(NamedTuple):
    """Wishes alike, and what is known for all of them; of the learned forecast the newest study of each row."""

    wishes: tuple[ForecastWish, ...]
    frame: Frame
    studies: tuple[Study | None, ...] = ()

    @property
    def forecaster(self) -> Forecaster:
        return FORECASTERS[self.wishes[0].choice.model]

    def singles(self) -> Iterator[ForecastBatch]:
        """Each wish for itself."""
        first = 0
        for wish in self.wishes:
            rows = slice(first, first + len(wish.keys))
            frame = Frame(wish.keys, self.frame.start, self.frame.step_s, self.frame.values[rows])
            yield ForecastBatch((wish,), frame, self.studies[rows])
            first += len(wish.keys)


class BatchAnswers(NamedTuple):
    """One forecast for each row of a batch, or new studies, oldest first, from which each tick makes its own."""

    forecasts: Sequence[Forecast | Missing] = ()
    studies: Sequence[Sequence[Study]] = ()


class CachedForecast(NamedTuple):
    choice: ForecastChoice
    keys: tuple[str, ...]
    forecasts: Answers
    due: float


class PodCount(NamedTuple):
    """How many pods of a predictive HPA in exact mode run and are ready, and since when there are so many."""

    running: int
    ready: int
    since: float


class DemandForecasts:
    """Note each tick's observation, ask for forecasts, then let what is due be made."""

    def __init__(self) -> None:
        self.log = DemandLog()
        self._keys: dict[str, tuple[str, ...]] = {}  # by owner
        self._counts: dict[str, PodCount] = {}  # by owner, in exact mode
        self._made: dict[str, CachedForecast] = {}
        self._studies: dict[str, tuple[Study, ...]] = {}  # by key: for this half-hour and the next
        self._outdated: set[str] = set()  # keys whose past has changed since they were studied
        self._present: dict[str, ForecastWish] = {}  # wishes for a learned forecast, at the newest tick
        self._said: dict[str, tuple[ForecastWish, Answers]] = {}
        self._asked: dict[str, ForecastWish] = {}  # who waits longest comes first
        self._under_way: dict[str, ForecastWish] = {}  # handed out in a batch, and still wanted
        self._held: dict[str, ForecastWish] = {}  # of owners whose history is being read
        self._taken_over: set[str] = set()  # another leader had a forecast for these, and we have none yet

    def note(self, owner: str, policy: Policy, seen: Observation) -> None:
        """Remember what each signal demanded."""
        keys = keys_of(owner, policy)
        self._forget_keys(set(self._keys.get(owner, ())) - set(keys))
        self._keys[owner] = keys
        if is_per_pod(policy):
            self._count(owner, seen)
        for key, demand in zip(keys, demands(policy, seen), strict=False):
            if demand is not None:
                self.log.note(seen.at, key, demand)
        if policy.forecast is not None and FORECASTERS[policy.forecast.model].needs_training:
            self._present[owner] = _wish(owner, policy, policy.forecast, seen)

    def of(self, owner: str, policy: Policy, seen: Observation, reading: bool = False) -> Answers:
        """One for each signal; whatever costs more than a line is asked for and here at a later tick.

        `reading`: another leader served this owner, and its history is still being read. Then BEING_READ is the
        answer, until the first forecast from that history is made.
        """
        choice = policy.forecast
        if choice is None:
            return ()
        if FORECASTERS[choice.model].needs_training:
            return self._learned(owner, policy, choice, seen, reading)
        wish = _wish(owner, policy, choice, seen)
        if (in_tick := FORECASTERS[choice.model].in_tick) is not None:
            if reading and not choice.exact:
                return (BEING_READ,) * len(wish.keys)
            return tuple(self._in_tick(in_tick, wish)) if self._is_settled(wish) else (RESTING,) * len(wish.keys)
        wish = wish._replace(horizon_s=FINE_S * ceil(wish.horizon_s / FINE_S))  # alike are made together
        if reading:
            self._held[owner] = wish
            self._taken_over.add(owner)
            return (BEING_READ,) * len(wish.keys)
        made = self._made.get(owner)
        if made is None or (made.choice, made.keys) != (choice, wish.keys):
            self._asked[owner] = wish
            return (BEING_READ if owner in self._taken_over else NOT_MADE_YET,) * len(wish.keys)
        if seen.at >= made.due:
            self._asked[owner] = wish
        return made.forecasts

    def _learned(self, owner: str, policy: Policy, choice: ForecastChoice, seen: Observation, reading: bool) -> Answers:
        """The answers of this tick; the first who asks has those of all who have noted their demand computed."""
        said = self._said.get(owner)
        if said is None or (said[0].at, said[0].choice) != (seen.at, choice):
            wish = _wish(owner, policy, choice, seen)
            if len(wish.carries) < len(wish.keys):
                loads = [yardstick(policy, signal, seen) for signal in policy.signals]
                return (next(load for load in loads if isinstance(load, Missing)),) * len(wish.keys)
            others, self._present = self._present, {}  # should they fail together, each is asked for alone
            wishes = [each for each in (others | {owner: wish}).values() if each.at == seen.at]
            self._said |= self._say(wishes)
            answers = self._said[owner][1]
            if said is not None and (said[0].choice, said[0].keys) == (choice, wish.keys):
                answers = _or_dated(seen.at, said[1], answers)
            said = self._said[owner] = wish, answers
        if reading:
            self._taken_over.add(owner)
        elif all(key in self._studies for key in said[0].keys):  # made when all was read
            self._taken_over.discard(owner)
        if owner in self._taken_over:
            return (BEING_READ,) * len(said[0].keys)
        return said[1]

    def _say(self, wishes: Sequence[ForecastWish]) -> dict[str, tuple[ForecastWish, Answers]]:
        """Learned forecasts of many workloads at one tick; studies that are due are asked for."""
        wishes = [wish for wish in wishes if len(wish.carries) == len(wish.keys)]
        at, minute, moments = wishes[0].at, int(wishes[0].at // FINE_S), []
        for wish in wishes:
            startup_s, note = learned.startup_of(wish.horizon_s), learned.note_of(wish.horizon_s)
            valid_s = options_of(wish.choice).valid_s if wish.choice.options else learned.DEFAULT.valid_s
            for key, carries in zip(wish.keys, wish.carries, strict=True):
                known = self._study_of(key, carries, startup_s)
                if halves_due(None if key in self._outdated else known, minute):
                    self._asked[wish.owner] = wish
                half = minute // BLOCK
                present = next((one for one in reversed(self._studies.get(key, ())) if one.half <= half), None)
                newest = learned.newest_of(*self.log.newest(key, at), at)
                moments.append(learned.Moment(present if known else None, startup_s, newest, valid_s, note))
        hours = self.log.last_minutes([key for wish in wishes for key in wish.keys], minute, learned.HOUR_BEFORE)
        answers = iter(learned.say(moments, hours, at))
        return {wish.owner: (wish, tuple(next(answers) for _ in wish.keys)) for wish in wishes}

    def _study_of(self, key: str, carries: float, startup_s: float) -> Study | None:
        """The newest study of a key, if it still fits its pods."""
        studies = self._studies.get(key)
        if not studies or studies[-1].lead != lead_minutes(startup_s):
            return None
        size = carries / studies[-1].carries
        return studies[-1] if 1.0 / SAME_SIZE < size < SAME_SIZE else None

    @property
    def is_asked(self) -> bool:
        """Somebody waits for a forecast that is made in a batch."""
        return bool(self._asked or self._held)

    def history_read(self, owners: Collection[str]) -> None:
        """The first forecasts of these after a takeover can be made now."""
        for owner in self._held.keys() & owners:
            self._made.pop(owner, None)
            self._asked[owner] = self._held.pop(owner)

    def batches(self) -> Iterator[ForecastBatch]:
        """What is due, as far as one round may go; who is left out waits for the next."""
        points_left = float(ROUND_POINTS)
        for alike in _by_kind(self._asked.values()):
            for some in _parts(alike):
                if points_left <= 0:
                    return
                batch = self._batch(some)
                points_left -= _cost(batch)
                for wish in some:
                    self._asked.pop(wish.owner, None)
                    self._under_way[wish.owner] = wish
                yield batch

    def put(self, batch: ForecastBatch, answers: BatchAnswers) -> None:
        """What `make` found for a batch; an object that has gone meanwhile, or begun anew, wants no answer."""
        wanted = {wish.owner: wish.keys for wish in batch.wishes if self._under_way.get(wish.owner) is wish}
        known = {key for keys in wanted.values() for key in keys if key in self.log}
        for key, before, studies in zip(batch.frame.names, batch.studies, answers.studies, strict=False):
            if key in known and studies:
                self._studies[key] = (*((before,) if before else ()), *studies)[-2:]
        rows = iter(answers.forecasts)
        for wish in batch.wishes:
            if wish.owner in wanted:
                del self._under_way[wish.owner]
            if not answers.forecasts:
                continue
            forecasts = tuple(next(rows) for _ in wish.keys)
            if wish.owner in wanted and self._keys.get(wish.owner) == wish.keys:
                made = self._made.get(wish.owner)
                if made is not None and (made.choice, made.keys) == (wish.choice, wish.keys):
                    forecasts = _or_dated(wish.at, made.forecasts, forecasts)
                due = min((_due(wish, forecast) for forecast in forecasts), default=wish.at)
                self._taken_over.discard(wish.owner)
                self._made[wish.owner] = CachedForecast(wish.choice, wish.keys, forecasts, due)

    def make_due(self) -> None:
        """All of it here and now, for who has no other ticks to keep."""
        for batch in self.batches():
            self.put(batch, make(batch))

    def restore(self, owner: str, policy: Policy, key: str, past: Series, step_s: float) -> None:
        """The past of one signal, which somebody else remembered; forecasts are made again at the next tick."""
        self._keys.setdefault(owner, keys_of(owner, policy))
        if key in self._keys[owner] and self.log.restore(key, past, step_s):  # else it was edited meanwhile, or known
            self._outdated.add(key)  # there is more to learn from
            self._refresh(owner)

    def save(self, owner: str, policy: Policy, at: float) -> bytes:
        """What a new operator needs to go on, in 20 KB at most."""
        return checkpoint.save(self.log, dict(zip(names_of(policy), keys_of(owner, policy), strict=True)), at)

    def load(self, owner: str, policy: Policy, data: bytes | checkpoint.RecentDemand) -> None:
        """What `save` wrote or `recent_of` gave; InvalidInput says what is wrong with it."""
        keys = keys_of(owner, policy)
        if self._keys.setdefault(owner, keys) == keys:
            named = dict(zip(names_of(policy), keys, strict=True))
            if isinstance(data, bytes):
                checkpoint.load(self.log, named, data)
            else:
                checkpoint.load_recent(self.log, named, data)
            self._outdated.update(keys)
            self._refresh(owner)

    def recent_of(self, owner: str, policy: Policy, at: float, *startups: Sequence[float]) -> checkpoint.RecentDemand:
        """What another leader needs to go on at once."""
        keys = dict(zip(names_of(policy), keys_of(owner, policy), strict=True))
        return checkpoint.recent_of(self.log, keys, at, *startups)

    def clock_set(self) -> None:
        """What was made and learned bears dates of another clock."""
        self._studies.clear()
        self._said.clear()
        for owner in self._made:
            self._refresh(owner)

    def _refresh(self, owner: str) -> None:
        if owner in self._made:
            self._made[owner] = self._made[owner]._replace(due=float("-inf"))

    def forget_but(self, owners: set[str]) -> None:
        """All but these are gone."""
        for owner in self._keys.keys() - owners:
            self.forget(owner)

    def forget(self, owner: str) -> None:
        self._forget_keys(self._keys.pop(owner, ()))
        self._counts.pop(owner, None)
        self._made.pop(owner, None)
        for known in (self._asked, self._under_way, self._present, self._said, self._held):
            known.pop(owner, None)
        self._taken_over.discard(owner)

    def _forget_keys(self, keys: Collection[str]) -> None:
        self.log.forget(keys)
        self._outdated.difference_update(keys)
        for key in keys:
            self._studies.pop(key, None)

    def _count(self, owner: str, seen: Observation) -> None:
        known = self._counts.get(owner)
        running, ready = sum(map(is_running, seen.pods)), sum(1 for pod in seen.pods if pod.ready)
        if known is None or (known.running, known.ready) != (running, ready):
            self._counts[owner] = PodCount(running, ready, seen.at)

    def _is_settled(self, wish: ForecastWish) -> bool:
        """Return whether the utilization of a pod has had time to follow the number of pods.

        A line over two numbers of pods would take our own scale-down for a rising load, and never settle.
        """
        counted = self._counts.get(wish.owner)
        return counted is None or wish.at >= counted.since + options_of(wish.choice).rest_s

    def _in_tick(self, model: InTick, wish: ForecastWish) -> list[Forecast | Missing]:
        options = options_of(wish.choice)
        span_s = model.span_s(wish.horizon_s, options)
        recent = [self.log.recent(key, wish.at, span_s) for key in wish.keys]
        return model.forecast(recent, wish.horizon_s, wish.at, options)

    def _batch(self, wishes: tuple[ForecastWish, ...]) -> ForecastBatch:
        forecaster = FORECASTERS[wishes[0].choice.model]
        keys, studies = [key for wish in wishes for key in wish.keys], list[Study | None]()
        if forecaster.needs_training:
            for wish in wishes:
                startup_s = learned.startup_of(wish.horizon_s)
                for key, carries in zip(wish.keys, wish.carries, strict=True):
                    studies.append(None if key in self._outdated else self._study_of(key, carries, startup_s))
            self._outdated.difference_update(keys)
        frame = self.log.frame(keys, wishes[0].at, forecaster.bin_s, forecaster.keep_s)
        return ForecastBatch(wishes, frame, tuple(studies))


def make(batch: ForecastBatch) -> BatchAnswers:
    """The answers to a batch; it touches nothing else, so any thread may do it."""
    first = batch.wishes[0]
    if not batch.forecaster.needs_training:
        return BatchAnswers(forecast_rows(first.choice, batch.frame, first.horizon_s, first.at))
    rows = zip(batch.frame.values, batch.studies, strict=True)
    minute = int(first.at // FINE_S)
    begin, found = round(batch.frame.start / FINE_S), []
    for wish in batch.wishes:
        startup_s = learned.startup_of(wish.horizon_s)
        for carries in wish.carries:
            values, known = next(rows)
            halves = halves_due(known, minute)
            found.append(learned.study(values[: minute - begin], begin, carries, startup_s, known, halves))
    return BatchAnswers(studies=found)


def _wish(owner: str, policy: Policy, choice: ForecastChoice, seen: Observation) -> ForecastWish:
    """What an object wants to know now; no loads where what one pod carries is unknown or does not matter."""
    wish = ForecastWish(owner, choice, keys_of(owner, policy), horizon_s(choice, seen), seen.at)
    if not FORECASTERS[choice.model].needs_training:
        return wish
    loads = [yardstick(policy, signal, seen) for signal in policy.signals]
    return wish._replace(carries=tuple(load.request for load in loads if not isinstance(load, Missing)))


def _or_dated(at: float, before: Answers, found: Answers) -> Answers:
    """While samples are lost nothing new can be made: what was made before lasts until its date."""
    return tuple(
        old
        if isinstance(new, Missing) and new.reason is Reason.STALE and isinstance(old, Forecast) and at < old.expires_at
        else new
        for new, old in zip(found, before, strict=True)
    )


def _due(wish: ForecastWish, forecast: Forecast | Missing) -> float:
    """When to make it again."""
    if isinstance(forecast, Missing):
        return wish.at + TRY_AGAIN_S
    return wish.at + min(OLDEST_S, LAST_FIFTH * (forecast.expires_at - wish.at))


def _cost(batch: ForecastBatch) -> float:
    size = batch.frame.values.size * batch.forecaster.cost
    if not batch.forecaster.needs_training:
        return size
    new = sum(study is None for study in batch.studies) / max(1, len(batch.studies))
    return size * STUDY_COST * (1.0 + FIRST_STUDY_COST * new)


def _by_kind(wishes: Iterable[ForecastWish]) -> list[list[ForecastWish]]:
    """Those that one frame and one call of the model can answer; studies are made one by one."""
    kinds: dict[tuple[float, bytes, float], list[ForecastWish]] = {}
    for wish in wishes:
        horizon = 0.0 if FORECASTERS[wish.choice.model].needs_training else wish.horizon_s
        kinds.setdefault((wish.at, msgspec.msgpack.encode(wish.choice), horizon), []).append(wish)
    return list(kinds.values())


def _parts(alike: list[ForecastWish]) -> Iterator[tuple[ForecastWish, ...]]:
    """As many as fit into the memory of one batch."""
    forecaster = FORECASTERS[alike[0].choice.model]
    columns = round(forecaster.keep_s / forecaster.bin_s)
    size = max(1, BATCH_POINTS // (max(1, len(alike[0].keys)) * columns))
    for first in range(0, len(alike), size):
        yield tuple(alike[first : first + size])
