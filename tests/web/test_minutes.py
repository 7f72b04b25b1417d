"""Ticks become minutes and stay what they were: the same figures, a fraction of the size, forgotten in time."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from tests.web.conftest import Shop
from tests.web.recorded import PLAIN, START
from trimtab import minutes
from trimtab.journal import Journal, ObjectName, Retention
from trimtab.ticks import Tick

WEB = ObjectName("Autoscaler", "shop", "web")


def tick(second: float, load: float | None, capacity: float = 100.0, replicas: int = 3) -> Tick:
    return Tick(WEB, START + second, replicas, replicas, 2, 1.0, load, capacity)


def test_a_minute_has_the_newest_load_the_least_capacity_and_the_most_replicas(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db")
    journal.write([], [tick(0, 90), tick(15, 110, 80.0), tick(30, 100), tick(45, None, 100.0, 7), tick(60, 5)])
    before = journal.minutes_of(WEB, 0, 9e9)
    journal.prune(START + 90)
    after = journal.minutes_of(WEB, 0, 9e9)
    for found in (before, after):
        assert found.times.tolist() == [START, START + 60]
        assert found.columns["load"].tolist() == [100.0, 5.0]  # of the newest sample
        assert found.columns["capacity"].tolist() == [80.0, 100.0]
        assert found.columns["replicas"].tolist() == [7.0, 3.0]
        assert found.columns["violated"].tolist() == pytest.approx([1 / 3, 0.0])


def test_a_load_belongs_to_the_minute_that_its_sample_was_measured_in(tmp_path: Path) -> None:
    """However late it was seen, and in which rhythm ticks are folded: a mean over a minute is that minute's load."""
    late = [
        tick(15.0 * step, None)._replace(load=step // 4, load_at=START + 15.0 * step - 30.0) for step in range(4, 80)
    ]
    found = []
    for rhythm in (3, 50, 1000):
        journal = Journal(tmp_path / f"{rhythm}.db")
        for first in range(0, len(late), rhythm):
            journal.write([], late[first : first + rhythm])
            journal.prune(late[min(first + rhythm, len(late)) - 1].at)
        found.append(journal.minutes_of(WEB, 0, 9e9))
    assert found[0].times[0] == START + 60
    for minutes_seen in found:
        # The sample at the end of minute m (60 m + 60) was seen at step 4 m + 6, when the load said (4 m + 6) // 4.
        assert minutes_seen.columns["load"][:17].tolist() == list(range(2, 19))


def test_least_capacity_comes_with_the_bridge_it_had(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db")
    journal.write([], [tick(0, 90, 120.0)._replace(bridge=1.5), tick(15, 90, 80.0)._replace(bridge=1.0)])
    journal.write([], [tick(60, 90, 80.0)._replace(bridge=1.0), tick(75, 90, 120.0)._replace(bridge=1.5)])
    found = journal.minutes_of(WEB, 0, 9e9).columns
    assert (found["capacity"] / found["bridge"]).tolist() == [80.0, 80.0]


def test_folding_in_any_rhythm_gives_the_same_minutes(tmp_path: Path) -> None:
    load = np.random.default_rng(1).uniform(0, 120, 4 * 90)
    ticks = [tick(15.0 * step, float(value)) for step, value in enumerate(load)]
    found = []
    for rhythm in (7, 40, 1000):
        journal = Journal(tmp_path / f"{rhythm}.db")
        for first in range(0, len(ticks), rhythm):
            journal.write([], ticks[first : first + rhythm])
            journal.prune(ticks[min(first + rhythm, len(ticks)) - 1].at)
        found.append(journal.minutes_of(WEB, 0, 9e9).columns["load"])
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[1], found[2])


def test_a_hole_stays_a_hole(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db")
    journal.write([], [tick(0, 1), tick(7200, 2)])
    journal.prune(START + 8000)
    found = journal.minutes_of(WEB, 0, 9e9)
    assert len(found.times) == 121 and np.isnan(found.columns["load"][1:120]).all()


def test_a_span_is_cut_out(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db")
    journal.write([], [tick(60.0 * minute, minute) for minute in range(180)])
    journal.prune(START + 3 * 3600)
    found = journal.minutes_of(WEB, START + 600, START + 1200)
    assert found.columns["load"].tolist() == list(range(10, 21))
    assert len(journal.minutes_of(WEB._replace(name="other"), 0, 9e9).times) == 0


def test_minutes_take_a_fraction_of_the_ticks_and_go_when_they_are_old(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db")
    empty = journal.size_bytes()
    load = np.random.default_rng(2).normal(100, 5, 240 * 24)
    journal.write([], [tick(15.0 * step, float(value)) for step, value in enumerate(load)])
    full = journal.size_bytes()
    journal.prune(START + 24 * 3600)
    assert journal.size_bytes() - empty < (full - empty) / 10
    journal.keep = Retention(age_s=7200.0)
    journal.prune(START + 24 * 3600)
    assert journal.minutes_of(WEB, 0, 9e9).times[0] == START + 22 * 3600


def test_every_minute_of_a_recorded_shop_equals_its_ticks(shop: Shop) -> None:
    journal = Journal.read(shop.path)
    for name, ticks in shop.ticks.items():
        found = journal.minutes_of(name, 0, 9e9)
        looks = [list(part) for _, part in groupby(ticks, key=lambda one: one.at // 60)]
        for column in ("ready", "planned"):
            assert found.columns[column].tolist() == [getattr(part[-1], column) for part in looks]
        for at, load in zip(found.times, found.columns["load"], strict=True):
            sampled = [one.load for one in ticks if one.load_at is not None and at < one.load_at <= at + 60]
            assert load == pytest.approx(sampled[-1]) if sampled else np.isnan(load)
    assert journal.policy_of(WEB) == PLAIN


def test_a_journal_of_the_first_version_is_read_and_becomes_one_of_this(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    old = Journal(path)
    old.db.executescript(
        "DROP TABLE ticks; DROP TABLE minutes; DROP TABLE hours; DROP TABLE policies; DROP TABLE current;"
        "DROP INDEX decisions_of_object; ALTER TABLE decisions DROP COLUMN bytes;"
        "ALTER TABLE decisions DROP COLUMN said; ALTER TABLE decisions DROP COLUMN fate;"
        "CREATE TABLE ticks (object INTEGER, at REAL, replicas INTEGER, planned INTEGER, ready INTEGER, value REAL,"
        " PRIMARY KEY (object, at)) WITHOUT ROWID; CREATE INDEX ticks_by_time ON ticks (at); PRAGMA user_version = 1"
    )
    old.close()
    assert list(Journal.read(path).acts()) == []
    journal = Journal(path)
    journal.write([], [tick(0, 1)])
    assert len(journal.minutes_of(WEB, 0, 9e9).times) == 1


def test_a_journal_without_bridges_is_read_as_it_is_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "third.db"
    old = Journal(path)
    old.write([], [tick(60.0 * minute, minute) for minute in range(70)])
    old.prune(START + 3600)
    (content,) = old.db.execute("SELECT content FROM minutes").fetchone()
    shorter = minutes._unpacked(content)[:-1]
    old.db.execute("UPDATE minutes SET content = ?", (minutes._packed(shorter),))
    old.db.commit()
    old.db.executescript(
        "DROP INDEX decisions_of_object; ALTER TABLE decisions DROP COLUMN bytes;"
        "ALTER TABLE ticks DROP COLUMN bridge; ALTER TABLE ticks DROP COLUMN load_at; PRAGMA user_version = 3"
    )
    old.close()
    for journal in (Journal.read(path), Journal(path)):
        found = journal.minutes_of(WEB, 0, 9e9)
        assert found.columns["load"].tolist() == list(range(70)) and np.isnan(found.columns["bridge"]).all()
    journal.write([], [tick(4200, 5)._replace(bridge=1.25)])
    assert journal.minutes_of(WEB, 0, 9e9).columns["bridge"][-1] == 1.25


def test_many_objects_are_folded_some_at_a_time_and_ticks_are_written_between(tmp_path: Path) -> None:
    journal, many = Journal(tmp_path / "j.db"), 3 * minutes.SLICE
    names = [WEB._replace(name=f"web-{number}") for number in range(many)]
    journal.write([], [tick(0, number)._replace(name=name) for number, name in enumerate(names)])
    left = [many]
    for step, _ in enumerate(journal.pruning(START + 90)):
        journal.write([], [tick(120 + step, 1)])
        left.append(journal.query("SELECT count(*) FROM ticks WHERE at = ?", (START,))[0][0])
    assert left[:4] == [many, 2 * minutes.SLICE, minutes.SLICE, 0]
    assert [journal.minutes_of(name, 0, 9e9).columns["load"][0] for name in names] == list(range(many))
    assert len(list(journal.ticks(WEB.namespace, WEB.name))) == len(left) - 1, "what was written meanwhile stays"
