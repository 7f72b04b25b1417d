"""Hot loops compiled by numba where it is installed; without it the same functions run as plain Python and say so once.

The cache lies outside the package, in a folder named after a hash of every source the loops are made of: numba's own
cache looks at one file only and would serve stale code after an edit in another.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

_PACKAGE = Path(__file__).parent.parent
_SOURCES = (
    "sim/*.py",
    "core/*.py",
    "core/forecast/learned/*.py",
    "core/settle/*.py",
)


@cache
def numba_or_none() -> ModuleType | None:
    try:
        import numba
    except ImportError:
        warnings.warn(
            "numba is not installed: the same results, some hundred times slower; pip install 'trimtab[fast]'",
            stacklevel=2,
        )
        return None
    return numba


def compiled(function: Function) -> Function:
    """The function as machine code that lets other threads run; its arithmetic is Python's, to the last bit."""
    numba = numba_or_none()
    if numba is None:
        return function
    with _cache_in(numba, cache_folder(numba.__version__)):
        return numba.njit(cache=True, nogil=True)(function)  # type: ignore[no-any-return]


def shared(*leaves: Callable[..., Any]) -> None:
    """Let compiled code call these plain functions; callers of the plain functions notice nothing."""
    numba = numba_or_none()
    if numba is not None:
        for leaf in leaves:
            numba.extending.register_jitable(leaf)


@contextmanager
def _cache_in(numba: ModuleType, folder: Path) -> Iterator[None]:
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
