"""report: outcomes as plain data, the same for json, yaml, the html page and the status of a Recommendation."""

from __future__ import annotations

from math import isfinite
from typing import Any

import msgspec

from trimtab.advisor.manifests import value_of
from trimtab.advisor.ranking import Ranked
from trimtab.advisor.run import Advised, Failed
from trimtab.core.advise import Objections, WorkloadAdvice
from trimtab.core.explain.advice import because
from trimtab.policy import Inspection
from trimtab.wire.from_kubernetes import rfc3339

Plain = dict[str, Any]


def plain(rules: Inspection, ranked: Ranked) -> Plain:
    """One workload: what is advised, what it is worth, why, and the curves behind it."""
    outcome, target = ranked.outcome, ranked.outcome.target
    result = outcome.result
    said: Plain = {
        "namespace": target.namespace,
        "kind": target.kind,
        "name": target.name,
        "apiVersion": target.api_version,
        "type": str(rules.advice),
        "severity": ranked.severity.name.capitalize(),
        "replicas": target.replicas,
        "recommendation": (value_of(rules.advice, result) or None) if isinstance(result, WorkloadAdvice) else None,
        "because": because(rules, result) if isinstance(result, WorkloadAdvice) else [],
        "against": against(result),
        "saved": _saved(ranked) if isinstance(result, WorkloadAdvice) else None,
        "evidence": evidence_of(rules, result) | _curve(outcome),
    }
    return said


def against(result: WorkloadAdvice | Objections | Failed) -> list[Plain]:
    """Typed reasons with their sentences."""
    if isinstance(result, Objections):
        return [{"reason": str(objection.reason), "message": objection.text} for objection in result.reasons]
    return [{"reason": result.reason, "message": result.text}] if isinstance(result, Failed) else []


def evidence_of(rules: Inspection, result: WorkloadAdvice | Objections | Failed) -> Plain:
    """The numbers, and the thresholds they were held against."""
    thresholds = {
        "minCpuUsageCores": rules.min_cpu_usage_cores,
        "fluctuation": rules.fluctuation_threshold,
        "minTargetPercent": rules.min_cpu_target_percent,
        "maxTargetPercent": rules.max_cpu_target_percent,
    }
    if not isinstance(result, WorkloadAdvice):
        return {"thresholds": thresholds}
    found = msgspec.to_builtins(result.evidence)
    named = {
        _camel(key): _rounded(value) for key, value in found.items() if key != "is" and value not in (None, (), [])
    }
    return named | {"thresholds": thresholds}


def _curve(outcome: Advised) -> Plain:
    if not outcome.usage:
        return {}
    usage = [_rounded(value) if isfinite(value) else None for value in outcome.usage]
    return {"usageStart": rfc3339(outcome.start), "usageStepSeconds": 3600, "usage": usage}


def _saved(ranked: Ranked) -> Plain:
    return {
        "cores": _rounded(ranked.saved_cores),
        "memoryBytes": round(ranked.saved_bytes),
        "perMonth": round(ranked.saved_a_month, 2),
    }


def _rounded(value: Any) -> Any:
    """Six digits: nobody's load is known better, and statuses stay small."""
    if isinstance(value, dict):
        return {_camel(key): _rounded(one) for key, one in value.items() if key != "is"}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
