"""What if equals `trimtab backtest` to the digit, and what it gives to take away means what was judged."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.web.conftest import Shop
from tests.web.recorded import START
from trimtab.cli import main
from trimtab.core.overload import Yardstick
from trimtab.errors import InvalidInput
from trimtab.journal import ObjectName
from trimtab.kinds import Scaler, read
from trimtab.policy import Bridge, ForecastChoice, Policy
from trimtab.tune.case import Outcome
from trimtab.web.packing import PageTable
from trimtab.web.sources import JournalSource, Knobs, answered, base_query
from trimtab.web.whatif import (
    KUBECTL,
    History,
    answer,
    as_yaml,
    command,
    csv,
    history_of,
    judge,
    patch,
    present,
    with_knobs,
)

WEB = ObjectName("Autoscaler", "shop", "web")
CACHE = ObjectName("HorizontalPodAutoscaler", "shop", "cache")
PODS = {"type": "Pods", "value": 2, "periodSeconds": 60}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}}
REQUESTS = {
    "type": "External",
    "external": {"metric": {"name": "requests"}, "target": {"type": "AverageValue", "averageValue": "70"}},
}


def minutes_of(shop: Shop, name: ObjectName) -> PageTable:
    found = JournalSource(shop.path, "shop").answer("workload", base_query(name._asdict()))
    assert isinstance(found, PageTable)
    return found


@pytest.fixture
def known(shop: Shop) -> History:
    return history_of(minutes_of(shop, WEB))


@pytest.fixture
def cpu(shop: Shop) -> History:
    """One that is scaled by CPU, as an Autoscaler."""
    found = history_of(minutes_of(shop, CACHE))
    return found._replace(name=ObjectName("Autoscaler", "shop", "cache"))


def merged(value: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7386), as `kubectl patch --type merge` applies it."""
    if not isinstance(patch, dict):
        return patch
    value = value if isinstance(value, dict) else {}
    kept = {key: part for key, part in value.items() if key not in patch}
    return kept | {key: merged(value.get(key), part) for key, part in patch.items() if part is not None}


def compiled(written: dict[str, Any]) -> Policy:
    found = read(written)
    assert isinstance(found, Scaler)
    return found.to_policy(START)


def manifest(known: History, knobs: Knobs, **had: object) -> dict[str, Any]:
    """The object of the shop, with what it had besides, as the page's patch leaves it."""
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 2,
        "maxReplicas": 60,
        "metrics": [CPU if known.name.name == "cache" else REQUESTS],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 300}},
    }
    return {
        "apiVersion": "trimtab.dev/v1alpha1",
        "kind": "Autoscaler",
        "metadata": {"name": "web"},
        "spec": merged(spec | had, yaml.safe_load(as_yaml(known, knobs))["spec"]),
    }


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="as it is"),
        pytest.param({"target": 0.55}, id="target"),
        pytest.param({"tolerance": 0.02, "down_window_s": 900.0}, id="tolerance and window"),
        pytest.param({"least": 8, "most": 12, "up_window_s": 60.0}, id="bounds"),
        pytest.param({"startup_s": 600.0, "price": 128.0}, id="start-up and price"),
    ],
)
def test_it_equals_the_backtest_to_the_digit(known: History, tmp_path: Path, changes: dict[str, Any]) -> None:
    assert_equal_to_the_backtest(known, present(known)._replace(**changes), tmp_path)


@pytest.mark.parametrize(
    "now, then",
    [
        pytest.param(1.0, 1.5, id="given"),
        pytest.param(1.0, 1.25, id="given a little"),
        pytest.param(1.5, 1.0, id="taken away"),
        pytest.param(1.5, 1.5, id="kept"),
    ],
)
def test_with_a_bridge_it_equals_the_backtest_on_the_total(
    cpu: History, tmp_path: Path, now: float, then: float
) -> None:
    bridge = Bridge(max_factor=now, resizes_per_hour=12) if now > 1 else None  # as the operator compiles it
    known = cpu._replace(policy=replace(cpu.policy, bridge=bridge))
    knobs = present(known)._replace(bridge=then, target=0.75, startup_s=300.0)
    outcome = assert_equal_to_the_backtest(known, knobs, tmp_path, "--on-total", **({"bridge": {}} if now > 1 else {}))
    assert (outcome.by_name()["resizes"] > 0) == (then > 1)


