"""kept_journal: the journal as the operator holds it: its disk may be full and its file damaged, the operator goes on.

What cannot be recorded is said once, counted, and tried again; a damaged file is put aside and a new one begun.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

from trimtab.acts import Act
from trimtab.errors import InvalidInput, JournalUnavailable
from trimtab.journal import Journal, Retention, Tick
from trimtab.journal_file import uri_of
from trimtab.live.tell.telemetry import Line

log = logging.getLogger(__name__)
PRUNE_EVERY_S = 600.0


class KeptJournal:
    """Writes when it can; `trouble` says why it cannot."""

    def __init__(self, path: str, keep: Retention) -> None:
        self.path, self.keep = Path(path), keep
        self.trouble = ""
        self.lost = 0  # decisions that are in no journal
        self._journal: Journal | None = None
        self._pruned_at = float("-inf")

    def write(self, acts: Sequence[Act], ticks: Sequence[Tick] = ()) -> None:
        if self._do(lambda journal: journal.write(acts, ticks)):
            self._say("")
        else:
            self.lost += len(acts)

    def note(self, key: str, text: str) -> None:
        self._do(lambda journal: journal.note(key, text))

    async def prune_if_due(self, at: float, since_boot: float) -> None:
        if since_boot - self._pruned_at > PRUNE_EVERY_S:
            self._pruned_at = since_boot  # not at once again if it fails
            for _ in self.pruning(at):
                await asyncio.sleep(0)  # watches, the lease and whoever asks have their turn

    def pruning(self, at: float) -> Iterator[None]:
        """Step by step, so that a tick never waits for all of it."""
        try:
            if journal := self._opened():
                yield from journal.pruning(at)
        except (JournalUnavailable, InvalidInput) as error:
            self._failed(error)

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def lines(self) -> list[Line]:
        """For /metrics."""
        return [("trimtab_journal_up", {}, float(not self.trouble)), ("trimtab_journal_lost_total", {}, self.lost)]

    def _do(self, verb: Callable[[Journal], None]) -> bool:
        try:
            journal = self._opened()
            if journal is None:
                return False
            verb(journal)
        except (JournalUnavailable, InvalidInput) as error:
            self._failed(error)
            return False
        return True

    def _failed(self, error: JournalUnavailable | InvalidInput) -> None:
        self._say(str(error))
        if isinstance(error, InvalidInput) or error.damaged:
            self._replace()

    def _opened(self) -> Journal | None:
        if self._journal is None:
            try:
                self._journal = Journal(self.path, self.keep)
            except InvalidInput as error:
                self._journal = self._begun_anew(error)
        return self._journal

    def _replace(self) -> None:
        """The next write begins a new file."""
        self.close()
        with suppress(OSError):
            put_aside(self.path)

    def _begun_anew(self, error: InvalidInput) -> Journal | None:
        """Beside what cannot be read, which stays for whoever wants to look; another program's file is not ours."""
        if not ours_but_unreadable(self.path):
            self._say(str(error))
            return None
        try:
            aside = put_aside(self.path)
            log.warning("%s; it is kept as %s, and a new one is begun", error, aside)
            return Journal(self.path, self.keep)
        except (OSError, InvalidInput) as second:
            self._say(f"{error}; nor can a new one be begun: {second}")
            return None

    def _say(self, trouble: str) -> None:
        if trouble and trouble != self.trouble:
            log.error("decisions are not recorded until this is mended: %s", trouble)
        elif self.trouble and not trouble:
            log.warning("decisions are recorded again; %d are in no journal", self.lost)
        self.trouble = trouble


def ours_but_unreadable(path: Path) -> bool:
    """Damaged, or of another version; a database in good order that has no journal in it is somebody else's."""
    if not path.is_file():
        return False
    try:
        with closing(sqlite3.connect(f"{uri_of(path)}?mode=ro", uri=True)) as db:
            tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
    except sqlite3.OperationalError:
        return False  # it cannot be read at all: nothing is known of it
    except sqlite3.DatabaseError:
        return True
    return not tables or "decisions" in tables


def put_aside(path: Path) -> Path:
    """In place of the one that was put aside before, as the disk is not ours alone; SQLite's own two files go."""
    aside = path.with_name(f"{path.name}.unreadable")
    path.replace(aside)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return aside
