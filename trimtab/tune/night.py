"""One night: which workloads get other settings, and which go back. Pure: the same cases give the same verdicts.

Every workload is tried on its own days (`find`), newer ones weighing more. Of those that would be better by 2 % the
ones that gain most switch, at most one in twenty of all; who went worse than promised goes back, however many.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from trimtab.core.nights import (
    Fleet,
    InForce,
    LivedDay,
    NightCase,
    Promise,
    TuningEvidence,
    TuningFigures,
    Verdict,
    VerdictKind,
)
from trimtab.core.tuned import by_target, check_tunable, settings_of, tuned
from trimtab.errors import InvalidInput, NotEnoughData, TrimtabError
from trimtab.kinds.schedule import laid_out
from trimtab.policy import Bridge, Policy, TunedSettings, TuningMode
from trimtab.series import Floats, Frame
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.cost_limit import CostLimit, cost_limit
from trimtab.sim.grid import DAY_STEPS
from trimtab.sim.prices import RESIZE_PRICE, START_PRICE
from trimtab.sim.score import Days, score
from trimtab.tune.candidate_runs import CandidateRuns, candidate_runs
from trimtab.tune.candidates import CEILINGS, Setting, allowed_settings, setting_of, tuned_settings
from trimtab.tune.demand import Demand, demand_of
from trimtab.tune.judge import judge_of
from trimtab.tune.odd_past import in_present_unit
from trimtab.tune.priced_run import PricedRuns
from trimtab.tune.rolling_choice import GAIN, day_weights, faded

LEAST_DAYS, MOST_DAYS = 7, 30
MOST_SWITCHES = 0.05  # of all workloads
MINUTE_S = 60.0


def plan(findings: Sequence[Verdict], fleet: Fleet) -> list[Verdict]:
    """What becomes of the night's findings: too many switches at once would hide which of them was a mistake."""
    left = max(0, ceil(MOST_SWITCHES * fleet.workloads) - fleet.switched)
    wishes = sorted(
        (verdict for verdict in findings if verdict.kind is VerdictKind.SWITCHED),
        key=lambda verdict: (-verdict.gain, verdict.name),
    )
    waiting = {verdict.name for verdict in wishes[left:]}
    return [
        replace(verdict, kind=VerdictKind.WAITS, reason="enough others switch tonight; it is tried again")
        if verdict.name in waiting
        else verdict
        for verdict in findings
    ]


def find(case: NightCase) -> Verdict:
    """What the last days say about one workload, whoever else wants to switch."""
    try:
        return _found(_scheduled(case))
    except InvalidInput as error:
        return Verdict(name=case.name, kind=VerdictKind.UNTUNABLE, reason=str(error))
    except TrimtabError as error:
        return Verdict(name=case.name, kind=VerdictKind.UNKNOWN, reason=str(error))
    except MemoryError:
        return Verdict(name=case.name, kind=VerdictKind.UNKNOWN, reason="its days need more memory than a night has")
    except Exception as error:  # one workload never stops another
        return Verdict(name=case.name, kind=VerdictKind.UNKNOWN, reason=f"a bug of trimtab: {error!r}")


def _found(case: NightCase) -> Verdict:
    """Judged is what is written or in force, against every candidate that the limits allow."""
    check_tunable(case.policy)
    if case.pod_capacity <= 0.0:
        raise NotEnoughData("what one pod carries is not known: its containers request no cpu, or no pod was seen")
    written = _reactive(case.policy)
    present = case.in_force.settings if case.in_force else _as_written(case.policy, written)
    judge = judge_of([case.policy]).objective
    cluster = ClusterSpec(
        startup_s=case.startup_s,
        pod_capacity=case.pod_capacity,
        pod_cores=case.pod_capacity,
        slo=judge.service_level,
    )
    runs = candidate_runs(written, _demand(case), cluster, LEAST_DAYS)
    priced = PricedRuns(runs, case.policy.objective) if case.policy.objective else None
    candidates = _Candidates(written, runs, judge.price, priced)
    if case.in_force and case.lived and (text := _worse(candidates, case.in_force, case.lived)):
        return Verdict(name=case.name, kind=VerdictKind.WENT_BACK, reason=text, settings=case.in_force.replaced)
    return _verdict(case, candidates, present)


