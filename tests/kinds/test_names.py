"""What tenants may put where a name belongs, in every kind and in every CustomResourceDefinition."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kinds.generate import CUSTOM
from trimtab.errors import TrimtabError
from trimtab.kinds import read
from trimtab.kinds.analytics import Analytics, Recommendation
from trimtab.kinds.crd import definitions
from trimtab.wire.resources import custom_metric_path, external_metric_path, root_of

CLIMBING = "../../../../../apis/apps/v1/namespaces/kube-system/deployments/coredns"
NASTY = ("", ".", "..", CLIMBING, "a/b", "a%2fb", "a?b=c", "a#b", "a b", "a\nb", "A", "-a", "a" * 254, "é")


def autoscaler(**spec: Any) -> dict[str, Any]:
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": "trimtab.dev/v1alpha1",
        "kind": "Autoscaler",
        "metadata": {"name": "x", "namespace": "tenant"},
        "spec": {"scaleTargetRef": ref, "maxReplicas": 9} | spec,
    }


def refused_at(manifest: dict[str, Any]) -> list[str]:
    with pytest.raises(TrimtabError) as found:
        read(manifest)
    return re.findall(r"^\s*(spec\S*|metadata\S*): ", str(found.value), re.MULTILINE)


@pytest.mark.parametrize("name", NASTY)
def test_a_target_is_named_by_a_name(name: str) -> None:
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    assert refused_at(autoscaler(scaleTargetRef=ref)) == ["spec.scaleTargetRef.name"]


@pytest.mark.parametrize("version", ["../api/v1/pods", "/v1", "apps/v1/deployments", "apps//v1", "apps/", "a b/v1"])
def test_a_group_and_version_are_no_path(version: str) -> None:
    ref = {"apiVersion": version, "kind": "Deployment", "name": "web"}
    assert "spec.scaleTargetRef.apiVersion" in refused_at(autoscaler(scaleTargetRef=ref))


@pytest.mark.parametrize("kind", ["../pods", "Deploy ment", "Deployment/scale", "Deployment?x=1"])
def test_a_kind_is_a_word(kind: str) -> None:
    ref = {"apiVersion": "apps/v1", "kind": kind, "name": "web"}
    assert refused_at(autoscaler(scaleTargetRef=ref)) == ["spec.scaleTargetRef.kind"]


@pytest.mark.parametrize("name", ["", ".", "..", "...", "a/b", "a%2fb", "a?b", "a#b", "a b", "a\nb", "a\\b"])
def test_a_metric_is_named_by_one_segment_of_a_path(name: str) -> None:
    target = {"type": "Value", "value": "1"}
    metric = {"type": "External", "external": {"metric": {"name": name}, "target": target}}
    assert refused_at(autoscaler(metrics=[metric])) == ["spec.metrics[0].external.metric.name"]


@pytest.mark.parametrize("name", ["rps", "pubsub.googleapis.com|subscription|num", "datadogmetric@shop:queue", ".x"])
def test_names_of_metrics_that_adapters_use_are_fine(name: str) -> None:
    metric = {"type": "External", "external": {"metric": {"name": name}, "target": {"type": "Value", "value": "1"}}}
    read(autoscaler(metrics=[metric]))


@pytest.mark.parametrize("key", ["a=b,c", "a b", "-a", "a/b/c", "../a", ""])
def test_selectors_hold_labels_alone(key: str) -> None:
    def metric(selector: dict[str, Any]) -> dict[str, Any]:
        named = {"name": "rps", "selector": selector}
        return {"type": "External", "external": {"metric": named, "target": {"type": "Value", "value": "1"}}}

    where = "spec.metrics[0].external.metric.selector"
    assert refused_at(autoscaler(metrics=[metric({"matchLabels": {key: "x"}})])) == [f"{where}.matchLabels"]
    expression = {"key": key, "operator": "Exists"}
    assert refused_at(autoscaler(metrics=[metric({"matchExpressions": [expression]})])) == [
        f"{where}.matchExpressions[0].key"
    ]


@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=80), st.text(max_size=80))
def test_what_is_accepted_stays_in_its_place_of_the_path(version: str, kind: str, name: str, metric: str) -> None:
    """Any text at all: refused, or one segment of the path that is made of it."""
    ref = {"apiVersion": version, "kind": kind, "name": name}
    source = {"metric": {"name": metric}, "target": {"type": "Value", "value": "1"}}
    try:
        found = read(autoscaler(scaleTargetRef=ref, metrics=[{"type": "External", "external": source}]))
    except TrimtabError:
        return
    assert root_of(found.target.api_version).count("/") == 1 + found.target.api_version.count("/") + 1  # type: ignore[attr-defined]
    assert custom_metric_path("v1", "tenant", "pods", name, metric).count("/") == 8
    assert external_metric_path("tenant", metric).count("/") == 6


@given(CUSTOM)
def test_ordinary_objects_are_still_read(manifest: dict[str, Any]) -> None:
    found = read(manifest)
    if not isinstance(found, Analytics | Recommendation):
        found.to_policy(1_800_000_000.0)  # type: ignore[attr-defined]


def test_every_definition_holds_names_and_has_a_status_of_its_own() -> None:
    for crd in definitions():
        (version,) = crd["spec"]["versions"]
        assert version["subresources"]["status"] == {}, crd["metadata"]["name"]
        for path, schema in _strings(version["schema"]["openAPIV3Schema"]["properties"]["spec"], "spec"):
            if path.endswith(("Ref.name", "Ref.kind", "Ref.apiVersion", "Object.name", "metric.name", "[].key")):
                assert schema.get("pattern") and schema.get("maxLength"), f"{crd['metadata']['name']}: {path}"


def _strings(schema: dict[str, Any], path: str) -> list[tuple[str, dict[str, Any]]]:
    if schema.get("type") == "string":
        return [(path, schema)]
    inner = [(f"{path}.{name}", child) for name, child in schema.get("properties", {}).items()]
    if "items" in schema:
        inner.append((f"{path}[]", schema["items"]))
    return [found for below, child in inner for found in _strings(child, below)]
