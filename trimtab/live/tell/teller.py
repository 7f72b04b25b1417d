"""teller: what a tick has to say is said after it, behind everybody's writes, and never keeps the next tick waiting."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from trimtab.errors import NotLeading, TrimtabError

AT_ONCE = 16  # requests under way
Say = Callable[[], Awaitable[None]]
log = logging.getLogger(__name__)


class Teller:
    """Holds one word per key, the newest: who changes all the time keeps its place and says only the last."""

    def __init__(self) -> None:
        self._waiting: dict[str, Say] = {}
        self._speaking: asyncio.Task[None] | None = None

    def later(self, key: str, say: Say) -> None:
        self._waiting[key] = say

    def begin(self) -> None:
        """Say what waits, in the background."""
        if self._waiting and (self._speaking is None or self._speaking.done()):
            self._speaking = asyncio.create_task(self._speak())

    async def finish(self) -> None:
        """Until nothing waits."""
        while self._waiting or (self._speaking is not None and not self._speaking.done()):
            self.begin()
            if self._speaking is not None:
                await asyncio.shield(self._speaking)

    async def close(self) -> None:
        self._waiting.clear()
        if self._speaking is not None:
            self._speaking.cancel()
            with suppress(asyncio.CancelledError):
                await self._speaking

    async def _speak(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(AT_ONCE, len(self._waiting))):
                group.create_task(self._say_all())

    async def _say_all(self) -> None:
        while self._waiting:
            key = next(iter(self._waiting))
            await _said(key, self._waiting.pop(key))


async def _said(key: str, say: Say) -> None:
    """What cannot be said is no failure of the object: the next tick says it again."""
    try:
        await say()
    except NotLeading:
        pass
    except (TrimtabError, OSError) as error:
        log.warning("%s: it cannot be told: %s", key, error)
    except Exception:
        log.exception("%s: it cannot be told: a bug of trimtab", key)
