"""teller: what a tick has to say is said after it, behind everybody's writes, and never keeps the next tick waiting."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from trimtab.errors import NotLeading, TrimtabError
from trimtab.wire.turns import Turns

Say = Callable[[], Awaitable[None]]
log = logging.getLogger(__name__)


class Teller:
    """Holds one word per key, the newest: who changes all the time keeps its place and says only the last."""

    def __init__(self) -> None:
        self._words: dict[str, tuple[str, Say]] = {}
        self._speaking: dict[str, asyncio.Task[None]] = {}
        self._turns = Turns()

    def later(self, namespace: str, key: str, say: Say) -> None:
        """Namespaces take turns: nobody's slow answers keep another's word waiting."""
        self._words[key] = (namespace, say)

    def begin(self) -> None:
        """Say what waits, in the background."""
        for key in [key for key in self._words if key not in self._speaking]:
            self._speaking[key] = asyncio.create_task(self._speak(key, self._words[key][0]))

    async def finish(self) -> None:
        """Until nothing waits."""
        while self._words or self._speaking:
            self.begin()
            await asyncio.wait(self._speaking.values())

    async def close(self) -> None:
        self._words.clear()
        for task in self._speaking.values():
            task.cancel()
        await asyncio.gather(*self._speaking.values(), return_exceptions=True)

    async def _speak(self, key: str, namespace: str) -> None:
        try:
            async with self._turns.turn(namespace):
                _, say = self._words.pop(key)
                await _said(key, say)
        finally:
            self._speaking.pop(key, None)


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
