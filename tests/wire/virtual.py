"""An event loop whose clock jumps to the next timer whenever nothing else happens; sockets work as usual."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
SOCKETS_S = 0.002  # what a packet to ourselves may take before time goes on


class _Selector(selectors.DefaultSelector):
    def __init__(self, patience_s: float) -> None:
        super().__init__()
        self.now, self.patience_s = 0.0, patience_s

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        found = super().select(self.patience_s)
        if not found:
            self.now += timeout
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self, patience_s: float) -> None:
        self.clock = _Selector(patience_s)
        super().__init__(self.clock)

    def time(self) -> float:
        return self.clock.now


def run(work: Coroutine[Any, Any, T], patience_s: float = 0.0) -> T:
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(patience_s)) as runner:
        return runner.run(work)


def now() -> float:
    return asyncio.get_running_loop().time()
