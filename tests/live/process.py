"""A program of ours as a process that answers on a port: who waits for one that has ended learns at once, and why."""

from __future__ import annotations

import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

LAST_WORDS = 5000  # characters of its log


class ServingProcess:
    """What it prints goes to `log`; `get` asks it."""

    def __init__(self, command: list[str], port: int, log: Path) -> None:
        self.command, self.port, self.log = command, port, log
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, cwd: Path, env: Mapping[str, str] | None = None) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, cwd=cwd, env=env)

    def stop(self, within_s: float = 30.0) -> int:
        """By SIGTERM; who does not obey is killed, and that is a failure."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(30)

    def get(self, path: str) -> str:
        """Whatever the status; RuntimeError, which nobody waits through, when it has ended."""
        assert self.process is not None
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as refusal:
            return refusal.read().decode()
        except OSError:
            if (code := self.process.poll()) is not None:
                raise RuntimeError(f"it ended with {code}; its log ends with\n{self.last_words()}") from None
            raise

    def last_words(self) -> str:
        return self.log.read_text(errors="replace")[-LAST_WORDS:]
