"""One recorded shop and one served dashboard for all tests of the page."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.web.recorded import record_shop
from trimtab.journal import ObjectName
from trimtab.ticks import Tick


class Shop(NamedTuple):
    path: Path
    ticks: dict[ObjectName, list[Tick]]


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    path = tmp_path_factory.mktemp("web") / "shop.db"
    return Shop(path, record_shop(path))


@pytest.fixture
def copy(shop: Shop, tmp_path: Path) -> Path:
    """A journal to damage."""
    return Path(shutil.copy(shop.path, tmp_path / "copy.db"))


@pytest.fixture(scope="session")
def address(shop: Shop) -> Iterator[str]:
    with serving(shop.path) as found:
        yield found


class serving:
    """`trimtab dashboard` over a journal or with other options, as users start it; gives its address."""

    def __init__(self, journal: Path | None = None, *options: str) -> None:
        program = Path(sys.executable).with_name("trimtab")
        source = ("--journal", journal) if journal else ()
        command = (program, "dashboard", *source, *options, "--port", "0", "--no-open")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("dashboard: "), line
        return line.split()[1].rstrip("/")

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        assert self.process.wait(300) == 0, "it ends in order"
