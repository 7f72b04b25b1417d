"""Safety rails of tuning: when settings may switch, when they roll back and rest, and what is never advised."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.tune.test_night import policy
from trimtab.core.advise import WorkloadAdvice
from trimtab.core.figures import Figures
from trimtab.core.model import Observation, Pod, TotalSample
from trimtab.core.nights import InForce, LivedDay, Promise, VerdictKind
from trimtab.core.requests import USUAL_TARGET
from trimtab.journal import ObjectName
from trimtab.live.look.memory import TuningMemory
from trimtab.live.look.sizes import NO_BRIDGE
from trimtab.live.tuning.nightly import NightlyTuning, _Night
from trimtab.live.tuning.realised_cost import LivedDays
from trimtab.policy import Metric, MetricKind, TotalAverage, TunedSettings
from trimtab.series import Frame
from trimtab.sim.score import Days
from trimtab.tune.night import _realized_j, _worse
from trimtab.tune.proven_advice import TOLERABLE, AdvicePlan, _better
from trimtab.tune.rolling_choice import GAIN, takeover
from trimtab.tune.search import Race

AT = 1_750_000_000.0
PRESENT = TunedSettings(target=0.6, tolerance=0.1, window_s=300.0)
OTHER = TunedSettings(target=0.7, tolerance=0.1, window_s=300.0)
IN_FORCE = InForce(settings=OTHER, replaced=PRESENT, promise=Promise(j=1.2, spread=0.1), since=AT)


def days(pods: float) -> Days:
    """Three days that cost so many pods and nothing else."""
    nothing = Days(*(np.zeros(3) for _ in Days._fields))
    return nothing._replace(pods=np.full(3, pods))


@pytest.mark.parametrize("pods, switches", [(102.0, False), (101.0, False), (98.1, False), (97.9, True)])
def test_settings_switch_only_when_two_percent_better(pods: float, switches: bool) -> None:
    race = Race(32.0, PRESENT, days(100.0))
    race.enter(OTHER, days(pods))
    assert race.settings == (OTHER if switches else PRESENT)


def test_a_gain_of_exactly_two_percent_is_not_enough() -> None:
    assert takeover(np.array([1.0, 1.0 - GAIN]), current=0) == 0
    assert takeover(np.array([1.0, np.nextafter(1.0 - GAIN, 0.0)]), current=0) == 1


@pytest.mark.parametrize("pods, rolls_back", [(115.0, False), (129.0, False), (131.0, True)])
def test_rollback_needs_a_cost_above_the_promise_and_its_spread(pods: float, rolls_back: bool) -> None:
    case = SimpleNamespace(optima_above_the_floor=np.array([100.0]), price=32.0)
    trial: Any = SimpleNamespace(case=case, run=lambda settings: [(each, days(50.0)) for each in settings])
    realised = LivedDay(pods=pods, violating=0.0, starts=0.0, resized=0.0)
    assert bool(_worse(trial, IN_FORCE, _realized_j(trial, realised))) is rolls_back


@pytest.mark.parametrize("rests_until, rests", [(AT + 1, True), (AT - 1, False), (None, False)])
def test_a_workload_rests_after_a_rollback(rests_until: float | None, rests: bool) -> None:
    log = SimpleNamespace(frame=lambda keys, at, step: Frame(("web",), at, step, np.ones((1, 10))))
    forecasts: Any = SimpleNamespace(demand=SimpleNamespace(log=log))
    checkpoints: Any = SimpleNamespace(
        stored=None, usage=SimpleNamespace(cluster=SimpleNamespace(shard=SimpleNamespace(lease="trimtab")))
    )
    subject = SimpleNamespace(name=ObjectName("Autoscaler", "shop", "web"))
    tick: Any = SimpleNamespace(seen=Observation(at=AT, spec_replicas=1, status_replicas=1), subject=subject)
    memory = TuningMemory(at=AT, verdict=VerdictKind.WENT_BACK, rests_until=rests_until)
    case = NightlyTuning(forecasts, checkpoints)._case(_Night("web", policy(), memory, tick), AT)
    assert case is not None and case.rests is rests and case.workload == "shop/web"


def realised_day(load: float, hours: float) -> LivedDay | None:
    """Four ready pods that carry one unit each, under this load."""
    total = TotalAverage(metric=Metric(kind=MetricKind.EXTERNAL, name="queue"), target=USUAL_TARGET)
    written, realised = policy(signals=(total,)), LivedDays()
    pods = tuple(Pod(name=f"web-{number}") for number in range(4))
    for minute in range(round(hours * 60) + 1):
        at = AT + 60.0 * minute
        sample = TotalSample(value=load, at=at)
        tick: Any = SimpleNamespace(
            subject=SimpleNamespace(uid="web"),
            decision=SimpleNamespace(plan=SimpleNamespace(replicas=4)),
            after=SimpleNamespace(bridge_resizes=0),
            memory=SimpleNamespace(core=SimpleNamespace(bridge=1.0)),
            bridged=NO_BRIDGE,
            seen=Observation(at=at, spec_replicas=4, status_replicas=4, pods=pods, samples=(sample,)),
        )
        realised.note(tick, written)
    return realised.day("web")


def test_overload_counts_as_violation_and_idle_time_does_not() -> None:
    idle, overloaded = realised_day(1.0, 20), realised_day(5.0, 20)
    assert idle is not None and idle.violating == 0.0
    assert overloaded is not None and overloaded.violating == pytest.approx(5.0 * 20 * 240)


def test_a_day_that_was_mostly_unseen_has_no_realised_cost() -> None:
    assert realised_day(1.0, 19) is None


@pytest.mark.parametrize(
    "violations, before, better",
    [(TOLERABLE, 0.0, True), (TOLERABLE + 0.1, 0.0, False), (3.0, 3.0, True), (3.1, 3.0, False)],
)
def test_cheaper_advice_with_more_violations_is_refused(violations: float, before: float, better: bool) -> None:
    now = Figures(j=2.0, violations=before, cost=2.0, churn_per_day=0.0)
    then = Figures(j=1.0, violations=violations, cost=1.0, churn_per_day=0.0)
    assert _better(AdvicePlan(then, 1.0, WorkloadAdvice()), now) is better
