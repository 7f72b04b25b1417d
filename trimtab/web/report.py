"""The page of a backtest or the demo: one self-contained file with tables and charts to zoom; nothing is loaded."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from trimtab.series import Floats
from trimtab.web.bundle import document

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
