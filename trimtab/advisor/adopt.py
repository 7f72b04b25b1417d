"""adopt: what a recommendation does to the cluster: nothing, an annotation on the target, an EffectiveHPA in Preview.

An EffectiveHPA that exists is changed only where its fields are still ours by managedFields: whatever somebody edited
since is theirs, and a field that they removed stays away.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from trimtab.advisor.manifests import effective_hpa_of
from trimtab.advisor.select import advisable
from trimtab.errors import InvalidInput, Refused
from trimtab.kinds import read
from trimtab.kinds.analytics import ANALYSIS_API, Recommendation
from trimtab.kinds.annotations import crane_recommendation
from trimtab.kinds.manifest_part import shown
from trimtab.kinds.yaml import read_within
from trimtab.policy import Advice
from trimtab.wire.kube import Kube, Patch
from trimtab.wire.objects import Custom, ManagedObject

EHPA = ("autoscaling.crane.io/v1alpha1", "EffectiveHorizontalPodAutoscaler")
ADOPTED = ("minReplicas", "maxReplicas", "metrics", "behavior", "prediction")

NO_STATUS = (
    "recommendations are not adopted: in this cluster whoever may edit a Recommendation may write its status, "
    "as its CustomResourceDefinition has no status subresource; install that of the chart (crds.craneAnalysis)"
)
ELSEWHERE = "a Recommendation is adopted only in its own namespace: create the Analytics where the workload is"


async def adopt(writer: Kube, record: Custom) -> None:
    """Carry out `adoptionType` with the value in the status; what is there already is not written again.

    The status is our own word where it is a subresource; what stands in it is still read like anybody's.
    """
    how, value = record.spec.get("adoptionType", "StatusAndAnnotation"), record.status.get("recommendedValue")
    if how == "Status" or not isinstance(value, str) or not value:
        return
    if not (await writer.resource(ANALYSIS_API, "Recommendation")).has_status:
        raise Refused(NO_STATUS, HTTPStatus.FORBIDDEN)
    advice, ref = Advice(record.spec["type"]), own_target(record)
    if ref is None:
        if how == "Auto":
            raise Refused(ELSEWHERE, HTTPStatus.FORBIDDEN)
        return
    await _annotate(writer, ref, crane_recommendation(advice), value)
    if how == "Auto" and advice is Advice.HPA:
        await _effective_hpa(writer, ref, adopted_spec(ref, value))


def own_target(record: Custom) -> dict[str, str] | None:
    """The workload, if it is in the namespace of the Recommendation: an object speaks for its own alone."""
    spec = {name: value for name, value in record.spec.items() if name in ("targetRef", "type")}
    named = {"name": record.metadata.name, "namespace": record.metadata.namespace}
    kind = read({"apiVersion": ANALYSIS_API, "kind": "Recommendation", "metadata": named, "spec": spec})
    assert isinstance(kind, Recommendation)
    target = kind.spec.target_ref
    if target.namespace not in (None, record.metadata.namespace):
        return None
    version = target.api_version or "apps/v1"
    return {"apiVersion": version, "kind": target.kind, "name": target.name, "namespace": record.metadata.namespace}


def adopted_spec(ref: dict[str, str], text: str) -> dict[str, Any]:
    """The fields that a recommendation may set, checked as a part of the object that they become."""
    value = read_within(text, "status.recommendedValue")
    if not isinstance(value, dict):
        raise InvalidInput("status.recommendedValue", shown(value), "this is no recommendation for an HPA")
    chosen = {name: value[name] for name in ADOPTED if name in value}
    read(effective_hpa_of(ref, chosen))
    return chosen


async def _annotate(writer: Kube, ref: dict[str, str], key: str, value: str) -> None:
    resource = await advisable(writer, ref["apiVersion"], ref["kind"], ref["namespace"])
    target = await writer.get(Custom, resource, ref["namespace"], ref["name"])
    if (target.metadata.annotations or {}).get(key) != value:
        body = {"metadata": {"annotations": {key: value}}}
        await writer.patch(Custom, resource, ref["namespace"], ref["name"], body, Patch.MERGE)


async def _effective_hpa(writer: Kube, ref: dict[str, str], value: dict[str, Any]) -> None:
    resource = await writer.resource(*EHPA)
    existing = (await writer.list(ManagedObject, resource, ref["namespace"])).items
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
