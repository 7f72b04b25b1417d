"""trimtab demo on one small workload: a table, a plot, explained decisions, a page; tuned on the first week only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import trimtab.tune.demo_fleet as fleet
from trimtab.cli import main


def test_a_workload_of_the_shop_from_table_to_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "demo_fleet", lambda: [fleet._worker()])
    page = tmp_path / "demo.html"
    done = CliRunner().invoke(main, ["demo", "--html", str(page)])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    header = next(index for index, line in enumerate(lines) if line.startswith("WORKLOAD"))
    assert lines[header + 1].split()[:2] == ["worker", "HPA"]
    assert lines[header + 2].split()[0] == "trimtab"
    assert "All costs together (J) -" in done.stdout
    assert "Why, in its own words:" in done.stdout and " replicas: requests wants " in done.stdout
    assert "worker: a queue worker" in page.read_text()


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
    assert fleet.play(workload).how == fleet.play(changed).how
