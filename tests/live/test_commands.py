"""trimtab replay and trimtab explain on a journal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from tests.core.build import NOW
from tests.test_journal import WEB, many_acts
from trimtab.cli import explain
from trimtab.cli import replay as replay_command
from trimtab.errors import InvalidInput, NotEnoughData
from trimtab.journal import Journal, Tick


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    journal = Journal(tmp_path / "j.db")
    journal.write(many_acts())
    return journal


def test_a_clean_replay_says_so(journal: Journal) -> None:
    result = CliRunner().invoke(replay_command.command, [str(journal.path)])
    assert result.exit_code == 0 and "5 decisions checked, 0 come out otherwise" in result.output


def test_a_difference_is_printed_and_fails(journal: Journal) -> None:
    act = many_acts()[0]
    other = replace(act.decision, plan=replace(act.decision.plan, replicas=99))
    journal.write([act._replace(decision=other)])
    result = CliRunner().invoke(replay_command.command, [str(journal.path)])
    assert result.exit_code == 1
    assert "then: 99 replicas" in result.output and "now:  6 replicas" in result.output
    found = json.loads(CliRunner().invoke(replay_command.command, [str(journal.path), "-o", "json"]).output)
    assert found["checked"] == 6 and len(found["differences"]) == 1


def test_explain_shows_what_was_seen_proposed_and_done(journal: Journal) -> None:
    later = many_acts()[0]
    journal.write([later._replace(seen=replace(later.seen, at=NOW + 100))])
    result = CliRunner().invoke(explain.command, ["shop/web", "--journal", str(journal.path)])
    assert result.exit_code == 0, result.output
    for word in ("Autoscaler shop/web", "6 replicas: cpu wants 6", "3 pods, 900m each", "value/target asks for this"):
        assert word in result.output
    words = ["shop/web", "--journal", str(journal.path), "-o", "json", "--at", "2023-11-14T22:13:21Z"]
    found = json.loads(CliRunner().invoke(explain.command, words).output)
    assert found["seen"]["at"] == NOW and found["outcome"] == [
        {"is": "AxisOutcome", "axis": "replicas", "fate": "written", "reason": ""}
    ]


def test_explain_says_that_nothing_asked_for_a_change(journal: Journal) -> None:
    journal.write([], [Tick(WEB._replace(name="idle"), NOW, 3, 3, 3, 0.5)])
    result = CliRunner().invoke(explain.command, ["shop/idle", "--journal", str(journal.path)])
    assert result.exit_code == 0 and "Nothing asked for a change" in result.output and "3 replicas" in result.output
    early = ["shop/idle", "--journal", str(journal.path), "--at", "2020-01-01T00:00:00Z"]
    assert isinstance(CliRunner().invoke(explain.command, early).exception, NotEnoughData)


@pytest.mark.parametrize(
    ("name", "error", "says"),
    [
        pytest.param("web", InvalidInput, "NAMESPACE/NAME", id="no namespace"),
        pytest.param("shop/other", InvalidInput, "knows shop/idle, shop/web", id="unknown"),
    ],
)
def test_what_cannot_be_explained(journal: Journal, name: str, error: type[Exception], says: str) -> None:
    journal.write([], [Tick(WEB._replace(name="idle"), NOW, 1, 1, 1, 1.0)])
    result = CliRunner().invoke(explain.command, [name, "--journal", str(journal.path)])
    assert isinstance(result.exception, error) and says in str(result.exception)
