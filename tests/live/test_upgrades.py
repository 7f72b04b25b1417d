"""An older and a newer operator read each other's memory, checkpoints and journals, or leave them alone.

`older/` was written by the program of commit 308d004 (journal version 1): a journal of three kinds, the status of an
object, the checkpoint of a container, and which fields its memory has (true: it cannot be read without).
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trimtab.acts import Fate
from trimtab.core.demand.checkpoint import MOST_BYTES
from trimtab.core.demand.checkpoint import load as load_demand
from trimtab.core.demand.log import DemandLog
from trimtab.core.explain import sentence
from trimtab.core.model import Forecast, Memory
from trimtab.core.usage import histogram_checkpoint
from trimtab.core.usage.histograms import UsageHistograms
from trimtab.core.usage.settings import HistogramSettings
from trimtab.errors import InvalidInput
from trimtab.journal import Journal, ObjectName, Retention, Tick
from trimtab.journal_file import VERSION
from trimtab.journal_replay import replay
from trimtab.live.look import memory
from trimtab.live.look.memory import ObjectMemory, ReplicasWritten
from trimtab.live.tell.kept_journal import KeptJournal

OLDER = Path(__file__).parent / "older"
STATUS = json.loads((OLDER / "status.json").read_text())
USAGE = json.loads((OLDER / "usage.json").read_text())
KINDS = {"Autoscaler", "HorizontalPodAutoscaler", "Hvpa"}
NAME = ObjectName("Autoscaler", "shop", "web")


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "journal.db"
    with sqlite3.connect(path) as db:
        db.executescript((OLDER / "journal.sql").read_text())
    db.close()
    return path


def version(path: Path) -> int:
    db = sqlite3.connect(path)
    found: int = db.execute("PRAGMA user_version").fetchone()[0]
    db.close()
    return found


def test_the_decisions_of_an_older_journal_are_read_explained_and_taken_again(journal: Path) -> None:
    before = journal.read_bytes()
    acts = list(Journal.read(journal).acts())
    assert {act.name.kind for act in acts} == KINDS and len(acts) == 9
    assert all(part.fate is Fate.WRITTEN for act in acts for part in act.outcome)
    assert all(sentence(act.policy, act.seen, act.memory, act.decision) for act in acts)
    found = replay(journal)
    assert (found.checked, found.differences) == (9, ())
    assert journal.read_bytes() == before, "a reader changes nothing"


def test_what_was_renamed_since_is_read_under_its_new_name(journal: Path) -> None:
    acts = [act for act in Journal.read(journal).acts() if act.name.kind == "HorizontalPodAutoscaler"]
    assert acts and all(act.policy.forecast is not None for act in acts)
    assert all(isinstance(act.seen.forecasts[0], Forecast) for act in acts)
    assert any(proposal.forecast for act in acts for proposal in act.decision.proposals)


def test_an_older_journal_goes_on_in_the_same_file(journal: Path) -> None:
    kept = KeptJournal(str(journal), Retention())
    kept.write([], [Tick(NAME, 1_794_900_000.0, 2, 2, 2, 0.5)])
    kept.close()
    assert (kept.trouble, kept.lost, version(journal)) == ("", 0, VERSION)
    assert replay(journal).checked == 9 and [tick.at for tick in Journal.read(journal).ticks()] == [1_794_900_000.0]


def test_a_newer_journal_is_put_aside_as_it_is_and_never_read_as_ours(journal: Path) -> None:
    with sqlite3.connect(journal) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
        db.execute("ALTER TABLE decisions ADD COLUMN tomorrow TEXT")
    db.close()
    before = journal.read_bytes()
    with pytest.raises(InvalidInput, match="read it with the trimtab that wrote it"):
        Journal.read(journal)
    kept = KeptJournal(str(journal), Retention())
    kept.write([], [Tick(NAME, 1.0, 2, 2, 2, 0.5)])
    kept.close()
    assert kept.trouble == "" and version(journal) == VERSION
    assert journal.with_name("journal.db.unreadable").read_bytes() == before


def read(status: dict[str, Any]) -> ObjectMemory:
    return memory.read(status, STATUS["at"] + 30, STATUS["replicas"])


def test_an_older_memory_is_remembered() -> None:
    found = read(STATUS["status"])
    assert found.wrote == ReplicasWritten(was=2, replicas=STATUS["replicas"], at=STATUS["at"])
    assert found.core.up_at and found.core.down_at and found.core.grown and found.core.shrunk
    assert found.sizes["app"].requests.cpu_cores == 2.0 and found.patched and found.patched.at == STATUS["at"]


@pytest.mark.parametrize(
    "newer",
    [
        pytest.param({"version": 2, "is": "Kept", "core": {"is": "Memory", "version": 2}}, id="another version"),
        pytest.param({"version": 1, "is": "Kept", "core": {"is": "Memory2"}}, id="another record"),
        pytest.param({"version": 1, "is": "Kept", "core": {"is": "Memory", "up_at": "yesterday"}}, id="another type"),
        pytest.param({"version": "2.0", "is": "Tomorrow"}, id="nothing that we know"),
        pytest.param([1, 2], id="no record at all"),
    ],
)
def test_of_a_newer_memory_nothing_is_guessed_and_no_cooldown_is_cut_short(newer: Any) -> None:
    found = read(STATUS["status"] | {"memory": newer})
    scaled_at = 1794810600.0
    assert (found.wrote, found.sizes, found.patched) == (None, {}, None)
    assert (found.core.up_at, found.core.down_at, found.core.resized_at) == (scaled_at, scaled_at, scaled_at)


def test_fields_that_a_newer_memory_adds_cost_nothing() -> None:
    more = STATUS["status"]["memory"] | {"tomorrow": {"is": "Tomorrow", "x": 1}}
    more["core"] = more["core"] | {"tomorrow": 3}
    assert read(STATUS["status"] | {"memory": more}) == read(STATUS["status"])


def test_what_we_write_today_the_older_one_can_read() -> None:
    """The same names, version and tags, and every field that it cannot do without."""
    required = json.loads((OLDER / "records.json").read_text())
    full = read(STATUS["status"])
    written = memory.written(msgspec.structs.replace(full, core=msgspec.structs.replace(full.core, bridge=1.5)))
    assert written["version"] == 1 and written["core"]["version"] == Memory().version == 1

    def check(value: Any) -> int:
        if isinstance(value, list):
            return sum(check(each) for each in value)
        if not isinstance(value, dict):
            return 0
        fields = required.get(value.get("is"), {})
        assert {name for name, needed in fields.items() if needed} <= value.keys()
        return bool(fields) + sum(check(each) for each in value.values())

    assert check(written) >= 6, "the memory, the core's, two writes, sizes"


def test_an_older_usage_checkpoint_is_taken_up() -> None:
    book = UsageHistograms(HistogramSettings())
    histogram_checkpoint.load(book, "w", "app", USAGE["status"])
    again = histogram_checkpoint.save(book, "w", "app", USAGE["at"])
    for name in ("version", "cpuHistogram", "memoryHistogram", "totalSamplesCount", "firstSampleStart"):
        assert again[name] == USAGE["status"][name]


def test_a_newer_usage_checkpoint_is_refused_before_anything_changes() -> None:
    book = UsageHistograms(HistogramSettings())
    with pytest.raises(InvalidInput, match="start afresh"):
        histogram_checkpoint.load(book, "w", "app", USAGE["status"] | {"version": "v4"})
    assert not list(book.keys())


def test_a_newer_demand_checkpoint_is_refused_before_anything_changes() -> None:
    log = DemandLog()
    with pytest.raises(InvalidInput, match="this trimtab reads version 1"):
        load_demand(log, {"cpu": "k"}, b'{"version": 2, "at": 1.0, "signals": {}, "tomorrow": []}')
    with pytest.raises(InvalidInput):
        load_demand(log, {"cpu": "k"}, b'{"version": 1, "at": 1.0, "signals": {"cpu": {"end": "tomorrow"}}}')
    with pytest.raises(InvalidInput, match="at most"):
        load_demand(log, {"cpu": "k"}, b" " * (MOST_BYTES + 1))
    assert len(log) == 0
