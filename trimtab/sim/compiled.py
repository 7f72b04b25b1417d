"""Compile the simulator's hot loops with numba. Only commands that simulate import this module.

The cache lies outside the package, in a folder named after a hash of every source the loops are made of: numba's own
cache looks at one file only and would serve stale code after an edit in another.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
import numba.extending

Function = TypeVar("Function", bound=Callable[..., Any])

_PACKAGE = Path(__file__).parent.parent
_SOURCES = (
    "sim/*.py",
    "core/*.py",
    "core/forecast/learned/*.py",
    "core/settle/*.py",
    "policy.py",
)


def compiled(function: Function) -> Function:
    """Compile a function that releases the interpreter's lock; its arithmetic equals Python's bit for bit."""
    with _cache_in(cache_folder(numba.__version__)):
        return numba.njit(cache=True, nogil=True)(function)  # type: ignore[no-any-return]


def shared(*leaves: Callable[..., Any]) -> None:
    """Let compiled code call these plain functions; they stay plain functions for every other caller."""
    for leaf in leaves:
        numba.extending.register_jitable(leaf)


@contextmanager
def _cache_in(folder: Path) -> Iterator[None]:
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder)
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


@cache
def cache_folder(version: str) -> Path:
    """Where compiled code is kept for exactly these sources and this compiler."""
    digest = hashlib.sha256(version.encode())
    for path in sorted(path for pattern in _SOURCES for path in _PACKAGE.glob(pattern)):
        digest.update(path.read_bytes())
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = base / "trimtab" / digest.hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # nothing to write there, or a user without a home
        folder = Path(tempfile.gettempdir()) / f"trimtab-{os.getuid()}" / digest.hexdigest()[:16]
    return folder
