"""DemandForecasts: from what was observed to what is expected, the one way for the operator and the simulator.

A line is drawn in the tick that asks for it. Models that cost more are made between two ticks: what was known at one
tick serves from the next one on, and is made again before it expires.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from typing import NamedTuple
from zlib import crc32

import msgspec

from trimtab.core.demand import checkpoint
from trimtab.core.demand.log import DemandLog
from trimtab.core.demand.total import demands, is_per_pod
from trimtab.core.forecast import forecast_rows, linear, options_of
from trimtab.core.forecast.horizon import horizon_s
from trimtab.core.model import Forecast, Missing, Observation, Reason
from trimtab.policy import ForecastChoice, Policy, TuningMode
from trimtab.series import Frame, Series

FINE_S, COARSE_S = 60.0, 300.0
BIN_S = {"percentile": FINE_S}  # a percentile of means is not the mean of percentiles; the others look at cycles
KEEP_S = {"holtWinters": 4 * 86400.0}  # PHPA keeps four seasons
LAST_FIFTH = 0.8  # of its validity: then a forecast is made again ...
OLDEST_S = 240.0  # ... or at this age
TRY_AGAIN_S = 60.0
BATCH_POINTS = 500_000  # of one frame: 4 MB
ROUND_POINTS = 10_000_000  # between two ticks; the rest comes after the next one
COST = {"percentile": 0.2, "seasonal": 1.0, "spectral": 2.0, "dsp": 4.0, "holtWinters": 4.0}  # for one point

NOT_MADE_YET = Missing(reason=Reason.NOT_ENOUGH_HISTORY, detail="the first forecast is being made")

Answers = tuple[Forecast | Missing, ...]


class ForecastWish(NamedTuple):
    """What one object wants to know."""

    owner: str
    choice: ForecastChoice
    keys: tuple[str, ...]
    horizon_s: float
    at: float


class ForecastBatch(NamedTuple):
    """Wishes alike, and what is known for all of them."""

    wishes: tuple[ForecastWish, ...]
    frame: Frame

    def singles(self) -> Iterator[ForecastBatch]:
        """Each wish for itself."""
        first = 0
        for wish in self.wishes:
            rows = self.frame.values[first : first + len(wish.keys)]
            yield ForecastBatch((wish,), Frame(wish.keys, self.frame.start, self.frame.step_s, rows))
            first += len(wish.keys)


class Made(NamedTuple):
    choice: ForecastChoice
    keys: tuple[str, ...]
    forecasts: Answers
    due: float


class DemandForecasts:
    """Note each tick's observation, ask for forecasts, then let what is due be made."""

    def __init__(self) -> None:
        self.log = DemandLog()
        self._keys: dict[str, tuple[str, ...]] = {}  # by owner
        self._made: dict[str, Made] = {}
        self._asked: dict[str, ForecastWish] = {}  # who waits longest comes first

    def note(self, owner: str, policy: Policy, seen: Observation) -> None:
        """Remember what each signal demanded."""
        keys = keys_of(owner, policy)
        self.log.forget(set(self._keys.get(owner, ())) - set(keys))
        self._keys[owner] = keys
        for key, demand in zip(keys, demands(policy, seen), strict=False):
            if demand is not None:
                self.log.note(seen.at, key, demand)

    def of(self, owner: str, policy: Policy, seen: Observation) -> Answers:
        """One for each signal; whatever costs more than a line is asked for and here at a later tick."""
        choice = policy.forecast
        if choice is None:
            return ()
        wish = ForecastWish(owner, choice, keys_of(owner, policy), horizon_s(choice, seen), seen.at)
        if choice.model == "linear":
            return tuple(self._lines(wish))
        wish = wish._replace(horizon_s=FINE_S * ceil(wish.horizon_s / FINE_S))  # alike are made together
        made = self._made.get(owner)
        if made is None or (made.choice, made.keys) != (choice, wish.keys):
            self._asked[owner] = wish
            return (NOT_MADE_YET,) * len(wish.keys)
        if seen.at >= made.due:
            self._asked[owner] = wish
        return made.forecasts

    def batches(self) -> Iterator[ForecastBatch]:
        """What is due, as far as one round may go; who is left out waits for the next."""
        points_left = float(ROUND_POINTS)
        for alike in _by_kind(self._asked.values()):
            for some in _parts(alike):
                if points_left <= 0:
                    return
                frame = self._frame(some)
                points_left -= frame.values.size * COST[some[0].choice.model]
                for wish in some:
                    self._asked.pop(wish.owner, None)
                yield ForecastBatch(some, frame)

    def put(self, batch: ForecastBatch, answers: Sequence[Forecast | Missing]) -> None:
        """What `make` found for a batch; an object that has gone meanwhile wants no answer."""
        rows = iter(answers)
        for wish in batch.wishes:
            forecasts = tuple(next(rows) for _ in wish.keys)
            if self._keys.get(wish.owner) == wish.keys:
                due = min((_due(forecast, wish.at) for forecast in forecasts), default=wish.at)
                self._made[wish.owner] = Made(wish.choice, wish.keys, forecasts, due)

    def make_due(self) -> None:
        """All of it here and now, for who has no other ticks to keep."""
        for batch in self.batches():
            self.put(batch, make(batch))

    def restore(self, owner: str, policy: Policy, key: str, past: Series, step_s: float) -> None:
        """The past of one signal, which somebody else remembered; forecasts are made again at the next tick."""
        self._keys.setdefault(owner, keys_of(owner, policy))
        if key not in self._keys[owner]:  # it was edited meanwhile
            return
        self.log.restore(key, past, step_s)
        self._refresh(owner)

    def save(self, owner: str, policy: Policy, at: float) -> bytes:
        """What a new operator needs to go on, in 20 KB at most."""
        return checkpoint.save(self.log, dict(zip(names_of(policy), keys_of(owner, policy), strict=True)), at)

    def load(self, owner: str, policy: Policy, data: bytes) -> None:
        """What `save` wrote; InvalidInput says what is wrong with it."""
        keys = keys_of(owner, policy)
        if self._keys.setdefault(owner, keys) == keys:
            checkpoint.load(self.log, dict(zip(names_of(policy), keys, strict=True)), data)
            self._refresh(owner)

    def clock_set(self) -> None:
        """What was made bears dates of another clock."""
        for owner in self._made:
            self._refresh(owner)

    def _refresh(self, owner: str) -> None:
        if owner in self._made:
            self._made[owner] = self._made[owner]._replace(due=float("-inf"))

    def forget_but(self, owners: set[str]) -> None:
        """All but these are gone."""
        for owner in self._keys.keys() - owners:
            self.log.forget(self._keys.pop(owner))
            self._made.pop(owner, None)
            self._asked.pop(owner, None)

    def _lines(self, wish: ForecastWish) -> list[Forecast | Missing]:
        options = options_of(wish.choice)
        span_s = linear.MOST_WINDOW_S if options.history_size else linear.window_s(wish.horizon_s, options)
        recent = [self.log.recent(key, wish.at, span_s) for key in wish.keys]
        return linear.forecast_recent(recent, wish.horizon_s, wish.at, options)

    def _frame(self, wishes: Sequence[ForecastWish]) -> Frame:
        model = wishes[0].choice.model
        frame = self.log.frame(_all_keys(wishes), wishes[0].at, BIN_S.get(model, COARSE_S))
        return frame.tail(round(KEEP_S[model] / frame.step_s)) if model in KEEP_S else frame


