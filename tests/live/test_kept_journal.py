"""The journal may fail in every way that a disk can; the operator goes on, says it once and counts what is lost."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path

import pytest

from tests.core.build import NOW, busy, hpa
from tests.test_journal import act
from trimtab.journal import Journal, Retention
from trimtab.live.tell.kept_journal import KeptJournal


def kept(path: Path) -> KeptJournal:
    return KeptJournal(str(path), Retention(size_bytes=10_000_000))


def recorded(path: Path) -> int:
    return len(list(Journal.read(path).acts()))


def test_a_full_disk_is_said_once_counted_and_left_behind(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    journal, some = kept(tmp_path / "j.db"), [act(hpa(), busy(20, 0.9, NOW + i)) for i in range(50)]
    journal.write(some[:1])
    assert journal._journal is not None
    full = journal._journal.db.execute("PRAGMA page_count").fetchone()[0]
    journal._journal.db.execute(f"PRAGMA max_page_count = {full}").fetchall()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            journal.write(some)
            list(journal.pruning(NOW))
    said = [record for record in caplog.records if "not recorded" in record.message]
    assert len(said) == 1 and "full" in journal.trouble and journal.lost == 150
    assert ("trimtab_journal_up", {}, 0.0) in journal.lines()
    journal._journal.db.execute("PRAGMA max_page_count = 100000").fetchall()
    journal.write(some)
    assert journal.trouble == "" and recorded(tmp_path / "j.db") >= 50
    assert ("trimtab_journal_up", {}, 1.0) in journal.lines()


@pytest.mark.parametrize("content", [b"not a database at all " * 400, b"SQLite format 3\x00" + b"\xff" * 8000])
def test_a_damaged_journal_does_not_stop_the_start(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "j.db"
    path.write_bytes(content)
    journal = kept(path)
    journal.write([act(hpa(), busy(3, 0.9))])
    assert journal.trouble == "" and recorded(path) == 1
    (aside,) = tmp_path.glob("j.db.unreadable*")
    assert aside.read_bytes() == content


def test_a_journal_of_another_version_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    Journal(path).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    kept(path).write([act(hpa(), busy(3, 0.9))])
    assert recorded(path) == 1 and len(list(tmp_path.glob("j.db.unreadable*"))) == 1


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE accounts (name TEXT)")
    journal = kept(path)
    journal.write([act(hpa(), busy(3, 0.9))])
    assert "another program" in journal.trouble and journal.lost == 1
    assert list(tmp_path.iterdir()) == [path]


def test_pages_that_are_damaged_behind_a_good_first_one_are_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    whole = Journal(path)
    whole.write([act(hpa(), busy(20, 0.9, NOW + i)) for i in range(50)])
    whole.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    whole.close()
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    journal = kept(path)
    for at in (100, 101):
        journal.write([act(hpa(), busy(20, 0.9, NOW + at))])
    assert journal.trouble == "" and journal.lost == 1 and recorded(path) == 1
    assert len(list(tmp_path.glob("j.db.unreadable*"))) == 1


def test_a_place_that_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    journal = kept(tmp_path / "absent" / "j.db")
    journal.write([act(hpa(), busy(3, 0.9))])
    assert journal.trouble and journal.lost == 1
    (tmp_path / "absent").mkdir()
    journal.write([act(hpa(), busy(3, 0.9))])
    assert journal.trouble == "" and recorded(tmp_path / "absent" / "j.db") == 1
