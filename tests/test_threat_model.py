"""Every promise of the threat model names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROMISED = re.findall(r"`(tests/\S+\.py)::(\w+)`", (ROOT / "docs" / "threat-model.md").read_text())


@pytest.mark.parametrize("file, name", PROMISED, ids=[name for _, name in PROMISED])
def test_the_test_behind_a_promise_exists(file: str, name: str) -> None:
    assert re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(), re.MULTILINE)


def test_every_row_has_one() -> None:
    page = (ROOT / "docs" / "threat-model.md").read_text()
    rows = page.partition("## What a tenant cannot do")[2].partition("\n## ")[0].count("\n| ") - 1
    assert len(PROMISED) == rows
