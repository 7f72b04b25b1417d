"""Send requests to one Access: paid from the budget, counted, and repeated only where repeating is safe.

Safe are reads, anything the server refused to take on (429), and anything that never left us (no connection). A write
whose answer was lost is not repeated here: it may have happened. No write leaves after the fence, and none is waited
for: the seconds for which this operator surely leads are asked for when the bytes go, not when the request queues.

A `Transport` carries one request and its answer: aiohttp, or anything of the same shape. It raises `NotConnected` when
nothing left us, TimeoutError when time ran out, and OSError for the rest.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from types import TracebackType
from typing import Any, Protocol, Self

import aiohttp
import msgspec
from yarl import URL

from trimtab.errors import NotLeading, Unavailable, quoted, without_credentials
from trimtab.wire.access import Access
from trimtab.wire.budget import Backoff, Budget, Priority
from trimtab.wire.clock import ServerClock
from trimtab.wire.decode import decode

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


ATTEMPTS = 4
LONGEST_WAIT_S = 10.0  # a server that wants a longer pause is unavailable for this tick
ANSWER_BYTES = 8 * 2**20  # more than any object of Kubernetes; whoever asks for more says how much
LONGEST_SENTENCE = 240  # characters: quotas and webhooks explain themselves at length
ERROR_BYTES = 64 * 2**10  # enough of an answer that says no
FAULTS = (TimeoutError, OSError)
CONNECT_S = 10.0
# Servers gzip large answers for whoever accepts it: 1.6x the CPU here and up to 5x the time there.
HEADERS = {"Accept-Encoding": "identity", "User-Agent": "trimtab"}
# As plain numbers: every answer is compared with them, and a member of this enumeration is looked up each time.
OK, UNAUTHORIZED, TOO_MANY = int(HTTPStatus.OK), int(HTTPStatus.UNAUTHORIZED), int(HTTPStatus.TOO_MANY_REQUESTS)
REDIRECTION, SERVER_ERROR = int(HTTPStatus.MULTIPLE_CHOICES), int(HTTPStatus.INTERNAL_SERVER_ERROR)
log = logging.getLogger(__name__)

Fence = Callable[[], float]  # the seconds for which we may still write; none are left: 0 or less
Brake = Callable[[], bool]  # somebody holds it: nothing is written but status


class Request(msgspec.Struct, frozen=True):
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
    accept: str = "application/json"
    most_bytes: int = ANSWER_BYTES  # a longer answer is not read to its end

    @property
    def reads(self) -> bool:
        return self.verb in ("get", "list", "watch")

    @property
    def only_tells(self) -> bool:
        return self.path.endswith("/status")


class Answer(msgspec.Struct, frozen=True):
    status: int
    reason: str
    body: bytes
    wait_s: float  # what Retry-After asks for; 0 when it is absent

    @property
    def is_refusal_to_work(self) -> bool:
        """The server is in trouble or wants less of us, whatever was asked."""
        return self.status >= SERVER_ERROR or self.status == TOO_MANY

    @property
    def said(self) -> str:
        """Why, in the server's words: a sentence that is marked as one. The rest of a body is nobody's business."""
        try:
            status: Status = decode(self.body, Status)
        except msgspec.MsgspecError:
            return quoted(self.reason)
        return quoted(status.message or status.error or self.reason, LONGEST_SENTENCE)


class Status(msgspec.Struct, frozen=True):
    """How a server says no: metav1.Status has a message, a reason and a code, Prometheus' answer an error."""

    message: str = ""
    error: str = ""
    reason: str = ""
    code: int = 0


