"""Tables and plots: as wide as the terminal, or wide enough where nobody looks."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import NoReturn

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from trimtab.cli.printable import printable_lines

PIPED = 160  # columns, so that no cell is cut on its way into a file
WORD, GAP = 12, 2


class Screen(Console):
    """Leaves it to `main` to say what a closed pipe means: rich would exit with 1, our word for findings."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable_lines(segment.text))

    def show(self, table: Table, spare: tuple[str, ...] = ()) -> None:
        """A table without cut cells: `spare` columns go first, and a line that is still too long is the terminal's."""
        for heading in spare:
            if _least(table) > self.width:
                table.columns = [column for column in table.columns if column.header != heading]
        seen, self.width = self.width, max(self.width, _least(table))
        self.print(table)
        self.width = seen

    @property
    def plot_width(self) -> int:
        """Columns for a plot beside its axis."""
        return max(20, min(72, self.width - 8))


def screen(stderr: bool = False) -> Screen:
    """Prints text as it is: names of others may hold brackets and colons."""
    seen = (sys.stderr if stderr else sys.stdout).isatty()
    return Screen(stderr=stderr, width=None if seen else PIPED, highlight=False, markup=False, emoji=False)


def _least(table: Table) -> int:
    """Columns a table of plain text needs: what may not wrap in full, of the rest a word."""
    wide = [max(cell_len(str(cell)) for cell in (column.header, *column.cells)) for column in table.columns]
    needed = [width if column.no_wrap else min(width, WORD) for width, column in zip(wide, table.columns, strict=True)]
    return sum(needed) + GAP * len(needed)
