"""One night: which workloads get other settings, and which go back. Pure: the same cases give the same verdicts.

Every workload is tried on its own days (`find`), newer ones weighing more. Of those that would be better by 2 % the
ones that gain most switch, at most one in twenty of all; who went worse than promised goes back, however many.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np
from msgspec.structs import replace

from trimtab.core.nights import (
    Fleet,
    InForce,
    LivedDay,
    NightCase,
    Promise,
    TuningEvidence,
    Verdict,
    VerdictKind,
)
from trimtab.core.tuned import check_tunable, settings_of
from trimtab.errors import InvalidInput, NotEnoughData, TrimtabError
from trimtab.kinds.schedule import laid_out
from trimtab.policy import Policy, TunedSettings, TuningMode
from trimtab.series import Frame
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.prices import RESIZE_PRICE, START_PRICE
from trimtab.tune.case import Case
from trimtab.tune.demand import Demand, demand_of
from trimtab.tune.judge import judge_of
from trimtab.tune.odd_past import in_present_unit
from trimtab.tune.rolling_choice import GAIN
from trimtab.tune.search import BANDS, CEILINGS, Choice, Trial, chosen, space_of

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


def _found(night: NightCase) -> Verdict:
    """Judged is what is written or in force, against every candidate that the limits allow."""
    check_tunable(night.policy)
    if night.pod_capacity <= 0.0:
        raise NotEnoughData("what one pod carries is not known: its containers request no cpu, or no pod was seen")
    present = night.in_force.settings if night.in_force else _as_written(night.policy)
    judge = judge_of([night.policy]).objective
    pods = ClusterSpec(
        startup_s=night.startup_s,
        pod_capacity=night.pod_capacity,
        pod_cores=night.pod_capacity,
        slo=judge.service_level,
    )
    case = Case(_demand(night), night.policy, pods, judge.price)
    ceilings = CEILINGS if night.policy.bridge else ()  # only where its owner allowed one
    trial = Trial(
        case, space_of(case.policy, pods, ceilings=ceilings, bands=(None, *BANDS), present=present), LEAST_DAYS
    )
    if night.in_force and night.lived and (text := _worse(trial, night.in_force, night.lived)):
        return Verdict(name=night.name, kind=VerdictKind.WENT_BACK, reason=text, settings=night.in_force.replaced)
    return _verdict(night, chosen(trial))


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


def _verdict(night: NightCase, choice: Choice) -> Verdict:
    evidence = TuningEvidence(days=choice.days, before=choice.before, after=choice.after)
    found = Verdict(
        name=night.name, kind=VerdictKind.KEPT, present=choice.was, evidence=evidence, promise=_promise(choice)
    )
    if not choice.changed:
        return replace(found, reason=f"no other settings are {GAIN:.0%} better")
    if night.rests:
        return replace(found, reason="it went back lately and rests")
    kind = VerdictKind.SWITCHED if night.policy.tuning.mode is TuningMode.NIGHTLY else VerdictKind.ADVISED
    return replace(found, kind=kind, settings=choice.now)


def _promise(choice: Choice) -> Promise:
    """J of each day over an optimum that keeps minReplicas, too: by that a quiet day is as good as a busy one."""
    by_day = choice.daily_cost / choice.optima_above_the_floor
    return Promise(j=float(by_day.mean()), spread=float(by_day.std(ddof=1)))


def _worse(trial: Trial, in_force: InForce, lived: LivedDay) -> str:
    """Why the last day speaks against what is in force: worse than promised by more than days differ, and what was
    replaced would have done better."""
    lam = trial.case.price
    best = float(trial.case.optima_above_the_floor[-1])
    cost = lived.pods + lam * lived.violating + START_PRICE * lived.starts + RESIZE_PRICE * lived.resized
    promise = in_force.promise
    if cost / best <= promise.j + promise.spread:
        return ""
    ((_, replaced),) = trial.run([in_force.replaced])
    if replaced.j(lam)[-1] >= cost:
        return ""
    promised = f"{promise.j:.2f} (give or take {promise.spread:.2f})"
    return f"J was {cost / best:.2f} in the last day where {promised} was promised"


def _as_written(policy: Policy) -> TunedSettings:
    """An objective steers from the beginning where tuning only gives advice; else it has to be earned."""
    advised = policy.tuning.mode is TuningMode.ADVISE
    return replace(settings_of(policy), priced=advised and policy.objective is not None)
