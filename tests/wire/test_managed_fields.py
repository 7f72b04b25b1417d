"""Who owns a field, by the words of the API server."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from trimtab.wire.objects import ANY, ManagedMeta, ManagedWorkload

REPLICAS: dict[str, Any] = {"f:spec": {"f:replicas": {}}}


def entry(manager: str, fields: dict[str, Any] = REPLICAS, **more: str) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "fieldsV1": fields, **more}


@pytest.mark.parametrize(
    ("entries", "ours"),
    [
        pytest.param([entry("trimtab", subresource="scale")], True, id="our scale, which has no date"),
        pytest.param([entry("kubectl", subresource="scale"), entry("trimtab", {})], False, id="somebody took it over"),
        pytest.param([entry("kubectl-client-side-apply", time="2026-01-01T00:00:00Z")], False, id="never ours"),
        pytest.param([], False, id="nobody's"),
    ],
)
def test_whoever_owns_the_field_wrote_it(entries: list[dict[str, Any]], ours: bool) -> None:
    found = msgspec.convert({"metadata": {"managedFields": entries}}, ManagedWorkload)
    assert found.metadata.is_ours("spec", "replicas") is ours


RESOURCES = ("spec", "template", "spec", "containers", ANY, "resources")
CONTAINER: dict[str, Any] = {'k:{"name":"app"}': {"f:resources": {}}}
SIZES: dict[str, Any] = {"f:spec": {"f:template": {"f:spec": {"f:containers": CONTAINER}}}}


def managed(*entries: dict[str, Any]) -> ManagedMeta:
    return msgspec.convert({"managedFields": entries}, ManagedMeta)


def test_the_last_other_writer_is_named() -> None:
    early, late = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    meta = managed(entry("argocd", time=late), entry("kubectl", time=early), entry("trimtab", time=late))
    assert meta.last_other_owner("spec", "replicas") == "argocd"
    assert managed(entry("trimtab")).last_other_owner("spec", "replicas") == ""


def test_a_path_may_pass_any_item_of_a_list() -> None:
    meta = managed(entry("helm", SIZES), entry("kubectl"))
    assert meta.owners(*RESOURCES) == ["helm"]


def test_a_field_is_ours_alone_until_somebody_sets_it_too() -> None:
    metrics: dict[str, Any] = {"f:spec": {"f:metrics": {}}}
    assert managed(entry("trimtab", metrics)).is_ours_alone("spec", "metrics")
    assert not managed(entry("trimtab", metrics), entry("kubectl", metrics)).is_ours_alone("spec", "metrics")
    assert not managed().is_ours_alone("spec", "metrics")


def test_field_sets_of_an_odd_shape_own_nothing() -> None:
    assert managed(entry("kubectl", {"f:spec": "all"})).owners("spec", "replicas") == []
