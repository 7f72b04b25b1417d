"""The package stays small in its parts: sizes may fall, and may not creep up again.

A module that grows beyond is two modules; so is a function. Raise a limit only with a reason that lasts.
"""

from __future__ import annotations

import ast
from pathlib import Path
from statistics import median

import pytest

import trimtab

PACKAGE = Path(trimtab.__file__).parent
SOURCES = {path: path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}
MODULES = {str(path.relative_to(PACKAGE)): text.count("\n") for path, text in SOURCES.items() if text}
FUNCTIONS = {
    f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}": (node.end_lineno or 0) - node.lineno + 1
    for path, text in SOURCES.items()
    for node in ast.walk(ast.parse(text))
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
}


@pytest.mark.parametrize(
    "sizes, most, most_of_90_percent, most_of_half",
    [pytest.param(MODULES, 321, 194, 96, id="modules"), pytest.param(FUNCTIONS, 74, 15, 6, id="functions")],
)
def test_lines(sizes: dict[str, int], most: int, most_of_90_percent: int, most_of_half: int) -> None:
    ordered = sorted(sizes.values())
    longest = sorted(sizes, key=sizes.__getitem__, reverse=True)
    assert ordered[-1] <= most, f"split {longest[0]}"
    too_long = [name for name in longest if sizes[name] > most_of_90_percent]
    assert ordered[int(0.9 * (len(ordered) - 1))] <= most_of_90_percent, f"more than a tenth is long: {too_long[:20]}"
    assert median(ordered) <= most_of_half
