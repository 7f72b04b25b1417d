"""Writes docs/chart-values.md from values.yaml: every value with its default and what its comment says.

python deploy/trimtab/write_values.py
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parent
PAGE = CHART.parents[1] / "docs" / "chart-values.md"
LINE = re.compile(r"^(?P<indent> *)(?P<key>[A-Za-z]+):(?P<value>[^#]*?)(?:#(?P<after>.*))?$")
HEAD = """# Values of the chart

Written from [values.yaml](../deploy/trimtab/values.yaml) by `python deploy/trimtab/write_values.py`. A value that
cannot be meant is refused with its path ([values.schema.json](../deploy/trimtab/values.schema.json)).

| value | default | what it is |
|---|---|---|
"""


def page() -> str:
    text = (CHART / "values.yaml").read_text()
    comments, defaults = described(text), yaml.safe_load(text)
    rows = []
    for path, about in comments.items():
        value = at(defaults, path)
        shown = "" if isinstance(value, dict) and value and has_children(path, comments) else f"`{plain(value)}`"
        rows.append(f"| `{'.'.join(path)}` | {shown} | {about.replace('|', chr(92) + '|')} |")
    return HEAD + "\n".join(rows) + "\n"


def described(text: str) -> dict[tuple[str, ...], str]:
    """Each key with the comment above it and the one behind it."""
    found: dict[tuple[str, ...], str] = {}
    above: list[str] = []
    path: list[str] = []
    for line in text.splitlines():
        if line.strip().startswith("#"):
            above.append(line.strip().removeprefix("#").strip())
        elif match := LINE.match(line):
            path[len(match["indent"]) // 2 :] = [match["key"]]
            behind = [match["after"].strip()] if match["after"] else []
            found[tuple(path)] = " ".join(above + behind)
            above = []
        else:
            above = []
    return found


def at(values: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        values = values[key]
    return values


def has_children(path: tuple[str, ...], known: dict[tuple[str, ...], str]) -> bool:
    return any(other[: len(path)] == path and len(other) > len(path) for other in known)


def plain(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, width=1000).removesuffix("...\n").strip()


if __name__ == "__main__":
    PAGE.write_text(page())
