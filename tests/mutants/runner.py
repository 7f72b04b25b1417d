"""Run tests against mutated copies of the package.

Each worker owns one copy of the repository. A run forks a child that has pytest and the
libraries imported already, so that a narrow test costs little more than its own time.
"""

import compileall
import importlib
import os
import shutil
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.entries import Mutant

# Copied, not linked: Python would resolve a link and import the package that is not mutated.
SKIPPED = shutil.ignore_patterns(
    ".git", ".venv", "node_modules", "out", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"
)
PRELOADED = ("pytest", "_pytest.assertion.rewrite", "numpy", "hypothesis", "hypothesis.strategies", "yaml", "asyncio")
PASSED, FAILED = 0, 1


@dataclass(frozen=True)
class Run:
    """The exit status of pytest, None after a timeout, with its output and duration."""

    status: int | None
    output: str
    seconds: float


class Copy:
    """A copy of the repository in which one file at a time is mutated."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(root, folder, ignore=SKIPPED)
        compileall.compile_dir(folder / "trimtab", quiet=2)

    def run(self, tests: tuple[str, ...], timeout_s: float) -> Run:
        """Run the tests in this copy and stop at the first failure."""
        log = self.folder.with_suffix(".log")
        start = time.monotonic()
        child = os.fork()
        if child == 0:
            _run_pytest(self.folder, log, tests)
        status = _wait(child, start + timeout_s)
        return Run(status, log.read_text(errors="replace"), time.monotonic() - start)

    def run_mutant(self, mutant: Mutant, path: str, timeout_s: float) -> Run:
        """Run the mutant's tests with the edit applied, then restore the file."""
        file = self.folder / path
        source = file.read_text()
        # Bytecode is matched by second and size only, so that of the original must not be found.
        for bytecode in file.parent.glob(f"__pycache__/{file.stem}.*.pyc"):
            bytecode.unlink()
        file.write_text(source.replace(mutant.snippet, mutant.replacement))
        try:
            return self.run(mutant.tests, timeout_s)
        finally:
            file.write_text(source)


def preload() -> None:
    """Import the libraries that every run needs before the first fork."""
    for name in PRELOADED:
        importlib.import_module(name)


def _run_pytest(folder: Path, log: Path, tests: tuple[str, ...]) -> None:
    status = 3
    try:
        os.setsid()
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(folder)
        os.environ["PYTHONPATH"] = str(folder)
        sys.path.insert(0, str(folder))
        # Bytecode of a mutant must not survive it.
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "trimtab")]:
            del sys.modules[name]
        import pytest

        status = int(pytest.main(["-x", "-q", "--no-header", "-p", "no:cacheprovider", "--tb=no", "-rfE", *tests]))
        sys.stdout.flush()
    finally:
        os._exit(status)


def _wait(child: int, deadline: float) -> int | None:
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
