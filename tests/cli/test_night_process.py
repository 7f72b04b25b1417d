"""The child process of a night: the same verdicts as in this process, within its budget; its death is an error."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest

from tests.tune.test_night import OFFICE, case, minutes, policy
from trimtab.cli import night_process
from trimtab.core.nights import VerdictKind
from trimtab.errors import TrimtabError
from trimtab.policy import Bridge, ForecastChoice, Objective
from trimtab.tune import night_child
from trimtab.tune.night import find


def test_the_child_finds_what_we_would() -> None:
    cases = [case(policy()), case(policy(), uid="api", demand=b"")]
    assert asyncio.run(night_process.in_child(iter(cases), 2)) == [find(each) for each in cases]


def test_where_nothing_is_compiled_yet_there_is_memory_for_the_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new container: what the compiler takes is not there any more when a fortnight is looked at."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    full = policy(bridge=Bridge(), objective=Objective(), forecast=ForecastChoice(model="learned"))
    fortnight = minutes(replace(OFFICE, days=14))
    cases = [case(full, uid=name, demand=fortnight) for name in ("web", "api")]
    found = asyncio.run(night_process.in_child(iter(cases), 2))
    assert [verdict.evidence is not None for verdict in found] == [True, True], found


def test_two_are_answered_side_by_side_and_none_is_made_before_its_turn() -> None:
    both, busy, made = Barrier(night_child.AT_ONCE, timeout=600), set[int](), list[int]()

    def given() -> Iterator[int]:
        for number in range(4 * night_child.AT_ONCE):
            assert len(busy) < night_child.AT_ONCE
            made.append(number)
            yield number

    def work(number: int) -> int:
        busy.add(number)
        both.wait()  # nobody gets here alone
        busy.remove(number)
        return -number

    assert night_child.side_by_side(work, given()) == [-number for number in made]
    assert made == list(range(4 * night_child.AT_ONCE))


def test_the_example_is_a_case_like_any_other() -> None:
    """Else nothing would be compiled before the first cases come."""
    found = find(night_child.example())
    assert found.kind is VerdictKind.KEPT and found.evidence is not None


def test_a_child_without_memory_is_an_error_and_not_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(night_process, "MEMORY_BYTES", 1_000_000)
    too_much = case(policy(), demand=bytes(50_000_000))  # more than any heap that is there already has left
    with pytest.raises(TrimtabError, match=r"ended with 1: .*(MemoryError|start new thread|failed to map segment)"):
        asyncio.run(night_process.in_child(iter([too_much]), 1))
