"""One yardstick, which every command names: limits count, gaps are no load, and a capacity is no request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from trimtab.cli import main
from trimtab.series import Floats

START, DAYS, MINUTES = 1_700_006_400.0, 7, 7 * 1440
PODS = {
    "guaranteed": {"requests": {"cpu": "500m"}, "limits": {"cpu": "500m"}},
    "burstable": {"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}},
    "no limit": {"requests": {"cpu": "500m"}},
}
HPA = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 2,
        "maxReplicas": 60,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 75}},
            }
        ],
    },
}


def load() -> Floats:
    """Busy days with a spike in each."""
    minutes = np.arange(MINUTES)
    values = 5.0 - 3.0 * np.cos(2 * np.pi * minutes / 1440) + 4.0 * ((minutes % 1440) // 20 == 30)
    return values.astype(np.float32).astype(np.float64)


def files(folder: Path, resources: dict[str, Any], values: Floats) -> tuple[str, ...]:
    spec = {"containers": [{"name": "app", "image": "web", "resources": resources}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    (folder / "all.yaml").write_text(yaml.safe_dump_all([HPA, deployment]))
    rows = [f"{START + 60 * index:.0f},{value!r}\n" for index, value in enumerate(values.tolist()) if value == value]
    (folder / "load.csv").write_text("timestamp,value\n" + "".join(rows))
    return "-f", str(folder / "all.yaml"), "--load", str(folder / "load.csv")


def said(*words: str) -> dict[str, Any]:
    found = CliRunner().invoke(main, list(words), catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return dict(json.loads(found.stdout))


def test_the_same_pods_violate_less_the_more_they_may_use(tmp_path: Path) -> None:
    given = {kind: files(tmp_path, resources, load()) for kind, resources in PODS.items()}
    found = {}
    for kind, resources in PODS.items():
        files(tmp_path, resources, load())
        found[kind] = said("backtest", *given[kind], "-o", "json")["policies"][0]["violations"]
    assert found["guaranteed"] > found["burstable"] >= found["no limit"]


def test_a_gap_is_neither_load_nor_the_worst_hour(tmp_path: Path) -> None:
    """The last value before it was a spike: held for an hour, it would be the worst hour of the week."""
    values = load()
    values[-760:-701], values[-700:-640] = 30.0, np.nan
    given = files(tmp_path, PODS["guaranteed"], values)
    with_gap = said("backtest", *given, "--startup", "10m", "-o", "json")
    assert "0.7% of the time is not scored: steps without a sample, and one start-up" in with_gap["load"]["notes"][0]


@pytest.mark.parametrize(
    ("words", "level"),
    [
        ((), "overloaded above 500m (the request; limit 1000m)"),
        (("--service-level", "0.6"), "overloaded above 300m (0.6 of the request, --service-level; limit 1000m)"),
        (("--pod-capacity", "2"), "overloaded above 1600m (80 % of --pod-capacity; limit 2000m)"),
    ],
)
def test_every_command_names_its_level(tmp_path: Path, words: tuple[str, ...], level: str) -> None:
    given = files(tmp_path, PODS["burstable"], load())
    judged, tuned = (said(command, *given, *words, "-o", "json") for command in ("backtest", "tune"))
    assert judged["level"] == level
    assert any(level in note for note in tuned["notes"])
    table = CliRunner().invoke(main, ["backtest", *given, *words])
    assert level in " ".join(table.output.split())


def test_what_a_pod_can_carry_does_not_change_what_the_hpa_divides_by(tmp_path: Path) -> None:
    given = files(tmp_path, PODS["burstable"], load())
    plain, dear = (said("backtest", *given, *words, "-o", "json") for words in ((), ("--pod-capacity", "2")))
    assert plain["policies"][0]["podHours"] == dear["policies"][0]["podHours"]


@pytest.mark.parametrize(("unit", "times"), [("millicores", 1000.0), ("percent", 100.0), ("rps", 250.0)])
def test_a_load_that_cannot_be_cores_is_refused_and_read_in_its_own_unit(
    tmp_path: Path, unit: str, times: float
) -> None:
    """2 to 12 cores on at most 60 pods of 500m; 250 requests per second take a core."""
    capacity = ("--pod-capacity", "125") if unit == "rps" else ()
    given = files(tmp_path, PODS["guaranteed"], load())
    backtest, tune = (said(command, *given, "-o", "json") for command in ("backtest", "tune"))
    files(tmp_path, PODS["guaranteed"], load() * times)
    for command in ("backtest", "tune"):
        refused = CliRunner().invoke(main, [command, *given])
        assert refused.exit_code == 2 and "where 60 pods can use 30': is it in" in " ".join(str(refused.output).split())
    converted = ("--unit", unit, *capacity)
    (judged,) = said("backtest", *given, *converted, "-o", "json")["policies"]
    assert judged["j"] == pytest.approx(backtest["policies"][0]["j"])
    assert said("tune", *given, *converted, "-o", "json")["was"] == pytest.approx(tune["was"], nan_ok=True)


def test_without_proof_a_doubtful_unit_is_a_warning(tmp_path: Path) -> None:
    """60 pods of one core are assumed where no manifest says what they may use."""
    given = files(tmp_path, PODS["guaranteed"], load() * 1000.0)
    (tmp_path / "all.yaml").write_text(yaml.safe_dump(HPA))
    notes = said("backtest", *given, "-o", "json")["load"]["notes"]
    assert "Say --unit millicores, percent (100 is one core), rps or cores" in notes[0]


def test_an_ordinary_hpa_at_80_percent_is_sane(tmp_path: Path) -> None:
    """Limits at twice the requests: what such pods burst is no violation."""
    given = files(tmp_path, PODS["burstable"], load())
    text = (tmp_path / "all.yaml").read_text().replace("averageUtilization: 75", "averageUtilization: 80")
    (tmp_path / "all.yaml").write_text(text)
    (judged,) = said("backtest", *given, "-o", "json")["policies"]
    assert judged["j"] < 2.0 and judged["violations"] < 3.0