def make(batch: ForecastBatch) -> list[Forecast | Missing]:
    """The answers to a batch; it touches nothing else, so any thread may do it."""
    first = batch.wishes[0]
    return forecast_rows(first.choice, batch.frame, first.horizon_s, first.at)


def remembers_demand(policy: Policy) -> bool:
    """Whether somebody will ask for its past: a forecast, or tuning."""
    return policy.forecast is not None or policy.tuning.mode is not TuningMode.OFF


def keys_of(owner: str, policy: Policy) -> tuple[str, ...]:
    return tuple(f"{owner}/{name}" for name in names_of(policy))


def names_of(policy: Policy) -> tuple[str, ...]:
    """A signal that is edited to measure something else is another one: its past is not mixed with the old one's."""
    per_pod = is_per_pod(policy)
    marks = (crc32(msgspec.msgpack.encode((signal.metric, per_pod))) for signal in policy.signals)
    return tuple(f"{index}-{mark:08x}" for index, mark in enumerate(marks))


def _by_kind(wishes: Iterable[ForecastWish]) -> list[list[ForecastWish]]:
    """Those that one frame and one call of the model can answer."""
    kinds: dict[tuple[float, bytes, float], list[ForecastWish]] = {}
    for wish in wishes:
        kind = wish.at, msgspec.msgpack.encode(wish.choice), wish.horizon_s
        kinds.setdefault(kind, []).append(wish)
    return list(kinds.values())


def _all_keys(wishes: Sequence[ForecastWish]) -> list[str]:
    return [key for wish in wishes for key in wish.keys]


def _parts(alike: list[ForecastWish]) -> Iterator[tuple[ForecastWish, ...]]:
    """As many as fit into the memory of one batch."""
    points = max(1, len(alike[0].keys)) * round(15 * 86400.0 / BIN_S.get(alike[0].choice.model, COARSE_S))
    size = max(1, BATCH_POINTS // points)
    for first in range(0, len(alike), size):
        yield tuple(alike[first : first + size])


def _due(forecast: Forecast | Missing, at: float) -> float:
    if isinstance(forecast, Missing):
        return at + TRY_AGAIN_S
    return at + min(OLDEST_S, LAST_FIFTH * (forecast.expires_at - at))
