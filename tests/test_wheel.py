"""The wheel: everything inside that an installation needs, and an installation by plain pip that works."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_it_holds_the_page_and_the_weights_and_no_tests(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
        (entry_points,) = (content.read(name).decode() for name in names if name.endswith("entry_points.txt"))
    for needed in (
        "web/static/page.js",
        "web/static/page.css",
        "core/forecast/learned/weights.npz",
        "py.typed",
        "__main__.py",
    ):
        assert f"trimtab/{needed}" in names
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"trimtab"}
    for shell in ("bash-completion/completions/trimtab", "zsh/site-functions/_trimtab"):
        assert any(name.endswith(f".data/data/share/{shell}") for name in names)
    assert "trimtab = trimtab.cli:main" in entry_points
    assert "kubectl-trimtab = trimtab.cli.kubectl:main" in entry_points


@pytest.mark.package
def test_plain_pip_installs_what_runs(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    program = tmp_path / "venv/bin"
    subprocess.run([program / "python", "-m", "pip", "install", "--quiet", str(wheel)], check=True, cwd=tmp_path)
    manifest, load = str(ROOT / "examples/005-autoscaler/web.yaml"), "generate:diurnal,days=2"
    for words in (
        ["trimtab", "--help"],
        ["python", "-m", "trimtab", "--version"],
        ["kubectl-trimtab", "--help"],
        ["trimtab", "lint", "--severity", "error", manifest],
        ["trimtab", "backtest", "-f", manifest, "--load", load],
        ["trimtab", "demo", "--no-dashboard"],
    ):
        subprocess.run([program / words[0], *words[1:]], check=True, cwd=tmp_path, stdout=subprocess.DEVNULL)
    assert (tmp_path / "trimtab-demo.html").stat().st_size > 10_000
