"""Waiting on a condition with a deadline, so that no test sleeps and none hangs."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TypeVar

T = TypeVar("T")
PATIENCE_S = 300.0  # of a busy machine: who waits for less than this waits for this, and only a real fault takes it all
NOT_YET = (AssertionError, LookupError, OSError, TypeError, ValueError, subprocess.SubprocessError)


def eventually(check: Callable[[], T], within_s: float, what: str = "", every_s: float = 0.1) -> T:
    """The first truthy answer of `check`; what it raises on the way (see NOT_YET) means "not yet"."""
    limit_s = max(within_s, PATIENCE_S)
    deadline = time.monotonic() + limit_s
    while True:
        try:
            last: object = check()
            if last:
                return last  # type: ignore[return-value]
        except NOT_YET as error:
            last = error
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what or 'the condition'} did not hold within {limit_s:g} s; last: {last!r}")
        time.sleep(every_s)


async def until(check: Callable[[], object | Awaitable[object]], within_s: float = PATIENCE_S) -> float:
    """The same beside other tasks; how long it took."""
    started = time.monotonic()
    async with asyncio.timeout(max(within_s, PATIENCE_S)):
        while True:
            last = check()
            if await last if isawaitable(last) else last:
                return time.monotonic() - started
            await asyncio.sleep(0.02)


def always(check: Callable[[], object], for_s: float, what: str = "", every_s: float = 0.2) -> None:
    """Fails as soon as `check` is falsy: for "nothing happens" during a stretch of time."""
    deadline = time.monotonic() + for_s
    while time.monotonic() < deadline:
        last = check()
        if not last:
            raise AssertionError(f"{what or 'the condition'} ceased to hold; last: {last!r}")
        time.sleep(every_s)
