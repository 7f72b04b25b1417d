"""The SQLite file of a journal: its tables, their version, and how an older file becomes a newer one."""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path
from urllib.parse import quote

from trimtab import minutes
from trimtab.errors import InvalidInput

VERSION = 6
READABLE = (1, 2, 3, 4, 5, 6)  # 1 has each policy in its decision, 1 and 2 have looks that say too little for a page
RENAMED = (  # names in rows of before, as JSON has them outside of strings
    ('"outlook":', '"forecast":'),
    ('"outlooks":', '"forecasts":'),
    ('"is":"OutlookChoice"', '"is":"ForecastChoice"'),
    ('"is":"Outlook"', '"is":"Forecast"'),
)
_LACKING = {3: "NULL AS bridge, NULL AS load_at", 4: "NULL AS load_at"}  # what ticks of older versions do not say
_POLICIES = "CREATE TABLE IF NOT EXISTS policies (id INTEGER PRIMARY KEY, digest BLOB UNIQUE, text TEXT);"
_BY_POLICY = "CREATE INDEX IF NOT EXISTS decisions_by_policy ON decisions (policy);"
_OF_OBJECT = "CREATE INDEX decisions_of_object ON decisions (object, at, bytes);"  # says alone how much is whose
_LOOKS = """
CREATE TABLE current (object INTEGER PRIMARY KEY, mode TEXT, least INTEGER, most INTEGER, policy INTEGER);
CREATE TABLE ticks (object INTEGER, at REAL, replicas INTEGER, planned INTEGER, ready INTEGER, value REAL, load REAL,
                    load_at REAL, capacity REAL, forecast_low REAL, forecast REAL, forecast_high REAL, horizon_s REAL,
                    cpu_cores REAL, memory_bytes REAL, bridge REAL, held TEXT,
                    PRIMARY KEY (object, at)) WITHOUT ROWID;
CREATE INDEX ticks_by_time ON ticks (at);
"""
_SCHEMA = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE objects (id INTEGER PRIMARY KEY, kind TEXT, namespace TEXT, name TEXT, UNIQUE (kind, namespace, name));
CREATE TABLE decisions (id INTEGER PRIMARY KEY, object INTEGER, at REAL, replicas INTEGER, planned INTEGER,
                        said TEXT, fate TEXT, outcome TEXT, policy TEXT, seen TEXT, memory TEXT, decision TEXT,
                        bytes INTEGER);
{_OF_OBJECT}
CREATE INDEX decisions_by_time ON decisions (at);
{_BY_POLICY}
{_POLICIES}
{_LOOKS}{minutes.SCHEMA}"""
_BYTES = f"""
ALTER TABLE decisions ADD COLUMN bytes INTEGER;
UPDATE decisions SET bytes = length(seen) + length(memory) + length(decision);
DROP INDEX IF EXISTS decisions_of_object;
{_OF_OBJECT}
"""
_UPGRADE = f"""
DROP TABLE ticks;
{_POLICIES}
{_LOOKS}{minutes.SCHEMA}
ALTER TABLE decisions ADD COLUMN said TEXT;
ALTER TABLE decisions ADD COLUMN fate TEXT;
{_BY_POLICY}
{_BYTES}
"""
_LOAD_AT = "ALTER TABLE ticks ADD COLUMN load_at REAL;"
_STEPS = {
    0: _SCHEMA,
    1: _UPGRADE,
    2: _UPGRADE,
    3: f"ALTER TABLE ticks ADD COLUMN bridge REAL; {_BY_POLICY} {_LOAD_AT} {_BYTES}",
    4: f"{_LOAD_AT} {_BYTES}",
    5: _BYTES,
}


def renamed(text: str) -> str:
    """A stored record under today's names; inside of strings a quote is escaped, so nothing else is touched."""
    if "utlook" in text:
        for before, now in RENAMED:
            text = text.replace(before, now)
    return text


LONG = 4096  # characters: what is shorter is hardly worth its unpacking


def packed(text: str) -> str | bytes:
    """A stored record; pods and samples of many pods repeat the same words, so little is left of them."""
    return zlib.compress(text.encode(), 1) if len(text) > LONG else text


def unpacked(stored: str | bytes) -> str:
    return zlib.decompress(stored).decode() if isinstance(stored, bytes) else stored


def uri_of(path: Path) -> str:
    return f"file:{quote(str(path))}"


def connect(path: Path, read_only: bool = False) -> sqlite3.Connection:
    try:
        return sqlite3.connect(uri_of(path) + ("?mode=ro" if read_only else ""), uri=True, timeout=5.0)
    except sqlite3.OperationalError as error:
        raise InvalidInput("journal", str(path), f"cannot be opened: {error}") from error


def prepare(db: sqlite3.Connection, path: Path) -> None:
    """A file to write to: a new one gets its tables, one of the last version those that it lacks."""
    version = version_of(db)
    if version == 0:
        if db.execute("SELECT name FROM sqlite_master").fetchone():
            raise InvalidInput("journal", str(path), "this is another program's database: name a new file")
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("PRAGMA journal_mode = WAL").fetchall()
    if version in _STEPS:
        with db:
            db.executescript(f"{_STEPS[version]} PRAGMA user_version = {VERSION};")
    check_version(db, path)
    db.execute("PRAGMA journal_mode = WAL").fetchall()
    db.execute("PRAGMA synchronous = NORMAL")  # a power cut may cost the last rows, never the file


def check_version(db: sqlite3.Connection, path: Path) -> int:
    version = version_of(db)
    if version not in READABLE:
        newer = "read it with the trimtab that wrote it" if version > VERSION else "start a new file"
        fix = f"its schema has version {version}, this trimtab reads {VERSION}: {newer}"
        raise InvalidInput("journal", str(path), fix)
    return version


def make_readable(db: sqlite3.Connection, path: Path) -> None:
    """The decisions of an older file, without a change to it."""
    version = check_version(db, path)
    if version == 1:
        db.execute("CREATE TEMP TABLE policies (id INTEGER PRIMARY KEY, text TEXT)")
    if lacking := _LACKING.get(version):
        db.execute(f"CREATE TEMP VIEW ticks AS SELECT *, {lacking} FROM main.ticks")


def version_of(db: sqlite3.Connection) -> int:
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    return version


def forget_unused(db: sqlite3.Connection) -> bool:
    """Objects of which nothing is left (those that come and go would fill the file), and policies that nobody has."""
    tables = ("ticks", "minutes", "decisions")
    nothing = " AND ".join(f"NOT EXISTS (SELECT 1 FROM {table} WHERE object = objects.id)" for table in tables)
    gone = db.execute(f"SELECT id FROM objects WHERE {nothing}").fetchall()
    db.executemany("DELETE FROM current WHERE object = ?", gone)
    db.executemany("DELETE FROM objects WHERE id = ?", gone)
    db.execute(
        "DELETE FROM policies WHERE id NOT IN (SELECT CAST(policy AS INTEGER) FROM decisions)"
        " AND id NOT IN (SELECT policy FROM current)"
    )
    return bool(gone)
