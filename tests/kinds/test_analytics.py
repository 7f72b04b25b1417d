"""Analytics: Crane's configuration with its defaults, aliases, units and typos."""

from __future__ import annotations

import re
from typing import Any

import pytest

from trimtab.errors import InvalidInput, InvalidObject
from trimtab.kinds import Analytics, Recommendation, read
from trimtab.kinds.convert import convert
from trimtab.kinds.ignored import warnings
from trimtab.policy import Advice, AdviceAlgorithm, Inspection
from trimtab.quantity import GIB


def analytics(kind: str = "HPA", strategy: dict[str, Any] | None = None, **config: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"type": kind, "resourceSelectors": [{"kind": "Deployment", "apiVersion": "apps/v1"}]}
    if strategy is not None:
        spec["completionStrategy"] = strategy
    spec["config"] = {name.replace("_", "-"): value for name, value in config.items()}
    return {
        "apiVersion": "analysis.crane.io/v1alpha1",
        "kind": "Analytics",
        "metadata": {"name": "a"},
        "spec": spec,
    }


def with_config(config: dict[str, str], kind: str = "HPA") -> dict[str, Any]:
    manifest = analytics(kind)
    manifest["spec"]["config"] = config
    return manifest


def inspection(manifest: dict[str, Any]) -> Inspection:
    obj = read(manifest)
    assert isinstance(obj, Analytics)
    return obj.to_inspection()


def test_the_defaults_are_the_document_s_table() -> None:
    assert inspection(analytics()) == Inspection(
        advice=Advice.HPA,
        algorithm=AdviceAlgorithm.EXACT,
        deployment_min_replicas=1,
        statefulset_min_replicas=1,
        workload_min_replicas=1,
        pod_min_ready_s=30,
        pod_available_ratio=0.5,
        default_min_replicas=2,
        max_replicas_factor=3,
        min_cpu_usage_cores=10,
        fluctuation_threshold=1.5,
        min_cpu_target_percent=30,
        max_cpu_target_percent=75,
        reference_hpa=True,
    )


@pytest.mark.parametrize("prefix", ["ehpa.", "replicas.", ""])
def test_every_generation_s_spelling_is_one_key(prefix: str) -> None:
    found = inspection(with_config({f"{prefix}default-min-replicas": "5", f"{prefix}reference-hpa": "false"}))
    assert (found.default_min_replicas, found.reference_hpa) == (5, False)


def test_crane_s_numbers_are_a_setting() -> None:
    found = inspection(with_config({"trimtab.dev/algorithm": "crane", "trimtab.dev/timezone": "Asia/Shanghai"}))
    assert (found.crane, found.timezone) == (True, "Asia/Shanghai")


def test_keys_of_requests() -> None:
    config = {"cpu-request-percentile": "0.98", "cpu-model-history-length": "24h", "oom-protection": "false"}
    found = inspection(with_config(config, "Resource"))
    assert (found.advice, found.request_percentile, found.history_s) == (Advice.RESOURCE, 0.98, 86400)
    assert found.oom_protection is False
    assert inspection(with_config({"resource.cpu-request-percentile": "98"})).request_percentile == 0.98


def test_ladders() -> None:
    ladder = {"specification": "true", "specification-config": "0.5c1g, 2c4g"}
    assert inspection(with_config(ladder, "Resource")).size_ladder == ((0.5, GIB), (2.0, 4 * GIB))
    assert inspection(with_config({"specification-config": "2c4g"}, "Resource")).size_ladder == ()
    assert len(inspection(with_config({"specification": "true"}, "Resource")).size_ladder) > 10


@pytest.mark.parametrize(
    "least, most, fine",
    [
        pytest.param("60", "60", True, id="000: max < target < min as printed; equal ends leave one target"),
        pytest.param("61", "60", False, id="000: no target is above the least and below the most"),
        pytest.param("80", "90", True, id="000: both above the defaults"),
    ],
)
def test_the_ends_of_the_target_utilisation_do_not_cross(least: str, most: str, fine: bool) -> None:
    config = {"ehpa.min-cpu-target-utilization": least, "ehpa.max-cpu-target-utilization": most}
    if fine:
        assert inspection(with_config(config)).min_cpu_target_percent == int(least)
        return
    with pytest.raises(InvalidObject, match=r"min-cpu-target-utilization.*which is 60"):
        read(with_config(config))


@pytest.mark.parametrize(
    "key, value, fix",
    [
        ("ehpa.deployment-min-replica", "1", "did you mean ehpa.deployment-min-replicas?"),
        ("ehpa.fluctuation-treshold", "1", "did you mean ehpa.fluctuation-threshold?"),
        ("ehpa.deployment-min-replicas", "one", "whole number"),
        ("ehpa.pod-available-ratio", "50", "ratio from 0 to 1"),
        ("ehpa.max-cpu-target-utilization", "0.75", "whole percentage"),
        ("ehpa.min-cpu-usage-threshold", "500m", "number of cores"),
        ("ehpa.reference-hpa", "True", '"true" or "false"'),
        ("ehpa.min-cpu-target-utilization", "80", "at or below max-cpu-target-utilization, which is 75"),
        ("max-cpu-target-utilization", "20", "at or above min-cpu-target-utilization, which is 30"),
        ("trimtab.dev/algorithm", "fast", "exact"),
        ("trimtab.dev/timezone", "Mars", "time zone such as"),
    ],
)
def test_typos_and_wrong_units_are_refused_with_the_nearest_key(key: str, value: str, fix: str) -> None:
    with pytest.raises(InvalidObject) as caught:
        read(with_config({key: value}))
    assert caught.value.path == f'spec.config["{key}"]'
    assert fix in caught.value.fix


