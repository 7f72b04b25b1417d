"""One night of one workload: what its own days say. Pure: the same case gives the same verdict.

Every candidate is tried on every day, newer ones weighing more; others than the present have to be 2 % better. Settings
that did worse than they promised are rolled back. Who of those that would be better may switch: `core.nights`.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from trimtab.core.nights import InForce, LivedDay, NightCase, Promise, TuningEvidence, Verdict, VerdictKind
from trimtab.core.tuned import check_tunable, settings_of
from trimtab.errors import InvalidInput, NotEnoughData, TrimtabError
from trimtab.kinds.schedule import expand_schedules
from trimtab.policy import Policy, TunedSettings, TuningMode
from trimtab.series import Frame
from trimtab.sim.prices import RESIZE_PRICE, START_PRICE
from trimtab.tune.case import Case
from trimtab.tune.demand import Demand, demand_of
from trimtab.tune.demand_anomalies import in_present_unit
from trimtab.tune.judge import cluster_of, judge_of
from trimtab.tune.queues import backlog_of, refuse_length
from trimtab.tune.rolling_choice import GAIN
from trimtab.tune.search import BANDS, CEILINGS, Choice, Trial, chosen, space_of

LEAST_DAYS, MOST_DAYS = 3, 30
MINUTE_S = 60.0


def find(case: NightCase) -> Verdict:
    """What the last days say about one workload, whoever else wants to switch."""
    try:
        return _found(_scheduled(case))
    except InvalidInput as error:
        return Verdict(uid=case.uid, kind=VerdictKind.UNTUNABLE, reason=str(error))
    except TrimtabError as error:
        return Verdict(uid=case.uid, kind=VerdictKind.UNKNOWN, reason=str(error))
    except MemoryError:
        return Verdict(uid=case.uid, kind=VerdictKind.UNKNOWN, reason="its days need more memory than a night has")
    except Exception as error:  # one workload never stops another
        return Verdict(uid=case.uid, kind=VerdictKind.UNKNOWN, reason=f"a bug of trimtab: {error!r}")


def _found(night: NightCase) -> Verdict:
    """Judged is what is written or in force, against every candidate that the limits allow."""
    check_tunable(night.policy)
    refuse_length(night.policy)
    if backlog_of(night.policy):
        raise InvalidInput("spec.tuning", "with a Backlog metric", "tune a queue with `trimtab tune`")
    if night.pod is None or night.pod.request <= 0.0:
        raise NotEnoughData("what one pod carries is not known: its containers request no cpu, or no pod was seen")
    present = night.in_force.settings if night.in_force else _as_written(night.policy)
    pods = cluster_of(night.pod, startup_s=night.startup_s)
    case = Case(_demand(night, night.pod.request), night.policy, pods, judge_of([night.policy]).objective.price)
    ceilings = CEILINGS if night.policy.bridge else ()  # only where its owner allowed one
    trial = Trial(
        case, space_of(case.policy, pods, ceilings=ceilings, bands=(None, *BANDS), present=present), LEAST_DAYS
    )
    if night.in_force is None or night.lived is None:
        return _verdict(night, chosen(trial))
    if trial.case.optima_above_the_floor[-1] <= 0:
        return _verdict(night, chosen(trial))
    realized_j = _realized_j(trial, night.lived)
    if text := _worse(trial, night.in_force, realized_j):
        found = Verdict(uid=night.uid, kind=VerdictKind.WENT_BACK, reason=text, settings=night.in_force.replaced)
    else:
        found = _verdict(night, chosen(trial))
    return replace(found, realized_j=realized_j)


def _scheduled(case: NightCase) -> NightCase:
    """With the schedules of all its days: the operator lays out only those near the moment it compiles."""
    seconds = MINUTE_S * (len(case.demand) // np.dtype(np.float32).itemsize)
    return replace(case, policy=expand_schedules(case.policy, case.start, case.start + seconds))


def _demand(case: NightCase, pod_capacity: float) -> Demand:
    """What is known of the load, in the unit of now."""
    values = np.frombuffer(case.demand, dtype=np.float32).astype(np.float64)
    frame = Frame((case.workload,), case.start, MINUTE_S, values[None]).tail(round(MOST_DAYS * 86400 / MINUTE_S))
    known = demand_of(frame, case.workload)
    demand = in_present_unit(known, pod_capacity)
    if demand is not known and demand.days < LEAST_DAYS:
        raise NotEnoughData(f"{demand.notes[-1]}; tuning needs {LEAST_DAYS} days")
    return demand


def _verdict(night: NightCase, choice: Choice) -> Verdict:
    evidence = TuningEvidence(days=choice.days, before=choice.before, after=choice.after)
    found = Verdict(
        uid=night.uid, kind=VerdictKind.KEPT, present=choice.was, evidence=evidence, promise=_promise(choice)
    )
    if not choice.changed:
        return replace(found, reason=f"no other settings are {GAIN:.0%} better")
    if night.rests:
        return replace(found, reason="it was rolled back lately and rests")
    kind = VerdictKind.SWITCHED if night.policy.tuning.mode is TuningMode.NIGHTLY else VerdictKind.ADVISED
    return replace(found, kind=kind, settings=choice.now)


def _promise(choice: Choice) -> Promise:
    """J of each day over an optimum that keeps minReplicas, too: by that a quiet day is as good as a busy one."""
    known = choice.optima_above_the_floor > 0  # a day without any sample says nothing
    by_day = choice.daily_cost[known] / choice.optima_above_the_floor[known]
    return Promise(j=float(by_day.mean()), spread=float(by_day.std(ddof=1)))


def _realized_j(trial: Trial, lived: LivedDay) -> float:
    """What the last day cost in earnest, over its optimum."""
    priced = lived.pods + trial.case.price * lived.violating
    cost = priced + START_PRICE * lived.starts + RESIZE_PRICE * lived.resized
    return cost / float(trial.case.optima_above_the_floor[-1])


def _worse(trial: Trial, in_force: InForce, realized_j: float) -> str:
    """Why the last day speaks against what is in force: worse than promised by more than days differ, and what was
    replaced would have done better."""
    promise = in_force.promise
    if realized_j <= promise.j + promise.spread:
        return ""
    ((_, replaced),) = trial.run([in_force.replaced])
    if replaced.j(trial.case.price)[-1] >= realized_j * trial.case.optima_above_the_floor[-1]:
        return ""
    promised = f"{promise.j:.2f} (give or take {promise.spread:.2f})"
    return f"J was {realized_j:.2f} in the last day where {promised} was promised"


def _as_written(policy: Policy) -> TunedSettings:
    """An objective steers from the beginning where tuning only gives advice; else it has to be earned."""
    advised = policy.tuning.mode is TuningMode.ADVISE
    return replace(settings_of(policy), priced=advised and policy.objective is not None)
