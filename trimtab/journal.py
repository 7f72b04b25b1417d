"""The journal: every acting decision with its full inputs, idle ticks as slim rows, in one SQLite file.

A record, never the memory: losing it changes no decision. One process writes (WAL), any number read meanwhile.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from trimtab import journal_file, minutes
from trimtab.acts import Act, AxisOutcome, Fate, Outcome, changed_axes, fate_of
from trimtab.core.explain import sentence
from trimtab.core.model import Decision, Memory, Observation
from trimtab.errors import InvalidInput, JournalUnavailable
from trimtab.policy import Policy
from trimtab.ticks import ObjectName as ObjectName
from trimtab.ticks import Tick as Tick

DAY_S = 86400.0
HEALTH = "health"  # what an operator notes of itself after each tick
KNOWN_GONE = 1000  # names and policies of objects that are gone may stay in memory
SLACK = 1.1  # pruning is not for every tick
FORGET_S = 3600.0  # as much of the past is forgotten in one step
FORGET_ROWS = 500  # or so many decisions
VACUUM_PAGES = 1000  # given back in one step
_STORED = Tick._fields[1:-1]
_INTO = f"ticks (object, {', '.join(_STORED)}) VALUES (?{', ?' * len(_STORED)})"
_SIZE = (
    "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
)
_SPAN = ", ".join(
    f"(SELECT {edge} FROM {table})"
    for edge, table in (
        ("min(at)", "decisions"),
        ("min(at)", "ticks"),
        (f"{minutes.HOUR_S} * min(hour)", "minutes"),
        ("max(at)", "decisions"),
        ("max(at)", "ticks"),
        (f"{minutes.HOUR_S} * max(hour)", "minutes"),
    )
)  # each of them by its index alone


_OBJECTS_OF = "(SELECT id FROM objects WHERE namespace = ?)"
_BYTES_OF_NAMESPACES = (
    "SELECT namespace, sum(bytes) FROM decisions d JOIN objects o ON o.id = d.object GROUP BY namespace"
)
_BYTES_OF_NAMESPACE = f"SELECT at, bytes FROM decisions WHERE object IN {_OBJECTS_OF} ORDER BY at"
_FORGET_OF_NAMESPACE = f"DELETE FROM decisions WHERE at <= ? AND object IN {_OBJECTS_OF}"


class Retention(NamedTuple):
    """How much is kept: the younger than `age_s`, and of those the youngest `size_bytes`, in fair shares."""

    age_s: float = 30 * DAY_S
    size_bytes: int = 1024**3


class Journal:
    """`Journal(path)` to write, `Journal.read(path)` to look."""

    def __init__(self, path: str | Path, keep: Retention = Retention()) -> None:  # noqa: B008  (frozen)
        self.path, self.keep = Path(path), keep
        self.db = journal_file.connect(self.path)
        self._ids: dict[ObjectName, int] = {}
        self._policies: dict[ObjectName, Policy] = {}
        self._notes: dict[str, str] = {}  # to be written
        with self._reading():
            journal_file.prepare(self.db, self.path)
            self._page_bytes: int = self.db.execute("PRAGMA page_size").fetchone()[0]

    @classmethod
    def read(cls, path: str | Path) -> Journal:
        """A reader beside the writer; it changes nothing."""
        found = Path(path)
        if not found.exists():
            raise InvalidInput("journal", str(path), "there is no such file; `trimtab run --journal PATH` writes one")
        reader = cls.__new__(cls)
        reader.path, reader.keep, reader._ids, reader._policies = found, Retention(), {}, {}
        reader.db = journal_file.connect(found, read_only=True)
        with reader._reading():
            journal_file.make_readable(reader.db, found)
        return reader

    def close(self) -> None:
        self.db.close()

    def write(self, acts: Iterable[Act], ticks: Sequence[Tick] = ()) -> None:
        """All of one tick in one transaction; what grows too large is pruned at once, not when the time comes."""
        with self._writing(), self.db:
            if rows := [self._row(act) for act in acts]:  # most ticks have none
                self.db.executemany(
                    "INSERT INTO decisions"
                    " (object, at, replicas, planned, said, fate, outcome, policy, seen, memory, decision, bytes)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    rows,
                )
            self.db.executemany(
                f"INSERT OR REPLACE INTO {_INTO}",
                [(self._id(tick.name), *tick[1:-1]) for tick in ticks],
            )
            self._note_policies(ticks)
            self.db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", self._notes.items())
            pages = self.db.execute("PRAGMA page_count").fetchone()[0]  # later it would be a transaction of its own
        if len(self._ids) > 2 * len(ticks) + KNOWN_GONE:
            self._know_only({tick.name for tick in ticks})
        self._notes.clear()
        if self._is_too_large(pages):
            self.prune(float("-inf"))

    def note(self, key: str, text: str) -> None:
        """One text by name, in place of the last; it is written with the next tick, in the same transaction."""
        self._notes[key] = text

    def noted(self, key: str) -> str | None:
        found = self.query("SELECT value FROM meta WHERE key = ?", (key,))
        return str(found[0][0]) if found else None

    def prune(self, at: float) -> None:
        for _ in self.pruning(at):
            pass

    def pruning(self, at: float) -> Iterator[None]:
        """Fold ticks into minutes, forget what is too old, then the oldest while it is too much; the file shrinks.

        A namespace whose decisions take more than its share loses those first, so that it costs others none of theirs.
        Step by step, each a transaction of its own: between two of them others may have their turn, and may write.
        """
        with self._writing():
            yield from minutes.fold(self.db, at)
            yield from self._forgetting(at - self.keep.age_s)
            yield from self._forgetting_of_the_largest()
            while self.size_bytes() > self.keep.size_bytes and (oldest := self._oldest_tenth()) is not None:
                yield from self._forgetting(oldest)
            for _ in range(0, self.query("PRAGMA freelist_count")[0][0], VACUUM_PAGES):
                self.db.executescript(f"PRAGMA incremental_vacuum({VACUUM_PAGES})")  # execute() would free one only
                yield

    def _is_too_large(self, pages: int) -> bool:
        """A file that is small enough as it is, is not asked which of its pages are in use."""
        most = self.keep.size_bytes * SLACK
        return pages * self._page_bytes > most and self.size_bytes() > most

    def size_bytes(self) -> int:
        """What is in use, without pages that wait to be used again."""
        with self._reading():
            used: int = self.db.execute(_SIZE).fetchone()[0]
        return used

    def acts(
        self, namespace: str | None = None, name: str | None = None, until: float | None = None, last: int | None = None
    ) -> Iterator[Act]:
        """Acting decisions, oldest first; with `last`, only that many of the youngest."""
        where, values = _where(namespace, name, until)
        order = "ORDER BY at, d.id" if last is None else "ORDER BY at DESC, d.id DESC LIMIT ?"
        query = (
            "SELECT kind, namespace, name, outcome, coalesce(p.text, policy), seen, memory, decision"
            " FROM decisions d JOIN objects o ON o.id = d.object"
            f" LEFT JOIN policies p ON p.id = CAST(d.policy AS INTEGER) {where} {order}"
        )
        with self._reading():
            rows = self.db.execute(query, values if last is None else [*values, last])
            for row in rows if last is None else reversed(rows.fetchall()):
                yield _act(row)

    def ticks(
        self, namespace: str | None = None, name: str | None = None, until: float | None = None
    ) -> Iterator[Tick]:
        where, values = _where(namespace, name, until)
        query = (
            f"SELECT kind, namespace, name, {', '.join(_STORED)}"
            f" FROM ticks d JOIN objects o ON o.id = d.object {where} ORDER BY at"
        )
        with self._reading():
            for row in self.db.execute(query, values):
                yield Tick(ObjectName(*row[:3]), *row[3:])

    def names(self) -> list[ObjectName]:
        with self._reading():
            rows = self.db.execute("SELECT kind, namespace, name FROM objects ORDER BY namespace, name, kind")
            return [ObjectName(*row) for row in rows]

    def minutes_of(self, name: ObjectName, start: float, end: float) -> minutes.Minutes:
        """What each minute of a span was like for one object."""
        with self._reading():
            found = self.db.execute("SELECT id FROM objects WHERE (kind, namespace, name) = (?, ?, ?)", name).fetchone()
            return minutes.read(self.db, found[0] if found else -1, start, end)

    def policy_of(self, name: ObjectName) -> Policy | None:
        """The newest policy of an object whose ticks are recorded."""
        query = (
            "SELECT text FROM policies p JOIN current c ON c.policy = p.id JOIN objects o ON o.id = c.object"
            " WHERE (kind, namespace, name) = (?, ?, ?)"
        )
        with self._reading():
            found = self.db.execute(query, name).fetchone()
            return msgspec.json.decode(found[0], type=Policy) if found else None

    def query(self, text: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """For those who show it: any question that reads."""
        with self._reading():
            return self.db.execute(text, values).fetchall()

    def span(self) -> tuple[float, float] | None:
        """When the first and the last thing in it happened; None when it is empty."""
        with self._reading():
            found = self.db.execute(f"SELECT {_SPAN}").fetchone()
        first, last = ([at for at in edges if at is not None] for edges in (found[:3], found[3:]))
        return (min(first), max(last)) if first else None

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """What a damaged file, or rows of another version, come to."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise InvalidInput("journal", str(self.path), f"cannot be read: {error}") from error
            raise JournalUnavailable(
                f"journal {self.path}: another process holds it; it is whole, try again"
            ) from error
        except sqlite3.DatabaseError as error:
            raise InvalidInput("journal", str(self.path), f"this is no journal, or a damaged one: {error}") from error
        except msgspec.MsgspecError as error:
            fix = f"it holds what this version does not understand ({error}): read it with the trimtab that wrote it"
            raise InvalidInput("journal", str(self.path), fix) from error

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """What a full disk or a damaged file come to: the record has a hole, nothing else."""
        try:
            yield
        except sqlite3.Error as error:
            self._ids.clear()  # what was rolled back is not there
            self._policies.clear()
            raise JournalUnavailable(f"journal {self.path}: {error}", damaged=_damaged(error)) from error

    def _row(self, act: Act) -> tuple[object, ...]:
        seen, plan = act.seen, act.decision.plan
        said, fate = sentence(act.policy, seen, act.memory, act.decision), fate_of(act.outcome)
        records = tuple(journal_file.packed(_text(record)) for record in (seen, act.memory, act.decision))
        texts = (said, fate, _text(act.outcome), self._policy(act.policy), *records)
        return self._id(act.name), seen.at, seen.spec_replicas, plan.replicas, *texts, sum(map(len, records))

    def _policy(self, policy: Policy) -> int:
        """Its number; written once, as its queries may be long and it stays the same from act to act."""
        text = _text(policy)
        digest = hashlib.sha256(text.encode()).digest()
        self.db.execute("INSERT OR IGNORE INTO policies (digest, text) VALUES (?, ?)", (digest, text))
        number: int = self.db.execute("SELECT id FROM policies WHERE digest = ?", (digest,)).fetchone()[0]
        return number

    def _note_policies(self, ticks: Iterable[Tick]) -> None:
        """Which policy each object has now, where it is not the one of last time."""
        for tick in ticks:
            policy, known = tick.policy, self._policies.get(tick.name)
            if policy is not None and policy is not known and policy != known:
                bounds = policy.bounds
                row = (policy.admit.mode, bounds.min_replicas, bounds.max_replicas, self._policy(policy))
                self.db.execute("INSERT OR REPLACE INTO current VALUES (?, ?, ?, ?, ?)", (self._id(tick.name), *row))
                self._policies[tick.name] = policy

    def _id(self, name: ObjectName) -> int:
        if name not in self._ids:
            self.db.execute("INSERT OR IGNORE INTO objects (kind, namespace, name) VALUES (?, ?, ?)", name)
            found = self.db.execute("SELECT id FROM objects WHERE kind = ? AND namespace = ? AND name = ?", name)
            self._ids[name] = found.fetchone()[0]
        return self._ids[name]

    def _forgetting(self, at: float) -> Iterator[None]:
        """Everything before, an hour at a time where it is much."""
        span = self.span()
        for edge in [*np.arange(span[0], at, FORGET_S).tolist()[1:], at] if span and span[0] < at else []:
            with self.db:
                self.db.execute("DELETE FROM decisions WHERE at < ?", (edge,))
                self.db.execute("DELETE FROM ticks WHERE at < ?", (edge,))
                minutes.forget_before(self.db, edge)
            yield
        with self.db:
            if journal_file.forget_unused(self.db):
                self._know_only(set(self.names()))

    def _forgetting_of_the_largest(self) -> Iterator[None]:
        """The oldest decisions of namespaces that take more than their share of what is kept."""
        excess = self.size_bytes() - self.keep.size_bytes
        if excess <= 0:
            return
        sizes = dict(self.query(_BYTES_OF_NAMESPACES))
        most = fair_share(list(sizes.values()), max(0, sum(sizes.values()) - excess))
        for namespace, size in sizes.items():
            taken = self.query(_BYTES_OF_NAMESPACE, (namespace,)) if size > most else []
            sums = np.cumsum([bytes_ for _, bytes_ in taken])
            last = int(np.searchsorted(sums, size - most))
            for place in sorted({*range(FORGET_ROWS, last, FORGET_ROWS), last} if taken else ()):
                with self.db:
                    self.db.execute(_FORGET_OF_NAMESPACE, (taken[min(place, len(taken) - 1)][0], namespace))
                yield

    def _know_only(self, names: Set[ObjectName]) -> None:
        self._ids = {name: number for name, number in self._ids.items() if name in names}
        self._policies = {name: policy for name, policy in self._policies.items() if name in names}

    def _oldest_tenth(self) -> float | None:
        """The time before which a tenth of the whole span lies; None when nothing is left."""
        span = self.span()
        return None if span is None else span[0] + max((span[1] - span[0]) / 10, 1e-3)


