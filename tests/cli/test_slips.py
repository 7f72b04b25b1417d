"""Slips of the pen on the command line are answered with the field, its value and the fix."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from trimtab.cli import main

FOLDER = Path(__file__).parents[2] / "examples" / "007-history"
LOAD = str(FOLDER / "cpu.csv")
HPA = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 30
"""
BLEND = """
apiVersion: trimtab.dev/v1alpha1
kind: Autoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 30
  vertical: {}
  blend: {capacity: {}}
"""


def ran(*words: str, env: dict[str, str] | None = None, color: bool = False) -> Result:
    return CliRunner().invoke(main, words, env=env, color=color)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return tmp_path / "web.yaml"


@pytest.mark.parametrize("empty", ["behavior:", "behavior: {scaleUp: , scaleDown: }"])
def test_an_empty_behavior_is_none(written: Path, empty: str) -> None:
    written.write_text(f"{HPA}  {empty}\n")
    result = ran("tune", "-f", str(written), "-f", str(FOLDER / "web-deployment.yaml"), "--load", LOAD)
    assert result.exit_code == 0, result.output


def test_tuning_a_blend_names_it(written: Path) -> None:
    written.write_text(BLEND)
    result = ran("tune", "-f", str(written), "-f", str(FOLDER / "web-deployment.yaml"), "--load", LOAD)
    assert "spec.blend: 'Capacity': it cannot be tuned" in str(result.exception) + result.output


def test_a_csv_in_place_of_a_manifest_is_quoted_in_short() -> None:
    result = ran("backtest", "-f", LOAD, "--load", LOAD)
    said = str(result.exception) + result.output
    assert "write a manifest" in said
    assert len(said) < 1000


def test_an_old_version_of_a_deployment_is_told_the_new_one(written: Path) -> None:
    text = (FOLDER / "web-deployment.yaml").read_text()
    written.write_text(text.replace("apps/v1", "apps/v1beta1"))
    result = ran("recommend", "--history", LOAD, "-f", str(written))
    said = str(result.exception) + result.output
    assert "apiVersion" in said
    assert "write apps/v1" in said


def test_lint_is_without_colours_where_they_are_not_wanted(written: Path) -> None:
    written.write_text(HPA.replace("maxReplicas: 30", "maxReplicas: 1\n  minReplicas: 2"))
    assert "\x1b[" in ran("lint", str(written), color=True).output
    assert "\x1b[" not in ran("lint", str(written), color=True, env={"NO_COLOR": "1"}).output
