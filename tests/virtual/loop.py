"""An event loop whose time jumps to the next timer whenever nothing else happens.

With `patience_s` sockets work as usual and are waited for that long before each jump. Work for other threads is done at
once, in this one: the same program takes the same turns each time.
"""

from __future__ import annotations

import asyncio
import selectors
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any, TypeVar

T = TypeVar("T")
SOCKETS_S = 0.25  # what a packet to ourselves may take on a busy machine; each jump takes as long
DIGITS = 9  # of a second: timers that are due at the same time are due at the very same float


class _Selector(selectors.DefaultSelector):
    def __init__(self, patience_s: float) -> None:
        super().__init__()
        self.now, self.patience_s = 0.0, patience_s

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select(None if self.patience_s else 0.0)
        if self.patience_s == 0.0:
            if timeout > 0:
                self.now = round(self.now + timeout, DIGITS)
            return []
        found = super().select(min(self.patience_s, max(0.0, timeout)))
        if timeout > 0 and not found:
            self.now = round(self.now + timeout, DIGITS)
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """`holds` may keep a turn back, by the context it runs in; `release` lets all of those go on."""

    def __init__(self, patience_s: float = 0.0) -> None:
        self.clock = _Selector(patience_s)
        self.holds: Callable[[Context], bool] | None = None
        self._held: list[asyncio.Handle] = []
        super().__init__(self.clock)

    def time(self) -> float:
        return self.clock.now

    def _run_once(self) -> None:
        """Time stands still while somebody has a turn: then nobody need look for timers or sockets."""
        ready: deque[asyncio.Handle] = self._ready  # type: ignore[attr-defined]
        if not ready or self.clock.patience_s or self._is_due():
            super()._run_once()  # type: ignore[misc]
            return
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle.cancelled():
                handle._run()

    def _is_due(self) -> bool:
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        return bool(timers) and timers[0].when() <= self.clock.now

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return super().call_at(round(when, DIGITS), callback, *args, context=context)

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> asyncio.Handle:  # type: ignore[override]
        handle = super().call_soon(callback, *args, context=context)
        if self.holds is not None and self.holds(context or copy_context()):
            self._ready.remove(handle)  # type: ignore[attr-defined]
            self._held.append(handle)
        return handle

    def release(self) -> None:
        self._ready.extend(self._held)  # type: ignore[attr-defined]
        self._held.clear()

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done


def run(work: Coroutine[Any, Any, T], patience_s: float = 0.0) -> T:
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(patience_s)) as runner:
        return runner.run(work)


def now() -> float:
    return asyncio.get_running_loop().time()
