"""/metrics as Prometheus wants it: help and a type for every family, labels that mean what they say, exact counts."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.virtual.cluster import Cluster, autoscaler
from trimtab.live.tell.telemetry import FAMILIES, Telemetry, render

LIVE = Path(__file__).parents[2] / "trimtab" / "live"
PAGE = Path(__file__).parents[2] / "docs" / "operator.md"
PROMTOOL = next(iter(Path.home().glob(".cache/trimtab/bed/prometheus-*/promtool")), None) or shutil.which("promtool")


@pytest.fixture(scope="module")
def page() -> str:
    """Of an operator with objects that forecast, bridge and ask Prometheus."""
    with Cluster(seed=1) as cluster:
        cluster.deploy("shop/web", replicas=2, load=lambda seconds: 3.0 + seconds / 300.0, startup_s=30.0)
        query = {"query": "shop/web", "target": {"type": "AverageValue", "averageValue": "1"}}
        metrics = [*autoscaler("shop/web")["spec"]["metrics"], {"type": "Prometheus", "prometheus": query}]
        bridge, linear = {"maxFactor": "1.5"}, {"model": "linear"}
        cluster.apply(autoscaler("shop/web", metrics=metrics, forecast=linear, bridge=bridge))
        cluster.apply(autoscaler("shop/gone"))
        cluster.run(minutes=20)
        return cluster.metrics_page()


def test_every_family_has_help_and_a_type_before_its_rows(page: str) -> None:
    seen: list[str] = []
    lines = page.splitlines()
    for line, before, first in zip(lines[2:], lines[1:], lines, strict=False):
        name = re.split(r"[{ ]", line)[0]
        if line.startswith("#") or name in seen:
            continue
        assert before == f"# TYPE {name} {FAMILIES[name].kind}" and first == f"# HELP {name} {FAMILIES[name].help}"
        seen.append(name)
    assert {"trimtab_startup_seconds", "trimtab_forecast", "trimtab_bridge_factor", "trimtab_queries_total"} <= set(
        seen
    )
    assert page.count("# HELP") == page.count("# TYPE") == len(seen) == len(set(seen))


def test_names_follow_prometheus_conventions() -> None:
    for name, family in FAMILIES.items():
        assert re.fullmatch(r"trimtab_[a-z]+(_[a-z]+)*", name)
        assert (family.kind == "counter") == name.endswith("_total")
        assert family.help.endswith(".") and "\n" not in family.help


def test_every_metric_that_is_told_is_in_the_table_and_on_the_page() -> None:
    sources = "\n".join(path.read_text() for path in LIVE.rglob("*.py") if path.name != "families.py")
    told = set(re.findall(r'"(trimtab_[a-z_]+)"', sources))
    assert told == set(FAMILIES)
    assert [name for name in sorted(told) if f"`{name}`" not in PAGE.read_text()] == []


def test_no_gauge_has_a_label_that_only_summaries_have(page: str) -> None:
    assert not re.search(r'[{,](quantile|le)="', page)


def test_large_counts_and_small_values_are_exact() -> None:
    telemetry = Telemetry()
    telemetry.ticks, telemetry.tick_s = 12_345_678, 0.1 + 0.2
    text = telemetry.render()
    assert "trimtab_ticks_total 12345678.0\n" in text and "trimtab_tick_duration_seconds 0.30000000000000004\n" in text


def test_a_label_cannot_forge_a_line() -> None:
    text = render([("trimtab_forecast", {"source": 'x"} 1\ntrimtab_leader 1\\'}, 1.0)])
    assert text.splitlines()[2:] == ['trimtab_forecast{source="x\\"} 1\\ntrimtab_leader 1\\\\"} 1']


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool: `make cluster` builds one")
def test_promtool_has_nothing_to_say(page: str) -> None:
    done = subprocess.run([str(PROMTOOL), "check", "metrics"], input=page, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
