"""Closed, full and broken streams, other locales, narrow terminals, Ctrl-C: no traceback, no false exit code."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from trimtab.cli.printable import PrintableStream, echo_coloured
from trimtab.cli.screen import Screen
from trimtab.cli.workers import on_all_cores
from trimtab.errors import TrimtabError

PATIENCE_S = 600  # of whoever waits for what must happen: machines are busy
# A shell starts what runs in its background with SIGINT ignored, and a suite may run there.
CODE = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    " from trimtab.cli import main; main(sys.argv[1:], prog_name='trimtab')"
)


def start(*args: str, **options: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", CODE, *args], stderr=subprocess.PIPE, **options)  # type: ignore[call-overload]


def test_a_reader_that_has_seen_enough_is_no_finding_and_no_bug() -> None:
    read, write = os.pipe()
    os.close(read)
    process = start("crds", stdout=write)
    os.close(write)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (2, b"")


def test_rich_does_not_end_the_process_with_the_code_of_a_finding() -> None:
    with pytest.raises(BrokenPipeError):
        Screen(file=io.StringIO()).on_broken_pipe()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_told() -> None:
    with open("/dev/full", "w") as full:
        process = start("crds", stdout=full)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (2, b"trimtab: output: No space left on device\n")


def test_closed_streams_lead_nowhere() -> None:
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -c "{CODE}" lint - <&- >&-'], capture_output=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0
    assert b"bug" not in done.stderr


def test_text_is_utf_8_in_every_locale() -> None:
    manifest = "kind: Autoscaler\napiVersion: trimtab.dev/v1alpha1\nmetadata: {name: grün}\nspec: {}\n"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    process = start("lint", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    out, err = process.communicate(manifest.encode(), timeout=PATIENCE_S)
    assert "grün" in out.decode()
    assert b"bug" not in err


def _greeted(process: subprocess.Popen[bytes]) -> bool:
    """The command runs; its workers are about to start."""
    assert process.stdout is not None
    return process.stdout.readline() != b""


def _children(process: subprocess.Popen[bytes]) -> list[str]:
    return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


def _has_workers(process: subprocess.Popen[bytes]) -> bool:
    return _children(process) != []


def _works(process: subprocess.Popen[bytes]) -> bool:
    """A worker has spent a tenth of a second of CPU: it is in the middle of its job."""
    spent = [_ticks_spent(child) for child in _children(process)]
    return any(ticks >= os.sysconf("SC_CLK_TCK") / 10 for ticks in spent)


def _ticks_spent(process: str) -> int:
    """In user mode; none by one that has ended since it was seen."""
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _all_gone(process: subprocess.Popen[bytes]) -> bool:
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return True
    return False


def _until(holds: Callable[[subprocess.Popen[bytes]], bool], process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds(process):
        assert time.monotonic() < until, f"{holds.__name__} never came true"
        time.sleep(0.001)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux' list of child processes")
@pytest.mark.parametrize("moment", [_greeted, _has_workers, _works])
def test_an_interrupted_demo_ends_without_report_traceback_or_workers(
    tmp_path: Path, moment: Callable[[subprocess.Popen[bytes]], bool]
) -> None:
    page = tmp_path / "demo.html"
    process = start(
        "demo", "--html", str(page), "--journal", f"{page}.db", stdout=subprocess.PIPE, start_new_session=True
    )
    _until(moment, process)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (2, b"trimtab: interrupted\n")
    assert list(tmp_path.iterdir()) == []
    _until(_all_gone, process)


HELD = """
import os, signal, threading
from trimtab.cli.workers import _interrupts_held
signal.signal(signal.SIGINT, signal.default_int_handler)
over = threading.Event()
threading.Thread(target=over.wait, daemon=True).start()  # as numpy has them; it takes what is blocked here
try:
    with _interrupts_held():
        for _ in range(1000):
            os.kill(os.getpid(), signal.SIGINT)
        print("held")
except KeyboardInterrupt:
    print("raised")
"""


def test_an_interrupt_is_held_back_though_another_thread_takes_it() -> None:
    done = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.stdout, done.stderr) == ("held\nraised\n", "")


def _killed(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_killed_worker_is_told_and_is_no_bug() -> None:
    with pytest.raises(TrimtabError, match="lack of memory"), on_all_cores(_killed, [(1,), (2,)]) as jobs:
        jobs[0].result()


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


HOSTILE = "3\x1b[2J\x1b]0;owned\x07\x1b]52;c;cm0=\x07\x9b31m\r\u202e all is fine"


@given(st.text() | st.just(HOSTILE))
def test_no_text_of_others_reaches_the_terminal_as_a_control_character(text: str) -> None:
    """Whatever prints it: click, `print`, or a table of rich with colors of its own."""
    behind = io.StringIO()
    stream = PrintableStream(behind)
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        click.echo(text)
        print(text, file=sys.stderr)
        echo_coloured(("red: ", "red"), (text, "cyan"))
        table = Table(text, style="red")
        table.add_row(Text(text, style="bold"))
        Screen(width=200, force_terminal=True, markup=False, emoji=False, color_system="standard").show(table)
    colored = re.sub(r"\x1b\[[0-9;]*m", "", behind.getvalue())
    assert all(word.isprintable() for word in re.split(r"[\n\t]", colored)), colored


def test_commands_print_through_the_printable_stream() -> None:
    """The name of an object is part of a finding."""
    manifest = f"apiVersion: trimtab.dev/v1alpha1\nkind: Autoscaler\nmetadata: {{name: {json.dumps(HOSTILE)}}}\n"
    process = start("lint", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    out, err = process.communicate(manifest.encode(), timeout=PATIENCE_S)
    assert "owned" in (out + err).decode() and b"\x1b" not in out + err and b"\x07" not in out + err