class Http:
    """One session to one Access.

    `unavailable` is the error that says this server did not answer, `too_long` that its answer was not read.
    """

    def __init__(
        self,
        access: Access,
        unavailable: type[Unavailable],
        too_long: type[Unavailable],
        budget: Budget | None,
        timeout_s: float,
        fence: Fence | None = None,
        brake: Brake = lambda: False,
    ) -> None:
        self.access, self.fence, self.brake = access, fence, brake
        self.unavailable, self.too_long = unavailable, too_long
        self._base = str(URL(access.url)).rstrip("/")
        self.budget = budget or Budget()
        self.timeout_s = timeout_s
        self.server_clock: ServerClock | None = None  # what compares our clock with the dates of answers
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
                answer = await self._ask(request)
                if answer.status == UNAUTHORIZED and self.access.forget():
                    answer = await self._ask(request)  # once more, with a new credential
            except FAULTS as fault:
                if last or not _repeatable(request, fault):
                    raise self._unreachable(fault) from fault
            else:
                if not answer.is_refusal_to_work:
                    return answer
                again = request.reads or answer.status == TOO_MANY
                if last or not again or answer.wait_s > LONGEST_WAIT_S:
                    raise self._unwilling(answer)
                await asyncio.sleep(answer.wait_s)
            await backoff.pause()
        raise AssertionError("the last attempt returns or raises")

    @asynccontextmanager
    async def stream(self, request: Request, silence_s: float) -> AsyncIterator[tuple[Answer, AsyncIterator[bytes]]]:
        """An answer without an end: its status (with the body, when it is an error), then its chunks."""
        try:
            for renewed in (False, True):
                outgoing = await self._outgoing(request, None, silence_s)
                async with self._counted(request, outgoing) as incoming:
                    if incoming.status == UNAUTHORIZED and not renewed and self.access.forget():
                        continue  # once more, with a new credential
                    yield await self._begun(incoming), _pieces(incoming)
                    return
        except FAULTS as fault:
            raise self._unreachable(fault) from fault

    async def _begun(self, incoming: Incoming) -> Answer:
        if incoming.status == OK:
            return Answer(OK, "", b"", 0.0)
        answer = await self._read(incoming, ERROR_BYTES)
        if answer.is_refusal_to_work:
            await asyncio.sleep(min(answer.wait_s, LONGEST_WAIT_S))
            raise self._unwilling(answer)
        return answer

    async def _ask(self, request: Request) -> Answer:
        outgoing, status = await self._outgoing(request, self.timeout_s, None), 0
        sent = self.server_clock.since_boot() if self.server_clock else 0.0
        try:
            async with self.transport.send(outgoing) as incoming:
                status = incoming.status
                if self.server_clock:
                    self.server_clock.heard(sent, incoming.headers.get("Date"))
                return await self._read(incoming, request.most_bytes)
        finally:
            self.counts[request.verb, request.resource, status] += 1

    @asynccontextmanager
    async def _counted(self, request: Request, outgoing: Outgoing) -> AsyncIterator[Incoming]:
        """Send a request whose answer goes on, and count it as soon as its status is known."""
        status = 0
        try:
            async with self.transport.send(outgoing) as incoming:
                status = incoming.status
                self.counts[request.verb, request.resource, status] += 1
                yield incoming
        finally:
            if not status:
                self.counts[request.verb, request.resource, status] += 1

    async def _outgoing(self, request: Request, total_s: float | None, silence_s: float | None) -> Outgoing:
        """Paid for, with a credential, and within the fence."""
        if self.fence is not None:
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
        if self.brake() and not request.only_tells:
            raise NotLeading("the installation is frozen: nothing was written")
        return left_s

    async def _read(self, incoming: Incoming, most_bytes: int) -> Answer:
        fine = incoming.status < REDIRECTION
        wait_s = 0.0 if fine else _retry_after_s(incoming.headers)
        pieces, size = [], 0
        while piece := await incoming.piece():
            pieces.append(piece)
            size += len(piece)
            if not fine and size > ERROR_BYTES:
                break
            if size > most_bytes:
                raise self.too_long(f"{self.address}: an answer of more than {most_bytes:,} bytes is not read")
        return Answer(incoming.status, incoming.reason, b"".join(pieces), wait_s)

    async def _options(self, request: Request) -> dict[str, Any]:
        options = await self.access.options()
        options["headers"] |= HEADERS
        options["headers"]["Accept"] = request.accept
        if request.body is not None:
            options["headers"]["Content-Type"] = request.content_type
        return options

    def _unreachable(self, fault: BaseException) -> Unavailable:
        said = quoted(str(fault) or type(fault).__name__)
        return self.unavailable(f"{self.address}: no answer ({said}); nothing is changed until it is back")

    def _unwilling(self, answer: Answer) -> Unavailable:
        log.debug("%s: %s %r", self.address, answer.status, answer.body[:300])
        return self.unavailable(f"{self.address}: {answer.status} {answer.said}")

    @property
    def address(self) -> str:
        return without_credentials(self.access.url)


async def _pieces(incoming: Incoming) -> AsyncIterator[bytes]:
    while piece := await incoming.piece():
        yield piece


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
    except (ValueError, KeyError, TypeError, OverflowError):
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
