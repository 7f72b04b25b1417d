"""An EffectiveHPA is changed only where it is still ours."""

from __future__ import annotations

from typing import Any

from trimtab.advisor.adopt import changed
from trimtab.wire.objects import ManagedFieldsEntry, ManagedMeta, ManagedObject

VALUE = {"minReplicas": 4, "maxReplicas": 9, "metrics": [{"type": "Resource", "resource": {"name": "cpu"}}]}


def existing(spec: dict[str, Any], **managers: tuple[str, ...]) -> ManagedObject:
    entries = tuple(
        ManagedFieldsEntry(manager=name, fields_v1={"f:spec": {f"f:{field}": {} for field in fields}})
        for name, fields in managers.items()
    )
    return ManagedObject(metadata=ManagedMeta(managed_fields=entries), spec=spec)


def test_edited_fields_stay_and_ours_follow() -> None:
    spec = {"minReplicas": 2, "maxReplicas": 50, "metrics": VALUE["metrics"]}
    found = existing(spec, trimtab=("minReplicas", "metrics"), kubectl=("maxReplicas",))
    assert changed(found, VALUE) == {"minReplicas": 4}


def test_a_field_that_two_have_set_is_not_ours() -> None:
    found = existing({"minReplicas": 2}, trimtab=("minReplicas",), argocd=("minReplicas",))
    assert changed(found, VALUE) == {}


def test_somebody_elses_object_is_left_alone() -> None:
    found = existing({"minReplicas": 2, "maxReplicas": 3}, helm=("minReplicas", "maxReplicas"))
    assert changed(found, VALUE) == {}


def test_a_field_somebody_removed_stays_away() -> None:
    found = existing({"maxReplicas": 9}, trimtab=("maxReplicas",))
    assert changed(found, VALUE | {"prediction": {"predictionWindowSeconds": 3600}}) == {}


def test_what_is_no_longer_recommended_is_removed() -> None:
    found = existing({"maxReplicas": 9, "prediction": {}}, trimtab=("maxReplicas", "prediction"))
    assert changed(found, VALUE) == {"prediction": None}


def test_defaults_of_the_api_server_are_no_change() -> None:
    filled = [{"type": "Resource", "resource": {"name": "cpu", "extra": 1}}]
    found = existing({"metrics": filled}, trimtab=("metrics",))
    assert changed(found, VALUE) == {}
