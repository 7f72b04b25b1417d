"""trimtab demo on one small workload: a table, a plot, explained decisions, a page; tuned on the first week only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import trimtab.tune.demo_fleet as fleet
from trimtab.cli import main
from trimtab.journal import DAY_S, Journal
from trimtab.kinds import Scaler, read
from trimtab.sim.grid import DAY_STEPS
from trimtab.tune.demo_play import _case, _memory_gib, _tuned


def test_a_service_from_table_to_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "WORKLOADS", (fleet._mailer,))
    page, journal = tmp_path / "demo.html", tmp_path / "demo.db"
    done = CliRunner().invoke(main, ["demo", "--html", str(page), "--journal", str(journal)])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    header = next(index for index, line in enumerate(lines) if line.startswith("WORKLOAD"))
    assert lines[header + 1].split()[:2] == ["mailer", "today"]
    assert lines[header + 2].split()[0] == "trimtab"
    assert "all costs together (J) -" in done.stdout
    assert "Why, in its own words:" in done.stdout and " replicas: mail wants " in done.stdout
    assert "mailer: a queue, scaled by its length" in page.read_text()
    told = CliRunner().invoke(main, ["explain", "demo/mailer", "--journal", str(journal)])
    assert told.exit_code == 0 and "Autoscaler demo/mailer at " in told.stdout
    again = CliRunner().invoke(main, ["replay", str(journal)])
    assert again.exit_code == 0 and ", 0 come out otherwise" in again.stdout
    span = Journal.read(journal).span()
    assert span is not None and span[1] - span[0] > 6.9 * DAY_S, "the journal has the week that was scored"


def test_a_file_that_is_no_journal_is_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "mine.db"
    mine.write_text("my own notes, not a journal at all")
    done = CliRunner().invoke(main, ["demo", "--html", str(tmp_path / "x.html"), "--journal", str(mine)])
    assert done.exit_code == 2 and "this is no journal" in done.stderr
    assert mine.read_text() == "my own notes, not a journal at all"


def test_the_fleet_is_the_same_every_time_and_its_manifests_are_valid() -> None:
    first, second = fleet.demo_fleet(), fleet.demo_fleet()
    assert [workload.name for workload in first] == ["web", "search", "mailer", "cache"]
    assert all((one.load == two.load).all() for one, two in zip(first, second, strict=True))
    for workload in first:
        assert len(workload.load) == 2 * fleet.WEEK
        assert all(isinstance(read(each), Scaler) for each in (workload.today, workload.proposed))


def test_tuning_sees_the_first_week_only() -> None:
    workload = fleet._web()
    later = workload.load.copy()
    later[fleet.WEEK :] = np.random.default_rng(9).uniform(0, 30, fleet.WEEK)
    assert _tuned(workload) == _tuned(replace(workload, load=later))


def test_nothing_costs_less_than_the_optimum() -> None:
    """Memory that is sized by use makes pods cheaper than those of the HPA, not cheaper than the best in hindsight."""
    workload = fleet._cache()
    workload = replace(workload, load=workload.load[: 2 * DAY_STEPS])
    today, ours = (_case(workload, fleet.policy_of(each)) for each in (workload.today, workload.proposed))
    before, after = today.outcome("today"), ours.outcome("trimtab")
    assert 1.0 <= after.figures.cost < before.figures.cost
    assert _memory_gib(workload, after.run) < _memory_gib(workload, before.run) == pytest.approx(4.0)
