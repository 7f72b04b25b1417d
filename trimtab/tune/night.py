"""One night: which workloads get other settings, and which go back. Pure: the same cases give the same verdicts.

Every workload is tried on its own days (`find`), newer ones weighing more. Of those that would be better by 2 % the
ones that gain most switch, at most one in twenty of all; who went worse than promised goes back, however many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from trimtab.core.tuned import by_target, may_be_tuned, settings_of, tunable, tuned
from trimtab.errors import InvalidPolicy, NotEnoughData, TrimtabError
from trimtab.policy import Bridge, MetricKind, Objective, Policy, TunedSettings, TuningMode, is_cpu
from trimtab.series import Floats, Frame
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.compiled import numba_or_none
from trimtab.sim.prices import OBJECTIVES, RESIZE_PRICE, START_PRICE
from trimtab.sim.score import SLO, Days, score
from trimtab.tune.candidate_runs import CandidateRuns, candidate_runs
from trimtab.tune.candidates import Setting, allowed_settings, setting_of, tuned_settings
from trimtab.tune.demand import demand_of
from trimtab.tune.priced_run import priced_days, priced_path
from trimtab.tune.rolling_choice import GAIN, faded

LEAST_DAYS, MOST_DAYS = 7, 30
MOST_SWITCHES = 0.05  # of all workloads
CEILINGS = (0.65, 0.70, 0.75, 0.78)  # of a bridge that is written
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
        if numba_or_none() is None:
            raise TrimtabError("without a compiler a night is too short: install trimtab[fast], as the image does")
        return _found(case)
    except TrimtabError as error:
        return Verdict(name=case.name, kind=VerdictKind.UNKNOWN, reason=str(error))
    except Exception as error:  # one workload never stops another
        return Verdict(name=case.name, kind=VerdictKind.UNKNOWN, reason=f"a bug of trimtab: {error!r}")


def _found(case: NightCase) -> Verdict:
    """Judged is what is written or in force, against every candidate that the limits allow."""
    _check(case)
    if not may_be_tuned(case.policy):
        fix = "tuning compares a target with the learned forecast: leave forecast out, or tuning"
        raise InvalidPolicy("spec.forecast", "beside an objective", fix)
    written = _reactive(case.policy)
    present = case.in_force.settings if case.in_force else _as_written(case.policy, written)
    values = np.frombuffer(case.demand, dtype=np.float32).astype(np.float64)
    frame = Frame((case.name,), case.start, MINUTE_S, values[None]).tail(round(MOST_DAYS * 86400 / MINUTE_S))
    cluster = ClusterSpec(
        startup_s=case.startup_s, pod_capacity=case.pod_capacity, pod_cores=case.pod_capacity, slo=slo_of(case.policy)
    )
    runs = candidate_runs(tuned(written, present), demand_of(frame, case.name).last_whole_days(), cluster, LEAST_DAYS)
    candidates = _Candidates(written, runs, price_of(case.policy), case.policy.objective)
    if case.in_force and case.lived and (text := _worse(candidates, case.in_force, case.lived)):
        return Verdict(name=case.name, kind=VerdictKind.WENT_BACK, reason=text, settings=case.in_force.replaced)
    return _verdict(case, candidates, present)


def _check(case: NightCase) -> None:
    """What no backtest can be made of."""
    metric = tunable(case.policy).metric
    if metric.kind in (MetricKind.RESOURCE, MetricKind.CONTAINER) and not is_cpu(metric):
        raise InvalidPolicy("spec.metrics", metric.name, "it does not follow the load: tuning needs cpu, or a rate")
    if case.pod_capacity <= 0.0:
        raise NotEnoughData("what one pod carries is not known: its containers request no cpu, or no pod was seen")


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
    best = float(runs.optima()[-1])
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
    objective: Objective | None = None

    def run(self, settings: TunedSettings) -> Days:
        setting, bridge = self._parts(settings)
        if settings.priced and self.objective is not None:
            return priced_days(self.runs, priced_path(self.runs, self.objective), bridge)
        return self.runs.run([setting], [bridge])[0][0]

    def best(self, present: TunedSettings) -> tuple[Days, TunedSettings, Days]:
        """The days of the present settings, the best ones and their days.

        A bridge hardly changes how many pods there are: settings that lose by pods and starts alone are not tried with
        one.
        """
        capacity, before = self.runs.cluster.pod_capacity, self.run(present)
        family = allowed_settings(self.written, capacity)
        least, best = (1.0 - GAIN) * self._score(before), (present, before)
        bare = [days for (days,) in self.runs.run(family, [None])]
        bridges = self._bridges()
        for setting, days in zip(family, bare, strict=True):
            if self._score(days) < least and None in bridges:
                least, best = self._score(days), (self._words(setting, None), days)
        for bridge in [bridge for bridge in bridges if bridge is not None]:
            tried = [each for each, days in zip(family, bare, strict=True) if self._floor(days) < least]
            for setting, (days,) in zip(tried, self.runs.run(tried, [bridge]), strict=True):
                if self._score(days) < least:
                    least, best = self._score(days), (self._words(setting, bridge), days)
        for priced, days in self._priced(bridges):
            if self._score(days) < least:
                least, best = self._score(days), (priced, days)
        return before, *best

    def _priced(self, bridges: Sequence[Bridge | None]) -> Iterator[tuple[TunedSettings, Days]]:
        """By the price of the objective, where one is written."""
        if self.objective is None:
            return
        path, own = priced_path(self.runs, self.objective), settings_of(self.written)
        for bridge in bridges:
            ceiling = bridge.ceiling if bridge else None
            yield replace(own, ceiling=ceiling, priced=True), priced_days(self.runs, path, bridge)

    def evidence(self, before: Days, after: Days) -> TuningEvidence:
        return TuningEvidence(days=self.runs.days, before=self._figures(before), after=self._figures(after))

    def promise(self, days: Days) -> Promise:
        by_day = days.j(self.lam) / self.runs.optima()
        return Promise(j=float(by_day.mean()), spread=float(by_day.std(ddof=1)))

    def _bridges(self) -> tuple[Bridge | None, ...]:
        """Only where its owner allowed one."""
        own = self.written.bridge
        return (None,) if own is None else (None, *(replace(own, ceiling=ceiling) for ceiling in CEILINGS))

    def _parts(self, settings: TunedSettings) -> tuple[Setting, Bridge | None]:
        policy = tuned(self.written, settings)
        return setting_of(policy, self.runs.cluster.pod_capacity), policy.bridge

    def _words(self, setting: Setting, bridge: Bridge | None) -> TunedSettings:
        return tuned_settings(self.written, setting, bridge, self.runs.cluster.pod_capacity)

    def _score(self, days: Days) -> float:
        return float(faded(days.j(self.lam)[None])[0])

    def _floor(self, days: Days) -> float:
        cost: Floats = days.pods + START_PRICE * days.starts
        return float(faded(cost[None])[0])

    def _figures(self, days: Days) -> TuningFigures:
        found = score(days, float(self.runs.optima().sum()), self.lam)
        return TuningFigures(j=found.j, violations=found.violations, cost=found.cost, churn_per_day=found.churn_per_day)


def _reactive(policy: Policy) -> Policy:
    """Without its limit of resizes, which the simulation does not know, and steered by its target."""
    bridge = replace(policy.bridge, resizes_per_hour=None) if policy.bridge else None
    return replace(by_target(policy), bridge=bridge)


def _as_written(policy: Policy, written: Policy) -> TunedSettings:
    """An objective steers from the beginning where tuning only gives advice; else it has to be earned."""
    advised = policy.tuning.mode is TuningMode.ADVISE
    return replace(settings_of(written), priced=advised and policy.objective is not None)


def price_of(policy: Policy) -> float:
    return policy.objective.price if policy.objective else OBJECTIVES["balanced"]


def slo_of(policy: Policy) -> float:
    return policy.objective.service_level if policy.objective else SLO
