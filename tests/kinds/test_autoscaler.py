"""What Autoscaler adds to autoscaling/v2."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from tests.kinds import generate
from trimtab.core.forecast import FORECASTERS, options_of
from trimtab.errors import InvalidObject
from trimtab.kinds import Autoscaler, read
from trimtab.kinds.autoscaler import AutoscalerSpec, ForecastSpec, overridden
from trimtab.kinds.horizontal import LINE
from trimtab.kinds.schema import structural
from trimtab.policy import (
    Absence,
    Admit,
    Apply,
    Axis,
    Bounds,
    Bucket,
    Buckets,
    BucketSizing,
    Capacity,
    ContainerRule,
    Cooldown,
    Direction,
    Factor,
    ForecastChoice,
    Margin,
    Margins,
    MaxFactor,
    Metric,
    MetricKind,
    MinFactor,
    Mode,
    Policy,
    Rate,
    Size,
    Stabilise,
    Stage,
    TotalAverage,
    Weights,
)

NOW = 1_700_000_000.0  # Tuesday, 2023-11-14 22:13:20 UTC
MONDAY_8_BERLIN = 1_700_463_600.0  # 2023-11-20 07:00 UTC


def manifest(annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": "trimtab.dev/v1alpha1",
        "kind": "Autoscaler",
        "metadata": {"name": "web", "annotations": annotations or {}},
        "spec": {"scaleTargetRef": target, "maxReplicas": 10} | spec,
    }


def compiled(**spec: Any) -> Policy:
    obj = read(manifest(**spec))
    assert isinstance(obj, Autoscaler)
    return obj.to_policy(NOW)


@settings(max_examples=150, deadline=None)
@given(written=generate.AUTOSCALERS)
def test_it_comes_back_as_written_and_always_compiles(written: dict[str, Any]) -> None:
    obj = read(written)
    assert obj.manifest() == written
    assert isinstance(obj, Autoscaler)
    assert obj.to_policy(NOW) == obj.to_policy(NOW)


@pytest.mark.parametrize("field", ["serverAddress", "url", "headers", "authSecret"])
def test_where_prometheus_is_and_how_to_get_in_is_never_the_objects_business(field: str) -> None:
    query = {"query": "up", "target": {"type": "Value", "value": "1"}, field: "http://elsewhere"}
    with pytest.raises(InvalidObject) as caught:
        compiled(metrics=[{"type": "Prometheus", "prometheus": query}])
    assert caught.value.path == f"spec.metrics[0].prometheus.{field}"


def test_a_prometheus_query_is_shared_by_the_replicas() -> None:
    query = {"query": "sum(rps)", "target": {"type": "AverageValue", "averageValue": "50"}}
    (signal,) = compiled(metrics=[{"type": "Prometheus", "prometheus": query}]).signals
    assert isinstance(signal, TotalAverage)
    assert (signal.metric.query, signal.target) == ("sum(rps)", 50)


def test_the_words_of_custom_hpa_follow_the_rules_of_hpa_in_its_order() -> None:
    policy = compiled(behavior={"scaleUp": {"cooldownSeconds": 60, "minFactor": 0.2, "maxFactor": 0.5}})
    assert policy.settle[:2] == (Stabilise(), Rate())
    cap, rest, worth = policy.settle[2:]
    assert (cap, rest) == (MaxFactor(up=0.5, down=1.0), Cooldown(up_s=60, down_s=0))
    assert worth == MinFactor(up=0.2, down=0.0)


def test_a_direction_without_a_cap_is_not_capped() -> None:
    (cap,) = compiled(behavior={"scaleDown": {"maxFactor": 0.3}}).settle[2:]
    assert isinstance(cap, MaxFactor)
    assert cap.down == 0.3
    assert cap.up > 1e6


@pytest.mark.parametrize("mode", list(Mode))
def test_modes(mode: Mode) -> None:
    assert compiled(mode=mode.value).admit == Admit(mode=mode)


def test_annotations_pause_and_pin() -> None:
    notes = {"trimtab.dev/pin": "6", "trimtab.dev/pin-until": "2023-11-15T00:00:00+01:00"}
    policy = compiled(annotations=notes)
    assert policy.admit == Admit(pin=6, pin_until=1_700_002_800.0)
    assert compiled(annotations={"trimtab.dev/paused": "true"}).admit.mode is Mode.PAUSED
    until = compiled(annotations={"trimtab.dev/paused-until": "2023-11-15T00:00:00Z"}).admit
    assert until == Admit(paused_until=1_700_006_400.0)


@pytest.mark.parametrize(
    "key, value",
    [
        ("pin", "six"),
        ("pin", "-1"),
        ("pin-until", "tomorrow"),
        ("paused", "yes"),
        ("paused-until", "8:00"),
        ("paused-until", "9999-12-31T23:59:59-12:00"),
    ],
)
def test_annotations_that_cannot_be_meant_are_refused_with_their_path(key: str, value: str) -> None:
    with pytest.raises(InvalidObject) as caught:
        read(manifest(annotations={f"trimtab.dev/{key}": value}))
    assert caught.value.path == f'metadata.annotations["trimtab.dev/{key}"]'


def test_schedules_become_utc_spans_from_a_day_before_to_eight_days_after() -> None:
    office = {"name": "office", "timezone": "Europe/Berlin", "start": "0 8 * * 1-5", "end": "0 18 * * 1-5"}
    spans = compiled(schedules=[office | {"minReplicas": 4, "maxReplicas": 8}]).bounds.spans
    assert [span.name for span in spans] == ["office"] * 7
    assert MONDAY_8_BERLIN in [span.start for span in spans]
    assert all((span.end - span.start, span.min_replicas, span.max_replicas) == (36000, 4, 8) for span in spans)
    assert spans[0].start >= NOW - 86400 - 3600
    assert spans[-1].start <= NOW + 8 * 86400


@pytest.mark.parametrize(
    "change, path",
    [
        ({"timezone": "Mars/Base"}, "spec.schedules[0].timezone"),
        ({"start": "0 25 * * *"}, "spec.schedules[0].start"),
        ({"end": "soon"}, "spec.schedules[0].end"),
        ({"start": "* * * * *", "end": "* * * * *"}, "spec.schedules[0].start"),
        ({"start": "*/2 * * * *", "end": "1-59/2 * * * *"}, "spec.schedules[0].start"),
        ({"minReplicas": None}, "spec.schedules[0].minReplicas"),
    ],
)
def test_schedules_that_cannot_be_meant_are_refused(change: dict[str, Any], path: str) -> None:
    schedule = {"name": "x", "start": "0 8 * * *", "end": "0 18 * * *", "minReplicas": 2} | change
    with pytest.raises(InvalidObject) as caught:
        read(manifest(schedules=[schedule]))
    assert caught.value.path == path


def test_metric_failure_holds_and_then_has_a_floor() -> None:
    assert compiled(onMetricFailure={"then": {"replicas": 6}}).absence == Absence(hold_s=300, then_replicas=6)
    lower = compiled(onMetricFailure={"holdSeconds": 0, "then": {"replicas": 1, "allowDecrease": True}}).absence
    assert lower == Absence(hold_s=0, then_replicas=1, allow_decrease=True)


def test_vertical_alone_leaves_the_number_of_pods_to_others() -> None:
    policy = compiled(maxReplicas=None, vertical={"apply": "Recreate"})
    assert policy.signals == ()
    assert policy.bounds == Bounds(min_replicas=1, max_replicas=2**31 - 1)
    assert policy.vertical is not None
    assert policy.vertical.apply is Apply.RECREATE


def test_container_policies_end_with_all_the_others() -> None:
    app = {"containerName": "app", "minAllowed": {"cpu": "250m"}, "maxAllowed": {"memory": "1Gi"}}
    proxy = {"containerName": "proxy", "mode": "Off"}
    limits = {"containerName": "*", "controlledResources": ["cpu"], "controlledValues": "RequestsOnly"}
    rules = compiled(vertical={"resourcePolicy": {"containerPolicies": [limits, app, proxy]}}).vertical
    assert rules is not None
    assert rules.containers == (
        ContainerRule(name="app", least=Size(cpu_cores=0.25), most=Size(memory_bytes=2**30)),
        ContainerRule(name="proxy", off=True),
        ContainerRule(name="*", memory=False, requests_only=True),
    )


def test_blends() -> None:
    weights = {"weights": {"intervals": [{"vpaWeight": 0.6, "startReplicaCount": 3}, {"vpaWeight": 0}]}}
    assert compiled(vertical={}, minReplicas=2, blend=weights).blend == Weights(
        stages=(
            Stage(vertical_share=0.6, first=3, last=10, until_most=True),
            Stage(vertical_share=0.0, first=2, last=10, until_least=True, until_most=True),
        )
    )
    bucket = {"replicas": {"min": 1, "max": 8}, "cpu": {"min": 0, "max": "24000m"}}
    chosen = {"buckets": {"buckets": [bucket], "sizing": "Share", "overlapPercent": 30}}
    margin = Margin(percent=30)
    assert compiled(vertical={}, blend=chosen).blend == Buckets(
        buckets=(Bucket(replicas_min=1, replicas_max=8, least=Size(cpu_cores=0), most=Size(cpu_cores=24)),),
        sizing=BucketSizing.SHARE,
        overlap=Margins(cpu=margin, memory=margin),
    )
    assert compiled(vertical={}, blend={"capacity": {"preferred": {"cpu": 2}}}).blend == Capacity(
        preferred=Size(cpu_cores=2)
    )


@pytest.mark.parametrize(
    "horizon, horizon_s", [("startup", None), (300, 300.0), ("5m", 300.0)], ids=["start-up", "seconds", "duration"]
)
def test_forecast_horizons(horizon: Any, horizon_s: float | None) -> None:
    policy = compiled(forecast={"model": "linear", "horizon": horizon})
    assert policy.forecast == replace(LINE, horizon_s=horizon_s)


@pytest.mark.parametrize("model", ["linear", "holtWinters", "dsp", "percentile"])
def test_a_models_own_program_can_be_asked_for(model: str) -> None:
    policy = compiled(forecast={"model": model, "exact": True})
    assert policy.forecast == ForecastChoice(model=model, exact=True)
    assert options_of(policy.forecast).exact


def test_every_model_that_can_be_written_exists() -> None:
    models = get_args(ForecastSpec.model_fields["model"].annotation)
    assert set(models) == set(FORECASTERS)


@pytest.mark.parametrize(
    "spec, problem",
    [
        ({"blend": {"capacity": {}}}, "spec.blend: {'capacity': {}}: blend needs vertical"),
        ({"vertical": {}, "blend": {}}, "choose exactly one of weights, buckets, capacity"),
        ({"maxReplicas": None}, "spec.maxReplicas: missing: set it"),
        ({"maxReplicas": None, "vertical": {}, "behavior": {}}, "behavior, forecast and blend move the number"),
        ({"forecast": {"model": "seasonal", "exact": True}}, "spec.forecast.exact: True: leave it out"),
        ({"forecast": {"model": "auto"}}, "spec.forecast.model: 'auto': write one of: linear"),
        ({"objective": "balanced"}, "spec.objective: 'balanced': write a mapping"),
        ({"tuning": "Daily"}, "spec.tuning: 'Daily': write a mapping"),
        ({"vertical": {"resourcePolicy": {"containerPolicies": [{}, {}]}}}, "each containerName may appear once"),
    ],
)
def test_what_contradicts_itself_is_refused(spec: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidObject) as caught:
        read(manifest(**spec))
    assert problem in str(caught.value)


def test_all_problems_are_reported_at_once() -> None:
    wrong = manifest(minReplicas=-1, mode="off", schedules=[{"name": "x"}], metrics=[{"type": "Pods"}])
    with pytest.raises(InvalidObject) as caught:
        read(wrong)
    assert [problem.path for problem in caught.value.problems] == [
        "spec.minReplicas",
        "spec.metrics[0].type",
        "spec.mode",
        "spec.schedules[0].start",
        "spec.schedules[0].end",
    ]


def test_a_rollout_needs_a_tenth_of_difference_and_a_resize_none() -> None:
    rolled = compiled(vertical={"apply": "Recreate"}).gates
    assert {(gate.axis, gate.direction) for gate in rolled} == {
        (a, d) for a in (Axis.CPU, Axis.MEMORY) for d in Direction
    }
    assert {getattr(gate, "percent", None) for gate in rolled} == {10.0}
    assert not compiled(vertical={"apply": "InPlace"}).gates


CUSTOM_HPA = {
    "signals": [{"is": "Factor", "metric": {"is": "Metric", "kind": "Prometheus", "query": "up"}, "target": 5}],
    "absence": {"zero_is_missing": True},
    "replays_noop": True,
}


def test_exact_replaces_parts_of_the_policy_and_leaves_the_others() -> None:
    held = {"holdSeconds": 60}
    usual, made = compiled(onMetricFailure=held), compiled(onMetricFailure=held, exact=CUSTOM_HPA)
    assert made.signals == (Factor(metric=Metric(kind=MetricKind.PROMETHEUS, query="up"), target=5.0),)
    assert made.absence == Absence(hold_s=60.0, zero_is_missing=True)
    assert replace(made, signals=usual.signals, absence=usual.absence, replays_noop=False) == usual


@settings(max_examples=100, deadline=None)
@given(written=generate.AUTOSCALERS)
def test_a_policy_overridden_by_itself_is_the_same(written: dict[str, Any]) -> None:
    obj = read(written)
    assert isinstance(obj, Autoscaler)
    policy = obj.to_policy(NOW)
    parts = {name: getattr(policy, name) for name in Policy.__struct_fields__}
    assert overridden(Policy(), parts) == policy


@pytest.mark.parametrize(
    "exact", [{"signal": []}, {"signals": [{"is": "Guess"}]}, {"settle": 3}, {"blend": {"exact": True}}, {"pods": [1]}]
)
def test_what_no_policy_holds_is_refused_in_exact(exact: dict[str, Any]) -> None:
    with pytest.raises(InvalidObject, match=r"spec\.exact: "):
        read(manifest(exact=exact))


def test_exact_cannot_be_applied_to_a_cluster() -> None:
    assert "exact" not in structural(AutoscalerSpec)["properties"]
