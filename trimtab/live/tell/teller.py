"""teller: what a tick has to say is said after it, behind everybody's writes, and never keeps the next tick waiting."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from trimtab.errors import NotLeading, TrimtabError
from trimtab.ticks import ObjectName
from trimtab.wire.budget import Turns

Say = Callable[[], Awaitable[None]]
log = logging.getLogger(__name__)


class Word(NamedTuple):
    about: ObjectName
    say: Say


class Teller:
    """Holds one word per key, the newest: who changes all the time keeps its place and says only the last."""

    def __init__(self) -> None:
        self._words: dict[str, Word] = {}
        self._speaking: dict[str, asyncio.Task[None]] = {}
        self._failing: dict[str, tuple[str, int]] = {}  # the last trouble of each, and how often in a row
        self._turns, self._may_speak = Turns(), asyncio.Event()
        self._may_speak.set()

    def later(self, about: ObjectName, key: str, say: Say) -> None:
        """Namespaces take turns: nobody's slow answers keep another's word waiting."""
        self._words[key] = Word(about, say)

    def drop(self, key: str) -> None:
        """What waited to be said is no longer so."""
        self._words.pop(key, None)

    @contextmanager
    def silent(self, longest_s: float) -> Iterator[None]:
        """Nobody begins to speak: a busy API server has its time for scalings; whoever is slow, no longer than this."""
        self._may_speak.clear()
        timer = asyncio.get_running_loop().call_later(longest_s, self._may_speak.set)
        try:
            yield
        finally:
            timer.cancel()
            self._may_speak.set()

    def begin(self) -> None:
        """Say what waits, in the background."""
        for key in [key for key in self._words if key not in self._speaking]:
            self._speaking[key] = asyncio.create_task(self._speak(key, self._words[key].about.namespace))

    def forget(self, uids: set[str]) -> None:
        """All but these are gone."""
        self._failing = {key: failure for key, failure in self._failing.items() if key in uids}

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
                await self._may_speak.wait()
                if word := self._words.pop(key, None):
                    await self._said(key, word)
        finally:
            self._speaking.pop(key, None)

    async def _said(self, key: str, word: Word) -> None:
        """What cannot be said is no failure of the object: the next tick says it again."""
        try:
            await word.say()
            self._failing.pop(key, None)
        except NotLeading:
            pass
        except (TrimtabError, OSError) as error:
            self._log(key, word.about, str(error))
        except Exception:
            log.exception("%s: it cannot be told: a bug of trimtab", word.about)

    def _log(self, key: str, about: ObjectName, trouble: str) -> None:
        """The same trouble the 1st, 10th, 100th time."""
        before, count = self._failing.get(key, ("", 0))
        count = count + 1 if before == trouble else 1
        self._failing[key] = (trouble, count)
        if str(count).strip("0") == "1":
            log.warning("%s: it cannot be told: %s%s", about, trouble, f" ({count} times)" if count > 1 else "")