@pytest.mark.parametrize("changes", [{}, {"target": 0.55}])
def test_schedules_are_in_force_in_all_of_the_history(shop: Shop, tmp_path: Path, changes: dict[str, Any]) -> None:
    """However late the operator compiled them."""
    minutes = minutes_of(shop, WEB)
    day = {"name": "day", "start": "0 8 * * *", "end": "0 23 * * *", "minReplicas": 40}
    written = manifest(history_of(minutes), present(history_of(minutes)), schedules=[day])
    policy = read(written).to_policy(START + 30 * 86400)  # type: ignore[attr-defined]
    known = history_of(minutes._replace(about=minutes.about | {"policy": policy}))
    outcome = assert_equal_to_the_backtest(known, present(known)._replace(**changes), tmp_path, schedules=[day])
    assert outcome.pod_hours > judge(history_of(minutes), present(known))[0].pod_hours


@pytest.mark.parametrize("price", [64.0, 128.0])
def test_the_price_is_that_of_the_objects_own_objective_until_it_is_moved(
    cpu: History, tmp_path: Path, price: float
) -> None:
    written = manifest(cpu, present(cpu)) | {"metadata": {"name": "cache"}}
    spec = written["spec"] | {"objective": {"price": 64}}
    known = cpu._replace(policy=compiled(written | {"spec": spec}))
    assert present(known).price == 64.0
    knobs = present(known)._replace(price=price)
    moved = yaml.safe_load(as_yaml(known, knobs))["spec"]
    assert moved.get("objective") == (None if price == 64.0 else {"price": 128, "priority": None})
    assert compiled(written | {"spec": merged(spec, moved)}) == with_knobs(known, knobs)
    judged, _ = judge(known, knobs)
    assert judged.by_name() != judge(known, knobs._replace(price=8.0))[0].by_name()


def assert_equal_to_the_backtest(known: History, knobs: Knobs, tmp_path: Path, *flags: str, **had: object) -> Outcome:
    outcome, _ = judge(known, knobs)
    (tmp_path / "load.csv").write_text(csv(known))
    (tmp_path / "web.yaml").write_text(yaml.safe_dump(manifest(known, knobs, **had)))
    options = {
        "-f": tmp_path / "web.yaml",
        "--load": tmp_path / "load.csv",
        "--startup": f"{knobs.startup_s:g}s",
        "--objective": knobs.price,
        "--pod-capacity": known.capacity,
        "-o": "json",
    }
    done = CliRunner().invoke(main, ["backtest", *flags, *(str(part) for pair in options.items() for part in pair)])
    assert done.exit_code == 0, done.output
    (told,) = json.loads(done.stdout)["policies"]
    assert {key: told[key] for key in outcome.by_name()} == outcome.by_name()
    return outcome


@pytest.mark.parametrize("changes", [{}, {"target": 0.5, "least": 3, "down_window_s": 120.0, "up_window_s": 30.0}])
def test_the_patch_means_the_policy_that_was_judged(known: History, changes: dict[str, Any]) -> None:
    knobs = present(known)._replace(**changes)
    assert compiled(manifest(known, knobs)) == with_knobs(known, knobs)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # it changes nothing
@given(st.builds(ObjectName, *(st.text(st.characters(exclude_characters="\n", codec="utf-8"), min_size=1),) * 3))
def test_the_command_is_one_line_that_a_shell_cannot_misread(known: History, name: ObjectName) -> None:
    evil = known._replace(name=name)
    text, kind = command(evil, present(known)), KUBECTL.get(name.kind, name.kind.lower())
    words = ["kubectl", "patch", kind, name.name, "-n", name.namespace, "--type", "merge", "-p"]
    assert shlex.split(text)[:-1] == words and "\n" not in text


@pytest.mark.parametrize(
    "selector, labels",
    [
        pytest.param("", {}, id="none"),
        pytest.param("app=web,tier=front", {"app": "web", "tier": "front"}, id="labels"),
        pytest.param("app in (a,b)", None, id="a set"),
        pytest.param("app!=web", None, id="another"),
        pytest.param("app==web", None, id="twice equal"),
        pytest.param("app", None, id="any"),
    ],
)
def test_a_selector_is_taken_along_or_said(known: History, selector: str, labels: dict[str, str] | None) -> None:
    (signal,) = known.policy.signals
    signal = replace(signal, metric=replace(signal.metric, selector=selector))
    selective = known._replace(policy=replace(known.policy, signals=(signal,)))
    knobs = present(selective)._replace(target=0.5)
    spec = yaml.safe_load(as_yaml(selective, knobs))["spec"]
    about, _ = answer(selective, knobs)
    if labels is None:
        assert "metrics" not in spec and about["notes"][-1].endswith("set its target to 50")
    else:
        assert spec["metrics"][0]["external"]["metric"].get("selector", {}).get("matchLabels", {}) == labels


