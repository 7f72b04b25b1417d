"""trimtab doctor and completion: what needs no cluster (tests/e2e/test_doctor.py has the rest)."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from trimtab.cli import main
from trimtab.cli.completion import SHELLS
from trimtab.cli.doctor import NEEDS, abilities_of


def test_doctor_without_a_cluster_says_how_to_name_one(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "none")}
    done = CliRunner().invoke(main, ["doctor"], env=environment)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "there is no such file" in done.stderr


def test_an_ability_names_the_checks_that_keep_it_from_working() -> None:
    every = {need for needs in NEEDS.values() for need in needs}
    assert not any(ability.missing for ability in abilities_of(every))
    without = {ability.name: ability.missing for ability in abilities_of(every - {"pod metrics"})}
    assert without["scaling by CPU and memory"] == ("pod metrics",)
    assert without["scaling by Prometheus queries"] == ()


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_prints_the_script_of_a_shell(shell: str) -> None:
    done = CliRunner().invoke(main, ["completion", shell])
    assert done.exit_code == 0
    assert f"_TRIMTAB_COMPLETE={shell}_complete" in done.stdout
