"""The journal: every acting decision with its full inputs, idle ticks as slim rows, in one SQLite file.

A record, never the memory: losing it changes no decision. One process writes (WAL), any number read meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from trimtab.core.decide import decide
from trimtab.core.model import Decision, Memory, Observation
from trimtab.errors import InvalidInput
from trimtab.policy import Policy

SCHEMA_VERSION = 1
DAY_S = 86400.0
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE objects (id INTEGER PRIMARY KEY, kind TEXT, namespace TEXT, name TEXT, UNIQUE (kind, namespace, name));
CREATE TABLE ticks (object INTEGER, at REAL, replicas INTEGER, planned INTEGER, ready INTEGER, value REAL,
                    PRIMARY KEY (object, at)) WITHOUT ROWID;
CREATE TABLE decisions (id INTEGER PRIMARY KEY, object INTEGER, at REAL, replicas INTEGER, planned INTEGER,
                        outcome TEXT, policy TEXT, seen TEXT, memory TEXT, decision TEXT);
CREATE INDEX decisions_of_object ON decisions (object, at);
CREATE INDEX decisions_by_time ON decisions (at);
CREATE INDEX ticks_by_time ON ticks (at);
"""


class ObjectName(NamedTuple):
    """Which object decided."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class Tick(NamedTuple):
    """An idle look: `value` is what the first signal measured, None when it was missing."""

    name: ObjectName
    at: float
    replicas: int
    planned: int
    ready: int
    value: float | None


class Act(NamedTuple):
    """A decision that changes something, all four values of it, and what became of the write."""

    name: ObjectName
    policy: Policy
    seen: Observation
    memory: Memory
    decision: Decision
    outcome: str = "written"


class Retention(NamedTuple):
    """How much is kept: the younger than `age_s`, and of those the youngest `size_bytes`."""

    age_s: float = 30 * DAY_S
    size_bytes: int = 1024**3


class Difference(NamedTuple):
    """A decision that today's rules would take otherwise."""

    act: Act
    now: Decision


class Replay(NamedTuple):
    checked: int
    differences: tuple[Difference, ...]


