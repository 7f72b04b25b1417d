"""DemandForecasts: from what was observed to what is expected, the one way for the operator and the simulator.

A line is drawn in the tick that asks for it. Models that cost more are made between two ticks: what was known at one
tick serves from the next one on, and is made again before it expires.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from math import ceil
from typing import NamedTuple

import msgspec
import numpy as np

from trimtab.core.demand import checkpoint, demands, is_per_pod, is_running, keys_of, names_of
from trimtab.core.demand.log import DemandLog
from trimtab.core.forecast import FORECASTERS, Forecaster, forecast_rows, options_of
from trimtab.core.forecast.forecaster import FINE_S, InTick
from trimtab.core.forecast.horizon import horizon_s
from trimtab.core.forecast.learned import model as learned
from trimtab.core.forecast.learned.features import looked_at
from trimtab.core.forecast.learned.study import Study, due
from trimtab.core.model import Forecast, Missing, Observation, Reason
from trimtab.core.overload import yardstick
from trimtab.policy import ForecastChoice, Policy
from trimtab.series import Floats, Frame, Series

LAST_FIFTH = 0.8  # of its validity: then a forecast is made again ...
OLDEST_S = 240.0  # ... or at this age
OLDEST_LEARNED = 0.2  # of its horizon, but not sooner than after a minute: it looks at the newest ones
TRY_AGAIN_S = 60.0
LEARN_AGAIN_S = 600.0  # where there is nothing to learn from
BATCH_POINTS = 500_000  # of one frame: 4 MB
ROUND_POINTS = 10_000_000  # between two ticks; the rest comes after the next one
FIRST_STUDY_COST = 10.0  # a workload without a study costs so many times more

NO_GLIMPSE: Floats = np.empty((0, 0))
RESTING = Missing(reason=Reason.NOT_ENOUGH_HISTORY, detail="the pods have just changed")
NOT_MADE_YET = Missing(reason=Reason.NOT_ENOUGH_HISTORY, detail="the first forecast is being made")
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
    """Wishes alike, and what is known for all of them; of the learned forecast what has been learned, row by row.

    Where there is nothing new to learn, `glimpse` has the few minutes that are looked at, and the frame is empty.
    """

    wishes: tuple[ForecastWish, ...]
    frame: Frame
    studies: tuple[Study | None, ...] = ()
    glimpse: Floats = NO_GLIMPSE

    @property
    def forecaster(self) -> Forecaster:
        return FORECASTERS[self.wishes[0].choice.model]

    def singles(self) -> Iterator[ForecastBatch]:
        """Each wish for itself."""
        first = 0
        for wish in self.wishes:
            rows = slice(first, first + len(wish.keys))
            frame = Frame(wish.keys, self.frame.start, self.frame.step_s, self.frame.values[rows])
            yield ForecastBatch((wish,), frame, self.studies[rows], self.glimpse[rows])
            first += len(wish.keys)


class BatchAnswers(NamedTuple):
    """One for each row of a batch, and what was learned on the way."""

    forecasts: Sequence[Forecast | Missing]
    studies: Sequence[Study | None] = ()


class Made(NamedTuple):
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
        self._made: dict[str, Made] = {}
        self._studies: dict[str, Study] = {}  # by key
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

    def of(self, owner: str, policy: Policy, seen: Observation, reading: bool = False) -> Answers:
        """One for each signal; whatever costs more than a line is asked for and here at a later tick.

        `reading`: another leader served this owner, and its history is still being read. Then BEING_READ is the
        answer, until the first forecast from that history is made.
        """
        choice = policy.forecast
        if choice is None:
            return ()
        wish = ForecastWish(owner, choice, keys_of(owner, policy), horizon_s(choice, seen), seen.at)
        if (in_tick := FORECASTERS[choice.model].in_tick) is not None:
            if reading and not choice.exact:
                return (BEING_READ,) * len(wish.keys)
            return tuple(self._in_tick(in_tick, wish)) if self._is_settled(wish) else (RESTING,) * len(wish.keys)
        if FORECASTERS[choice.model].needs_training:
            carries = [yardstick(policy, signal, seen) for signal in policy.signals]
            if unknown := next((missing for missing in carries if isinstance(missing, Missing)), None):
                return (unknown,) * len(wish.keys)
            wish = wish._replace(carries=tuple(each.request for each in carries if not isinstance(each, Missing)))
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
        for alike in _by_kind(self._asked.values(), self._studies_due):
            for some in _parts(alike, _columns(alike[0], self._studies_due(alike[0]))):
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
        for key, study in zip(batch.frame.names, answers.studies, strict=False):
            if key in known:
                self._learned(key, study)
        rows = iter(answers.forecasts)
        for wish in batch.wishes:
            forecasts = self._or_dated(wish, tuple(next(rows) for _ in wish.keys))
            if wish.owner in wanted and self._keys.get(wish.owner) == wish.keys:
                due = min((self._due(wish, *each) for each in zip(wish.keys, forecasts, strict=True)), default=wish.at)
                self._taken_over.discard(wish.owner)
                self._made[wish.owner] = Made(wish.choice, wish.keys, forecasts, due)

    def _or_dated(self, wish: ForecastWish, found: Answers) -> Answers:
        """While samples are lost nothing new can be made: what was made before lasts until its date."""
        made = self._made.get(wish.owner)
        if made is None or (made.choice, made.keys) != (wish.choice, wish.keys):
            return found
        return tuple(
            old
            if isinstance(new, Missing)
            and new.reason is Reason.STALE
            and isinstance(old, Forecast)
            and wish.at < old.expires_at
            else new
            for new, old in zip(found, made.forecasts, strict=True)
        )

    def make_due(self) -> None:
        """All of it here and now, for who has no other ticks to keep."""
        for batch in self.batches():
            self.put(batch, make(batch))

    def restore(self, owner: str, policy: Policy, key: str, past: Series, step_s: float) -> None:
        """The past of one signal, which somebody else remembered; forecasts are made again at the next tick."""
        self._keys.setdefault(owner, keys_of(owner, policy))
        if key in self._keys[owner] and self.log.restore(key, past, step_s):  # else it was edited meanwhile, or known
            self._studies.pop(key, None)  # there is more to learn from
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
            for key in keys:
                self._studies.pop(key, None)
            self._refresh(owner)

    def recent_of(self, owner: str, policy: Policy, at: float, *startups: Sequence[float]) -> checkpoint.RecentDemand:
        """What another leader needs to go on at once."""
        keys = dict(zip(names_of(policy), keys_of(owner, policy), strict=True))
        return checkpoint.recent_of(self.log, keys, at, *startups)

    def clock_set(self) -> None:
        """What was made and learned bears dates of another clock."""
        self._studies.clear()
        for owner in self._made:
            self._refresh(owner)

    def _due(self, wish: ForecastWish, key: str, forecast: Forecast | Missing) -> float:
        """When to make it again."""
        learned_one = FORECASTERS[wish.choice.model].needs_training
        if isinstance(forecast, Missing):
            return wish.at + (LEARN_AGAIN_S if learned_one and key not in self._studies else TRY_AGAIN_S)
        oldest_s = max(FINE_S, OLDEST_LEARNED * wish.horizon_s) if learned_one else OLDEST_S
        return wish.at + min(oldest_s, LAST_FIFTH * (forecast.expires_at - wish.at))

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
        self._asked.pop(owner, None)
        self._under_way.pop(owner, None)
        self._held.pop(owner, None)
        self._taken_over.discard(owner)

    def _forget_keys(self, keys: Collection[str]) -> None:
        self.log.forget(keys)
        for key in keys:
            self._studies.pop(key, None)

    def _learned(self, key: str, study: Study | None) -> None:
        if study is None:
            self._studies.pop(key, None)
        else:
            self._studies[key] = study

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

    def _studies_due(self, wish: ForecastWish) -> bool:
        if not FORECASTERS[wish.choice.model].needs_training:
            return False
        end = int(wish.at // FINE_S) + 1
        return any(due(self._studies.get(key), end, learned.lead_of(wish.horizon_s)) for key in wish.keys)

    def _batch(self, wishes: tuple[ForecastWish, ...]) -> ForecastBatch:
        forecaster = FORECASTERS[wishes[0].choice.model]
        keys = [key for wish in wishes for key in wish.keys]
        if forecaster.needs_training and not self._studies_due(wishes[0]):
            end = int(wishes[0].at // FINE_S) + 1
            glimpse = self.log.at_minutes(keys, end + looked_at(learned.lead_of(wishes[0].horizon_s)))
            empty = Frame(tuple(keys), end * FINE_S, FINE_S, np.empty((len(keys), 0)))
            return ForecastBatch(wishes, empty, tuple(self._studies[key] for key in keys), glimpse)
        frame = self.log.frame(keys, wishes[0].at, forecaster.bin_s, forecaster.keep_s)
        studies = tuple(self._studies.get(key) for key in keys) if forecaster.needs_training else ()
        return ForecastBatch(wishes, frame, studies)


def make(batch: ForecastBatch) -> BatchAnswers:
    """The answers to a batch; it touches nothing else, so any thread may do it."""
    first = batch.wishes[0]
    if not batch.forecaster.needs_training:
        return BatchAnswers(forecast_rows(first.choice, batch.frame, first.horizon_s, first.at))
    carries = np.array([each for wish in batch.wishes for each in wish.carries])
    options = options_of(first.choice)
    if batch.glimpse.size:
        known = [study for study in batch.studies if study is not None]
        return BatchAnswers(learned.say(batch.glimpse, first.horizon_s, first.at, known, carries, options))
    return BatchAnswers(*learned.learn(batch.frame, first.horizon_s, first.at, batch.studies, carries, options))


def _cost(batch: ForecastBatch) -> float:
    new = sum(study is None for study in batch.studies) / max(1, len(batch.studies))
    return max(batch.frame.values.size, batch.glimpse.size) * batch.forecaster.cost * (1.0 + FIRST_STUDY_COST * new)


def _by_kind(wishes: Iterable[ForecastWish], studies: Callable[[ForecastWish], bool]) -> list[list[ForecastWish]]:
    """Those that one frame and one call of the model can answer."""
    kinds: dict[tuple[float, bytes, float, bool], list[ForecastWish]] = {}
    for wish in wishes:
        kind = wish.at, msgspec.msgpack.encode(wish.choice), wish.horizon_s, studies(wish)
        kinds.setdefault(kind, []).append(wish)
    return list(kinds.values())


def _columns(wish: ForecastWish, studies: bool) -> int:
    forecaster = FORECASTERS[wish.choice.model]
    if forecaster.needs_training and not studies:
        return len(looked_at(learned.lead_of(wish.horizon_s)))
    return round(forecaster.keep_s / forecaster.bin_s)


def _parts(alike: list[ForecastWish], columns: int) -> Iterator[tuple[ForecastWish, ...]]:
    """As many as fit into the memory of one batch."""
    size = max(1, BATCH_POINTS // (max(1, len(alike[0].keys)) * columns))
    for first in range(0, len(alike), size):
        yield tuple(alike[first : first + size])