def test_what_is_in_force_changes_nothing(known: History) -> None:
    assert with_knobs(known, present(known)) == known.policy
    assert patch(known, present(known)) == {"spec": {}}
    assert present(known)[:6] == (0.7, 0.1, 0.0, 300.0, 2, 60)


@pytest.mark.parametrize(
    "changes, moved",
    [
        pytest.param({}, set(), id="nothing"),
        pytest.param({"least": 1}, {"minReplicas"}, id="the floor"),
        pytest.param({"target": 0.6}, {"metrics"}, id="the target"),
        pytest.param({"down_window_s": 600.0}, {"behavior"}, id="a window"),
        pytest.param({"tolerance": 0.05}, {"behavior"}, id="the tolerance"),
    ],
)
@pytest.mark.parametrize("behavior", [None, {"scaleUp": {"tolerance": 0, "policies": [PODS]}}])
def test_only_what_moved_is_patched(
    cpu: History, changes: dict[str, Any], moved: set[str], behavior: dict[str, Any] | None
) -> None:
    """Zero replicas, the name of a query and a tolerance of one direction are no sliders, or stand as they were."""
    query = {"name": "waiting", "query": "sum(waiting)", "target": {"type": "AverageValue", "averageValue": "5"}}
    metric = {"type": "Prometheus", "prometheus": query}
    written = manifest(cpu, present(cpu), minReplicas=0, metrics=[metric], behavior=behavior)
    known = cpu._replace(policy=compiled(written), pod=Yardstick(request=10.0, level=8.0, limit=10.0))
    knobs = present(known)._replace(**changes)
    spec = patch(known, knobs)["spec"]
    assert set(spec) == moved
    assert compiled(written | {"spec": merged(written["spec"], spec)}) == with_knobs(known, knobs)
    assert known.policy == with_knobs(known, present(known)) and present(known).least == 0
    assert judge(known, knobs)[0].pod_hours > 0


def test_a_share_of_requests_is_judged_as_pods_show_it(shop: Shop) -> None:
    cache = history_of(minutes_of(shop, CACHE))
    outcome, notes = judge(cache, present(cache)._replace(target=0.5))
    assert cache.capacity == 1.0 and notes == list(cache.demand.notes)
    assert outcome.pod_hours > judge(cache, present(cache))[0].pod_hours


def test_a_share_of_requests_with_a_forecast_is_judged_on_the_total_and_says_so(cpu: History) -> None:
    ahead = cpu._replace(policy=replace(cpu.policy, forecast=ForecastChoice(model="linear", horizon_s=60.0)))
    assert judge(ahead, present(ahead))[1][-1].startswith("judged on the total of the load")


def test_a_bridge_needs_cpu_and_a_kind_that_may_have_one(known: History, cpu: History) -> None:
    for refused in (known, cpu._replace(name=ObjectName("HorizontalPodAutoscaler", "shop", "cache"))):
        with pytest.raises(InvalidInput, match="bridge"):
            judge(refused, present(refused)._replace(bridge=1.5))


def test_other_kinds_get_a_bridge_by_annotation(cpu: History) -> None:
    crane = cpu._replace(name=ObjectName("EffectiveHorizontalPodAutoscaler", "shop", "cache"))
    found = patch(crane, present(crane)._replace(bridge=1.25))
    assert found["metadata"] == {"annotations": {"trimtab.dev/bridge": "1.25"}} and "bridge" not in found["spec"]


def test_numbers_out_of_range_are_refused_and_counts_are_whole(shop: Shop) -> None:
    source = JournalSource(shop.path, "shop")
    assert "target" in str(answered(source, "whatif", WEB._asdict() | {"target": "7"}))
    found = answered(source, "whatif", WEB._asdict() | {"least": "0", "most": "3.0"})
    assert isinstance(found, PageTable) and (found.about["knobs"]["least"], found.about["knobs"]["most"]) == (0, 3)
