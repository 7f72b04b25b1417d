"""records: what is written about advice, in Crane's words: Recommendations, their status, the Analytics'."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from trimtab.advisor.manifests import recommended_value, reference
from trimtab.advisor.report import against, evidence_of
from trimtab.advisor.run import Advised
from trimtab.advisor.targets import AdvisedTarget
from trimtab.core.advise import WorkloadAdvice
from trimtab.core.explain.advice import because
from trimtab.kinds.analytics import ANALYSIS_API
from trimtab.kinds.annotations import ANALYTICS_NAME, ANALYTICS_TYPE, ANALYTICS_UID, GITOPS_TRACKING
from trimtab.policy import Advice, Inspection
from trimtab.wire.from_kubernetes import conditions_in, rfc3339
from trimtab.wire.objects import Custom

LONGEST_LABEL = 63
SUCCESS = "Success"
Plain = dict[str, Any]


def new_recommendation(analytics: Custom, target: AdvisedTarget, advice: Advice) -> Plain:
    """One for each target, owned by its Analytics; its name ends with five letters of the API server's choice."""
    meta = analytics.metadata
    labels = {key: value for key, value in target.labels.items() if not key.startswith(GITOPS_TRACKING)}
    labels |= {
        ANALYTICS_NAME: meta.name[:LONGEST_LABEL].rstrip("-."),
        ANALYTICS_UID: meta.uid,
        ANALYTICS_TYPE: str(advice),
    }
    owner = {"apiVersion": ANALYSIS_API, "kind": "Analytics", "name": meta.name, "uid": meta.uid}
    return {
        "apiVersion": ANALYSIS_API,
        "kind": "Recommendation",
        "metadata": {
            "generateName": f"{meta.name}-{advice.lower()}-",
            "namespace": meta.namespace,
            "labels": labels,
            "ownerReferences": [owner | {"controller": False, "blockOwnerDeletion": False}],
        },
        "spec": {
            "adoptionType": "StatusAndAnnotation",
            "completionStrategy": {"completionStrategyType": "Once"},
            "targetRef": reference(target),
            "type": str(advice),
        },
    }


def status_body(found: Custom, kind: str, status: Plain) -> Plain:
    meta = found.metadata
    guard = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    named = {"name": meta.name, "namespace": meta.namespace}
    return {"apiVersion": ANALYSIS_API, "kind": kind, "metadata": named | guard, "status": status}


def round_done(found: Custom, at: float) -> Plain:
    """When, and with which spec: what was written of them before they had a status of their own stays readable."""
    return {"lastUpdateTime": rfc3339(at), "observedSpec": _print_of(found.spec)}


def edited(found: Custom) -> bool:
    """Whether the spec is another one than that of the last round."""
    seen = found.status.get("observedSpec")
    return seen is not None and seen != _print_of(found.spec)


def _print_of(spec: Plain) -> str:
    return hashlib.sha256(msgspec.json.encode(spec, order="deterministic")).hexdigest()[:16]


def same_target(ref: Mapping[str, Any], target: AdvisedTarget, namespace: str) -> bool:
    named = (ref.get("namespace") or namespace, ref.get("kind"), ref.get("name"))
    return named == (target.namespace, target.kind, target.name)


def status_of(rules: Inspection, outcome: Advised, before: Plain, at: float) -> Plain:
    """What changes in a WorkloadAdvice's status; a run that gave nothing keeps the last value and says why."""
    result = outcome.result
    if isinstance(result, WorkloadAdvice):
        ready = condition("Ready", True, "RecommendationReady", "Recommendation is ready")
        return {
            "conditions": conditions([ready], before, at),
            "lastUpdateTime": rfc3339(at),
            "recommendedValue": recommended_value(rules.advice, result),
            "description": "; ".join(because(rules, result)),
            "evidence": evidence_of(rules, result),
        }
    return without_value(reason_of(outcome), message_of(outcome), before, at)


def without_value(reason: str, message: str, before: Plain, at: float) -> Plain:
    failed = condition("LastRunSucceeded", False, reason, message)
    if before.get("recommendedValue"):
        kept = conditions_in(before).get("Ready")
        return {"conditions": conditions([kept, failed] if kept else [failed], before, at)}
    return {"conditions": conditions([condition("Ready", False, reason, message), failed], before, at)}


def reason_of(outcome: Advised) -> str:
    """The first reason, as a condition can have only one; the message has them all."""
    return next((str(objection["reason"]) for objection in against(outcome.result)), "RecommendationReady")


def message_of(outcome: Advised) -> str:
    said = "; ".join(objection["message"] for objection in against(outcome.result))
    return said or SUCCESS


def condition(kind: str, status: bool, reason: str, message: str) -> Plain:
    return {"type": kind, "status": "True" if status else "False", "reason": reason, "message": message[:32000]}


def conditions(new: Iterable[Plain], before: Plain, at: float) -> list[Plain]:
    """These and no others; one whose status stays keeps its time."""
    old = conditions_in(before)
    return [condition | {"lastTransitionTime": _since(condition, old.get(condition["type"]), at)} for condition in new]


def _since(new: Plain, old: Plain | None, at: float) -> str:
    if old and old.get("status") == new["status"] and old.get("lastTransitionTime"):
        return str(old["lastTransitionTime"])
    return rfc3339(at)


def mission(outcome: Advised, record: Custom | None, message: str, at: float) -> Plain:
    """One line of the Analytics' status."""
    meta = record.metadata if record else None
    named = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid} if meta else {}
    return {"lastStartTime": rfc3339(at), "message": message, "targetRef": reference(outcome.target)} | named


def analytics_ready(missions: list[Plain]) -> Plain:
    """Ready while at least one target has got what was asked for."""
    good = sum(mission["message"] == SUCCESS for mission in missions)
    if good == len(missions):
        return condition("Ready", True, "AnalyticsReady", "Analytics is ready")
    message = f"{len(missions) - good} of {len(missions)} targets got no recommendation in the last run; first: "
    message += next(
        f"{mission['targetRef']['name']}: {mission['message']}" for mission in missions if mission["message"] != SUCCESS
    )
    return condition("Ready", good > 0, "AnalyticsReady" if good else "NoRecommendation", message)
