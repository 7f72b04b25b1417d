"""What is there for strangers stays true: workflows run our own gate, on every Python we name."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FILES = sorted((ROOT / ".github").rglob("*.yml"))


def workflow(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows" / name).read_text())
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_files_can_be_read(file: Path) -> None:
    assert isinstance(yaml.safe_load(file.read_text()), dict)


UNPINNED = {"github/codeql-action"}  # moves with its bundle of rules; an old commit stops being served


def test_actions_are_pinned_by_commit() -> None:
    lines = [line for name in FILES for line in name.read_text().splitlines() if "uses: " in line]
    used = [re.search(r"uses: ([\w-]+/[\w-]+)[\w./-]*@(\S+)( # v\d\S*)?", line) for line in lines]
    assert used and all(used)
    loose = {found[1] for found in used if found and not (re.fullmatch("[0-9a-f]{40}", found[2]) and found[3])}
    assert loose == UNPINNED


def test_every_python_we_name_passes_the_gate() -> None:
    gate = workflow("ci.yml")["jobs"]["gate"]
    named = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if "Python :: 3." in line]
    assert gate["strategy"]["matrix"]["python"] == named
    assert PROJECT["requires-python"] == f">={named[0]}"
    assert [step["run"] for step in gate["steps"] if "run" in step] == [".ci/run"]


def test_what_the_release_reads_is_there() -> None:
    script = "\n".join(step.get("run", "") for step in workflow("release.yml")["jobs"]["artifacts"]["steps"])
    for path in ("pyproject.toml", "trimtab/__init__.py", "deploy/trimtab", "deploy/custom-hpa", "CHANGELOG.md"):
        assert path in script and (ROOT / path).exists()
    for path in ("deploy/krew/trimtab.yaml", "deploy/krew/kubectl-trimtab"):
        assert path in script and "@VERSION@" in (ROOT / path).read_text()


def test_the_version_is_one() -> None:
    from trimtab import __version__

    charts = [yaml.safe_load((ROOT / f"deploy/{name}/Chart.yaml").read_text()) for name in ("trimtab", "custom-hpa")]
    assert {PROJECT["version"], *(chart["appVersion"] for chart in charts)} == {__version__}
