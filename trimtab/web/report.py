"""Pages in one file that need no network: the report of a backtest or the demo, and that of `trimtab recommend`.

`make page` builds their script and style from page/, and the wheel carries both.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from trimtab.errors import InvalidInput
from trimtab.kinds.meta import when
from trimtab.policy import Advice
from trimtab.series import Floats

STATIC = Path(__file__).parent / "static"
HOUR_S = 3600.0
POINTS = 20_000  # of each line: minutes of two weeks
TEXT = ("policy", "worst hour")
EXPLAINED = {
    "pod hours": "What was paid for: replicas times hours.",
    "cost": "Pod hours in proportion to those of the optimum.",
    "violations": "Load that met too little capacity, in percent of all load.",
    "churn/day": "Pods started and removed on an average day.",
    "J": "All costs together: pod hours, violations at their price, and pod starts; 1.00 is the optimum.",
    "regret": "How far J is above the clairvoyant optimum, which knows the load in advance.",
    "under": "How far ready pods were below the need, on average.",
    "over": "How far ready pods were above the need, on average.",
    "worst hour": "The hour in which most load was violated (UTC), and its share of that hour's load.",
}


@cache
def part(name: str) -> str:
    path = STATIC / name
    if not path.exists():
        raise InvalidInput("page", str(path), "it was not built: run `make page` (an installed wheel carries it)")
    return path.read_text(encoding="utf-8")


def shell() -> str:
    """The dashboard's only document; everything else comes by script."""
    return (
        f"{_head('trimtab')}"
        '<link rel="stylesheet" href="/page.css"></head><body>'
        "<noscript>This page needs JavaScript; `trimtab explain` says the same in a terminal.</noscript>"
        '<script src="/page.js"></script></body></html>\n'
    )


def document(title: str, content: str) -> str:
    """One file that needs no network: JSON, style and script inside, and nothing else may run or be loaded."""
    style, script = part("page.css"), part("page.js").replace("</script", "<\\/script")
    policy = f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}"
    data = content.replace("<", "\\u003c")
    return (
        f'{_head(title)}<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        f"<style>{style}</style></head><body>"
        f'<script type="application/json" id="report">{data}</script>'
        f"<script>{script}</script></body></html>\n"
    )


def _head(title: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title>"
        '<link rel="icon" href="data:,">'
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


class ChartLine(NamedTuple):
    name: str
    values: Floats
    role: Literal["load", "optimum", "policy"] = "policy"


class Section(NamedTuple):
    """One workload: figures in rows, lines over time, sentences below."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    start: float
    step_s: float
    lines: Sequence[ChartLine]
    notes: Sequence[str] = ()


def page(title: str, about: str, sections: Sequence[Section], verdict: str) -> str:
    content = {"title": title, "about": about, "verdict": verdict, "sections": list(map(_plain, sections))}
    return document(title, json.dumps(content, separators=(",", ":")))


def _plain(section: Section) -> dict[str, Any]:
    width = -(-len(section.lines[0].values) // POINTS)
    return {
        "title": section.title,
        "caption": "Each policy over the whole time; hover over a heading for what it means",
        "columns": [
            {"heading": heading, "title": EXPLAINED.get(heading, ""), "text": heading in TEXT}
            for heading in section.headings
        ],
        "rows": section.rows,
        "start": section.start,
        "step": section.step_s * width,
        "lines": [
            {"name": line.name, "role": line.role, "values": _packed(line.values, width)} for line in section.lines
        ],
        "notes": section.notes,
    }


def _packed(values: Floats, width: int) -> str:
    """The highest value of each bin as 32-bit floats in base 64."""
    highest = np.maximum.reduceat(values, np.arange(0, len(values), width))
    return b64encode(np.round(highest, 2).astype("<f4").tobytes()).decode()


def recommend_page(reports: Sequence[Mapping[str, Any]], title: str, where: str, summary: str) -> str:
    content = {
        "title": title,
        "verdict": f"{summary}.",
        "about": f"History from {where}. Amounts are cores.",
        "advice": [advice(report) for report in reports],
    }
    return document(title, json.dumps(content, separators=(",", ":")))


def advice(report: Mapping[str, Any]) -> dict[str, Any]:
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


def short(report: Mapping[str, Any]) -> str:
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


def saved(report: Mapping[str, Any]) -> str:
    """Cores, and money where prices were given."""
    found = report["saved"]
    if not found:
        return ""
    money = f", {found['perMonth']:+.2f} per month" if found["perMonth"] else ""
    return f"{found['cores']:+.2f} cores{money}"


def thresholds(report: Mapping[str, Any]) -> list[tuple[float, str]]:
    """What was compared with the curve, in cores; what lies far above it would flatten it."""
    evidence, found = report["evidence"], report["recommendation"]
    least = (float(evidence["thresholds"]["minCpuUsageCores"]), "min-cpu-usage-threshold")
    lines = [least] if report["type"] != Advice.BOTH else []  # proven advice knows no such gate of Crane's
    if found and "minReplicas" in found and evidence.get("podRequestCores"):
        target = found["metrics"][0]["resource"]["target"]["averageUtilization"]
        each = evidence["podRequestCores"] * target / 100
        lines += [(found["minReplicas"] * each, "minReplicas at target"), (found["maxReplicas"] * each, "maxReplicas")]
    if evidence.get("p95Cores"):
        lines.append((evidence["p95Cores"], "P95"))
    known = [value for value in (*(evidence.get("usage") or []), *(evidence.get("forecast") or [])) if value]
    return [(value, label) for value, label in lines if 0 < value < 4 * max(known, default=0.0)]
