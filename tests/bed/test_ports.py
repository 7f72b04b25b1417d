"""A port that was drawn is nobody else's, though nobody listens there yet."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.bed import ports

ROOT = Path(__file__).parents[2]


def drawn_elsewhere(port: int) -> str:
    code = f"from tests.bed import ports; ports.RANGE = range({port}, {port + 1}); print(list(ports.free_ports()))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True).stdout


def test_nobody_draws_what_somebody_has_drawn_until_that_process_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    port = ports.free_port()
    assert drawn_elsewhere(port) == "[]\n"
    monkeypatch.setattr(ports, "RANGE", range(port, port + 1))
    assert list(ports.free_ports()) == [], "nor once more here"
    ports._drawn.pop().close()
    assert drawn_elsewhere(port) == drawn_elsewhere(port) == f"[{port}]\n"
