"""What commands say of themselves can be typed as it stands."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trimtab.cli.options import OUT_FILE
from trimtab.cli.output import program_name


def test_a_command_to_try_can_be_typed_where_we_are_on_nobodys_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / ".venv/bin/trimtab"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(program), "demo"])
    monkeypatch.setenv("PATH", "/nowhere")
    assert program_name() == ".venv/bin/trimtab"
    monkeypatch.setenv("PATH", str(program.parent))
    assert program_name() == "trimtab"
    monkeypatch.setattr(sys, "argv", ["-c", "demo"])
    assert program_name() == "trimtab"


def test_the_folder_of_a_file_to_write_is_made(tmp_path: Path) -> None:
    path: Path = OUT_FILE.convert(str(tmp_path / "new" / "report.html"), None, None)
    assert path.parent.is_dir() and not path.exists()
