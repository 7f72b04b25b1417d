"""What carries one request and its answer: aiohttp, or anything else of the same shape below all of our own code.

A transport raises `NotConnected` when nothing left us, TimeoutError when time ran out, and OSError for the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, Protocol

import aiohttp
import msgspec
from yarl import URL

CONNECTIONS = 128  # more than is ever under way at once: no write waits for somebody's slow answer


class NotConnected(ConnectionError):
    """The request never left: it may be repeated, whatever it asks for."""


class Outgoing(msgspec.Struct, frozen=True):
    """One request; `options` are those of its Access: headers, and how to get there."""

    method: str
    url: str
    params: Mapping[str, str] | None
    body: bytes | None
    options: dict[str, Any]
    total_s: float | None = None  # for all of it; None: as long as it goes on
    connect_s: float = 10.0
    silence_s: float | None = None  # between two pieces


class Incoming(Protocol):
    """An answer: its status and headers are there, its body comes in pieces."""

    @property
    def status(self) -> int: ...

    @property
    def reason(self) -> str: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def piece(self) -> bytes:
        """The next one; an empty one after the last."""


class Transport(Protocol):
    def send(self, outgoing: Outgoing) -> AbstractAsyncContextManager[Incoming]:
        """The answer while the context lasts; leaving it drops what was not read."""

    async def close(self) -> None: ...


class AiohttpTransport:
    """One session, opened inside the running loop by its first request."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def send(self, outgoing: Outgoing) -> AsyncIterator[Incoming]:
        # Once something like 103 Early Hints has come, aiohttp waits for the answer itself without an end.
        with _translated():
            async with asyncio.timeout(outgoing.silence_s):
                answer = await self._live_session().request(
                    outgoing.method,
                    URL(outgoing.url, encoded=True),
                    params=outgoing.params,
                    data=outgoing.body,
                    timeout=_timeout(outgoing),
                    allow_redirects=False,
                    **outgoing.options,
                )
        async with answer:
            yield AiohttpIncoming(answer)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _live_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=CONNECTIONS)
            self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self._session


class AiohttpIncoming:
    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer
        self.status, self.reason, self.headers = answer.status, answer.reason or "", answer.headers

    async def piece(self) -> bytes:
        with _translated():
            return await self._answer.content.readany()


def _timeout(outgoing: Outgoing) -> aiohttp.ClientTimeout:
    """To the millisecond: aiohttp would round long ones up to whole seconds, beyond a fence."""
    return aiohttp.ClientTimeout(
        total=outgoing.total_s,
        sock_connect=outgoing.connect_s,
        sock_read=outgoing.silence_s,
        ceil_threshold=float("inf"),
    )


@contextmanager
def _translated() -> Iterator[None]:
    """Whatever aiohttp raises, in the words of every transport: an answer that it cannot make sense of is none."""
    try:
        yield
    except aiohttp.ClientConnectorError as fault:
        raise NotConnected(str(fault)) from fault
    except TimeoutError:
        raise
    except Exception as fault:
        raise ConnectionError(str(fault) or type(fault).__name__) from fault
