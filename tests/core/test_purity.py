"""core asks no clock, reads no file, opens no socket, logs nothing, draws nothing, and knows no environment."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import trimtab.core

CORE = Path(trimtab.core.__file__).parent
FORBIDDEN_MODULES = {
    "asyncio",
    "io",
    "logging",
    "os",
    "pathlib",
    "random",
    "secrets",
    "socket",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "time",
    "urllib",
    "uuid",
    "zoneinfo",
}
FORBIDDEN_NAMES = {"open", "print", "input", "exec", "eval", "__import__"}
FORBIDDEN_CALLS = {"now", "utcnow", "today", "default_rng", "RandomState", "getenv", "environ"}


@pytest.mark.parametrize("path", sorted(CORE.rglob("*.py")), ids=lambda path: str(path.relative_to(CORE)))
def test_module_is_pure(path: Path) -> None:
    assert impurities(path.read_text()) == []


def impurities(source: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names if name.name.split(".")[0] in FORBIDDEN_MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in FORBIDDEN_MODULES:
            found.append(str(node.module))
        elif isinstance(node, ast.Name) and node.id in FORBIDDEN_NAMES:
            found.append(node.id)
        elif isinstance(node, ast.Attribute) and node.attr in FORBIDDEN_CALLS:
            found.append(node.attr)
    return found


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "from os import path",
        "import datetime; datetime.datetime.now()",
        "print('x')",
        "import numpy as np; np.random.default_rng()",
    ],
)
def test_the_check_would_notice(source: str) -> None:
    assert impurities(source)
