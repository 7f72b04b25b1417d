"""The html report of `trimtab recommend`: one self-contained page with the evidence of each workload as pictures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.kinds.meta import when
from trimtab.policy import Advice
from trimtab.web.bundle import document

Plain = Mapping[str, Any]
HOUR_S = 3600.0


def page(reports: Sequence[Plain], title: str, where: str) -> str:
    content = {
        "title": title,
        "verdict": verdict(reports),
        "about": f"{_workloads(reports)}; history from {where}. Amounts are cores, times UTC.",
        "advice": [advice(report) for report in reports],
    }
    return document(title, json.dumps(content, separators=(",", ":")))


def verdict(reports: Sequence[Plain]) -> str:
    """What it comes to, in one line."""
    counts = {name: sum(report["severity"] == name for report in reports) for name in ("Risk", "Saving")}
    cores = sum(report["saved"]["cores"] for report in reports if report["saved"])
    kinds = [f"{count} {_KIND[name]}" for name, count in counts.items() if count]
    said = " and ".join(kinds) if kinds else "nothing needs a change"
    return f"Of {_workloads(reports)} {said}; {cores:+.2f} cores would be saved."


def _workloads(reports: Sequence[Plain]) -> str:
    return f"{len(reports)} workload{'' if len(reports) == 1 else 's'}"


_KIND = {"Risk": "run a risk", "Saving": "could be smaller"}


def advice(report: Plain) -> dict[str, Any]:
    """What the page shows of one workload."""
    evidence = report["evidence"]
    return {
        "title": f"{report['namespace']}/{report['kind']}/{report['name']}",
        "severity": report["severity"],
        "now": f"{report['replicas']} replicas",
        "short": short(report),
        "saved": saved(report),
        "start": when(evidence.get("usageStart"), "usageStart") or 0.0,
        "step": HOUR_S,
        "usage": evidence.get("usage") or [],
        "forecast": evidence.get("forecast") or [],
        "thresholds": [[label, value] for value, label in thresholds(report)],
        "medians": evidence.get("hourlyMedians") or [],
        "because": list(report["because"]),
        "against": [f"{each['reason']}: {each['message']}" for each in report["against"]],
    }


def short(report: Plain) -> str:
    """The advice in a few words, or the first reason against it."""
    found = report["recommendation"]
    if found is None:
        return "; ".join(each["reason"] for each in report["against"]) or "stays as it is"
    said = []
    if "minReplicas" in found:
        target = found["metrics"][0]["resource"]["target"]["averageUtilization"]
        said.append(f"{found['minReplicas']} to {found['maxReplicas']} replicas at {target} %")
    if "containers" in found:
        said += [f"{each['containerName']} {' '.join(each['target'].values())}" for each in found["containers"]]
    if said:
        return "; ".join(said)
    return f"{found['replicasRecommendation']['replicas']} replicas"


def saved(report: Plain) -> str:
    """Cores, and money where prices were given."""
    found = report["saved"]
    if not found:
        return ""
    money = f", {found['perMonth']:+.2f} per month" if found["perMonth"] else ""
    return f"{found['cores']:+.2f} cores{money}"


def thresholds(report: Plain) -> list[tuple[float, str]]:
    """What was compared with the curve, in cores; what lies far above it would flatten it."""
    evidence, found = report["evidence"], report["recommendation"]
    least = (float(evidence["thresholds"]["minCpuUsageCores"]), "min-cpu-usage-threshold")
    lines = [least] if report["type"] != Advice.BOTH else []  # proven advice knows no such gate of document 000's
    if found and "minReplicas" in found and evidence.get("podRequestCores"):
        target = found["metrics"][0]["resource"]["target"]["averageUtilization"]
        each = evidence["podRequestCores"] * target / 100
        lines += [(found["minReplicas"] * each, "minReplicas at target"), (found["maxReplicas"] * each, "maxReplicas")]
    if evidence.get("p95Cores"):
        lines.append((evidence["p95Cores"], "P95"))
    known = [value for value in (*(evidence.get("usage") or []), *(evidence.get("forecast") or [])) if value]
    return [(value, label) for value, label in lines if 0 < value < 4 * max(known, default=0.0)]
