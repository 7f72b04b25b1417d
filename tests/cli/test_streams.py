"""Closed, full and broken streams, other locales, narrow terminals, Ctrl-C: no traceback, no false exit code."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rich.table import Table

from tests.bed import eventually
from trimtab.cli.screen import Screen

CODE = "import sys; from trimtab.cli import main; main(sys.argv[1:], prog_name='trimtab')"


def start(*args: str, **options: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", CODE, *args], stderr=subprocess.PIPE, **options)  # type: ignore[call-overload, no-any-return]


def test_a_reader_that_has_seen_enough_is_no_finding_and_no_bug() -> None:
    read, write = os.pipe()
    os.close(read)
    process = start("crds", stdout=write)
    os.close(write)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (2, b"")


def test_rich_does_not_end_the_process_with_the_code_of_a_finding() -> None:
    with pytest.raises(BrokenPipeError):
        Screen(file=io.StringIO()).on_broken_pipe()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_told() -> None:
    with open("/dev/full", "w") as full:
        process = start("crds", stdout=full)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (2, b"trimtab: output: No space left on device\n")


def test_closed_streams_lead_nowhere() -> None:
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -c "{CODE}" lint - <&- >&-'], capture_output=True, timeout=60
    )
    assert done.returncode == 0
    assert b"bug" not in done.stderr


def test_text_is_utf_8_in_every_locale() -> None:
    manifest = "kind: Autoscaler\napiVersion: trimtab.dev/v1alpha1\nmetadata: {name: grün}\nspec: {}\n"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    process = start("lint", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    out, err = process.communicate(manifest.encode(), timeout=60)
    assert "grün" in out.decode()
    assert b"bug" not in err


def _members(group: int) -> int:
    """How many processes of the group run; the dead that nobody has asked about yet do not."""
    listed = subprocess.run(["ps", "-A", "-o", "pgid=,stat="], capture_output=True, text=True, check=True).stdout
    return sum(line.split()[0] == str(group) and "Z" not in line for line in listed.splitlines())


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_an_interrupted_demo_ends_at_once_without_a_report_and_without_a_traceback(tmp_path: Path) -> None:
    page = tmp_path / "demo.html"
    process = start("demo", "--html", str(page), stdout=subprocess.DEVNULL, start_new_session=True)
    eventually(lambda: _members(process.pid) > 2, 120, "workers, beside the process that keeps count of semaphores")
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (2, b"trimtab: interrupted\n")
    eventually(lambda: _members(process.pid) == 0, 120, "nobody left")
    assert list(tmp_path.iterdir()) == []


def _printed(width: int, spare: tuple[str, ...] = ()) -> list[str]:
    table = Table(box=None, pad_edge=False)
    for heading in ("POLICY", "POD HOURS", "REGRET"):
        table.add_column(heading, no_wrap=True)
    table.add_row("a-long-name", "1,234", "+5%")
    file = io.StringIO()
    Screen(file=file, width=width, markup=False).show(table, spare)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_narrow_terminal_loses_columns_that_can_be_spared_but_no_letters() -> None:
    assert _printed(60, ("REGRET",)) == ["POLICY       POD HOURS  REGRET", "a-long-name  1,234      +5%"]
    assert _printed(25, ("REGRET",)) == ["POLICY       POD HOURS", "a-long-name  1,234"]
    assert _printed(10) == ["POLICY       POD HOURS  REGRET", "a-long-name  1,234      +5%"]
