"""trimtab demo on one small workload: a table, a plot, explained decisions, a page; tuned on the first week only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import trimtab.tune.demo_fleet as fleet
from trimtab.cli import main
from trimtab.tune.demo_play import play


def test_a_workload_of_the_shop_from_table_to_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "demo_fleet", lambda: [fleet._worker()])
    page = tmp_path / "demo.html"
    journal = tmp_path / "demo.db"
    done = CliRunner().invoke(main, ["demo", "--html", str(page), "--journal", str(journal)])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    header = next(index for index, line in enumerate(lines) if line.startswith("WORKLOAD"))
    assert lines[header + 1].split()[:2] == ["worker", "HPA"]
    assert lines[header + 2].split()[0] == "trimtab"
    assert "All costs together (J) -" in done.stdout
    assert "Why, in its own words:" in done.stdout and " replicas: requests wants " in done.stdout
    assert "worker: a queue worker" in page.read_text()
    told = CliRunner().invoke(main, ["explain", "demo/worker", "--journal", str(journal)])
    assert told.exit_code == 0 and "Autoscaler demo/worker at " in told.stdout
    again = CliRunner().invoke(main, ["replay", str(journal)])
    assert again.exit_code == 0 and ", 0 come out otherwise" in again.stdout


def test_a_file_that_is_no_journal_is_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "mine.db"
    mine.write_text("my own notes, not a journal at all")
    done = CliRunner().invoke(main, ["demo", "--html", str(tmp_path / "x.html"), "--journal", str(mine)])
    assert done.exit_code == 2 and "this is no journal" in done.stderr
    assert mine.read_text() == "my own notes, not a journal at all"


def test_the_shop_is_the_same_every_time_and_has_four_workloads() -> None:
    first, second = fleet.demo_fleet(), fleet.demo_fleet()
    assert [workload.name for workload in first] == ["web", "worker", "search", "cache"]
    assert all((one.demand.values == two.demand.values).all() for one, two in zip(first, second, strict=True))
    assert all(len(workload.demand.values) == 2 * fleet.WEEK for workload in first)


def test_tuning_sees_the_first_week_only() -> None:
    workload = fleet._worker()
    later = workload.demand.values.copy()
    later[fleet.WEEK :] = np.random.default_rng(9).uniform(0, 60, fleet.WEEK)
    changed = fleet.DemoWorkload(
        workload.name,
        workload.about,
        workload.demand._replace(values=later),
        workload.cluster,
        workload.default,
        workload.better,
    )
    assert play(workload).how == play(changed).how
