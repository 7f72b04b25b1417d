"""The child process of a night: the same verdicts as in this process, within its budget; its death is an error."""

from __future__ import annotations

import asyncio

import pytest

from tests.tune.test_night import case, policy
from trimtab.cli import night_process
from trimtab.core.nights import Fleet
from trimtab.errors import TrimtabError
from trimtab.tune.night import find, plan


def test_the_child_finds_what_we_would() -> None:
    cases, fleet = [case(policy()), case(policy(), name="api", demand=b"")], Fleet(workloads=2)
    found = asyncio.run(night_process.in_child(iter(cases), fleet))
    assert found == plan([find(each) for each in cases], fleet)


def test_a_child_without_memory_is_an_error_and_not_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(night_process, "MEMORY_BYTES", 1_000_000)
    too_much = case(policy(), demand=bytes(50_000_000))  # more than any heap that is there already has left
    with pytest.raises(TrimtabError, match="the process that tunes ended with 1: MemoryError"):
        asyncio.run(night_process.in_child(iter([too_much]), Fleet(workloads=1)))