def fair_share(sizes: Sequence[int], budget: int) -> int:
    """Return the most that each may have, so that together they have no more than the budget."""
    for place, size in enumerate(ordered := sorted(sizes)):
        if size * (len(ordered) - place) > budget:
            return budget // (len(ordered) - place)
        budget -= size
    return max(sizes, default=0)


def _damaged(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorname", "") in ("SQLITE_CORRUPT", "SQLITE_NOTADB")


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _where(namespace: str | None, name: str | None, until: float | None) -> tuple[str, list[object]]:
    given = [("namespace = ?", namespace), ("name = ?", name), ("at <= ?", until)]
    used = [(text, value) for text, value in given if value is not None]
    return ("WHERE " + " AND ".join(text for text, _ in used) if used else ""), [value for _, value in used]


def _act(row: tuple[str, ...]) -> Act:
    kind, namespace, name, outcome, policy, seen, memory, decision_text = row
    decision = msgspec.json.decode(journal_file.unpacked(decision_text), type=Decision)
    return Act(
        ObjectName(kind, namespace, name),
        msgspec.json.decode(journal_file.renamed(policy), type=Policy),
        msgspec.json.decode(journal_file.renamed(journal_file.unpacked(seen)), type=Observation),
        msgspec.json.decode(journal_file.unpacked(memory), type=Memory),
        decision,
        _outcome(outcome, decision),
    )


def _outcome(text: str, decision: Decision) -> Outcome:
    """Rows of version 0.1 have one word for the whole change, and behind a colon why it was refused."""
    if text.startswith("["):
        return msgspec.json.decode(text, type=Outcome)
    word, _, reason = text.partition(": ")
    return tuple(AxisOutcome(axis=axis, fate=Fate(word), reason=reason) for axis in changed_axes(decision.change))
