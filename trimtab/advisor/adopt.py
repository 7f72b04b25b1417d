"""adopt: what a recommendation does to the cluster: nothing, an annotation on the target, an EffectiveHPA in Preview.

An EffectiveHPA that exists is changed only where its fields are still ours by managedFields: whatever somebody edited
since is theirs, and a field that they removed stays away.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import yaml

from trimtab.advisor.manifests import effective_hpa_of
from trimtab.errors import Refused
from trimtab.kinds.annotations import crane_recommendation
from trimtab.policy import Advice
from trimtab.wire.kube import Patch
from trimtab.wire.managed_fields import ManagedObject
from trimtab.wire.objects import Custom
from trimtab.wire.writer import Writer

EHPA = ("autoscaling.crane.io/v1alpha1", "EffectiveHorizontalPodAutoscaler")
ADOPTED = ("minReplicas", "maxReplicas", "metrics", "behavior", "prediction")


async def adopt(writer: Writer, record: Custom) -> None:
    """Carry out `adoptionType` with the value in the status; what is there already is not written again."""
    how, value = record.spec.get("adoptionType", "StatusAndAnnotation"), record.status.get("recommendedValue")
    if how == "Status" or not value:
        return
    advice = Advice(record.spec["type"])
    ref = {"namespace": record.metadata.namespace} | record.spec["targetRef"]
    await _annotate(writer, ref, crane_recommendation(advice), value)
    if how == "Auto" and advice is Advice.HPA:
        await _effective_hpa(writer, ref, yaml.safe_load(value))


async def _annotate(writer: Writer, ref: dict[str, str], key: str, value: str) -> None:
    resource = await writer.kube.resource(ref.get("apiVersion") or "apps/v1", ref["kind"])
    target = await writer.kube.get(Custom, resource, ref["namespace"], ref["name"])
    if (target.metadata.annotations or {}).get(key) != value:
        body = {"metadata": {"annotations": {key: value}}}
        await writer.patch(Custom, resource, ref["namespace"], ref["name"], body, Patch.MERGE)


async def _effective_hpa(writer: Writer, ref: dict[str, str], value: dict[str, Any]) -> None:
    resource = await writer.kube.resource(*EHPA)
    existing = (await writer.kube.list(ManagedObject, resource, ref["namespace"])).items
    found = [ehpa for ehpa in existing if _points_at(ehpa.spec.get("scaleTargetRef") or {}, ref)]
    if not found:
        await writer.create(Custom, resource, ref["namespace"], effective_hpa_of(ref, value))
        return
    changes = changed(found[0], value)
    if changes:
        version = found[0].metadata.resource_version
        body = {"metadata": {"resourceVersion": version}, "spec": changes}
        await writer.patch(Custom, resource, ref["namespace"], found[0].metadata.name, body, Patch.MERGE)


def changed(existing: ManagedObject, value: dict[str, Any]) -> dict[str, Any]:
    """The fields to write: still ours, and no longer what is recommended. Null removes."""
    return {
        name: value.get(name)
        for name in ADOPTED
        if name in existing.spec
        and existing.metadata.is_ours_alone("spec", name)
        and not _within(value.get(name), existing.spec[name])
    }


def _within(wanted: Any, present: Any) -> bool:
    """Whether what is there says the same; the API server may have filled in defaults around it."""
    if isinstance(wanted, dict) and isinstance(present, dict):
        return all(key in present and _within(inner, present[key]) for key, inner in wanted.items())
    if isinstance(wanted, list) and isinstance(present, list):
        return len(wanted) == len(present) and all(map(_within, wanted, present))
    return bool(wanted == present)


def _points_at(found: dict[str, Any], ref: dict[str, str]) -> bool:
    return (found.get("kind"), found.get("name")) == (ref["kind"], ref["name"])


def is_gone(error: Exception) -> bool:
    return isinstance(error, Refused) and error.status == HTTPStatus.NOT_FOUND
