"""Every golden vector goes through our code, or stands in a table with a reason from a closed list."""

from __future__ import annotations

import pytest

from tests.golden import harness
from tests.golden.harness import Case, Excuse

ABSENT = f"no golden vectors in {harness.FOLDER}: set TRIMTAB_GOLDEN to the folder that has them"


def test_the_vectors_are_there() -> None:
    found = [name for name in harness.FILES if harness.load(name)]
    if not found and not harness.REQUIRED:
        pytest.skip(ABSENT)
    assert found, ABSENT


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
