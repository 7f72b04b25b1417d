"""turns: places for what is under way at once, shared among namespaces.

Who waits is served namespace by namespace, and no namespace gets more than its share while another waits: however slow
its requests are, the others' find a place.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterator
from types import TracebackType
from typing import Generic, TypeVar

Item = TypeVar("Item")
AT_ONCE, SHARE = 16, 4


class Queue(Generic[Item]):
    """What waits, by namespace. `take` gives whose turn it is; what was taken counts until it is given back."""

    def __init__(self, share: int = SHARE) -> None:
        self.share = share
        self._taken: Counter[str] = Counter()
        self._waiting: dict[str, deque[Item]] = {}  # in the order of their turns

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __iter__(self) -> Iterator[Item]:
        return (item for waiting in self._waiting.values() for item in waiting)

    def put(self, namespace: str, item: Item) -> None:
        self._waiting.setdefault(namespace, deque()).append(item)

    def take(self) -> tuple[str, Item]:
        namespace = self._next()
        waiting = self._waiting.pop(namespace)
        item = waiting.popleft()
        if waiting:
            self._waiting[namespace] = waiting  # now at the end of the round
        self._taken[namespace] += 1
        return namespace, item

    def give_back(self, namespace: str) -> None:
        self._taken[namespace] -= 1

    def _next(self) -> str:
        if len(self._waiting) == 1:
            return next(iter(self._waiting))
        within = (namespace for namespace in self._waiting if self._taken[namespace] < self.share)
        return next(within, next(iter(self._waiting)))


class Turns:
    """`at_once` places, of which one namespace gets `share` while others wait."""

    def __init__(self, at_once: int = AT_ONCE, share: int = SHARE) -> None:
        self._free = at_once
        self._queue: Queue[asyncio.Future[None]] = Queue(share)
        self._served: asyncio.Handle | None = None

    def turn(self, namespace: str) -> Turn:
        return Turn(self, namespace)

    async def enter(self, namespace: str) -> None:
        """Served in the next round of the loop: those who come together wait together, whoever is first."""
        turn = asyncio.get_running_loop().create_future()
        self._queue.put(namespace, turn)
        self._serve_soon()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # given a place and cancelled in the same moment
                self.leave(namespace)
            raise

    def leave(self, namespace: str) -> None:
        self._free += 1
        self._queue.give_back(namespace)
        self._serve_soon()

    def _serve_soon(self) -> None:
        if self._served is None and self._queue:
            self._served = asyncio.get_running_loop().call_soon(self._serve)

    def _serve(self) -> None:
        self._served = None
        while self._free and self._queue:
            namespace, turn = self._queue.take()
            if turn.done():  # it was given up
                self._queue.give_back(namespace)
                continue
            self._free -= 1
            turn.set_result(None)


class Turn:
    """A place while the context lasts."""

    def __init__(self, turns: Turns, namespace: str) -> None:
        self._turns, self._namespace = turns, namespace

    async def __aenter__(self) -> None:
        await self._turns.enter(self._namespace)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._turns.leave(self._namespace)
