"""Carries requests to a server in this process: below all of our own client code, above nothing."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextvars import Context
from types import TracebackType
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qsl, urlsplit

from tests.virtual.apiserver import ApiServer, Call, Denied, Reply, place_of, selector, status_body
from tests.virtual.weather import PAGE, Processes, Weather
from trimtab.wire.http import Incoming, Outgoing


class Answers(Protocol):
    def handle(self, call: Call) -> Reply: ...


class Link(NamedTuple):
    """Between one client and one server."""

    server: Answers
    who: str
    weather: Weather | None = None
    processes: Processes | None = None

    def transport(self) -> InProcess:
        return InProcess(self)


class InProcess:
    def __init__(self, link: Link) -> None:
        self.link = link

    def send(self, outgoing: Outgoing) -> Sent:
        return Sent(self.link, outgoing)

    async def close(self) -> None:
        pass


class Whole:
    """An answer that is there at once."""

    def __init__(self, reply: Reply) -> None:
        self.status, self._body, self.headers = reply
        self.reason = ""

    async def piece(self) -> bytes:
        body, self._body = self._body, b""
        return body


class Opened:
    status, reason, headers = 200, "", dict[str, str]()

    def __init__(self, piece: Callable[[], Coroutine[Any, Any, bytes]]) -> None:
        self.piece = piece


class Sent:
    """One request under way; leaving it closes a stream."""

    def __init__(self, link: Link, outgoing: Outgoing) -> None:
        self.link, self.outgoing = link, outgoing
        self._close: Callable[[], None] | None = None

    async def __aenter__(self) -> Incoming:
        link, outgoing = self.link, self.outgoing
        path = urlsplit(outgoing.url).path
        headers = outgoing.options["headers"]
        kind, accept = headers.get("Content-Type", ""), headers["Accept"]
        call = Call(link.who, outgoing.method, path, outgoing.params or {}, outgoing.body, kind, accept)
        if link.weather is None or link.processes is None or not link.weather.faults:
            await _next_turn()
            return self._answered(call)
        async with asyncio.timeout(outgoing.total_s):
            under_way = self._under_way(call, link.weather, link.processes)
            if not link.weather.stands_still:
                return await under_way
            # What has left goes on while its sender stands still.
            return await asyncio.get_running_loop().create_task(under_way, context=Context())

    async def _under_way(self, call: Call, weather: Weather, processes: Processes) -> Incoming:
        server = self.link.server
        plural = "prometheus" if not isinstance(server, ApiServer) else _plural(call.path)
        reply = await weather.before(call, plural, processes)
        if reply is not None:
            if isinstance(server, ApiServer):
                server.note(call, call.method.lower(), None, 0 if reply is PAGE else reply.status)
            return Whole(reply)
        await asyncio.sleep(0)
        answered = self._answered(call)
        await weather.after(call, plural, processes)
        return answered

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._close is not None:
            self._close()

    def _answered(self, call: Call) -> Incoming:
        server, weather = self.link.server, self.link.weather
        if weather is not None and call.who in weather.dead:
            raise ConnectionError("the process is gone")
        if isinstance(server, ApiServer) and call.params.get("watch") == "true":
            return self._watch(server, call)
        return Whole(server.handle(call))

    def _watch(self, server: ApiServer, call: Call) -> Incoming:
        try:
            held, keep = server.collection(call.path), selector(place_of(call.path).namespace, call.params)
            if call.params.get("sendInitialEvents") and not server.streams_lists:
                raise Denied(422, "Invalid", "sendInitialEvents: Forbidden")
        except Denied as denied:
            server.note(call, "watch", None, denied.reply.status)
            return Whole(denied.reply)
        server.note(call, "watch", None, 200)
        stream, self._close = server.watching.open(call.who, held, call.params, keep, self.outgoing.silence_s)
        return Opened(stream.piece)


@types.coroutine
def _next_turn() -> Generator[None]:
    """No answer is there at once."""
    yield


def _plural(path: str) -> str:
    try:
        return place_of(path).plural
    except Denied:
        return ""


def form(call: Call) -> Mapping[str, Any]:
    """The fields of a POSTed form, or of the query."""
    return dict(parse_qsl(call.body.decode())) if call.body else call.params


__all__ = ["InProcess", "Link", "form", "status_body"]
