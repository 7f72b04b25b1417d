"""The page of a backtest: one self-contained file with tables and charts to zoom; nothing is loaded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trimtab.series import Floats

_STATIC = Path(__file__).parent / "static"
POINTS = 20_000  # of each line: minutes of two weeks


class ChartLine(NamedTuple):
    name: str
    values: Floats


class Section(NamedTuple):
    """One workload: figures in rows, lines over time (the first one filled: the load), sentences below."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    start: float
    step_s: float
    lines: Sequence[ChartLine]
    notes: Sequence[str] = ()


def page(title: str, about: str, sections: Sequence[Section]) -> str:
    style = _static("uplot/uPlot.min.css") + _static("report.css")
    script = _static("uplot/uPlot.iife.min.js") + _static("report.js")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body><main>"
        f'<h1>{escape(title)}</h1><p class="soft">{escape(about)} Drag over a chart to zoom, double-click for all.</p>'
        f"{''.join(map(_section, sections))}</main><script>{script}</script></body></html>\n"
    )


def _static(name: str) -> str:
    return (_STATIC / name).read_text()


def _section(section: Section) -> str:
    head = "".join(f"<th>{escape(one)}</th>" for one in section.headings)
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in section.rows)
    notes = "".join(f'<p class="soft">{escape(note)}</p>' for note in section.notes)
    return (
        f"<article><h2>{escape(section.title)}</h2><table><tr>{head}</tr>{rows}</table>"
        f'<div class="chart"><script type="application/json">{_data(section)}</script></div>{notes}</article>'
    )


def _data(section: Section) -> str:
    """Lines as JSON, thinned to the highest value of each bin; `<` cannot end the script it stands in."""
    width = -(-len(section.lines[0].values) // POINTS)
    lines = [{"name": line.name, "values": _thinned(line.values, width)} for line in section.lines]
    content = {"start": section.start, "step_s": section.step_s * width, "lines": lines}
    return json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")


def _thinned(values: Floats, width: int) -> list[float]:
    edges = np.arange(0, len(values), width)
    highest = np.maximum.reduceat(values, edges)
    return [int(one) if one == int(one) else one for one in np.round(highest, 2).tolist()]
