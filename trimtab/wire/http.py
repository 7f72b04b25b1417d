"""Requests to one Access: paid from the budget, counted, and repeated only where repeating is safe.

Safe: a read; anything the server refused to take on (429), or that never left us (no connection).
A write whose answer was lost is not repeated here: it may have happened.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, NamedTuple

import aiohttp

from trimtab.errors import Unavailable
from trimtab.wire.access import Access
from trimtab.wire.budget import Backoff, Budget

ATTEMPTS = 4
LONGEST_WAIT_S = 10.0  # a server that wants a longer pause is unavailable for this tick
FAULTS = (aiohttp.ClientError, TimeoutError, OSError)


class Request(NamedTuple):
    """What is asked, and under which verb and resource it is counted."""

    verb: str
    resource: str
    method: str
    path: str
    params: Mapping[str, str] | None = None
    body: bytes | None = None
    content_type: str = "application/json"

    @property
    def reads(self) -> bool:
        return self.verb in ("get", "list", "watch")


class Answer(NamedTuple):
    status: int
    reason: str
    body: bytes
    wait_s: float  # what Retry-After asks for; 0 when it is absent

    @property
    def is_refusal_to_work(self) -> bool:
        """The server is in trouble or wants less of us, whatever was asked."""
        return self.status >= HTTPStatus.INTERNAL_SERVER_ERROR or self.status == HTTPStatus.TOO_MANY_REQUESTS

    @property
    def text(self) -> str:
        """The beginning of the body, for a message."""
        return self.body[:300].decode(errors="replace").strip()


class Http:
    """One session to one Access. `unavailable` is the error that says this server did not answer."""

    def __init__(self, access: Access, unavailable: type[Unavailable], budget: Budget | None, timeout_s: float) -> None:
        self.access, self.unavailable = access, unavailable
        self.budget = budget or Budget()
        self.timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=min(timeout_s, 10.0))
        self.counts: Counter[tuple[str, str, int]] = Counter()  # by verb, resource and status; 0: no answer
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(self, request: Request) -> Answer:
        """The answer, if its status is below 500; no answer, 5xx and an endless 429 raise `unavailable`."""
        backoff = Backoff()
        for attempt in range(1, ATTEMPTS + 1):
            last = attempt == ATTEMPTS
            try:
                async with self._open(request, self.timeout) as response:
                    answer = await _read(response)
            except FAULTS as fault:
                if last or not _repeatable(request, fault):
                    raise self._unreachable(fault) from fault
            else:
                if not answer.is_refusal_to_work:
                    return answer
                again = request.reads or answer.status == HTTPStatus.TOO_MANY_REQUESTS
                if last or not again or answer.wait_s > LONGEST_WAIT_S:
                    raise self._unwilling(answer)
                await asyncio.sleep(answer.wait_s)
            await backoff.pause()
        raise AssertionError("the last attempt returns or raises")

    @asynccontextmanager
    async def stream(self, request: Request, silence_s: float) -> AsyncIterator[tuple[Answer, AsyncIterator[bytes]]]:
        """An answer without an end: its status (with the body, when it is an error), then its chunks."""
        try:
            async with self._open(request, aiohttp.ClientTimeout(sock_connect=10.0, sock_read=silence_s)) as response:
                answer = (
                    await _read(response) if response.status != HTTPStatus.OK else Answer(HTTPStatus.OK, "", b"", 0.0)
                )
                if answer.is_refusal_to_work:
                    await asyncio.sleep(min(answer.wait_s, LONGEST_WAIT_S))
                    raise self._unwilling(answer)
                yield answer, response.content.iter_any()
        except FAULTS as fault:
            raise self._unreachable(fault) from fault

    @asynccontextmanager
    async def _open(self, request: Request, timeout: aiohttp.ClientTimeout) -> AsyncIterator[aiohttp.ClientResponse]:
        """One request, and a second one with a new credential when the first was met with 401."""
        for renewed in (False, True):
            async with await self._start(request, timeout) as response:
                if renewed or response.status != HTTPStatus.UNAUTHORIZED or not self.access.forget():
                    yield response
                    return

    async def _start(self, request: Request, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        await self.budget.take()
        options = await self._options(request)
        url, status = self.access.url + request.path, 0
        try:
            response = await self._live_session().request(request.method, url, timeout=timeout, **options)
            status = response.status
        finally:
            self.counts[request.verb, request.resource, status] += 1
        return response

    async def _options(self, request: Request) -> dict[str, Any]:
        options = await self.access.options()
        # Servers gzip large answers for whoever accepts it: 1.6x the CPU here and up to 5x the time there.
        options["headers"] |= {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "trimtab",
        }
        if request.body is not None:
            options["headers"]["Content-Type"] = request.content_type
        return options | {"params": request.params, "data": request.body, "allow_redirects": False}

    def _live_session(self) -> aiohttp.ClientSession:
        if self._session is None:  # made inside the running loop, not when the object is
            connector = aiohttp.TCPConnector(limit=32)
            self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self._session

    def _unreachable(self, fault: BaseException) -> Unavailable:
        said = str(fault) or type(fault).__name__
        return self.unavailable(f"{self.access.url}: no answer ({said}); nothing is changed until it is back")

    def _unwilling(self, answer: Answer) -> Unavailable:
        return self.unavailable(f"{self.access.url}: {answer.status} {answer.reason}: {answer.text or 'no text'}")


def _repeatable(request: Request, fault: BaseException) -> bool:
    """Who was too slow once is not helped by being asked again."""
    if isinstance(fault, TimeoutError):
        return False
    return request.reads or isinstance(fault, aiohttp.ClientConnectorError)


async def _read(response: aiohttp.ClientResponse) -> Answer:
    wait_s = _retry_after_s(response.headers.get("Retry-After", ""))
    return Answer(response.status, response.reason or "", await response.read(), wait_s)


def _retry_after_s(written: str) -> float:
    """Seconds or an HTTP date: RFC 9110 10.2.3 allows both."""
    try:
        return max(0.0, float(written))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(written).timestamp() - time.time())
    except ValueError:
        return 0.0
