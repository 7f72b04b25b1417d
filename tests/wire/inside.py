"""A server in the same loop, without sockets, under the virtual clock: where a packet that is late would be a fault."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.virtual.apiserver import Reply
from tests.virtual.transport import Whole
from trimtab.wire.access import Access
from trimtab.wire.http import Incoming, Outgoing

FINE = Reply(200, b"{}")


class Inside:
    """Answers every request with `answer`, which may take its time; `access()` is the way to it."""

    def __init__(self, answer: Callable[[Outgoing], Awaitable[Reply]]) -> None:
        self.answer = answer

    def access(self, **more: Any) -> Access:
        return Access("http://inside", transport=lambda: self, **more)

    @asynccontextmanager
    async def send(self, outgoing: Outgoing) -> AsyncIterator[Incoming]:
        async with asyncio.timeout(outgoing.total_s):
            reply = await self.answer(outgoing)
        yield Whole(reply)

    async def close(self) -> None:
        pass
