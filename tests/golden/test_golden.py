"""Every golden vector goes through our code, or stands in a table with a reason from a closed list."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.golden import harness
from tests.golden.harness import Case, Excuse


def test_the_vectors_are_there() -> None:
    assert [name for name in harness.FILES if harness.load(name)], f"no golden vectors in {harness.FOLDER}"


@pytest.mark.parametrize("path", sorted(harness.OURS.glob("*.json")), ids=lambda path: path.stem)
def test_our_vectors_have_ids_of_their_own_and_nobody_is_excused(path: Path) -> None:
    cases = json.loads(path.read_text())["cases"]
    ids = [case["id"] for case in cases]
    assert len(set(ids)) == len(ids)
    for case in cases:
        assert set(case) - {"fn"} == {"id", "what", "input", "expected"}
        assert harness.adapter(path.stem, case) is not None, case["id"]


def _params() -> list[object]:
    return [
        pytest.param(name, case, id=f"{name}:{case.get('id', index)}")
        for name in harness.FILES
        for index, case in enumerate(harness.load(name))
    ]


@pytest.mark.parametrize("name, case", _params())
def test_vector(name: str, case: Case) -> None:
    reason = harness.excuse(name, case)
    check = harness.adapter(name, case)
    if check is None and reason in (Excuse.INTERNALS, Excuse.WORDS):
        pytest.skip(str(reason))
    assert check is not None, f"no adapter takes {case.get('id')} ({harness.key(name, case)}) of {name}.json"
    check(case)
