"""trimtab capacity: what it prints, its exit codes, and what it says of wrong input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from benchmarks.latency import SERVICES
from trimtab.cli import main
from trimtab.series import Floats

WEEK = SERVICES["M/M/1"](np.random.default_rng(1))


def written(path: Path, values: Floats, series: int = 1) -> str:
    names = ",".join(f"web-{number}" for number in range(series)) if series > 1 else "value"
    rows = [
        f"{int(when)},{','.join([f'{value:.6g}'] * series)}"
        for when, value in zip(WEEK.minutes.times, values, strict=True)
        if np.isfinite(value)
    ]
    path.write_text(f"timestamp,{names}\n" + "\n".join(rows) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("series")
    pods = 3.0 + np.arange(len(WEEK.minutes.times), dtype=np.float64) // 400 % 5
    return {
        "usage": written(folder / "usage.csv", WEEK.minutes.usage * pods),
        "pods": written(folder / "pods.csv", pods),
        "latency": written(folder / "latency.csv", WEEK.minutes.latency),
        "ms": written(folder / "ms.csv", 1000.0 * WEEK.minutes.latency),
        "two": written(folder / "two.csv", WEEK.minutes.latency, series=2),
    }


def capacity(files: dict[str, str], *more: str, latency: str = "latency", below: str = "300ms") -> Result:
    arguments = ["--usage", files["usage"], "--pods", files["pods"], "--latency", files[latency], "--below", below]
    return CliRunner().invoke(main, ["capacity", *arguments, *more])


def test_it_says_what_one_pod_serves_and_which_target_follows(files: dict[str, str]) -> None:
    done = capacity(files, "--unit", "requests/s", "--target", "20")
    assert done.exit_code == 0, done.output
    assert "One pod serves 3" in done.stdout and "requests/s below 300 ms (observed up to" in done.stdout
    assert "Recommended target: 2" in done.stdout and "the present one is 20 requests/s" in done.stdout
    assert "promise" in done.stdout  # the picture


def test_json_has_the_level_and_the_curve(files: dict[str, str]) -> None:
    found = json.loads(capacity(files, "-o", "json").stdout)
    found = found[0] if isinstance(found, list) else found
    assert found["level"] == pytest.approx(WEEK.truth, rel=0.05)
    assert found["recommendedTarget"] == pytest.approx(7 / 8 * found["level"])
    assert sum(point["minutes"] for point in found["curve"]) == found["minutes"]


def test_what_cannot_be_learned_is_exit_code_1(files: dict[str, str]) -> None:
    low = capacity(files, below="50ms")
    assert low.exit_code == 1 and "not reachable with any number of pods" in " ".join(low.stdout.split())
    ms = capacity(files, latency="ms")
    assert ms.exit_code == 1 and "does it count milliseconds?" in " ".join(ms.stdout.split())


def test_wrong_input_is_exit_code_2(files: dict[str, str]) -> None:
    two = capacity(files, latency="two")
    assert two.exit_code == 2 and "--latency: '2 series'" in two.output
    missing = CliRunner().invoke(main, ["capacity", "--usage", files["usage"]])
    assert missing.exit_code == 2 and "--latency" in missing.output
    query = CliRunner().invoke(main, ["capacity", "--usage", "up", "--latency", "p99", "--below", "1s"])
    assert query.exit_code == 2 and "--prometheus URL" in query.output


def test_an_autoscaler_names_the_queries(tmp_path: Path) -> None:
    path = tmp_path / "web.yaml"
    path.write_text(
        """apiVersion: trimtab.dev/v1alpha1
kind: Autoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 9
  objective: {latency: {query: p99_seconds, below: 300ms}}
"""
    )
    asked = CliRunner().invoke(main, ["capacity", "-f", str(path)])
    assert asked.exit_code == 2
    assert "container_cpu_usage_seconds_total" in asked.output and "--prometheus URL" in asked.output


PROMISED = """apiVersion: trimtab.dev/v1alpha1
kind: Autoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 40
  metrics:
  - type: Prometheus
    prometheus: {name: requests/s, query: rate, target: {type: AverageValue, averageValue: "10"}}
  objective: {latency: {query: p99_seconds, below: 300ms}}
"""
STATUS = """status:
  memory: {is: Kept, version: 1, latency: {level: 32.0, text: one pod serves 32 requests/s below 300 ms}}
"""


def test_backtest_goes_by_the_level_that_the_operator_learned(tmp_path: Path) -> None:
    path, hours = tmp_path / "web.yaml", {}
    for status, note in (("", "is not known here, so its target counts"), (STATUS, "one pod serves 32 requests/s")):
        path.write_text(PROMISED + status)
        load = ["--load", "generate:diurnal,days=1,peak=400"]
        done = CliRunner().invoke(main, ["backtest", "-f", str(path), *load, "-o", "json"])
        assert done.exit_code == 0, done.output
        found = json.loads(done.stdout)
        assert any(note in each for each in found["load"]["notes"]), found["load"]["notes"]
        hours[note] = found["policies"][0]["podHours"]
    written, learned = hours.values()
    assert learned < written / 2  # 28 for each pod instead of 10
