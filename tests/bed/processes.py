"""The processes of one bed, in a state file that any process can read: who runs, since when, and what to end.

A process is known by its id and its whole command line, which names the bed's own folder and ports, so an id
that the system has given to somebody else is never signalled.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DETACHED = 0  # the owner of a bed that outlives the process which started it


class Processes:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.file = directory / "state.json"
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    def create(self, owner: int, **facts: Any) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self._write({"owner": owner, "parts": {}, **facts})

    def read(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(self.file.read_text())
        return state

    def start(self, name: str, command: list[str]) -> None:
        with (self.directory / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # an interrupted test run ends its bed in its own order
                cwd=Path(__file__).parents[2],
            )
        self._children[child.pid] = child
        with self._changed() as state:
            state["parts"][name] = {"pid": child.pid, "command": command}

    def command(self, name: str) -> list[str]:
        command: list[str] = self.read()["parts"][name]["command"]
        return command

    def names(self) -> list[str]:
        return list(self.read()["parts"])

    def pid(self, name: str) -> int | None:
        """The id of a part that runs now."""
        part = self.read()["parts"].get(name)
        return part["pid"] if part and self._runs(**part) else None

    def send(self, name: str, number: signal.Signals) -> None:
        pid = self.pid(name)
        if pid is not None:
            os.kill(pid, number)

    def stop(self, name: str, number: signal.Signals = signal.SIGTERM, grace_s: float = 5.0) -> None:
        """Ends a part, asking first; it stays in the state file so that it can be started again."""
        self.send(name, number)
        deadline = time.monotonic() + grace_s
        while self.pid(name) is not None:
            if time.monotonic() > deadline:
                self.send(name, signal.SIGKILL)
            time.sleep(0.02)

    def stop_all(self) -> None:
        names = list(reversed(self.names()))
        for name in names:
            self.send(name, signal.SIGCONT)  # a frozen process cannot end
            self.send(name, signal.SIGTERM)
        for name in names:
            self.stop(name, grace_s=3.0)

    def log_tail(self, name: str, lines: int = 15) -> str:
        return "\n".join((self.directory / f"{name}.log").read_text(errors="replace").splitlines()[-lines:])

    def abandoned(self) -> bool:
        owner = self.read()["owner"]
        return owner != DETACHED and not _alive(owner)

    def _runs(self, pid: int, command: list[str]) -> bool:
        child = self._children.get(pid)
        return child.poll() is None if child else _command_line(pid) == command

    @contextmanager
    def _changed(self) -> Iterator[dict[str, Any]]:
        with (self.directory / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = self.read()
            yield state
            self._write(state)

    def _write(self, state: dict[str, Any]) -> None:
        """Whole or not at all: others read it without a lock."""
        partial = self.file.with_suffix(".partial")
        partial.write_text(json.dumps(state, indent=1))
        partial.rename(self.file)


def _command_line(pid: int) -> list[str] | None:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]
    except (FileNotFoundError, ProcessLookupError):
        return None


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
