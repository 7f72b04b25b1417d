"""What a tenant's Recommendation makes the operator write: what is in its own namespace, and in Preview."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.live.memory_api import MemoryApi
from tests.virtual.served import Served
from trimtab.kinds.meta import seconds_of
from trimtab.live.advice import Advisor
from trimtab.wire.from_kubernetes import conditions_in
from trimtab.wire.objects import Custom
from trimtab.wire.resources import Resource

NOW = 1_794_811_716.0
ROOT = "/apis/analysis.crane.io/v1alpha1"
EHPA_ROOT = "/apis/autoscaling.crane.io/v1alpha1"
EHPAS = "effectivehorizontalpodautoscalers"
WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "tenant"}
COREDNS = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "coredns", "namespace": "kube-system"}
GOOD = "minReplicas: 2\nmaxReplicas: 5\nmetrics: []\n"
BOMB = 'a0: &a0 ["xxxxxxxxxxxxxxxx"]\n' + "".join(
    f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 8)
)


def cluster(status: bool = True) -> MemoryApi:
    api = MemoryApi()
    for plural, kind in (("analytics", "Analytics"), ("recommendations", "Recommendation")):
        parts = frozenset({"status"} if status else ())
        api.install(Served(Resource("analysis.crane.io", "v1alpha1", plural, kind), parts))
    for ref in (WEB, COREDNS):
        path = f"/apis/apps/v1/namespaces/{ref['namespace']}/deployments/{ref['name']}"
        api.put(path, {"metadata": {"uid": ref["name"]}, "spec": {"replicas": 4}})
    return api


def recommend(api: MemoryApi, ref: dict[str, Any], value: Any, how: str = "Auto", **status: Any) -> None:
    spec = {"targetRef": ref, "type": "HPA", "adoptionType": how}
    api.put(
        f"{ROOT}/namespaces/tenant/recommendations/r",
        {
            "metadata": {"uid": "r", "labels": {"analysis.crane.io/analytics-uid": "x"}},
            "spec": spec,
            "status": {"recommendedValue": value, "lastUpdateTime": "2026-11-16T00:00:00Z"} | status,
        },
    )


def tick(api: MemoryApi) -> Advisor:
    advisor = Advisor(api.kube(), None, ["trimtab"])
    for path, body in api.objects.items():
        for plural, kind in (("/analytics/", "Analytics"), ("/recommendations/", "Recommendation")):
            if plural in path:
                advisor.feeds[kind].store.put(msgspec.convert(body, Custom))
    asyncio.run(advisor.tick(NOW))
    return advisor


def writes(api: MemoryApi) -> list[str]:
    return [path for method, path in api.asked if method != "GET"]


def test_a_recommendation_of_another_namespace_changes_nothing_there() -> None:
    api = cluster()
    recommend(api, COREDNS, "scaleStrategy: Auto\nminReplicas: 1\nmaxReplicas: 1\nmetrics: []\n")
    tick(api)
    assert not [path for _, path in api.asked if "kube-system" in path]
    told = api.objects[f"{ROOT}/namespaces/tenant/recommendations/r"]["status"]["conditions"]
    assert [(one["type"], one["status"]) for one in told] == [("Adopted", "False")]
    assert "only in its own namespace" in told[0]["message"]


def test_adoption_is_in_preview_whatever_the_value_says() -> None:
    api = cluster()
    other = "scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: other}\n"
    recommend(api, WEB, f"{GOOD}scaleStrategy: Auto\nspecificReplicas: 0\n{other}")
    tick(api)
    (made,) = (body for path, body in api.objects.items() if EHPAS in path)
    target = {name: WEB[name] for name in ("apiVersion", "kind", "name")}
    assert made["metadata"]["namespace"] == "tenant"
    assert made["spec"] == {
        "scaleStrategy": "Preview",
        "minReplicas": 2,
        "maxReplicas": 5,
        "metrics": [],
        "scaleTargetRef": target,
    }


@pytest.mark.parametrize("value", [BOMB, "[" * 50_000, "x: " + "y" * 70_000, "- a", "{", 7, ["a"], {"a": 1}, GOOD * 2])
def test_what_is_no_recommendation_is_neither_unfolded_nor_adopted(value: Any) -> None:
    api = cluster()
    recommend(api, WEB, value)
    tick(api)
    assert not any(EHPAS in path for path in writes(api))


def test_where_tenants_may_write_the_status_nothing_is_adopted() -> None:
    api = cluster(status=False)
    recommend(api, WEB, GOOD)
    tick(api)
    assert not writes(api)


def test_only_workloads_are_annotated() -> None:
    api = cluster()
    api.put("/api/v1/namespaces/tenant/configmaps/web", {})
    recommend(api, {"apiVersion": "v1", "kind": "ConfigMap", "name": "web"}, GOOD, "StatusAndAnnotation")
    tick(api)
    assert "/api/v1/namespaces/tenant/configmaps/web" not in writes(api)


def analytics(api: MemoryApi, namespace: str, name: str, status: dict[str, Any] | None = None) -> str:
    path = f"{ROOT}/namespaces/{namespace}/analytics/{name}"
    selectors = [{"kind": "Deployment", "apiVersion": "apps/v1", "name": "web"}]
    spec = {"type": "HPA", "resourceSelectors": selectors}
    api.put(path, {"metadata": {"uid": name}, "spec": spec, "status": status or {}})
    return path


ODD_STATUSES = (
    {"lastUpdateTime": "2026-01-01T00:00:00+99:99"},
    {"lastUpdateTime": 7},
    {"lastUpdateTime": ["x"]},
    {"conditions": [{"reason": "no type"}]},
    {"conditions": "abc"},
    {"conditions": [["x"]]},
)


@pytest.mark.parametrize("status", ODD_STATUSES)
def test_one_odd_analytics_does_not_stop_the_advice_of_others(status: dict[str, Any]) -> None:
    api = cluster()
    analytics(api, "aaa", "odd", status)
    good = analytics(api, "tenant", "good")
    tick(api)
    assert f"{good}/status" in writes(api)


def test_what_was_wrong_with_an_object_that_is_gone_is_forgotten() -> None:
    """Who makes and removes them all day long does not fill our memory."""
    api = cluster(status=False)  # nothing can be said of them
    analytics(api, "tenant", "gone")
    advisor = tick(api)
    assert [what for what, _ in advisor._said] == ["Analytics tenant/gone"]
    advisor.feeds["Analytics"].store.drop(("tenant", "gone"))
    asyncio.run(advisor.tick(NOW + 15.0))
    assert advisor._said == {}


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
    )
)
def test_any_status_can_be_looked_at(value: Any) -> None:
    assert all(isinstance(one, dict) for one in conditions_in({"conditions": value}).values())
    assert seconds_of(value) is None or isinstance(value, str)
