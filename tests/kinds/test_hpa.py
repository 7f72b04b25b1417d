"""HorizontalPodAutoscalers mean what Kubernetes means by them, and an Autoscaler with the same spec means the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from tests.kinds import generate
from trimtab.errors import InvalidObject
from trimtab.kinds import Hpa, Scaler, read
from trimtab.kinds.horizontal import LINE
from trimtab.kinds.ignored import warnings
from trimtab.policy import (
    ForecastChoice,
    Metric,
    MetricKind,
    PodAverage,
    Policy,
    Rate,
    RatePolicy,
    Rates,
    Select,
    Stabilise,
    StabiliseMax,
    Tolerance,
    Total,
    TotalAverage,
    UpLimit,
    Utilization,
)

NOW = 1_700_000_000.0


def compiled(manifest: dict[str, Any]) -> Policy:
    obj = read(manifest)
    assert isinstance(obj, Scaler)
    return obj.to_policy(NOW)


def hpa(version: str = "v2", annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": f"autoscaling/{version}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "annotations": annotations or {}},
        "spec": {"scaleTargetRef": target, "maxReplicas": 10} | spec,
    }


@settings(max_examples=200, deadline=None)
@given(manifest=generate.HPAS)
def test_an_autoscaler_with_the_same_spec_is_the_same_policy(manifest: dict[str, Any]) -> None:
    twin = manifest | {"apiVersion": "trimtab.dev/v1alpha1", "kind": "Autoscaler"}
    beta = manifest | {"apiVersion": "autoscaling/v2beta2"}
    assert compiled(manifest) == compiled(twin) == compiled(beta)


@settings(max_examples=100, deadline=None)
@given(manifest=generate.HPAS)
def test_a_manifest_comes_back_as_it_was_written(manifest: dict[str, Any]) -> None:
    assert read(manifest).manifest() == manifest


def test_without_behavior_the_older_rules_hold_and_cpu_at_80_percent_is_the_metric() -> None:
    policy = compiled(hpa())
    assert policy.settle == (StabiliseMax(window_s=300), UpLimit(factor=2, minimum=4))
    assert policy.signals == (
        Utilization(metric=Metric(kind=MetricKind.RESOURCE, name="cpu"), percent=80, tolerance=Tolerance()),
    )
    assert (policy.bounds.min_replicas, policy.bounds.max_replicas) == (1, 10)
    assert policy.forecast is None


def test_an_empty_behavior_is_not_the_same_as_none() -> None:
    assert compiled(hpa(behavior={})).settle == (Stabilise(up_s=0, down_s=300), Rate())


def test_behavior_is_filled_field_by_field() -> None:
    up = {"policies": [{"type": "Percent", "value": 50, "periodSeconds": 60}], "selectPolicy": "Min"}
    down = {"stabilizationWindowSeconds": 0, "tolerance": "50m"}
    policy = compiled(hpa(behavior={"scaleUp": up, "scaleDown": down}))
    up_rates = Rates(select=Select.MIN, policies=(RatePolicy(percent=True, value=50, period_s=60),))
    assert policy.settle == (Stabilise(up_s=0, down_s=0), Rate(up=up_rates, down=Rate().down))
    assert policy.signals[0].tolerance == Tolerance(up=0.1, down=0.05)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "metric, signal",
    [
        pytest.param(
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "250m"}},
            },
            PodAverage(metric=Metric(kind=MetricKind.RESOURCE, name="cpu"), target=0.25),
            id="cpu by amount",
        ),
        pytest.param(
            {
                "type": "ContainerResource",
                "containerResource": {
                    "name": "memory",
                    "container": "app",
                    "target": {"type": "Utilization", "averageUtilization": 70},
                },
            },
            Utilization(metric=Metric(kind=MetricKind.CONTAINER, name="memory", container="app"), percent=70),
            id="one container",
        ),
        pytest.param(
            {
                "type": "Pods",
                "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "1k"}},
            },
            PodAverage(metric=Metric(kind=MetricKind.PODS, name="rps"), target=1000),
            id="pods",
        ),
        pytest.param(
            {
                "type": "Object",
                "object": {
                    "describedObject": {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"},
                    "metric": {"name": "rps", "selector": {"matchLabels": {"verb": "GET"}}},
                    "target": {"type": "Value", "value": 10},
                },
            },
            Total(
                metric=Metric(
                    kind=MetricKind.OBJECT,
                    name="rps",
                    selector="verb=GET",
                    object="networking.k8s.io/v1/Ingress/main",
                ),
                target=10,
            ),
            id="an object",
        ),
        pytest.param(
            {
                "type": "External",
                "external": {
                    "metric": {
                        "name": "queue",
                        "selector": {
                            "matchExpressions": [
                                {"key": "q", "operator": "NotIn", "values": ["b", "a"]},
                                {"key": "x", "operator": "DoesNotExist"},
                            ]
                        },
                    },
                    "target": {"type": "AverageValue", "averageValue": 0.5},
                },
            },
            TotalAverage(
                metric=Metric(kind=MetricKind.EXTERNAL, name="queue", selector="!x,q notin (a,b)"), target=0.5
            ),
            id="external, with a selector and an unquoted fraction",
        ),
    ],
)
def test_each_metric_type_becomes_its_signal(metric: dict[str, Any], signal: Any) -> None:
    assert compiled(hpa(metrics=[metric])).signals == (signal,)


def test_version_1_is_cpu_alone() -> None:
    assert compiled(hpa("v1", targetCPUUtilizationPercentage=55)).signals[0].percent == 55  # type: ignore[union-attr]
    assert compiled(hpa("v1")) == compiled(hpa("v2"))


def test_metrics_hidden_in_annotations_of_version_1_are_refused() -> None:
    with pytest.raises(InvalidObject, match=r"autoscaling.alpha.kubernetes.io/metrics.*autoscaling/v2"):
        read(hpa("v1", {"autoscaling.alpha.kubernetes.io/metrics": "[]"}))


@pytest.mark.parametrize(
    "value, predictive",
    [
        pytest.param("true", True, id="003 kubectl annotate: true"),
        pytest.param("\u2019true\u2019", True, id="003 kubectl annotate, as printed with curly quotes"),
        pytest.param("\u201cTrue\u201d", True, id="003 kubectl annotate: True"),
        pytest.param("'true'", True, id="003 kubectl annotate: straight quotes that reached the value"),
        pytest.param("false", False, id="003 turned off"),
    ],
)
def test_predictive_hpa_is_switched_on_in_any_quotes(value: str, predictive: bool) -> None:
    obj = read(hpa(annotations={"predictive": value}))
    assert isinstance(obj, Hpa)
    assert obj.predictive is predictive
    assert obj.to_policy(NOW).forecast == (LINE if predictive else None)


def test_predictive_hpas_own_line_can_be_asked_for() -> None:
    obj = read(hpa(annotations={"predictive": "true", "trimtab.dev/exact": "true"}))
    assert isinstance(obj, Hpa)
    assert obj.to_policy(NOW).forecast == ForecastChoice(model="linear", exact=True)
    assert list(warnings(obj)) == []
    plain = read(hpa(annotations={"trimtab.dev/exact": "true"}))
    assert isinstance(plain, Hpa)
    assert [found.path for found in warnings(plain)] == ['metadata.annotations["trimtab.dev/exact"]']
    with pytest.raises(InvalidObject, match=r'trimtab.dev/exact"\]: .*write "true" or "false"'):
        read(hpa(annotations={"predictive": "true", "trimtab.dev/exact": "yes"}))


def test_an_annotation_that_says_neither_is_refused_by_name() -> None:
    with pytest.raises(InvalidObject, match=r'metadata.annotations\["predictive"\].*yes.*write "true" or "false"'):
        read(hpa(annotations={"predictive": "yes"}))


def test_an_unquoted_annotation_gets_the_hint() -> None:
    with pytest.raises(InvalidObject, match=r"metadata.annotations.predictive: True: quote it"):
        read(hpa(annotations={"predictive": True}))  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "spec, message",
    [
        ({"minReplicas": 11}, "spec.minReplicas: 11: must not be above maxReplicas"),
        ({"minReplicas": 0}, "spec.minReplicas: 0: zero needs a metric"),
        ({"minReplicas": "2"}, "spec.minReplicas: '2': write a whole number, without quotes"),
        ({"maxReplicas": 0}, "spec.maxReplicas: 0: must be at least 1"),
        ({"maxreplicas": 3}, "spec.maxreplicas: 3: there is no such field; did you mean maxReplicas?"),
        ({"scaleTargetRef": {"kind": "Deployment", "name": "web"}}, "spec.scaleTargetRef.apiVersion: missing: write"),
        ({"metrics": [{"type": "Pods"}]}, r"spec.metrics\[0\].type: 'Pods': fill in the member"),
        ({"behavior": {"scaleUp": {"policies": []}}}, r"spec.behavior.scaleUp.policies: \[\]: must have at least 1"),
    ],
)
def test_what_is_wrong_is_named_with_path_value_and_fix(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidObject, match=message):
        read(hpa(**spec))


def test_zero_replicas_are_fine_with_a_metric_that_needs_no_pods() -> None:
    external = {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "3"}}
    policy = compiled(hpa(minReplicas=0, metrics=[{"type": "External", "external": external}]))
    assert policy.bounds.min_replicas == 0


UPCOMING: dict[str, Any] = {
    "selectionStrategy": "LabelSelector",
    "syncPeriodSeconds": 5,
    "metrics": [
        {
            "type": "External",
            "external": {
                "metric": {"name": "queue"},
                "target": {"type": "AverageValue", "averageValue": "5"},
                "fallback": {"failureDurationSeconds": 60, "replicas": 5},
            },
        }
    ],
}


def test_fields_of_approved_enhancements_are_named_and_change_nothing() -> None:
    found = read(hpa(**UPCOMING))
    metric = {**UPCOMING["metrics"][0]["external"]}
    del metric["fallback"]
    assert isinstance(found, Hpa)
    assert found.to_policy(0.0) == compiled(hpa(metrics=[{"type": "External", "external": metric}]))
    assert [each.path for each in warnings(found)] == [
        *sorted(["spec.selectionStrategy", "spec.syncPeriodSeconds"]),
        "spec.metrics[0].external.fallback",
    ]


def test_by_owner_references_is_what_is_done_anyway() -> None:
    found = read(hpa(selectionStrategy="OwnerReferences"))
    assert isinstance(found, Hpa) and not warnings(found)