class Journal:
    """`Journal(path)` to write, `Journal.read(path)` to look."""

    def __init__(self, path: str | Path, keep: Retention = Retention()) -> None:  # noqa: B008  (frozen)
        self.path, self.keep = Path(path), keep
        self.db = _connect(_uri(self.path), self.path)
        self._ids: dict[ObjectName, int] = {}
        with self._reading():
            self._prepare()

    @classmethod
    def read(cls, path: str | Path) -> Journal:
        """A reader beside the writer; it changes nothing."""
        found = Path(path)
        if not found.exists():
            raise InvalidInput("journal", str(path), "there is no such file; `trimtab run --journal PATH` writes one")
        reader = cls.__new__(cls)
        reader.path, reader.keep, reader._ids = found, Retention(), {}
        reader.db = _connect(f"{_uri(found)}?mode=ro", found)
        reader._check_version()
        return reader

    def close(self) -> None:
        self.db.close()

    def write(self, acts: Iterable[Act], ticks: Iterable[Tick] = ()) -> None:
        """All of one tick in one transaction."""
        with self.db:
            self.db.executemany(
                "INSERT INTO decisions (object, at, replicas, planned, outcome, policy, seen, memory, decision)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [self._row(act) for act in acts],
            )
            self.db.executemany(
                "INSERT OR REPLACE INTO ticks VALUES (?, ?, ?, ?, ?, ?)",
                [(self._id(tick.name), *tick[1:]) for tick in ticks],
            )

    def prune(self, at: float) -> None:
        """Forget what is too old, then the oldest while it is too much; the file shrinks with it."""
        with self.db:
            self._forget_before(at - self.keep.age_s)
        while self.size_bytes() > self.keep.size_bytes and (oldest := self._oldest_tenth()) is not None:
            with self.db:
                self._forget_before(oldest)
        self.db.executescript("PRAGMA incremental_vacuum")  # execute() would free one page only

    def size_bytes(self) -> int:
        """What is in use, without pages that wait to be used again."""
        pages, free, page = (self._pragma(name) for name in ("page_count", "freelist_count", "page_size"))
        return (pages - free) * page

    def acts(
        self, namespace: str | None = None, name: str | None = None, until: float | None = None, last: int | None = None
    ) -> Iterator[Act]:
        """Acting decisions, oldest first; with `last`, only that many of the youngest."""
        where, values = _where(namespace, name, until)
        order = f"ORDER BY at DESC, d.id DESC LIMIT {last}" if last is not None else "ORDER BY at, d.id"
        query = (
            "SELECT kind, namespace, name, outcome, policy, seen, memory, decision"
            f" FROM decisions d JOIN objects o ON o.id = d.object {where} {order}"
        )
        with self._reading():
            rows = self.db.execute(query, values)
            for row in rows if last is None else reversed(rows.fetchall()):
                yield _act(row)

    def ticks(
        self, namespace: str | None = None, name: str | None = None, until: float | None = None
    ) -> Iterator[Tick]:
        where, values = _where(namespace, name, until)
        query = (
            "SELECT kind, namespace, name, at, replicas, planned, ready, value"
            f" FROM ticks d JOIN objects o ON o.id = d.object {where} ORDER BY at"
        )
        with self._reading():
            for row in self.db.execute(query, values):
                yield Tick(ObjectName(*row[:3]), *row[3:])

    def names(self) -> list[ObjectName]:
        with self._reading():
            rows = self.db.execute("SELECT kind, namespace, name FROM objects ORDER BY namespace, name, kind")
            return [ObjectName(*row) for row in rows]

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """What a damaged file, or rows of another version, come to."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise InvalidInput("journal", str(self.path), f"this is no journal, or a damaged one: {error}") from error
        except msgspec.MsgspecError as error:
            fix = f"it holds what this version does not understand ({error}): read it with the trimtab that wrote it"
            raise InvalidInput("journal", str(self.path), fix) from error

    def _prepare(self) -> None:
        if self._pragma("user_version") == 0:
            if self.db.execute("SELECT name FROM sqlite_master").fetchone():
                raise InvalidInput("journal", str(self.path), "this is another program's database: name a new file")
            self.db.execute("PRAGMA auto_vacuum = INCREMENTAL")
            self.db.execute("PRAGMA journal_mode = WAL").fetchall()
            with self.db:
                self.db.executescript(f"{_SCHEMA} PRAGMA user_version = {SCHEMA_VERSION};")
        self._check_version()
        self.db.execute("PRAGMA journal_mode = WAL").fetchall()
        self.db.execute("PRAGMA synchronous = NORMAL")  # a power cut may cost the last rows, never the file

    def _check_version(self) -> None:
        version = self._pragma("user_version")
        if version != SCHEMA_VERSION:
            raise InvalidInput(
                "journal",
                str(self.path),
                f"its schema has version {version}, this trimtab reads {SCHEMA_VERSION}: start a new file",
            )

    def _pragma(self, name: str) -> int:
        with self._reading():
            value: int = self.db.execute(f"PRAGMA {name}").fetchone()[0]
        return value

    def _row(self, act: Act) -> tuple[object, ...]:
        seen, plan = act.seen, act.decision.plan
        four = [msgspec.json.encode(record).decode() for record in (act.policy, seen, act.memory, act.decision)]
        return self._id(act.name), seen.at, seen.spec_replicas, plan.replicas, act.outcome, *four

    def _id(self, name: ObjectName) -> int:
        if name not in self._ids:
            self.db.execute("INSERT OR IGNORE INTO objects (kind, namespace, name) VALUES (?, ?, ?)", name)
            found = self.db.execute("SELECT id FROM objects WHERE kind = ? AND namespace = ? AND name = ?", name)
            self._ids[name] = found.fetchone()[0]
        return self._ids[name]

    def _forget_before(self, at: float) -> None:
        self.db.execute("DELETE FROM decisions WHERE at < ?", (at,))
        self.db.execute("DELETE FROM ticks WHERE at < ?", (at,))

    def _oldest_tenth(self) -> float | None:
        """The time before which a tenth of the whole span lies; None when nothing is left."""
        first, last = self.db.execute(
            "SELECT min(at), max(at) FROM (SELECT at FROM decisions UNION ALL SELECT at FROM ticks)"
        ).fetchone()
        if first is None:
            return None
        cut: float = first + max((last - first) / 10, 1e-3)
        return cut


def replay(path: str | Path) -> Replay:
    """Take every acting decision again with the same inputs; a difference means that the rules have changed."""
    journal, checked, differences = Journal.read(path), 0, []
    for act in journal.acts():
        checked += 1
        now = decide(act.policy, act.seen, act.memory)
        if now != act.decision:
            differences.append(Difference(act, now))
    journal.close()
    return Replay(checked, tuple(differences))


def _uri(path: Path) -> str:
    return f"file:{quote(str(path))}"


def _connect(uri: str, path: Path) -> sqlite3.Connection:
    try:
        return sqlite3.connect(uri, uri=True, timeout=5.0)
    except sqlite3.OperationalError as error:
        raise InvalidInput("journal", str(path), f"cannot be opened: {error}") from error


def _where(namespace: str | None, name: str | None, until: float | None) -> tuple[str, list[object]]:
    given = [("namespace = ?", namespace), ("name = ?", name), ("at <= ?", until)]
    used = [(text, value) for text, value in given if value is not None]
    return ("WHERE " + " AND ".join(text for text, _ in used) if used else ""), [value for _, value in used]


def _act(row: tuple[str, ...]) -> Act:
    kind, namespace, name, outcome, policy, seen, memory, decision = row
    return Act(
        ObjectName(kind, namespace, name),
        msgspec.json.decode(policy, type=Policy),
        msgspec.json.decode(seen, type=Observation),
        msgspec.json.decode(memory, type=Memory),
        msgspec.json.decode(decision, type=Decision),
        outcome,
    )