def _scheduled(case: NightCase) -> NightCase:
    """With the schedules of all its days: the operator lays out only those near the moment it compiles."""
    seconds = MINUTE_S * (len(case.demand) // np.dtype(np.float32).itemsize)
    return replace(case, policy=laid_out(case.policy, case.start, case.start + seconds))


def _demand(case: NightCase) -> Demand:
    """What is known of the load, in the unit of now."""
    values = np.frombuffer(case.demand, dtype=np.float32).astype(np.float64)
    frame = Frame((case.name,), case.start, MINUTE_S, values[None]).tail(round(MOST_DAYS * 86400 / MINUTE_S))
    known = demand_of(frame, case.name)
    demand = in_present_unit(known, case.pod_capacity)
    if demand is not known and demand.days < LEAST_DAYS:
        raise NotEnoughData(f"{demand.notes[-1]}; tuning needs {LEAST_DAYS} days")
    return demand


def _verdict(case: NightCase, candidates: _Candidates, present: TunedSettings) -> Verdict:
    before, best, after = candidates.best(present)
    evidence, promise = candidates.evidence(before, after), candidates.promise(after)
    found = Verdict(name=case.name, kind=VerdictKind.KEPT, present=present, evidence=evidence, promise=promise)
    if best == present:
        return replace(found, reason=f"no other settings are {GAIN:.0%} better")
    if case.rests:
        return replace(found, reason="it went back lately and rests")
    kind = VerdictKind.SWITCHED if case.policy.tuning.mode is TuningMode.NIGHTLY else VerdictKind.ADVISED
    return replace(found, kind=kind, settings=best)


def _worse(candidates: _Candidates, in_force: InForce, lived: LivedDay) -> str:
    """Why the last day speaks against what is in force: worse than promised by more than days differ, and what was
    replaced would have done better."""
    runs, lam = candidates.runs, candidates.lam
    best = float(runs.optima_above_the_floor()[-1])
    cost = lived.pods + lam * lived.violating + START_PRICE * lived.starts + RESIZE_PRICE * lived.resized
    promise = in_force.promise
    if cost / best <= promise.j + promise.spread or candidates.run(in_force.replaced).j(lam)[-1] >= cost:
        return ""
    promised = f"{promise.j:.2f} (give or take {promise.spread:.2f})"
    return f"J was {cost / best:.2f} in the last day where {promised} was promised"


class _Candidates(NamedTuple):
    written: Policy
    runs: CandidateRuns
    lam: float
    priced: PricedRuns | None = None

    def run(self, settings: TunedSettings) -> Days:
        setting, bridge = self._parts(settings)
        if settings.priced and self.priced is not None:
            return self.priced.days(settings.band, bridge)
        return self.runs.run([setting], [bridge])[0][0]

    def best(self, present: TunedSettings) -> tuple[Days, TunedSettings, Days]:
        """The days of the present settings, the best ones and their days.

        A bridge hardly changes how many pods there are: settings that lose by pods and starts alone are not tried with
        one.
        """
        before, bridges = self.run(present), self._bridges()
        race = _Race(self.lam, present, before)
        for family in (self._bare_priced, self._bare_reactive):
            bare = family(race)
            for candidate, days in bare:
                race.enter(candidate, days)
            tried = [candidate for candidate, days in bare if bridges and race.may_win(days)]
            for candidate, bridged in zip(tried, self._bridged(tried, bridges), strict=True):
                for bridge, days in zip(bridges, bridged, strict=True):
                    race.enter(replace(candidate, ceiling=bridge.ceiling), days)
        return before, race.settings, race.days

    def _bridged(self, tried: list[TunedSettings], bridges: list[Bridge]) -> list[list[Days]]:
        """The candidates of one family (outer) with every bridge (inner)."""
        if self.priced is not None and any(candidate.priced for candidate in tried):
            return [[self.priced.days(candidate.band, bridge) for bridge in bridges] for candidate in tried]
        return self.runs.run([self._parts(candidate)[0] for candidate in tried], bridges)

    def _bare_priced(self, _race: _Race) -> list[tuple[TunedSettings, Days]]:
        """By the price of the objective, where one is written."""
        if self.priced is None:
            return []
        own = replace(settings_of(self.written), ceiling=None, priced=True)
        return [(replace(own, band=band), self.priced.days(band, None)) for band in dict.fromkeys(self.priced.bands)]

    def _bare_reactive(self, race: _Race) -> list[tuple[TunedSettings, Days]]:
        """Those that may still win, with a bridge or without."""
        family = allowed_settings(self.written, self.runs.cluster.pod_capacity)
        found = self.runs.run(family, [None], within=race.limit(self.runs.cluster.level_share))
        return [(self._words(setting), days) for setting, tried in zip(family, found, strict=True) for days in tried]

    def evidence(self, before: Days, after: Days) -> TuningEvidence:
        return TuningEvidence(days=self.runs.days, before=self._figures(before), after=self._figures(after))

    def promise(self, days: Days) -> Promise:
        by_day = days.j(self.lam) / self.runs.optima_above_the_floor()
        return Promise(j=float(by_day.mean()), spread=float(by_day.std(ddof=1)))

    def _bridges(self) -> list[Bridge]:
        """Only where its owner allowed one."""
        own = self.written.bridge
        return [] if own is None else [replace(own, ceiling=ceiling) for ceiling in CEILINGS]

    def _parts(self, settings: TunedSettings) -> tuple[Setting, Bridge | None]:
        policy = tuned(self.written, settings)
        return setting_of(policy, self.runs.cluster.pod_capacity), policy.bridge

    def _words(self, setting: Setting) -> TunedSettings:
        return tuned_settings(self.written, setting, None, self.runs.cluster.pod_capacity)

    def _figures(self, days: Days) -> TuningFigures:
        found = score(days, float(self.runs.optima().sum()), self.lam, self.runs.days)
        return TuningFigures(j=found.j, violations=found.violations, cost=found.cost, churn_per_day=found.churn_per_day)


class _Race:
    """The best so far, which whoever comes later has to beat; the present settings by 2 %."""

    def __init__(self, lam: float, present: TunedSettings, days: Days) -> None:
        self.settings, self.days, self._lam = present, days, lam
        self._least = (1.0 - GAIN) * self._score(days)

    def enter(self, settings: TunedSettings, days: Days) -> None:
        if (reached := self._score(days)) < self._least:
            self.settings, self.days, self._least = settings, days, reached

    def may_win(self, bare: Days) -> bool:
        """Whether a bridge could make enough of these."""
        cost: Floats = bare.pods + START_PRICE * bare.starts
        return float(faded(cost[None])[0]) < self._least

    def limit(self, slo: float) -> CostLimit:
        """What pods and starts may cost whoever comes now."""
        load = self.days.load
        return cost_limit(self._least, day_weights(len(load)), load, DAY_STEPS, slo, self._lam)

    def _score(self, days: Days) -> float:
        return float(faded(days.j(self._lam)[None])[0])


def _reactive(policy: Policy) -> Policy:
    """Without its limit of resizes, which the simulation does not know, and steered by its target."""
    bridge = replace(policy.bridge, resizes_per_hour=None) if policy.bridge else None
    return replace(by_target(policy), bridge=bridge)


def _as_written(policy: Policy, written: Policy) -> TunedSettings:
    """An objective steers from the beginning where tuning only gives advice; else it has to be earned."""
    advised = policy.tuning.mode is TuningMode.ADVISE
    return replace(settings_of(written), priced=advised and policy.objective is not None)
