"""Share requests and work fairly among namespaces: what may leave per second, and how much runs at once.

A `Budget` limits the requests per second to one server. Waiting requests are served by priority, and namespaces with
the same priority take turns. Every third request goes to the namespace whose turn it is, whatever its priority: no
namespace waits for all the scalings of another.

`Turns` limits how much runs at once. No namespace gets more than its share of the places while another waits: however
slow its requests are, the others find a place. Some places may be kept for those that come later.

`Backoff` is the pause between attempts that failed.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from enum import IntEnum
from itertools import count
from typing import Generic, TypeVar

FAIR_TURN = 3


class Priority(IntEnum):
    """What goes first while requests wait: what a service needs now, then what only tells of it."""

    SCALE = 0
    READ = 1  # without it nothing is decided
    CHANGE = 2  # sizes, templates, floors
    STATUS = 3
    EVENT = 4


Waiter = tuple[Priority, int, asyncio.Future[None]]  # the number keeps the order of arrival


class Budget:
    """A token bucket: `per_s` requests per second in the long run, `burst` of them at once."""

    def __init__(self, per_s: float = 50.0, burst: float = 100.0) -> None:
        self.per_s, self.burst = per_s, burst
        self.spent = 0
        self.waited_s = 0.0
        self._tokens = burst
        self._filled_at: float | None = None
        self._waiting: dict[str, list[Waiter]] = {}  # heaps by namespace, in the order of their turns
        self._numbers = count()
        self._timer: asyncio.TimerHandle | None = None

    async def take(self, namespace: str = "", priority: Priority = Priority.READ) -> None:
        """Pay for one request, waiting for its turn when the bucket is empty."""
        loop = asyncio.get_running_loop()
        self._fill(loop.time())
        if not self._waiting and self._tokens >= 1:
            self._spend()
            return
        asked_at, turn = loop.time(), loop.create_future()
        heapq.heappush(self._waiting.setdefault(namespace, []), (priority, next(self._numbers), turn))
        self._wake()
        try:
            await turn
        finally:
            self.waited_s += loop.time() - asked_at

    def _spend(self) -> None:
        self._tokens -= 1
        self.spent += 1

    def _fill(self, now: float) -> None:
        since_s = 0.0 if self._filled_at is None else now - self._filled_at
        self._tokens = min(self.burst, self._tokens + max(0.0, since_s) * self.per_s)
        self._filled_at = now

    def _wake(self) -> None:
        """Look again when the next token is there."""
        if self._waiting and self._timer is None:
            wait_s = max(0.0, 1 - self._tokens) / self.per_s
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._serve)

    def _serve(self) -> None:
        self._timer = None
        self._fill(asyncio.get_running_loop().time())
        while self._waiting and self._tokens > 1 - 1e-9:  # a timer may wake a hair early
            turn = self._next()
            if not turn.done():  # else its request was given up
                self._spend()
                turn.set_result(None)
        self._wake()

    def _next(self) -> asyncio.Future[None]:
        fair = self.spent % FAIR_TURN == 0
        namespace = next(iter(self._waiting)) if fair else min(self._waiting, key=self._first_priority)
        heap = self._waiting.pop(namespace)
        turn = heapq.heappop(heap)[2]
        if heap:
            self._waiting[namespace] = heap  # now at the end of the round
        return turn

    def _first_priority(self, namespace: str) -> Priority:
        return self._waiting[namespace][0][0]


class Backoff:
    """Doubling pauses with jitter, so that the clients of a restarted server do not come back all at once."""

    def __init__(self, first_s: float = 0.2, most_s: float = 10.0) -> None:
        self.first_s, self.most_s = first_s, most_s
        self.failures = 0

    def reset(self) -> None:
        self.failures = 0

    async def pause(self) -> None:
        longest_s = min(self.most_s, self.first_s * 2.0 ** min(self.failures, 30))
        self.failures += 1
        await asyncio.sleep(longest_s * random.uniform(0.5, 1.0))  # noqa: S311 (jitter, no secret)


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

    def some_below_share(self) -> bool:
        """Whether a namespace waits that has less than its share."""
        return any(self._taken[namespace] < self.share for namespace in self._waiting)

    def _next(self) -> str:
        if len(self._waiting) == 1:
            return next(iter(self._waiting))
        within = (namespace for namespace in self._waiting if self._taken[namespace] < self.share)
        return next(within, next(iter(self._waiting)))


class Turns:
    """`at_once` places, of which one namespace gets `share` while others wait.

    The last `kept` places are for namespaces that have less than their share, though nobody else waits.
    """

    def __init__(self, at_once: int = AT_ONCE, share: int = SHARE, kept: int = 0) -> None:
        self._free, self._kept = at_once, kept
        self._queue: Queue[asyncio.Future[None]] = Queue(share)
        self._served: asyncio.Handle | None = None

    @asynccontextmanager
    async def turn(self, namespace: str) -> AsyncIterator[None]:
        """A place while the context lasts."""
        await self._enter(namespace)
        try:
            yield
        finally:
            self._leave(namespace)

    async def _enter(self, namespace: str) -> None:
        """Served in the next round of the loop: those who come together wait together, whoever is first."""
        turn = asyncio.get_running_loop().create_future()
        self._queue.put(namespace, turn)
        self._serve_soon()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # given a place and cancelled in the same moment
                self._leave(namespace)
            raise

    def _leave(self, namespace: str) -> None:
        self._free += 1
        self._queue.give_back(namespace)
        self._serve_soon()

    def _serve_soon(self) -> None:
        if self._served is None and self._queue:
            self._served = asyncio.get_running_loop().call_soon(self._serve)

    def _serve(self) -> None:
        self._served = None
        while self._free and self._queue and (self._free > self._kept or self._queue.some_below_share()):
            namespace, turn = self._queue.take()
            if turn.done():  # it was given up
                self._queue.give_back(namespace)
                continue
            self._free -= 1
            turn.set_result(None)
