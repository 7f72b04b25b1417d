"""A night: what is found for one workload, and who of many may switch."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trimtab.bench.baselines import hpa
from trimtab.core.figures import Figures
from trimtab.core.nights import InForce, LivedDay, NightCase, Promise, TuningEvidence, Verdict, VerdictKind
from trimtab.core.overload import Yardstick
from trimtab.core.tuned import settings_of, tuned
from trimtab.kinds.schedule import expand_schedules
from trimtab.policy import (
    Bounds,
    Bridge,
    ForecastChoice,
    Metric,
    MetricKind,
    Objective,
    Policy,
    Rate,
    Rates,
    Select,
    TunedSettings,
    Tuning,
    TuningLimits,
    TuningMode,
    TuningRange,
    Utilization,
    Watermark,
    WrittenSchedule,
)
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.cost_limit import UNLIMITED, CostLimit
from trimtab.sim.generate import LoadShape, generate
from trimtab.tune import search as searching
from trimtab.tune.case import Case
from trimtab.tune.demand import Demand
from trimtab.tune.night import find
from trimtab.tune.rolling_choice import faded
from trimtab.tune.search import Race, reactive_settings, search, space_of

GUARANTEED = Yardstick(request=1.0, level=0.8, limit=1.0)
NIGHTLY = Tuning(mode=TuningMode.NIGHTLY)
OFFICE = LoadShape(peak=24, valley=0.15, steep=3.5, noise=0.05, days=7)


def minutes(shape: LoadShape = OFFICE) -> bytes:
    return generate(shape).reshape(-1, 4).mean(axis=1).astype(np.float32).tobytes()


def case(written: Policy, **changes: object) -> NightCase:
    made = NightCase(
        uid="web", workload="shop/web", policy=written, start=0.0, demand=minutes(), pod=GUARANTEED, startup_s=120.0
    )
    return replace(made, **changes)


def policy(target: float = 0.3, **changes: object) -> Policy:
    return replace(hpa(target), tuning=NIGHTLY, **changes)


def on_memory() -> Policy:
    memory = Metric(kind=MetricKind.RESOURCE, name="memory")
    return replace(policy(), signals=(Utilization(metric=memory, percent=70),))


def test_a_night_does_not_look_at_what_was_counted_in_another_unit() -> None:
    values = np.frombuffer(minutes(), dtype=np.float32).copy()
    values[: 5 * 1440] *= 1000
    found = find(case(policy(), demand=values.tobytes()))
    assert found.kind is VerdictKind.UNKNOWN
    assert "a 1,000th of what came before, as if counted in another unit; tuning needs 3 days" in found.reason


@cache
def first_night() -> Verdict:
    return find(case(policy()))


# --- one workload ----------------------------------------------------------------------------------------------------


PRICED = {"objective": Objective(), "forecast": ForecastChoice(model="learned")}


@pytest.mark.parametrize("own", [{}, {"bridge": Bridge()}, {"bridge": Bridge(), **PRICED}])
def test_giving_candidates_up_changes_no_verdict(own: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def limitless(*given: Any) -> CostLimit:
        asked.append(given)
        return UNLIMITED

    quick = find(case(policy(**own)))
    monkeypatch.setattr(searching, "cost_limit", limitless)
    assert find(case(policy(**own))) == quick and asked


def test_better_settings_are_found_with_evidence_and_a_promise() -> None:
    found = first_night()
    assert found.kind is VerdictKind.SWITCHED and found.present == settings_of(policy())
    assert found.settings is not None and found.settings.target > 0.3
    assert found.evidence is not None and found.evidence.days == 7
    assert found.gain >= 0.02 and found.evidence.after.cost < found.evidence.before.cost
    assert found.promise is not None and found.promise.j == pytest.approx(found.evidence.after.j, rel=0.1)


def test_what_was_chosen_is_kept_the_night_after() -> None:
    first = first_night()
    assert first.settings is not None and first.promise is not None and first.present is not None
    now = InForce(settings=first.settings, replaced=first.present, promise=first.promise, since=0.0)
    assert find(case(policy(), in_force=now)).kind is VerdictKind.KEPT


def test_schedules_are_replayed_over_all_days() -> None:
    """However late the operator compiled them."""
    office = WrittenSchedule(name="day", start="0 8 * * *", end="0 23 * * *", min_replicas=14)
    written, end = policy(bounds=Bounds(min_replicas=2, max_replicas=30, schedules=(office,))), 7 * 86400.0
    at_last, at_once = expand_schedules(written, end, end), expand_schedules(written, 0.0, end)
    assert at_last.bounds.spans != at_once.bounds.spans
    assert find(case(at_last)) == find(case(at_once)) != find(case(policy(bounds=Bounds(2, 30))))


def test_advise_never_switches() -> None:
    advised = replace(policy(), tuning=Tuning(mode=TuningMode.ADVISE))
    assert find(case(advised)).kind is VerdictKind.ADVISED


def on_watermarks() -> Policy:
    return replace(policy(), signals=(Watermark(metric=policy().signals[0].metric, low=0.5, high=0.7),))


@pytest.mark.parametrize(
    "change, said",
    [
        pytest.param({"demand": b""}, "no value", id="nothing is known"),
        pytest.param(
            {"demand": minutes()[: 2 * 1440 * 4]},
            "shop/web: 2.0 days of history; tuning needs 3 whole days",
            id="two days",
        ),
        pytest.param({"pod": None}, "what one pod carries is not known", id="no request"),
        pytest.param({"demand": b"12345"}, "a bug of trimtab", id="what nobody thought of"),
    ],
)
def test_what_cannot_be_tuned_yet_says_why(change: dict[str, object], said: str) -> None:
    found = find(case(policy(), **change))
    assert found.kind is VerdictKind.UNKNOWN and said in found.reason


@pytest.mark.parametrize(
    "written, said",
    [
        pytest.param(replace(policy(), signals=()), "exactly one metric", id="no metric"),
        pytest.param(on_memory(), "does not follow the load", id="memory"),
        pytest.param(on_watermarks(), "exactly one metric", id="watermarks"),
        pytest.param(policy(replays_noop=True), "cannot be tuned", id="what the simulator does not know"),
        pytest.param(
            policy(objective=Objective(), forecast=ForecastChoice(model="seasonal")),
            "learned forecast",
            id="a forecast of its own beside an objective",
        ),
    ],
)
def test_what_no_night_can_compare_says_why(written: Policy, said: str) -> None:
    found = find(case(written))
    assert found.kind is VerdictKind.UNTUNABLE and said in found.reason


def test_limits_hold() -> None:
    limits = TuningLimits(
        target=TuningRange(most=0.5), tolerance=TuningRange(least=0.1), window_s=TuningRange(least=60)
    )
    found = find(case(replace(policy(), tuning=Tuning(mode=TuningMode.NIGHTLY, limits=limits))))
    assert found.settings is not None
    assert found.settings.target <= 0.5 and found.settings.tolerance == 0.1 and found.settings.window_s >= 60


def test_a_bridge_is_tried_only_where_one_is_written() -> None:
    without, having = first_night(), find(case(policy(bridge=Bridge()), startup_s=600.0))
    assert without.settings is not None and without.settings.ceiling is None
    assert having.settings is not None and having.settings.ceiling is not None


def test_an_objective_has_to_earn_its_place() -> None:
    """A week of the same slow mornings: what is seen coming is worth more than a target."""
    learned = ForecastChoice(model="learned")
    found = find(case(policy(0.7, objective=Objective(), forecast=learned), startup_s=600.0))
    assert found.present is not None and not found.present.priced
    assert found.settings is not None and found.settings.priced and found.settings.target == 0.7


def test_prices_for_starting_and_keeping_are_chosen_too() -> None:
    """An objective that starts far too much by itself: the night finds cheaper prices than its own."""
    lavish = policy(
        0.7, objective=Objective(start_share=60.0, keep_share=60.0), forecast=ForecastChoice(model="learned")
    )
    found = find(case(lavish, startup_s=600.0))
    assert found.settings is not None and found.settings.priced and found.settings.band is not None
    assert found.settings.band.start < 60.0 * 32.0
    now = tuned(lavish, found.settings).objective
    assert now is not None and now.price == 32.0
    assert (now.start_share * 32.0, now.keep_share * 32.0) == (found.settings.band.start, found.settings.band.keep)


def test_what_is_written_beside_an_objective_binds_it_in_the_backtest() -> None:
    """Whoever may never remove a pod pays for the highest peak all night."""
    never_down = Rate(down=Rates(select=Select.DISABLED))
    written = policy(0.7, objective=Objective(settle=(never_down,)), forecast=ForecastChoice(model="learned"))
    found = find(case(replace(written, tuning=Tuning(mode=TuningMode.ADVISE))))
    assert found.evidence is not None and found.evidence.before.cost > 1.5
    assert found.evidence.before.churn_per_day < 0.4 * found.evidence.after.churn_per_day, (
        "it has grown once, to some thirty pods, after a day by its target"
    )
    assert found.settings is not None and not found.settings.priced


def test_leaving_out_what_cannot_win_changes_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """All 135 settings with all bridges give the same as the few that are tried."""
    bridged = policy(bridge=Bridge())
    pruned = find(case(bridged, startup_s=600.0))
    monkeypatch.setattr(Race, "may_win", lambda self, bare: True)
    assert find(case(bridged, startup_s=600.0)) == pruned


LIVED_WELL = LivedDay(pods=1.0, violating=0.0, starts=0.0, resized=0.0)
LIVED_BADLY = LivedDay(pods=1e9, violating=1e9, starts=0.0, resized=0.0)


@pytest.mark.parametrize(
    "lived, goes_back",
    [
        pytest.param(LIVED_BADLY, True, id="worse than promised"),
        pytest.param(LIVED_WELL, False, id="better than promised"),
        pytest.param(None, False, id="most of the day was not seen"),
    ],
)
def test_who_does_worse_than_promised_by_more_than_days_differ_goes_back(
    lived: LivedDay | None, goes_back: bool
) -> None:
    first = first_night()
    assert first.settings is not None and first.promise is not None and first.present is not None
    now = InForce(settings=first.settings, replaced=first.present, promise=first.promise, since=0.0)
    found = find(case(policy(), in_force=now, lived=lived))
    assert (found.kind is VerdictKind.WENT_BACK) is goes_back
    assert not goes_back or found.settings == first.present


def test_who_went_back_rests() -> None:
    found = find(case(policy(), rests=True))
    assert found.kind is VerdictKind.KEPT and "rests" in found.reason


def test_the_night_finds_what_tune_finds() -> None:
    seen = np.repeat(np.frombuffer(minutes(), dtype=np.float32).astype(np.float64), 4)
    by_hand = Case(Demand("web", seen, 0.0), policy(), ClusterSpec(startup_s=120.0), 32.0)
    choice, found = search(by_hand, space_of(by_hand.policy, by_hand.pods), rolling=True), first_night()
    assert (found.settings, found.evidence and found.evidence.after) == (choice.now, choice.after)


@given(st.sampled_from(reactive_settings(policy(), ClusterSpec())), st.sampled_from((None, 0.65, 0.78)))
def test_settings_are_what_a_policy_has_after_they_were_put_in(bare: TunedSettings, ceiling: float | None) -> None:
    wanted = replace(bare, ceiling=ceiling)
    new = tuned(policy(bridge=Bridge()), wanted)
    assert settings_of(new) == wanted
    assert tuned(policy(bridge=Bridge()), settings_of(new)) == new
    assert new.bounds == policy().bounds


# --- many workloads --------------------------------------------------------------------------------------------------


def verdict(name: str, kind: VerdictKind, gain: float) -> Verdict:
    before, after = (Figures(j=j, violations=0.0, cost=1.0, churn_per_day=0.0) for j in (1.0, round(1.0 - gain, 6)))
    return Verdict(
        uid=name,
        kind=kind,
        settings=TunedSettings(target=0.5, tolerance=0.1, window_s=300.0),
        evidence=TuningEvidence(days=14, before=before, after=after),
        promise=Promise(j=after.j, spread=0.1),
    )


def test_scores_fade() -> None:
    assert faded(np.array([[1.0, 1.0]]))[0] == pytest.approx(1 + 0.5 ** (1 / 7))
