"""Requests to one Access: paid from the budget, counted, and repeated only where repeating is safe.

Safe: a read; anything the server refused to take on (429), or that never left us (no connection).
A write whose answer was lost is not repeated here: it may have happened. No write leaves, and none is waited for, after
the fence: the seconds for which we surely lead are asked for when the bytes go, not when the request queues.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec
from yarl import URL

from trimtab.errors import NotLeading, Unavailable, quoted, without_credentials
from trimtab.wire.access import Access
from trimtab.wire.budget import Backoff, Budget, Priority
from trimtab.wire.decode import decode
from trimtab.wire.transport import AiohttpTransport, Incoming, NotConnected, Outgoing

ATTEMPTS = 4
LONGEST_WAIT_S = 10.0  # a server that wants a longer pause is unavailable for this tick
ANSWER_BYTES = 256 * 2**20  # more than any page or query we ask for; a larger answer is not read
LONGEST_SENTENCE = 240  # characters: quotas and webhooks explain themselves at length
ERROR_BYTES = 64 * 2**10  # enough of an answer that says no
FAULTS = (TimeoutError, OSError)
CONNECT_S = 10.0
log = logging.getLogger(__name__)

Fence = Callable[[], float]  # the seconds for which we may still write; none are left: 0 or less


class Request(NamedTuple):
    """What is asked, and under which verb and resource it is counted."""

    verb: str
    resource: str
    method: str
    path: str
    params: Mapping[str, str] | None = None
    body: bytes | None = None
    content_type: str = "application/json"
    namespace: str = ""  # whose turn it takes
    priority: Priority = Priority.READ

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
    def said(self) -> str:
        """Why, in the server's words: a sentence that is marked as one. The rest of a body is nobody's business."""
        try:
            complaint: Complaint = decode(self.body, Complaint)
        except msgspec.MsgspecError:
            return quoted(self.reason)
        return quoted(complaint.message or complaint.error or self.reason, LONGEST_SENTENCE)


class Complaint(msgspec.Struct, frozen=True):
    """metav1.Status has a message, Prometheus' answer an error."""

    message: str = ""
    error: str = ""


class Http:
    """One session to one Access. `unavailable` is the error that says this server did not answer."""

    def __init__(
        self,
        access: Access,
        unavailable: type[Unavailable],
        budget: Budget | None,
        timeout_s: float,
        fence: Fence | None = None,
    ) -> None:
        self.access, self.unavailable, self.fence = access, unavailable, fence
        self._base = str(URL(access.url)).rstrip("/")
        self.budget = budget or Budget()
        self.timeout_s = timeout_s
        self.counts: Counter[tuple[str, str, int]] = Counter()  # by verb, resource and status; 0: no answer
        self.transport = (access.transport or AiohttpTransport)()

    async def close(self) -> None:
        await self.transport.close()

    async def send(self, request: Request) -> Answer:
        """The answer, if its status is below 500; no answer, 5xx and an endless 429 raise `unavailable`."""
        backoff = Backoff()
        for attempt in range(1, ATTEMPTS + 1):
            last = attempt == ATTEMPTS
            try:
                async with self._open(request, self.timeout_s) as incoming:
                    answer = await self._read(incoming)
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
            async with self._open(request, None, silence_s) as incoming:
                opened = Answer(incoming.status, "", b"", 0.0)
                answer = opened if incoming.status == HTTPStatus.OK else await self._read(incoming)
                if answer.is_refusal_to_work:
                    await asyncio.sleep(min(answer.wait_s, LONGEST_WAIT_S))
                    raise self._unwilling(answer)
                yield answer, incoming.pieces()
        except FAULTS as fault:
            raise self._unreachable(fault) from fault

    @asynccontextmanager
    async def _open(
        self, request: Request, total_s: float | None, silence_s: float | None = None
    ) -> AsyncIterator[Incoming]:
        """One request, and a second one with a new credential when the first was met with 401."""
        for renewed in (False, True):
            outgoing, status = await self._outgoing(request, total_s, silence_s), 0
            async with AsyncExitStack() as opened:
                try:
                    incoming = await opened.enter_async_context(self.transport.send(outgoing))
                    status = incoming.status
                finally:
                    self.counts[request.verb, request.resource, status] += 1
                if renewed or status != HTTPStatus.UNAUTHORIZED or not self.access.forget():
                    yield incoming
                    return

    async def _outgoing(self, request: Request, total_s: float | None, silence_s: float | None) -> Outgoing:
        """Paid for, with a credential, and within the fence."""
        self._time_left(request)  # what could not leave now need not queue
        await self.budget.take(request.namespace, request.priority)
        options = await self._options(request)
        left_s = self._time_left(request)
        if left_s is not None and total_s is not None:
            total_s = min(left_s, total_s)
        connect_s = CONNECT_S if total_s is None else min(total_s, CONNECT_S)
        url = self._base + request.path
        return Outgoing(request.method, url, request.params, request.body, options, total_s, connect_s, silence_s)

    def _time_left(self, request: Request) -> float | None:
        """The seconds this request may take; None: as many as it likes."""
        if self.fence is None or request.reads:
            return None
        left_s = self.fence()
        if left_s <= 0:
            raise NotLeading("the lease may have passed to another operator: nothing was written")
        return left_s

    async def _read(self, incoming: Incoming) -> Answer:
        wait_s = _retry_after_s(incoming.headers)
        fine = incoming.status < HTTPStatus.MULTIPLE_CHOICES
        pieces, size = [], 0
        async for piece in incoming.pieces():
            pieces.append(piece)
            size += len(piece)
            if size > ANSWER_BYTES:
                raise self.unavailable(f"{self._here}: an answer of more than {ANSWER_BYTES:,} bytes is not read")
            if not fine and size > ERROR_BYTES:
                break
        return Answer(incoming.status, incoming.reason, b"".join(pieces), wait_s)

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
        return options

    def _unreachable(self, fault: BaseException) -> Unavailable:
        said = quoted(str(fault) or type(fault).__name__)
        return self.unavailable(f"{self._here}: no answer ({said}); nothing is changed until it is back")

    def _unwilling(self, answer: Answer) -> Unavailable:
        log.debug("%s: %s %r", self._here, answer.status, answer.body[:300])
        return self.unavailable(f"{self._here}: {answer.status} {answer.said}")

    @property
    def _here(self) -> str:
        return without_credentials(self.access.url)


def _repeatable(request: Request, fault: BaseException) -> bool:
    """Who was too slow once is not helped by being asked again."""
    if isinstance(fault, TimeoutError):
        return False
    return request.reads or isinstance(fault, NotConnected)


def _retry_after_s(headers: Mapping[str, str]) -> float:
    """Seconds or an HTTP date: RFC 9110 10.2.3 allows both. A date is counted from the server's own, not from ours."""
    written = headers.get("Retry-After")
    if written is None:
        return 0.0
    try:
        return max(0.0, float(written))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(written) - parsedate_to_datetime(headers["Date"])).total_seconds())
    except (ValueError, KeyError, TypeError):
        return 0.0


class OverHttp:
    """Who asks one server; as a context, it is closed at the end."""

    http: Http

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self.http.close()
