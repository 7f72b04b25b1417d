"""The terminal plot: what is high is high, what comes later is further right."""

from __future__ import annotations

import numpy as np

from trimtab.cli.plot import Line, plot


def drawn(values: list[float], width: int = 10, height: int = 4) -> list[str]:
    return plot([Line("x", np.array(values), "cyan")], "then", "now", width, height).plain.split("\n")


def test_a_ramp_rises_from_left_to_right() -> None:
    rows = [line[7:] for line in drawn(list(range(100)))[:4]]
    filled = [[index for index, mark in enumerate(row) if mark != "\u2800"] for row in rows]
    assert min(filled[0]) > max(filled[3]), "the top row is to the right of the bottom row"


def test_axes_and_legend() -> None:
    lines = drawn([0.0, 5.0, 12.5])
    assert lines[0].strip().startswith("12.5")
    assert lines[3].strip().startswith("0")
    assert lines[4].split() == ["then", "now"]
    assert "x" in lines[5]


def test_a_jump_is_joined() -> None:
    rows = [line[7:] for line in drawn([0.0] * 50 + [10.0] * 50)[:4]]
    assert all(any(mark != "\u2800" for mark in row) for row in rows), "the step has a vertical part"


def test_zeros_and_short_series_are_drawn() -> None:
    assert len(drawn([0.0])) == 6


def test_nothing_at_all_has_no_height() -> None:
    assert not drawn([0.0, 0.0])[0][:7].strip()
