"""background: one piece of work at a time beside the ticks, which never wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class Background:
    """Ask `idle` before the next `start`."""

    def __init__(self) -> None:
        self._work: asyncio.Task[None] | None = None

    @property
    def idle(self) -> bool:
        return self._work is None or self._work.done()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        self._work = asyncio.create_task(work)

    async def finished(self) -> None:
        """The end of what is under way."""
        if self._work is not None:
            await self._work

    def close(self) -> None:
        if self._work is not None:
            self._work.cancel()
