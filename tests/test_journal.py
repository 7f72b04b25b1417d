"""The journal: what is written is read back exactly, by others too, and replays to the same decisions."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from itertools import islice
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.core.build import NOW, busy, custom_hpa, hpa, per_second, total
from trimtab import journal_replay as module
from trimtab.acts import Act, AxisOutcome, Fate, describe
from trimtab.core.decide import decide
from trimtab.core.model import Forecast, Memory, Missing, Observation, Quantile, Reason, Veto
from trimtab.core.remember import first_sight
from trimtab.errors import InvalidInput
from trimtab.journal import KNOWN_GONE, Journal, ObjectName, Retention, Tick, fair_share
from trimtab.journal_replay import replay
from trimtab.policy import Axis, Direction, ForecastChoice, Metric, MetricKind, Policy, Total

WEB = ObjectName("Autoscaler", "shop", "web")
TABLES_OF_OBJECTS = ("objects", "current", "policies")


def act(policy: Policy, seen: Observation, memory: Memory = Memory(), name: ObjectName = WEB) -> Act:  # noqa: B008
    written = (AxisOutcome(axis="replicas", fate=Fate.WRITTEN),)
    return Act(name, policy, seen, memory, decide(policy, seen, memory), written)


def many_acts() -> list[Act]:
    forecast = Forecast(made_at=NOW, expires_at=NOW + 60, demand=(Quantile(0.5, 7.25),), model="linear")
    ahead = replace(busy(3, 0.9), forecasts=(forecast,))
    lost = replace(total(3, 1.0), samples=(Missing(reason=Reason.STALE, since=NOW - 1.1),))
    veto = Veto(axis=Axis.REPLICAS, direction=Direction.DOWN, reason="Breaker", until=NOW + 0.1)
    return [
        act(hpa(), busy(3, 0.9)),
        act(hpa(forecast=ForecastChoice()), ahead, first_sight(NOW - 0.3, 3)),
        act(per_second(), replace(total(3, 77.7), vetoes=(veto,))),
        act(per_second(), lost),
        act(custom_hpa(), total(3, 1 / 3)),
    ]


def test_what_is_written_is_read_back_and_replays_to_the_same(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db")
    acts = many_acts()
    journal.write(acts)
    assert list(journal.acts()) == acts
    assert replay(journal.path) == (len(acts), ())


def test_a_changed_rule_is_found_by_the_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "j.db")
    journal.write(many_acts())
    monkeypatch.setattr(
        module, "decide", lambda p, s, m: decide(replace(p, bounds=replace(p.bounds, max_replicas=4)), s, m)
    )
    found = replay(journal.path)
    assert found.checked == 5
    assert found.differences and all(one.now.plan.replicas <= 4 for one in found.differences)


def test_another_process_reads_while_we_write(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db")
    journal.write(many_acts())
    script = f"from trimtab.journal import Journal; print(len(list(Journal.read({str(journal.path)!r}).acts())))"
    journal.db.execute("BEGIN IMMEDIATE")  # a write of ours is under way
    seen = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    journal.db.rollback()
    assert seen.stdout.strip() == "5"


def test_one_object_at_one_time(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db")
    other = ObjectName("Hvpa", "shop", "db")
    journal.write([act(hpa(), busy(3, 0.9, NOW + i)) for i in range(4)] + [act(hpa(), busy(1, 0.9), name=other)])
    assert [one.seen.at for one in journal.acts("shop", "web", until=NOW + 2, last=2)] == [NOW + 1, NOW + 2]
    assert [one.name for one in journal.acts("shop", "db")] == [other]
    assert journal.names() == [other, WEB]


def test_idle_ticks_are_slim_rows(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db")
    ticks = [Tick(WEB, NOW + i, 3, 3, 2, None if i else 0.1) for i in range(3)]
    journal.write([], ticks)
    assert list(journal.ticks("shop", "web")) == ticks
    assert list(journal.ticks("shop", "web", until=NOW)) == ticks[:1]


def test_old_rows_are_forgotten(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db", Retention(age_s=100))
    journal.write([act(hpa(), busy(3, 0.9, at)) for at in (NOW - 101, NOW - 99)], [Tick(WEB, NOW - 101, 1, 1, 1, 1)])
    journal.prune(NOW)
    assert [one.seen.at for one in journal.acts()] == [NOW - 99]
    assert list(journal.ticks()) == []


def test_objects_that_are_gone_leave_nothing_behind(tmp_path: Path) -> None:
    """A namespace for each change under review, all year: names and policies must not fill disk and memory."""
    journal = Journal(tmp_path / "j.db", Retention(age_s=7200))
    policies = [replace(hpa(), bounds=replace(hpa().bounds, max_replicas=10 + day)) for day in range(30)]
    web = Tick(WEB, NOW, 1, 1, 1, 1, policy=hpa())
    for day, policy in enumerate(policies):
        at = NOW + day * 7200
        passing = ObjectName("Autoscaler", f"review-{day}", "web")
        journal.write([act(policy, busy(3, 0.9, at), name=passing)], [web._replace(at=at)])
        journal.write([], [Tick(passing, at, 1, 1, 1, 1, policy=policy), web._replace(at=at + 15)])
        journal.prune(at + 60)
    counts = [journal.query(f"SELECT count(*) FROM {table}")[0][0] for table in TABLES_OF_OBJECTS]  # noqa: S608  (ours)
    assert max(counts) <= 4, dict(zip(TABLES_OF_OBJECTS, counts, strict=True))
    journal.write([act(hpa(), busy(3, 0.9, at + 100))], [web._replace(at=at + 100)])
    assert [one.name for one in journal.acts("shop", "web")] == [WEB], "who stays goes on under its own number"
    assert journal.policy_of(WEB) == hpa()


def test_the_names_of_objects_that_are_gone_do_not_fill_memory(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db")
    for first in range(0, 3 * KNOWN_GONE, 100):
        passing = [ObjectName("Autoscaler", f"review-{first + number}", "web") for number in range(100)]
        journal.write([], [Tick(name, NOW + first, 1, 1, 1, 1, policy=hpa()) for name in passing])
    assert max(len(journal._ids), len(journal._policies)) <= KNOWN_GONE + 200
    assert len(journal.names()) == 3 * KNOWN_GONE, "the record is whole"


def test_the_file_stays_within_its_size_and_keeps_the_youngest(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db", Retention(size_bytes=300_000))
    for start in range(0, 200, 20):
        journal.write([act(hpa(), busy(20, 0.9, NOW + start + i)) for i in range(20)])
        assert journal.size_bytes() < 330_000, "between two prunes, too"
    journal.prune(NOW)
    journal.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert journal.path.stat().st_size < 320_000
    kept = [one.seen.at for one in journal.acts()]
    assert kept and kept[-1] == NOW + 199 and kept == sorted(kept)


def test_a_namespace_that_fills_the_journal_costs_the_others_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db", Retention(size_bytes=400_000))
    greedy = ObjectName("Autoscaler", "greedy", "web")
    journal.write([act(hpa(), busy(3, 0.9, NOW + second)) for second in range(20)])
    for start in range(100, 500, 20):
        journal.write([act(hpa(), busy(20, 0.9, NOW + start + second), name=greedy) for second in range(20)])
    kept = {name: [one.seen.at for one in journal.acts(name.namespace)] for name in (WEB, greedy)}
    assert kept[WEB] == [NOW + second for second in range(20)]
    assert kept[greedy] == [NOW + second for second in range(500 - len(kept[greedy]), 500)], "the youngest"
    assert 50 < len(kept[greedy]) < 400


@given(st.lists(st.integers(0, 1000), max_size=9), st.integers(0, 5000))
def test_shares_are_fair_and_use_the_budget(sizes: list[int], budget: int) -> None:
    most = fair_share(sizes, budget)
    taken = sum(min(size, most) for size in sizes)
    assert taken <= budget
    assert taken == sum(sizes) or taken > budget - len(sizes), "nothing is left but what cannot be divided"


def test_a_decision_on_many_pods_is_stored_small_and_read_back_whole(tmp_path: Path) -> None:
    journal, large = Journal(tmp_path / "j.db"), act(hpa(), busy(300, 0.9))
    journal.write([large])
    assert list(journal.acts()) == [large]
    ((stored,),) = journal.query("SELECT bytes FROM decisions")
    assert stored < len(msgspec.json.encode(large.seen)) / 5


@pytest.mark.parametrize("hours", [0.5, 3, 9, 30])
def test_making_room_ends_however_young_the_journal_is(tmp_path: Path, hours: float) -> None:
    """Minutes are kept by the hour: a tenth of a few hours is less than one."""
    journal = Journal(tmp_path / "j.db", Retention(size_bytes=200_000))
    for minute in range(round(60 * hours)):
        at = NOW + 60 * minute
        size = 400 // round(hours + 0.5)  # so that each of them is too large in the end
        journal.write([act(hpa(), busy(size, 0.9, at))], [Tick(WEB, at, 1, 1, 1, 1.0)])
        if minute % 10 == 9:
            assert len(list(islice(journal.pruning(at + 60), 1000))) < 1000, "it never ends"
    journal.prune(at + 60)
    assert journal.size_bytes() <= 200_000
    assert [one.seen.at for one in journal.acts(last=1)] == [at], "the youngest stays"


def test_long_queries_are_stored_once(tmp_path: Path) -> None:
    query = Metric(kind=MetricKind.PROMETHEUS, query="sum(rate(requests[5m]))" + " + 0 * sum(up)" * 250)
    signals = tuple(Total(metric=replace(query, name=f"m{i}"), target=1.0) for i in range(20))
    policy = replace(hpa(), signals=signals)
    journal = Journal(tmp_path / "j.db")
    acts = [act(policy, total(1, 5.0, NOW + at)) for at in range(100)]
    journal.write(acts)
    assert list(journal.acts()) == acts
    assert journal.size_bytes() < 1_000_000, "a hundred times 80 KB would be eight times as much"
    journal.write([act(hpa(), busy(3, 0.9, NOW + 1000))])
    journal.keep = Retention(age_s=100)
    journal.prune(NOW + 1001)
    assert journal.db.execute("SELECT count(*) FROM policies").fetchone() == (1,), "a policy goes with its decisions"


def test_a_journal_of_version_1_is_read_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    journal = Journal(path)
    journal.write(many_acts())
    journal.db.executescript(
        "UPDATE decisions SET policy = (SELECT text FROM policies WHERE id = CAST(decisions.policy AS INTEGER));"
        "DROP TABLE policies; DROP TABLE current; DROP TABLE minutes; DROP TABLE hours;"
        "DROP INDEX decisions_of_object; ALTER TABLE decisions DROP COLUMN bytes;"
        "ALTER TABLE decisions DROP COLUMN said; ALTER TABLE decisions DROP COLUMN fate; PRAGMA user_version = 1;"
    )
    journal.close()
    assert list(Journal.read(path).acts()) == many_acts() and replay(path).differences == ()
    again = Journal(path)
    again.write(many_acts()[:1])
    assert len(list(again.acts())) == 6


def test_a_second_writer_appends(tmp_path: Path) -> None:
    Journal(tmp_path / "j.db").write(many_acts())
    again = Journal(tmp_path / "j.db")
    again.write(many_acts()[:1])
    assert len(list(again.acts())) == 6 and again.names() == [WEB]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(None, "no such file", id="absent"),
        pytest.param(b"not a database, but long enough to be read as one" * 20, "no journal", id="something else"),
        pytest.param("PRAGMA user_version = 99", "version 99", id="from the future"),
    ],
)
def test_what_is_no_journal_of_ours_is_refused(tmp_path: Path, content: bytes | str | None, says: str) -> None:
    path = tmp_path / "j.db"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content:
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE t (x)")
            db.execute(content)
    with pytest.raises(InvalidInput, match=says):
        Journal.read(path)


def test_a_damaged_file_and_rows_of_another_version_are_named(tmp_path: Path) -> None:
    path = tmp_path / "odd?name#1%.db"
    journal = Journal(path)
    journal.write(many_acts())
    journal.db.execute("UPDATE decisions SET seen = '{\"unknown\": 1}'")
    journal.db.commit()
    journal.close()
    assert path.exists()
    with pytest.raises(InvalidInput, match="read it with the trimtab that wrote it"):
        replay(path)
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(path.read_bytes()[:100] + b"x" * 8000)
    with pytest.raises(InvalidInput, match="damaged"):
        replay(damaged)


def test_another_program_s_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE accounts (name TEXT)")
    with pytest.raises(InvalidInput, match="another program's database"):
        Journal(path)
    assert [row[0] for row in sqlite3.connect(path).execute("SELECT name FROM sqlite_master")] == ["accounts"]


def test_an_outcome_tells_of_each_part_of_a_change(tmp_path: Path) -> None:
    refused = AxisOutcome(axis="sizes", fate=Fate.REFUSED, reason="exceeded quota: team")
    both = many_acts()[0]
    both = both._replace(outcome=(*both.outcome, refused))
    journal = Journal(tmp_path / "j.db")
    journal.write([both])
    (found,) = journal.acts()
    assert found.outcome == both.outcome
    assert describe(found.outcome) == "replicas written, sizes refused: exceeded quota: team"


@pytest.mark.parametrize(
    ("text", "fate", "reason"),
    [("written", Fate.WRITTEN, ""), ("refused: 403: no", Fate.REFUSED, "403: no"), ("advised", Fate.ADVISED, "")],
)
def test_rows_with_one_word_for_the_whole_change_are_read(tmp_path: Path, text: str, fate: Fate, reason: str) -> None:
    journal = Journal(tmp_path / "j.db")
    journal.write([many_acts()[0]])
    with journal.db:
        journal.db.execute("UPDATE decisions SET outcome = ?", (text,))
    (found,) = journal.acts()
    assert found.outcome == (AxisOutcome(axis="replicas", fate=fate, reason=reason),)
