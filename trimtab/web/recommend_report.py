"""The html report of `trimtab recommend`: one self-contained page with a card and two charts for each workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

WIDTH, HEIGHT, PAD = 720, 150, 26
Plain = Mapping[str, Any]

STYLE = """
:root{color-scheme:light dark;--ink:#1c2430;--soft:#667;--line:#d9dee6;--past:#2563eb;--next:#d97706;--bad:#dc2626;
--good:#15803d;--card:#fff;--page:#f5f6f8}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ef;--soft:#98a2b3;--line:#333c4a;--past:#60a5fa;--next:#fbbf24;
--bad:#f87171;--good:#4ade80;--card:#1b222d;--page:#12171f}}
*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:860px;margin:0 auto;padding:24px}h1{font-size:22px;margin:0 0 4px}h2{font-size:17px;margin:0}
p{margin:4px 0}.soft{color:var(--soft)}table{border-collapse:collapse;width:100%;margin:16px 0}
td,th{text-align:left;padding:4px 10px 4px 0;border-bottom:1px solid var(--line);vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
article{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:16px;margin:16px 0}
svg{width:100%;height:auto;display:block}svg text{fill:var(--soft);font-size:11px}ul{margin:8px 0;padding-left:20px}
.tag{border:1px solid currentColor;border-radius:4px;padding:0 6px;font-size:12px;margin-left:8px}
.Risk{color:var(--bad)}.Saving{color:var(--good)}.Failed{color:var(--bad)}.Rejected,.Fine{color:var(--soft)}
pre{background:var(--page);padding:10px;border-radius:6px;overflow:auto;font-size:13px}a{color:inherit}
"""


def page(reports: Sequence[Plain], title: str, where: str) -> str:
    """Everything in one file: no scripts, no fonts, nothing is loaded."""
    cards = "".join(card(one, number) for number, one in enumerate(reports))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>"
        f'<h1>{escape(title)}</h1><p class="soft">{len(reports)} workloads; history from {escape(where)}</p>'
        f"{overview(reports)}{cards}</main></body></html>\n"
    )


def overview(reports: Sequence[Plain]) -> str:
    """One row a workload; money only where prices were given."""
    priced = any(one["saved"] and one["saved"]["perMonth"] for one in reports)
    rows = "".join(
        f'<tr><td><a href="#w{number}">{escape(_name(one))}</a></td><td class="{escape(one["severity"])}">'
        f'{escape(one["severity"])}</td><td class="n">{one["replicas"]}</td><td>{escape(_short(one))}</td>'
        f'<td class="n">{_saved(one, "cores")}</td>{_money(one) if priced else ""}</tr>'
        for number, one in enumerate(reports)
    )
    head = '<th>workload</th><th></th><th class="n">replicas</th><th>advice</th>'
    month = '<th class="n">a month</th>' if priced else ""
    return f'<table><tr>{head}<th class="n">cores saved</th>{month}</tr>{rows}</table>'


def _money(one: Plain) -> str:
    return f'<td class="n">{_saved(one, "perMonth")}</td>'


def _name(one: Plain) -> str:
    return f"{one['namespace']}/{one['kind']}/{one['name']}"


def _short(one: Plain) -> str:
    """The advice in a few words, or the first reason against it."""
    found = one["recommendation"]
    if found is None:
        return "; ".join(each["reason"] for each in one["against"])
    if "minReplicas" in found:
        target = found["metrics"][0]["resource"]["target"]["averageUtilization"]
        return f"{found['minReplicas']} to {found['maxReplicas']} replicas at {target} %"
    if "containers" in found:
        return "; ".join(f"{each['containerName']} {' '.join(each['target'].values())}" for each in found["containers"])
    return f"{found['replicasRecommendation']['replicas']} replicas"


def _saved(one: Plain, what: str) -> str:
    return f"{one['saved'][what]:+.2f}" if one["saved"] else ""


def card(one: Plain, number: int) -> str:
    """One workload: what is advised, why or why not, and the curves it rests on."""
    because = "".join(f"<li>{escape(said)}</li>" for said in one["because"])
    against = "".join(f"<li><b>{escape(each['reason'])}</b>: {escape(each['message'])}</li>" for each in one["against"])
    severity = escape(one["severity"])
    return (
        f'<article id="w{number}"><h2>{escape(_name(one))}<span class="tag {severity}">{severity}</span></h2>'
        f'<p class="soft">{escape(_short(one))}</p>{week_chart(one)}{hours_chart(one)}'
        f"<ul>{because}{against}</ul></article>"
    )


def week_chart(one: Plain) -> str:
    """Hourly usage, the forecast behind it, and the load that the bounds can carry."""
    evidence = one["evidence"]
    usage, ahead = evidence.get("usage") or [], evidence.get("forecast") or []
    lines = thresholds(one)
    known = [value for value in [*usage, *ahead] if value is not None]
    if not known:
        return '<p class="soft">no usage history</p>'
    top = 1.1 * max([*known, *(value for value, _ in lines if value < 4 * max(known))], default=1.0) or 1.0
    count = len(usage) + len(ahead)
    marks = "".join(
        _level(value, label, top, index % 2 == 0) for index, (value, label) in enumerate(lines) if value <= top
    )
    past = _line(usage, 0, count, top, "var(--past)")
    future = _line(ahead, len(usage), count, top, "var(--next)", dashed=True)
    words = "usage of the past days" + (", forecast of the coming ones" if ahead else "")
    return _svg(f"{marks}{past}{future}", f"{words}, in cores", top)


def thresholds(one: Plain) -> list[tuple[float, str]]:
    """What was compared with the curve, in cores."""
    evidence, found = one["evidence"], one["recommendation"]
    lines = [(float(evidence["thresholds"]["minCpuUsageCores"]), "min-cpu-usage-threshold")]
    if found and "minReplicas" in found and evidence.get("podRequestCores"):
        target = found["metrics"][0]["resource"]["target"]["averageUtilization"]
        each = evidence["podRequestCores"] * target / 100
        lines += [(found["minReplicas"] * each, "minReplicas at target"), (found["maxReplicas"] * each, "maxReplicas")]
    if evidence.get("p95Cores"):
        lines.append((evidence["p95Cores"], "P95"))
    return [(value, label) for value, label in lines if value > 0]


def hours_chart(one: Plain) -> str:
    """The median of each hour of the day: the lowest one sets minReplicas, their ratio is the fluctuation."""
    medians = one["evidence"].get("hourlyMedians") or []
    if not medians:
        return ""
    top, width = 1.1 * max(medians) or 1.0, (WIDTH - 2 * PAD) / len(medians)
    lowest = min(medians)
    bars = "".join(
        f'<rect x="{PAD + index * width + 1:.1f}" y="{_y(value, top):.1f}" width="{width - 2:.1f}" '
        f'height="{HEIGHT - PAD - _y(value, top):.1f}" fill="var(--past)" opacity="{1 if value > lowest else 0.45}">'
        f"<title>{index} h: {value:g} cores</title></rect>"
        for index, value in enumerate(medians)
    )
    return _svg(bars, "medians of the hours of the day, in cores; the lowest is lighter", top)


def _line(
    values: Sequence[float | None], first: int, count: int, top: float, colour: str, *, dashed: bool = False
) -> str:
    """One path; a hole lifts the pen."""
    path, down = [], False
    for index, value in enumerate(values):
        if value is not None:
            x = PAD + (first + index) * (WIDTH - 2 * PAD) / max(1, count - 1)
            path.append(f"{'L' if down else 'M'}{x:.1f} {_y(value, top):.1f}")
        down = value is not None
    dash = ' stroke-dasharray="4 3"' if dashed else ""
    return f'<path d="{"".join(path)}" fill="none" stroke="{colour}" stroke-width="1.5"{dash}/>' if path else ""


def _level(value: float, label: str, top: float, right: bool) -> str:
    """A dashed line; its label stands alternately right and left, so that neighbours stay readable."""
    y, x, anchor = _y(value, top), WIDTH - PAD if right else PAD, "end" if right else "start"
    return (
        f'<line x1="{PAD}" x2="{WIDTH - PAD}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--soft)" stroke-dasharray="2 4"/>'
        f'<text x="{x}" y="{y - 3:.1f}" text-anchor="{anchor}">{escape(label)} {value:.3g}</text>'
    )


def _y(value: float, top: float) -> float:
    return PAD + (HEIGHT - 2 * PAD) * (1 - min(value, top) / top)


def _svg(content: str, label: str, top: float) -> str:
    base = HEIGHT - PAD
    axis = f'<line x1="{PAD}" x2="{WIDTH - PAD}" y1="{base}" y2="{base}" stroke="var(--line)"/>'
    words = f'<text x="{PAD}" y="{HEIGHT - 8}">{escape(label)}</text><text x="{PAD}" y="14">{top:.3g}</text>'
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">{axis}{content}{words}</svg>'
