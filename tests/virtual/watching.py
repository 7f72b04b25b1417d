"""Watches: streams of events from a version on, with bookmarks, an end, and the faults that befall them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from tests.virtual.fields import Object, encoded
from tests.virtual.objects import Collection, Happened, Objects, line_of
from trimtab.kinds.annotations import INITIAL_EVENTS_END

BOOKMARK_S = 60.0
Spoil = Callable[[str, str, bytes], list[bytes]]  # who, which feed, an event -> what is sent of it


class Stream:
    """One open watch; `piece` is what its client reads next."""

    def __init__(self, who: str, plural: str, silence_s: float | None) -> None:
        self.who, self.plural, self.silence_s = who, plural, silence_s
        self.ended = self.stalled = False
        self._waiting: list[bytes] = []
        self._wake: asyncio.Future[None] | None = None
        self._silent_since = 0.0
        self._timer: asyncio.TimerHandle | None = None  # of the silence, set again when it wakes, not with each wait

    def send(self, line: bytes) -> None:
        self._waiting.append(line)
        self.wake()

    def end(self) -> None:
        self.ended = True
        self.wake()

    def wake(self) -> None:
        if self._wake is not None and not self._wake.done() and not (self.stalled and not self.ended):
            self._wake.set_result(None)

    async def piece(self) -> bytes:
        """All that waits; nothing more after the end."""
        while not self._waiting or self.stalled:
            if self.ended:
                return b""
            self._wake = self._silence()
            try:
                await self._wake
            finally:
                self._wake = None
        sent, self._waiting = b"".join(self._waiting), []
        return sent

    def _silence(self) -> asyncio.Future[None]:
        """Until something comes, or too long."""
        loop = asyncio.get_running_loop()
        self._silent_since = loop.time()
        if self._timer is None and self.silence_s is not None:
            self._timer = loop.call_later(self.silence_s, self._time_out, self.silence_s)
        return loop.create_future()

    def _time_out(self, silence_s: float) -> None:
        loop, self._timer = asyncio.get_running_loop(), None
        if self._wake is None or self._wake.done():
            return
        left_s = self._silent_since + silence_s - loop.time()
        if left_s > 1e-6:  # what is less than the loop's own digits would be due now, again and again
            self._timer = loop.call_later(left_s, self._time_out, silence_s)
        else:
            self._wake.set_exception(TimeoutError("silence"))

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class Watching:
    """Every open stream of a server."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.streams: list[Stream] = []
        self.spoil: Spoil | None = None
        self.stalls: Callable[[str, str], bool] = lambda who, plural: False

    def open(
        self,
        who: str,
        held: Collection,
        params: Mapping[str, str],
        keep: Callable[[Object], bool],
        silence_s: float | None,
    ) -> tuple[Stream, Callable[[], None]]:
        """A stream, and how to close it."""
        loop, plural = asyncio.get_running_loop(), held.resource.plural
        stream = Stream(who, plural, silence_s)
        stream.stalled = self.stalls(who, plural)

        def happened(event: Happened) -> None:
            if keep(event.object):
                self._send(stream, event.line())

        def bookmark() -> None:
            timers[0] = loop.call_later(BOOKMARK_S, bookmark)
            stream.send(_bookmark(held, self.objects.version))

        timers = [loop.call_later(BOOKMARK_S, bookmark)]
        timers.append(loop.call_later(float(params.get("timeoutSeconds") or 1800), stream.end))

        def close() -> None:
            for timer in timers:
                timer.cancel()
            stream.close()
            if happened in held.watchers:
                held.watchers.remove(happened)
                self.streams.remove(stream)

        self._begin(stream, held, params, keep)
        held.watchers.append(happened)
        self.streams.append(stream)
        return stream, close

    def _begin(
        self, stream: Stream, held: Collection, params: Mapping[str, str], keep: Callable[[Object], bool]
    ) -> None:
        if params.get("sendInitialEvents") == "true":
            for found in held.items.values():
                if keep(found):
                    stream.send(line_of("ADDED", found))
            stream.send(_bookmark(held, self.objects.version, {INITIAL_EVENTS_END: "true"}))
            return
        since = int(params.get("resourceVersion") or 0)
        if since < held.oldest:
            gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
            stream.send(encoded({"type": "ERROR", "object": gone}) + b"\n")
            stream.end()
            return
        for event in held.after(since):
            if keep(event.object):
                stream.send(event.line())

    def _send(self, stream: Stream, line: bytes) -> None:
        for part in [line] if self.spoil is None else self.spoil(stream.who, stream.plural, line):
            stream.send(part)

    def cut(self, plural: str = "", who: str = "") -> None:
        for stream in self.streams:
            if plural in ("", stream.plural) and who in ("", stream.who):
                stream.end()

    def stall_again(self) -> None:
        """Look which streams are stalled now; one that goes on sends what it held back."""
        for stream in self.streams:
            stream.stalled = self.stalls(stream.who, stream.plural)
            stream.wake()


def _bookmark(held: Collection, version: int, notes: Mapping[str, str] | None = None) -> bytes:
    resource = held.resource
    meta = {"resourceVersion": str(version)} | ({"annotations": notes} if notes else {})
    return (
        encoded(
            {
                "type": "BOOKMARK",
                "object": {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta},
            }
        )
        + b"\n"
    )
