"""The krew package: its script runs the installed package, or says what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

KREW = Path(__file__).parents[2] / "deploy/krew"


def run(path: str, *words: str) -> subprocess.CompletedProcess[str]:
    script = [shutil.which("sh") or "/bin/sh", str(KREW / "kubectl-trimtab"), *words]
    return subprocess.run(script, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False)


def test_it_runs_the_installed_package(tmp_path: Path) -> None:
    (tmp_path / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tmp_path / "python3").chmod(0o755)
    done = run(str(tmp_path), "pin", "--help")
    assert done.returncode == 0 and done.stdout.startswith("Usage: kubectl trimtab pin"), done.stderr


def test_without_anything_it_says_what_to_install(tmp_path: Path) -> None:
    done = run(str(tmp_path))
    assert done.returncode == 2 and "install uv or pipx" in done.stderr


def test_the_manifest_names_the_script() -> None:
    (platform,) = yaml.safe_load((KREW / "trimtab.yaml").read_text())["spec"]["platforms"]
    assert (KREW / platform["bin"]).exists()
    assert platform["files"][0]["from"] == platform["bin"]
