"""search(): the best settings for one case, from its own days, and the evidence for them.

Every candidate is simulated on every day (load does not depend on how it is served) and judged by the price of the
case, newer days weighing more; the present settings stay unless others are 2 % better. Candidates that cannot win are
given up early, which changes no choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from trimtab.core.explain.tuning import settings_text
from trimtab.core.figures import Figures, JudgedSettings
from trimtab.core.tuned import by_percent, by_target, check_tunable, settings_of, tunable, tuned
from trimtab.errors import InvalidPolicy, NotEnoughData
from trimtab.kinds.cron import is_weekend
from trimtab.kinds.objective import bridged
from trimtab.policy import SLO, Backlog, Bridge, Policy, PricedBand, Tolerance, TotalAverage, TunedSettings
from trimtab.series import Floats
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.cost_limit import UNLIMITED, CostLimit, cost_limit
from trimtab.sim.grid import DAY_STEPS
from trimtab.sim.prices import START_PRICE
from trimtab.sim.program import uncovered
from trimtab.sim.score import Days
from trimtab.sim.simulate import why_slow
from trimtab.tune.case import Case, quick_form, quick_notes
from trimtab.tune.rolling_choice import GAIN, SILENT_DAYS, choose, day_weights, faded, picked

TOLERANCES = (0.0, 0.05, 0.1)
WINDOWS_S = (0.0, 60.0, 300.0, 900.0, 1800.0)
TARGETS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8)  # where the level is 0.8; elsewhere the same shares of it
QUEUE_WINDOWS_S, QUEUE_PERCENTS = (60.0, 300.0, 1800.0), (50.0, 60.0, 70.0, 80.0)
CEILINGS = (0.65, 0.70, 0.75, 0.78)  # of a bridge that is written
OLDEST_S = 60.0  # what pods report may be this old: two scrapes of metrics-server and one of a kubelet
# Prices from 1 to 128 for a start, two to sixteen times that for keeping.
BANDS = tuple(PricedBand(start=2.0**start, keep=2.0 ** (start + more)) for start in range(8) for more in range(1, 5))
LEAST_DAYS = 2
WEEK_DAYS = 7
NOISE = 1e-9
SHORT_MOVE = 0.1  # of what a pod carries: how far a target moves before a week is known
CAUTIOUS = (
    "the history is shorter than a week or has no weekend: targets move by at most 0.10, and no day may have more"
    " violations than now"
)
SIMPLER_IS_WRONG = "other settings are better in the quicker form only, not in a backtest"


class Space(NamedTuple):
    """What may take the place of the present settings: each of `bare` alone and with a bridge at each ceiling.

    `base` is the policy that settings are put into: as it is written, with a bridge where one may be added.
    """

    base: Policy
    present: TunedSettings
    bare: tuple[TunedSettings, ...]
    ceilings: tuple[float, ...] = ()
    may_lose_tolerance: bool = False  # an API server may drop `behavior.*.tolerance` of this kind

    @property
    def size(self) -> int:
        return len(self.bare) * (1 + len(self.ceilings))


class Choice(NamedTuple):
    """The best settings and how they would have done. `before` and `after` are over all days, `rolling` over the days
    that were chosen for by earlier ones only, `held` is the present policy on those same days."""

    was: TunedSettings
    now: TunedSettings
    policy: Policy  # with the best settings
    before: Figures
    after: Figures
    daily_cost: Floats  # with the best settings, in pod-steps
    optima_above_the_floor: Floats
    days: int
    days_won: tuple[int, ...]  # days, counted from 0, on which the best settings would have been better
    notes: tuple[str, ...]
    held: Figures | None = None
    rolling: Figures | None = None
    without_tolerance: JudgedSettings | None = None  # the best where an API server drops the tolerance

    @property
    def changed(self) -> bool:
        return self.now != self.was


def reactive_settings(policy: Policy, pods: ClusterSpec) -> tuple[TunedSettings, ...]:
    """Target, tolerance and window, 135 in the order that breaks ties, within the limits of the policy's tuning.

    Right after a decrease the pods that remain still report what they had before it, as if more could go; a window
    that is longer than such reports are old does not follow them.
    """
    signal, limits = tunable(policy), policy.tuning.limits
    if isinstance(signal, Backlog):
        return _queue_settings(policy)
    percent = by_percent(signal)
    per_share = (100.0 if percent else pods.pod_capacity) * pods.level_share / SLO
    least_s = 0.0 if isinstance(signal, TotalAverage) else OLDEST_S
    every = [
        TunedSettings(target=_whole(share * per_share, percent), tolerance=tolerance, window_s=window_s)
        for tolerance, window_s, share in product(TOLERANCES, WINDOWS_S, TARGETS)
    ]
    return tuple(
        settings
        for settings in every
        if settings.window_s >= least_s
        and settings.target in limits.target
        and settings.tolerance in limits.tolerance
        and settings.window_s in limits.window_s
    )


def _whole(target: float, percent: bool) -> float:
    return float(round(target)) if percent else float(f"{target:.6g}")


def _queue_settings(policy: Policy) -> tuple[TunedSettings, ...]:
    """How busy pods are meant to be, and the window: few, for a queue is simulated step by step."""
    present, limits = settings_of(policy), policy.tuning.limits
    return tuple(
        TunedSettings(target=percent, tolerance=present.tolerance, window_s=window_s)
        for window_s, percent in product(QUEUE_WINDOWS_S, QUEUE_PERCENTS)
        if percent in limits.target and window_s in limits.window_s
    )


def space_of(
    policy: Policy,
    pods: ClusterSpec,
    bridge: Bridge | None = None,
    ceilings: Sequence[float] = (),
    bands: Sequence[PricedBand | None] = (None,),
    present: TunedSettings | None = None,
) -> Space:
    """The settings of a policy: by its target, and where an objective is written by its price (None: the written one).

    `bridge` is what may be added with these ceilings; without them the space has the policy's own, if it has one.
    """
    base = policy
    if policy.bridge is None and bridge is not None:
        base = replace(policy, bridge=bridge, objective=policy.objective and bridged(policy.objective))
    present = present or settings_of(policy)
    own = replace(settings_of(policy), ceiling=None, priced=True)
    priced = [replace(own, band=band) for band in bands] if policy.objective else []
    bare = (*priced, *reactive_settings(by_target(policy), pods))
    written = (policy.bridge.ceiling,) if policy.bridge else ()
    return Space(base, present, bare, tuple(dict.fromkeys((*written, *ceilings))))


class Race:
    """The best so far, which whoever comes later has to beat; the present settings by 2 %."""

    def __init__(self, price: float, present: TunedSettings, days: Days, cautious: bool = False, told: int = 0) -> None:
        """Days before `told` say nothing of an objective and count for nobody."""
        self.settings, self.days, self._price, self._told = present, days, price, told
        self._most_violating = days.violating + NOISE if cautious else None
        self._least = (1.0 - GAIN) * self._score(days)

    def enter(self, settings: TunedSettings, days: Days) -> None:
        if self._most_violating is not None and (days.violating > self._most_violating).any():
            return
        if (reached := self._score(days)) < self._least:
            self.settings, self.days, self._least = settings, days, reached

    def may_win(self, bare: Days) -> bool:
        """Whether a bridge could make enough of these: it hardly changes how many pods there are."""
        cost: Floats = bare.pods + START_PRICE * bare.starts
        return float(faded(cost[None, self._told :])[0]) < self._least

    def limit(self, level: float) -> CostLimit:
        """What pods and starts may cost whoever comes now."""
        load = self.days.load
        weights = day_weights(len(load), self._told)
        return cost_limit(self._least, weights, load, DAY_STEPS, level, self._price)

    def _score(self, days: Days) -> float:
        return float(faded(days.j(self._price)[None, self._told :])[0])


class Trial:
    """The settings of one space on one case, each simulated once."""

    def __init__(
        self, case: Case, space: Space, least_days: int = LEAST_DAYS, careful: bool = True, stepwise: bool = False
    ) -> None:
        """`stepwise`: take a policy that the compiled engine does not cover, though that takes minutes."""
        if case.demand.days < least_days:
            name, days = case.demand.name, case.demand.days
            raise NotEnoughData(f"{name}: {days:.1f} days of history; tuning needs {least_days} whole days")
        check_tunable(case.policy)
        self.stepped = "" if case.pods.queue else uncovered(quick_form(by_target(space.base), case.pods))
        fault = _at_fault(case.policy)
        if self.stepped and (fault or not stepwise):
            raise InvalidPolicy(
                *(fault or ("policy", type(case.policy).__name__)), f"it cannot be tuned: {self.stepped}"
            )
        self.case, self.space = case.last_whole_days(), space
        self.cautious = careful and is_short(self.case)
        self.days: dict[TunedSettings, Days] = {}

    def run(
        self,
        settings: Iterable[TunedSettings],
        done: Callable[[int], None] = lambda count: None,
        within: CostLimit = UNLIMITED,
    ) -> list[tuple[TunedSettings, Days]]:
        """The days of these settings, without those that were given up."""
        wanted = list(settings)
        missing = [each for each in wanted if each not in self.days]
        simulated = self.case.days([tuned(self.space.base, each) for each in missing], done, within)
        self.days |= {each: days for each, days in zip(missing, simulated, strict=True) if days is not None}
        return [(each, self.days[each]) for each in wanted if each in self.days]

    @property
    def told(self) -> int:
        """The first day that says something of every candidate."""
        return SILENT_DAYS if any(settings.priced for settings in self.space.bare) else 0

    def _carefully(self, settings: TunedSettings) -> TunedSettings:
        """As far that way as a short history allows."""
        if not self.cautious or settings.priced:
            return settings
        present, move = self.space.present.target, SHORT_MOVE * _share(self.case)
        target = min(max(settings.target, present - move), present + move)
        return replace(settings, target=float(f"{target:.6g}"))

    def race(self, done: Callable[[int], None] = lambda count: None, everything: bool = False) -> Race:
        """The best settings; with `everything` no candidate is given up, so that each has all its days."""
        ((present, before),) = self.run([self.space.present])
        race = Race(self.case.price, present, before, self.cautious, self.told)
        for priced in (True, False):
            bare = list(dict.fromkeys(self._carefully(each) for each in self.space.bare if each.priced is priced))
            whole = everything or len(self.case.scored) > 0  # the limit knows nothing of gaps
            alone = self.run(bare, done, UNLIMITED if whole else race.limit(self.case.pods.level_share))
            for settings, days in alone:
                race.enter(settings, days)
            tried = [settings for settings, days in alone if everything or race.may_win(days)]
            bridged = [replace(each, ceiling=ceiling) for each in tried for ceiling in self.space.ceilings]
            for settings, days in self.run(bridged, done):
                race.enter(settings, days)
        return race


def is_short(case: Case) -> bool:
    """Whether the history says too little of a week: it is shorter, or none of its days is one of a weekend."""
    middays = case.demand.start + 86400.0 * (np.arange(case.whole_days) + 0.5)
    zone = case.policy.tuning.timezone
    return case.whole_days < WEEK_DAYS or not any(is_weekend(float(at), zone) for at in middays)


def _share(case: Case) -> float:
    """What a pod carries, in the unit of its target."""
    return 100.0 if by_percent(tunable(case.policy)) else case.pods.pod_capacity


def search(
    case: Case,
    space: Space,
    done: Callable[[int], None] = lambda count: None,
    *,
    rolling: bool = False,
    careful: bool = True,
    exact: bool = False,
) -> Choice:
    """The settings for the next day; with `rolling` also what retuning every night would have done.

    A short history may move little of what is in force (`careful`), unless nothing is. `exact` takes the time to replay
    step by step what the compiled engine does not cover: every candidate of such a policy, and the present and the best
    settings where candidates are scored in a quicker form. Their figures are then those of `trimtab backtest`.
    """
    choice = chosen(Trial(case, space, careful=careful, stepwise=exact), done, rolling)
    return _exactly(case.last_whole_days(), choice) if exact else choice


def _exactly(case: Case, choice: Choice) -> Choice:
    """The figures that a backtest gives; settings that it does not find better change nothing."""
    if case.policy.objective is not None or not why_slow(case.policy, case.pods):
        return choice
    before = case.outcome("present").figures
    if not choice.changed:
        return choice._replace(before=before, after=before)
    after = case.with_policy(choice.policy).outcome("best").figures
    if after.j < before.j:
        return choice._replace(before=before, after=after)
    note = f"{SIMPLER_IS_WRONG} (J {before.j:.3f} now, {after.j:.3f} then)"
    stays = choice._replace(now=choice.was, policy=case.policy, before=before, after=before, without_tolerance=None)
    return stays._replace(notes=(*choice.notes, note), days_won=())


def chosen(trial: Trial, done: Callable[[int], None] = lambda count: None, rolling: bool = False) -> Choice:
    """The outcome of the race between the settings of a trial."""
    race = trial.race(done, everything=rolling)
    case, space = trial.case, trial.space
    before = trial.days[space.present]
    warmup = _warmup(case.whole_days) if rolling else 0
    changed = race.settings != space.present
    plain = _without_tolerance(trial) if changed and space.may_lose_tolerance else None
    return Choice(
        was=space.present,
        now=race.settings,
        policy=tuned(space.base, race.settings) if changed else case.policy,
        before=case.figures(before),
        after=case.figures(race.days),
        daily_cost=race.days.j(case.price),
        optima_above_the_floor=case.optima_above_the_floor,
        days=case.whole_days,
        days_won=tuple(np.flatnonzero(race.days.j(case.price) < before.j(case.price)).tolist()),
        notes=_notes(trial, plain),
        held=case.figures(before, warmup) if warmup else None,
        rolling=case.figures(_rolled(trial, warmup), warmup) if warmup else None,
        without_tolerance=plain,
    )


def _notes(trial: Trial, plain: JudgedSettings | None) -> tuple[str, ...]:
    policy, notes = trial.case.policy, list(quick_notes(by_target(trial.case.policy), trial.case.pods))
    if trial.cautious:
        notes.append(CAUTIOUS)
    if trial.case.gap_note:
        notes.append(trial.case.gap_note)
    if trial.stepped:
        notes.append(f"every setting was replayed step by step, which takes long: {trial.stepped}")
    if plain is not None:
        best, j = settings_text(plain.settings, by_percent(tunable(policy))), plain.figures.j
        notes.append(f"where the API server drops `tolerance`, the best is {best} (J {j:.3f})")
    return tuple(notes)


def _without_tolerance(trial: Trial) -> JudgedSettings | None:
    """The best settings where the API server drops the tolerance, so that Kubernetes' own holds."""
    usual, space = Tolerance().up, trial.space
    bare = tuple(settings for settings in space.bare if settings.tolerance == usual)
    plain = Trial(trial.case, space._replace(present=replace(space.present, tolerance=usual), bare=bare))
    plain.days, plain.cautious = dict(trial.days), trial.cautious
    best = plain.race()
    return JudgedSettings(settings=best.settings, figures=trial.case.figures(best.days))


def _rolled(trial: Trial, warmup: int) -> Days:
    """The days of whoever was best by the days before each."""
    family, incumbent = list(trial.days.values()), list(trial.days).index(trial.space.present)
    j = np.array([days.j(trial.case.price) for days in family])
    return picked(family, choose(j, warmup, incumbent, trial.told))


def _warmup(days: int) -> int:
    """How many days come before the first that is judged by earlier ones; 0 where there are too few."""
    return 7 if days >= 28 else 3 if days >= 6 else 0


def _at_fault(policy: Policy) -> tuple[str, str] | None:
    """The field that keeps it from being tuned, and what stands there."""
    parts = (("spec.blend", policy.blend), ("spec.vertical", policy.vertical))
    return next(((path, type(part).__name__) for path, part in parts if part is not None), None)