def test_one_key_by_two_names_is_refused() -> None:
    with pytest.raises(InvalidObject, match="write one of them"):
        read(with_config({"ehpa.default-min-replicas": "1", "default-min-replicas": "2"}))


def test_a_number_without_quotes_gets_the_hint() -> None:
    with pytest.raises(InvalidObject, match='quote it: "1"'):
        read(with_config({"ehpa.default-min-replicas": 1}))  # type: ignore[dict-item]


def test_upstream_s_other_keys_are_answered_with_a_warning() -> None:
    obj = read(with_config({"resource.mem-sample-interval": "1m", "replicas.mem-percentile": "95"}))
    assert [one.path for one in warnings(obj)] == [
        'spec.config["resource.mem-sample-interval"]',
        'spec.config["replicas.mem-percentile"]',
    ]


@pytest.mark.parametrize(
    "strategy, period_s",
    [
        (None, None),
        ({"completionStrategyType": "Once", "periodSeconds": 5}, None),
        ({"completionStrategyType": "Periodical", "periodSeconds": 600}, 600),
        ({"completionStrategyType": "Periodical"}, 86400),
    ],
)
def test_periods(strategy: dict[str, Any] | None, period_s: float | None) -> None:
    obj = read(analytics(strategy=strategy))
    assert isinstance(obj, Analytics)
    assert obj.spec.completion_strategy.period_s == period_s


def test_a_recommendation_gives_its_value() -> None:
    manifest = {
        "apiVersion": "analysis.crane.io/v1alpha1",
        "kind": "Recommendation",
        "metadata": {"name": "r", "generation": 2},
        "spec": {"type": "HPA", "targetRef": {"kind": "Deployment", "name": "web", "namespace": "default"}},
        "status": {"recommendedValue": "maxReplicas: 2\n"},
    }
    obj = read(manifest)
    assert isinstance(obj, Recommendation)
    assert (obj.value, obj.spec.adoption_type) == ("maxReplicas: 2\n", "StatusAndAnnotation")


def rule(**spec: Any) -> dict[str, Any]:
    selectors = [{"kind": "Deployment", "apiVersion": "apps/v1", "labelSelector": {"matchLabels": {"app": "web"}}}]
    recommenders = [{"name": "HPA", "config": {"ehpa.default-min-replicas": "3"}}, {"name": "Resource"}]
    given = {"resourceSelectors": selectors, "namespaceSelector": {"any": True}, "recommenders": recommenders}
    kind = {"apiVersion": "analysis.crane.io/v1alpha1", "kind": "RecommendationRule"}
    return {**kind, "metadata": {"name": "rule"}, "spec": given | spec}


def test_a_rule_becomes_one_analytics_for_each_recommender_and_namespace() -> None:
    found = convert(rule(runInterval="4h", namespaceSelector={"matchNames": ["a", "b"]}), "analytics")
    made = found.manifest["items"]
    names = [(each["metadata"]["namespace"], each["metadata"]["name"], each["spec"]["type"]) for each in made]
    assert names == [
        (namespace, f"rule-{kind.lower()}", kind) for kind in ("HPA", "Resource") for namespace in ("a", "b")
    ]
    assert made[0]["spec"]["config"] == {"ehpa.default-min-replicas": "3"}
    strategy = {"completionStrategyType": "Periodical", "periodSeconds": 14400}
    assert all(each["spec"]["completionStrategy"] == strategy for each in made)
    assert all(each["spec"]["resourceSelectors"] == rule()["spec"]["resourceSelectors"] for each in made)
    assert not found.lost


def test_a_rule_of_all_namespaces_selects_from_the_operators_own_once() -> None:
    found = convert(rule(recommenders=[{"name": "IdleNode"}, {"name": "Replicas"}]), "analytics")
    assert found.manifest["metadata"] == {"name": "rule-replicas", "namespace": "trimtab"}
    assert found.manifest["spec"]["completionStrategy"] == {"completionStrategyType": "Once"}
    assert [loss.path for loss in found.lost] == ["spec.recommenders[0]"], "nothing is left out without a word"


@pytest.mark.parametrize(
    "spec, to, path",
    [
        pytest.param({"namespaceSelector": {}}, "analytics", "spec.namespaceSelector", id="no namespace"),
        pytest.param({"runInterval": "often"}, "analytics", "spec.runInterval", id="no duration"),
        pytest.param({"recommenders": [{"name": "Service"}]}, "analytics", "spec.recommenders", id="nothing is left"),
        pytest.param({}, "hpa", "kind", id="it is no autoscaler"),
    ],
)
def test_a_rule_that_cannot_become_analytics_says_where(spec: dict[str, Any], to: str, path: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(path)):
        convert(rule(**spec), to)
