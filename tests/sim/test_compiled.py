"""Where compiled code is kept."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from trimtab.sim.compiled import cache_folder


def test_a_user_without_a_home_keeps_compiled_code_in_the_folder_of_temporary_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def nobody(uid: int) -> None:
        raise KeyError(uid)

    for name in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert cache_folder.__wrapped__("1").is_relative_to(tmp_path)
