"""turns: places for what is under way at once, shared among namespaces.

Who waits is served namespace by namespace, and no namespace gets more than its share while another waits: however slow
its requests are, the others' find a place.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """`at_once` places, of which one namespace gets `share` while others wait."""

    def __init__(self, at_once: int = 16, share: int = 4) -> None:
        self.share = share
        self._free = at_once
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # in the order of their turns
        self._served: asyncio.Handle | None = None

    @asynccontextmanager
    async def turn(self, namespace: str) -> AsyncIterator[None]:
        await self._enter(namespace)
        try:
            yield
        finally:
            self._leave(namespace)

    async def _enter(self, namespace: str) -> None:
        """Served in the next round of the loop: those who come together wait together, whoever is first."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(namespace, deque()).append(turn)
        self._serve_soon()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # given a place and cancelled in the same moment
                self._leave(namespace)
            raise

    def _leave(self, namespace: str) -> None:
        self._free += 1
        self._held[namespace] -= 1
        self._serve_soon()

    def _serve_soon(self) -> None:
        if self._served is None and self._waiting:
            self._served = asyncio.get_running_loop().call_soon(self._serve)

    def _serve(self) -> None:
        self._served = None
        while self._free and self._waiting:
            namespace = self._next()
            queue = self._waiting.pop(namespace)
            turn = queue.popleft()
            if queue:
                self._waiting[namespace] = queue  # now at the end of the round
            if not turn.done():  # else it was given up
                turn.set_result(None)
                self._free -= 1
                self._held[namespace] += 1

    def _next(self) -> str:
        within = (namespace for namespace in self._waiting if self._held[namespace] < self.share)
        return next(within, next(iter(self._waiting)))
