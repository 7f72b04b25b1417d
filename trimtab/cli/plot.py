"""A small line plot for terminals: braille dots, two wide and four high in every character."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from rich.text import Text

from trimtab.series import Floats

_BLANK = 0x2800
FLAT = 1e-9  # the height of a picture in which there is nothing but zero
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # [row][column] of a character


class Line(NamedTuple):
    name: str
    values: Floats
    colour: str


def plot(lines: Sequence[Line], left: str, right: str, width: int = 72, height: int = 12) -> Text:
    """All lines over the same time; later ones are drawn over earlier ones. `left` and `right` label the time axis."""
    top = max(FLAT, max(float(np.max(line.values)) for line in lines))
    marks = np.zeros((height, width), dtype=np.int64)
    owners = np.full((height, width), -1)
    for number, line in enumerate(lines):
        for column, (low, high) in enumerate(_envelope(line.values, 2 * width)):
            first, last = (round((1 - value / top) * (4 * height - 1)) for value in (high, low))
            for row in range(first, last + 1):
                marks[row // 4, column // 2] |= _DOTS[row % 4][column % 2]
                owners[row // 4, column // 2] = number
    return _rendered(marks, owners, lines, top, left, right)


def _envelope(values: Floats, columns: int) -> list[tuple[float, float]]:
    """The lowest and highest value of each column, joined to the column before."""
    edges = np.linspace(0, len(values), columns + 1).astype(np.intp).tolist()
    spans = [values[a : max(b, a + 1)] for a, b in pairwise(edges)]
    ends = [(max(0.0, float(span.min())), max(0.0, float(span.max()))) for span in spans]
    joined = [ends[0]]
    for (before_low, before_high), (low, high) in pairwise(ends):
        joined.append((min(low, before_high), max(high, before_low)))
    return joined


def _rendered(
    marks: np.ndarray[tuple[int, int], np.dtype[np.int64]],
    owners: np.ndarray[tuple[int, int], np.dtype[np.int64]],
    lines: Sequence[Line],
    top: float,
    left: str,
    right: str,
) -> Text:
    height, width = marks.shape
    text = Text()
    for row in range(height):
        label = f"{top:.4g}" if row == 0 and top > FLAT else "0" if row == height - 1 else ""
        text.append(f"{label:>6} ", style="dim")
        for column in range(width):
            owner = int(owners[row, column])
            text.append(chr(_BLANK | int(marks[row, column])), style=lines[owner].colour if owner >= 0 else "")
        text.append("\n")
    text.append(" " * 7 + left + " " * max(1, width - len(left) - len(right)) + right + "\n", style="dim")
    text.append(" " * 7)
    for line in lines:
        text.append("━━ ", style=line.colour)
        text.append(f"{line.name}   ")
    return text
