"""background: the one scheduler of what happens beside the ticks: advice, nights, read-back and checkpoints.

Each kind of work has a lane of its own, because the kinds wait for different servers. In a lane namespaces take turns,
the last free place is kept for a namespace that has none, and a job that takes too long is ended. So however many and
however slow the jobs of one namespace are, those of the others begin. Seconds are counted per namespace.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from trimtab.errors import Unavailable
from trimtab.wire.budget import Queue, Turns

Answer = TypeVar("Answer")
Item = TypeVar("Item")
LONGEST_WAIT_S = 30.0  # of one round for another
MOST_NAMESPACES = 10_000  # of which seconds are counted


class TookTooLong(Unavailable):
    """A job was ended because it held its place for longer than any may."""


class Lane:
    """`at_once` places for one kind of work; a job holds its place for `limit_s` at most."""

    def __init__(self, name: str, at_once: int, limit_s: float) -> None:
        self.name, self.at_once, self.limit_s = name, at_once, limit_s
        self.spent_s: dict[str, float] = {}  # by namespace
        self._turns = Turns(at_once, share=1, kept=1)

    async def do(self, namespace: str, work: Callable[[], Awaitable[Answer]]) -> Answer:
        """Wait for a turn of this namespace, then work."""
        loop = asyncio.get_running_loop()
        async with self._turns.turn(namespace):
            began = loop.time()
            try:
                async with asyncio.timeout(self.limit_s) as limit:
                    return await work()
            except TimeoutError as error:
                if not limit.expired():
                    raise
                text = f"{self.name}: not done after {self.limit_s:.0f} s, others of namespace {namespace} go first"
                raise TookTooLong(text) from error
            finally:
                self._count(namespace, loop.time() - began)

    def _count(self, namespace: str, seconds: float) -> None:
        if len(self.spent_s) >= MOST_NAMESPACES:
            self.spent_s.clear()  # who makes namespaces all day long does not fill our memory
        self.spent_s[namespace] = self.spent_s.get(namespace, 0.0) + seconds

    async def for_each_namespace(
        self, items: Iterable[Item], of: Callable[[Item], str], work: Callable[[list[Item]], Awaitable[Answer]]
    ) -> list[tuple[list[Item], Answer | BaseException]]:
        """One job per namespace over its items, with what came of it; who has used the least time is first."""
        groups: dict[str, list[Item]] = defaultdict(list)
        for item in items:
            groups[of(item)].append(item)
        order = sorted(groups, key=lambda namespace: self.spent_s.get(namespace, 0.0))
        jobs = (self.do(namespace, lambda own=groups[namespace]: work(own)) for namespace in order)  # type: ignore[misc]
        answers = await asyncio.gather(*jobs, return_exceptions=True)
        return [(groups[namespace], answer) for namespace, answer in zip(order, answers, strict=True)]


class Lanes(NamedTuple):
    """Of one operator. Chunks of advice are large: few are held at once."""

    advice: Lane
    read_back: Lane
    checkpoints: Lane

    @classmethod
    def new(cls) -> Lanes:
        return cls(Lane("advice", 3, 600.0), Lane("read-back", 6, 120.0), Lane("checkpoints", 4, 60.0))


def in_turns(items: Sequence[Item], of: Callable[[Item], str]) -> list[Item]:
    """The same items, one of each namespace after the other."""
    queue = Queue[Item](share=len(items))
    for item in items:
        queue.put(of(item), item)
    return [queue.take()[1] for _ in items]


class Background:
    """One round of work at a time beside the ticks, which never wait for it. Ask `idle` before the next `start`.

    A round begins when that of `after` is over.
    """

    def __init__(self) -> None:
        self._work: asyncio.Task[None] | None = None
        self.after: Background | None = None

    @property
    def idle(self) -> bool:
        return self._work is None or self._work.done()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        self._work = asyncio.create_task(work if self.after is None else self._follow_on(self.after, work))

    async def _follow_on(self, before: Background, work: Coroutine[Any, Any, None]) -> None:
        try:
            await before.round_over(LONGEST_WAIT_S)
            await work
        finally:
            work.close()

    async def finished(self) -> None:
        """The end of what is under way."""
        if self._work is not None:
            await self._work

    async def round_over(self, within_s: float) -> None:
        """Wait for the end of what is under way, for so long at most."""
        if self._work is not None:
            await asyncio.wait([self._work], timeout=within_s)

    def close(self) -> None:
        if self._work is not None:
            self._work.cancel()
