"""Tuning: it finds what a load needs, keeps what is good enough, writes it back, and says when it cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from tests.sim.policies import CPU, LOAD, on_cpu, on_load
from tests.tune.test_promises import about
from trimtab.core.tuned import settings_of, tuned
from trimtab.errors import InvalidInput, InvalidPolicy, NotEnoughData
from trimtab.policy import (
    Admit,
    Bounds,
    Bridge,
    ForecastChoice,
    Objective,
    PodAverage,
    Policy,
    Rate,
    Rates,
    ScheduledBounds,
    Select,
    Stabilise,
    StabiliseMax,
    Tolerance,
    TunedSettings,
    UpLimit,
    Utilization,
    Vertical,
)
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.generate import SHAPES, LoadShape, generate
from trimtab.tune.case import Case, quick_form
from trimtab.tune.demand import Demand
from trimtab.tune.manifest import tunable_manifest, with_new_settings, writable_space
from trimtab.tune.search import (
    CAUTIOUS,
    CEILINGS,
    SIMPLER_IS_WRONG,
    Choice,
    _exactly,
    is_short,
    reactive_settings,
    search,
    space_of,
)

CLUSTER = ClusterSpec(startup_s=120)


def demand(name: str = "bursty", days: int = 8) -> Demand:
    shape = SHAPES[name]
    return Demand(name, generate(LoadShape(**{**shape.__dict__, "days": days})), 0.0)


def tune(policy: Policy, load: Demand, cluster: ClusterSpec, lam: float, bridge: Bridge | None = None) -> Choice:
    case = Case(load, policy, cluster, lam)
    return search(case, space_of(policy, cluster, bridge, (bridge.ceiling,) if bridge else ()), rolling=True)


def figures(policy: Policy, load: Demand, cluster: ClusterSpec = CLUSTER) -> dict[str, float]:
    return about(Case(load, policy, cluster, 32.0).outcome("").figures)


def setting(target: float, tolerance: float, window_s: float, ceiling: float | None = None) -> TunedSettings:
    return TunedSettings(target=target, tolerance=tolerance, window_s=window_s, ceiling=ceiling)


WAS = setting(70.0, 0.1, 300.0)


def test_a_costly_violation_lowers_the_target_and_the_evidence_agrees() -> None:
    cheap, dear = (tune(on_load(), demand(), CLUSTER, lam) for lam in (1.0, 128.0))
    assert dear.changed
    assert dear.now.target < cheap.now.target
    assert dear.after.j < 0.98 * dear.before.j
    assert dear.after.violations < dear.before.violations
    assert dear.rolling is not None and dear.held is not None
    assert dear.rolling.j < dear.held.j
    assert len(dear.days_won) > 4


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(replace(on_load(), signals=(PodAverage(metric=LOAD, target=0.3),)), id="scored in a quicker form"),
        pytest.param(replace(on_load(), settle=(Stabilise(), Stabilise(down_s=60.0), Rate())), id="not compiled"),
    ],
)
def test_exact_figures_are_those_of_a_backtest(policy: Policy) -> None:
    case = Case(demand("office", 2), policy, CLUSTER, 32.0)
    few = space_of(policy, CLUSTER)
    choice = search(case, few._replace(bare=few.bare[::20]), careful=False, exact=True)
    assert choice.before == case.outcome("").figures
    assert choice.after == case.with_policy(choice.policy).outcome("").figures
    assert choice.changed is (choice.after.j < choice.before.j)


@pytest.mark.parametrize("days, most", [(3, 0.3), (7, 0.8)])
def test_before_a_week_is_known_a_steady_load_moves_the_target_by_a_tenth(days: int, most: float) -> None:
    policy = tuned(on_load(), setting(0.2, 0.1, 300.0))
    steady = Demand("steady", np.full(days * 5760, 12.0), 0.0)
    found = search(Case(steady, policy, CLUSTER, 1.0), space_of(policy, CLUSTER))
    assert most - 0.2 < found.now.target < most + 1e-6


def test_what_a_backtest_finds_no_better_changes_nothing() -> None:
    policy = replace(on_load(), signals=(PodAverage(metric=LOAD, target=0.7),))
    case = Case(demand("office", 2), policy, CLUSTER, 32.0)
    lavish = replace(policy, signals=(PodAverage(metric=LOAD, target=0.05),))
    choice = search(case, space_of(policy, CLUSTER)._replace(bare=()))
    found = _exactly(case, choice._replace(now=setting(0.05, 0.1, 300.0), policy=lavish))
    assert not found.changed and found.policy == policy and found.after == found.before
    assert found.notes[-1].startswith(SIMPLER_IS_WRONG)


@pytest.mark.parametrize("was", [0.2, 0.4])
@pytest.mark.parametrize("days, short", [(3, True), (6, True), (7, False)])
def test_before_a_week_is_known_targets_move_little_and_no_day_gets_worse(days: int, short: bool, was: float) -> None:
    """Priced low, a load runs at 80 % with some violations once a week is known; before, from 20 to 30 % at most, and
    from 40 % nowhere, as every move has violations."""
    policy = tuned(on_load(), setting(was, 0.1, 300.0))
    case = Case(demand(days=days), policy, CLUSTER, 1.0)
    found = search(case, space_of(policy, CLUSTER))
    assert is_short(case) is short and (CAUTIOUS in found.notes) is short
    before, after = (case.days([tuned(policy, each)])[0] for each in (found.was, found.now))
    assert before is not None and after is not None
    assert (after.violating > before.violating + 1e-6).any() is np.bool_(not short)
    assert found.now.target == pytest.approx({0.2: 0.3, 0.4: 0.4}[was]) if short else found.now.target > 0.5


@pytest.mark.parametrize("steps", [0, 400, 5700])
def test_the_newest_days_are_tuned_on_not_the_oldest(steps: int) -> None:
    """A load that began to burst today needs what today needs; it is the beginning that is no whole day."""
    policy, whole = on_cpu(), demand(days=3)
    longer = Demand("longer", np.concatenate([np.full(steps, 1.0), whole.values]), -15.0 * steps)
    assert longer.last_whole_days()[1:3] == (pytest.approx(whole.values), 0.0)
    assert len(longer.last_whole_days().notes) == (steps > 0)
    assert about(tune(policy, longer, CLUSTER, 32.0).before) == figures(policy, whole)


def test_a_load_that_never_moves_keeps_a_good_setting() -> None:
    flat = Demand("flat", np.full(4 * 5760, 15.8), 0.0)
    found = tune(on_load(target=0.79, tolerance=0.0), flat, CLUSTER, 32.0)
    assert not found.changed
    assert found.now == setting(0.79, 0.0, 300.0)
    assert found.before == found.after


@pytest.mark.parametrize("percent", [50, 70, 80])
@pytest.mark.parametrize("tolerance", [0.0, 0.1])
@pytest.mark.parametrize("bridge", [None, Bridge()], ids=["plain", "bridge"])
def test_what_tuning_says_of_a_policy_on_cpu_is_what_a_backtest_says(
    percent: int, tolerance: float, bridge: Bridge | None
) -> None:
    """Of the present settings and of the chosen ones: 80.9 % is 80 for both, and unready pods count for neither."""
    signal = Utilization(metric=CPU, percent=percent, tolerance=Tolerance(up=tolerance, down=tolerance))
    policy, load = replace(on_cpu(), signals=(signal,), bridge=bridge), demand(days=2)
    found = tune(policy, load, CLUSTER, 32.0, Bridge())
    assert about(found.before) == figures(policy, load)
    assert about(found.after) == figures(found.policy, load)
    assert found.notes == (CAUTIOUS,)


def test_an_average_of_each_pod_is_tuned_on_the_total_and_says_so() -> None:
    policy = replace(on_load(), signals=(PodAverage(LOAD, 0.7),))
    assert "total load" in tune(policy, demand(days=2), CLUSTER, 32.0).notes[0]


LOOKS = replace(on_load(), forecast=ForecastChoice(model="seasonal", horizon_s=900.0, quantile=0.9))
NIGHT = ScheduledBounds(name="night", start=86400.0, end=100000.0, min_replicas=40)


@pytest.mark.parametrize(
    "policy, said",
    [
        pytest.param(LOOKS, "with the seasonal forecast", id="forecast"),
        pytest.param(replace(on_load(), bounds=Bounds(2, 200, (NIGHT,))), "with the schedules", id="schedule"),
    ],
)
def test_what_is_scored_is_the_whole_policy_as_a_backtest_runs_it(policy: Policy, said: str) -> None:
    """The demand of the fourth day on can be forecast."""
    load, cluster = demand("office", days=5), ClusterSpec(startup_s=900)
    found, alone = tune(policy, load, cluster, 32.0), tune(on_load(), load, cluster, 32.0)
    assert found.before.j == pytest.approx(figures(policy, load, cluster)["j"])
    assert found.before.j != pytest.approx(alone.before.j), "without it the figures are others"
    assert found.policy.forecast == policy.forecast and found.policy.bounds == policy.bounds
    assert any(said in note for note in found.notes)


@pytest.mark.parametrize(
    "policy, said",
    [
        pytest.param(replace(on_load(), admit=Admit(pin=3)), "neither paused nor pinned", id="pin"),
        pytest.param(replace(on_load(), vertical=Vertical()), "vertical part is left out", id="vertical"),
        pytest.param(replace(on_load(), bounds=Bounds(0, 200)), "one replica at least", id="to zero"),
        pytest.param(replace(on_load(), forecast=ForecastChoice(exact=True)), "without the quirks", id="exact"),
    ],
)
def test_what_is_scored_otherwise_is_said(policy: Policy, said: str) -> None:
    assert any(said in note for note in tune(policy, demand(days=2), CLUSTER, 32.0).notes)


def test_only_the_three_knobs_move() -> None:
    policy = on_load(settle=(StabiliseMax(), UpLimit()), most=77)
    new = tuned(policy, setting(5.0, 0.05, 60.0))
    assert new.settle == (Stabilise(down_s=60.0), Rate())
    assert new.bounds == policy.bounds
    assert settings_of(new) == setting(5.0, 0.05, 60.0)
    assert settings_of(quick_form(on_cpu(60), CLUSTER)).target == 60.0


def test_the_bridge_is_a_choice_where_pods_are_slow() -> None:
    slow = ClusterSpec(startup_s=600)
    alone, found = (tune(on_cpu(), demand("office"), slow, 32.0, bridge) for bridge in (None, Bridge()))
    assert alone.now.ceiling is None and found.now.ceiling == Bridge().ceiling and found.policy.bridge == Bridge()
    assert found.after.j < alone.after.j and found.after.resizes_per_pod_day > 0


LEARNED: dict[str, Any] = {"objective": Objective(), "forecast": ForecastChoice(model="learned")}


def test_an_objective_stays_where_no_target_does_better() -> None:
    """Slow mornings, every day the same: no target is better by enough than what is seen coming."""
    found = tune(replace(on_load(), **LEARNED), demand("office"), ClusterSpec(startup_s=600), 32.0)
    assert not found.changed and found.was.priced and found.policy.objective is not None
    assert found.before.j < tune(on_load(), demand("office"), ClusterSpec(startup_s=600), 32.0).before.j


def test_a_target_takes_the_place_of_an_objective_that_does_worse() -> None:
    never_down = Rate(down=Rates(select=Select.DISABLED))
    bound = replace(on_load(), **LEARNED | {"objective": Objective(settle=(never_down,))})
    found = tune(bound, demand("office"), CLUSTER, 32.0)
    assert found.was.priced and found.changed and not found.now.priced
    assert found.policy.objective is None and found.policy.forecast is None


def test_only_the_bridge_is_written_beside_an_objective_and_a_target_takes_its_place() -> None:
    ours = {**MANIFEST, "kind": "Autoscaler", "spec": MANIFEST["spec"] | {"objective": {"priority": "balanced"}}}
    lower = setting(50.0, 0.1, 60.0)
    priced = replace(lower, ceiling=0.75, priced=True)
    kept = with_new_settings(tunable_manifest(ours), WAS, priced).manifest
    assert kept["spec"] == ours["spec"] | {"bridge": {"maxFactor": "1.5", "ceiling": "0.75"}}
    new = with_new_settings(tunable_manifest(ours), WAS, lower).manifest
    assert "objective" not in new["spec"] and "behavior" in new["spec"]


def test_a_bridge_is_written_where_its_kind_has_a_place_for_it() -> None:
    ours = {**MANIFEST, "kind": "Autoscaler"}
    lower = setting(50.0, 0.1, 300.0)
    new = with_new_settings(tunable_manifest(ours), WAS, replace(lower, ceiling=0.75)).manifest
    assert new["spec"]["bridge"] == {"maxFactor": "1.5", "ceiling": "0.75"}
    smaller = {**ours, "spec": ours["spec"] | {"bridge": {"maxFactor": "1.25", "ceiling": "0.7"}}}
    kept = with_new_settings(tunable_manifest(smaller), WAS, replace(lower, ceiling=0.78)).manifest
    assert kept["spec"]["bridge"] == {"maxFactor": "1.25", "ceiling": "0.78"}
    assert "bridge" not in with_new_settings(tunable_manifest(smaller), WAS, lower).manifest["spec"]
    ehpa = with_new_settings(
        tunable_manifest({**MANIFEST, "kind": "EffectiveHorizontalPodAutoscaler"}), WAS, replace(lower, ceiling=0.75)
    )
    assert ehpa.manifest["metadata"]["annotations"] == {"trimtab.dev/bridge": "1.5"}


def test_every_ceiling_is_a_choice_where_it_can_be_written() -> None:
    ours, ehpa, hpa = "Autoscaler", "EffectiveHorizontalPodAutoscaler", "HorizontalPodAutoscaler"
    small = replace(on_cpu(), bridge=Bridge(max_factor=1.25))
    offered = writable_space(ours, small, CLUSTER)
    assert sorted(offered.ceilings) == sorted(CEILINGS) and offered.base.bridge == small.bridge
    for ceiling in offered.ceilings:
        manifest = with_new_settings(
            tunable_manifest({**MANIFEST, "kind": ours}), WAS, setting(50.0, 0.1, 300.0, ceiling)
        ).manifest
        assert manifest["spec"]["bridge"]["ceiling"] == f"{ceiling:g}"
    assert writable_space(ehpa, small, CLUSTER).ceilings == (0.75,), "an annotation has no room for a ceiling"
    without = (
        writable_space(hpa, on_cpu(), CLUSTER),
        writable_space(ours, on_load(), CLUSTER),
    )
    assert [space.ceilings for space in without] == [(), ()]


def test_too_little_history_and_nothing_to_tune() -> None:
    with pytest.raises(NotEnoughData, match=r"1\.0 days of history; tuning needs 2"):
        tune(on_load(), demand(days=1), CLUSTER, 32.0)
    with pytest.raises(InvalidPolicy, match="exactly one metric"):
        tune(replace(on_load(), signals=()), demand(), CLUSTER, 32.0)


MANIFEST: dict[str, Any] = {
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "labels": {"team": "a"}},
    "spec": {
        "maxReplicas": 9,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 70}}}],
        "behavior": {"scaleUp": {"stabilizationWindowSeconds": 30}},
    },
}


def test_the_manifest_keeps_everything_else() -> None:
    new, notes = with_new_settings(tunable_manifest(MANIFEST), WAS, setting(50.0, 0.05, 900.0))
    assert "HPAConfigurableTolerance" in notes[0]
    assert new["metadata"] == MANIFEST["metadata"]
    assert new["spec"]["metrics"][0]["resource"]["target"] == {"averageUtilization": 50}
    assert new["spec"]["behavior"] == {
        "scaleUp": {"stabilizationWindowSeconds": 30, "tolerance": "50m"},
        "scaleDown": {"stabilizationWindowSeconds": 900, "tolerance": "50m"},
    }
    assert MANIFEST["spec"]["behavior"] == {"scaleUp": {"stabilizationWindowSeconds": 30}}, "the original is untouched"


def test_a_manifest_of_another_shape_is_refused() -> None:
    with pytest.raises(InvalidInput, match="exactly one metric"):
        tunable_manifest({"kind": "Hvpa", "spec": {}})


def test_a_tolerance_that_holds_anyway_is_not_written() -> None:
    new, notes = with_new_settings(tunable_manifest(MANIFEST), WAS, setting(50.0, 0.1, 900.0))
    assert "tolerance" not in new["spec"]["behavior"]["scaleUp"] and notes == ()


def test_an_old_version_becomes_one_that_has_the_fields_and_says_so() -> None:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": reference, "maxReplicas": 9, "targetCPUUtilizationPercentage": 70}
    old = {"apiVersion": "autoscaling/v1", **MANIFEST, "spec": spec}
    new, notes = with_new_settings(tunable_manifest(old), WAS, setting(50.0, 0.1, 900.0))
    assert new["apiVersion"] == "autoscaling/v2"
    assert new["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 50
    assert notes == ("written as autoscaling/v2: autoscaling/v1 has no field for a tolerance",)


def test_the_metric_that_holds_without_a_word_is_written_out() -> None:
    bare = {**MANIFEST, "spec": {"maxReplicas": 9}}
    new, notes = with_new_settings(tunable_manifest(bare), WAS, setting(50.0, 0.1, 900.0))
    assert new["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 50
    assert "CPU at 80 %" in notes[0]


def test_no_window_is_advised_that_is_shorter_than_what_pods_report_is_old() -> None:
    """Right after a decrease the pods that remain report what they had before it, as if more could go."""
    by_total, by_pod = (reactive_settings(policy, CLUSTER) for policy in (on_load(), on_cpu()))
    assert {each.window_s for each in by_total} == {0.0, 60.0, 300.0, 900.0, 1800.0}
    assert {each.window_s for each in by_pod} == {60.0, 300.0, 900.0, 1800.0}
