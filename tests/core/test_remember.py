"""Dates of a memory: moved with a clock that is set, and never after now once it is read back."""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.core.model import Memory
from trimtab.core.remember import not_after, restored, shifted

MEMORY = Memory(
    wanted=((90.0, 4),),
    grown=((80.0, 2),),
    shrunk=((70.0, 1),),
    up_at=80.0,
    down_at=70.0,
    failing_since=60.0,
    zeroed=True,
)


def test_what_lies_back_lies_as_far_back_after_a_step() -> None:
    ahead = shifted(MEMORY, 3600.0)
    assert ahead.wanted == ((3690.0, 4),) and ahead.grown == ((3680.0, 2),) and ahead.up_at == 3680.0
    assert ahead.resized_at is None and ahead.zeroed
    assert shifted(ahead, -3600.0) == MEMORY


def test_a_date_in_the_future_counts_as_now() -> None:
    found = not_after(MEMORY, 75.0)
    assert (found.up_at, found.down_at, found.failing_since) == (75.0, 70.0, 60.0)
    assert found.grown == ((75.0, 2),) and found.shrunk == ((70.0, 1),)
    assert not_after(MEMORY, 100.0) == MEMORY


def test_who_takes_over_drops_dates_in_the_future_and_begins_its_window_anew() -> None:
    assert restored(MEMORY, 75.0, 9) == replace(not_after(MEMORY, 75.0), wanted=((75.0, 9),), planned=((75.0, 9),))
