"""Informers against a server that restarts, forgets, and puts odd characters into annotations."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from tests.virtual import loop
from tests.wire.fake import Fake, Handler, script
from trimtab.wire.objects import WirePod
from trimtab.wire.resources import PODS
from trimtab.wire.watch import Informer

Check = Callable[[Informer[WirePod], Fake], Awaitable[None]]


def event(kind: str, name: str = "", version: str = "1", **meta: Any) -> bytes:
    content = {"metadata": {"namespace": "a", "name": name, "resourceVersion": version, **meta}}
    return json.dumps({"type": kind, "object": content}, ensure_ascii=False).encode() + b"\n"


def end_of_list(version: str) -> bytes:
    return event("BOOKMARK", version=version, annotations={"k8s.io/initial-events-end": "true"})


def error(code: int) -> bytes:
    # A Status has a string where our objects have a struct: it must not be mistaken for one of them.
    return (
        json.dumps({"type": "ERROR", "object": {"kind": "Status", "status": "Failure", "code": code}}).encode() + b"\n"
    )


def stream(*chunks: bytes, hold: bool = False) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        if hold:
            await asyncio.sleep(3600)
        return response

    return handler


def items(*names: str, version: str) -> web.Response:
    listed = [{"metadata": {"namespace": "a", "name": name, "resourceVersion": version}} for name in names]
    return web.json_response({"metadata": {"resourceVersion": version}, "items": listed})


def informing(handler: Handler, check: Check, patience_s: float | None = None) -> None:
    """With `patience_s` under the virtual clock."""

    async def run() -> None:
        async with Fake(handler) as fake, fake.kube() as kube:
            informer = Informer(kube, WirePod, PODS)
            task = asyncio.create_task(informer.run())
            try:
                async with asyncio.timeout(600):
                    await informer.store.synced.wait()
                    await check(informer, fake)
            finally:
                task.cancel()

    if patience_s is None:
        asyncio.run(run())
    else:
        loop.run(run(), patience_s)


async def until(condition: Callable[[], bool], every_s: float = 0.01) -> None:
    while not condition():
        await asyncio.sleep(every_s)


def names(informer: Informer[WirePod]) -> set[str]:
    return {name for _, name in informer.store.items}


def test_the_first_list_comes_as_a_stream_and_changes_follow_on_it() -> None:
    changes: list[tuple[str, str]] = []
    listening = asyncio.Event()

    async def check(informer: Informer[WirePod], fake: Fake) -> None:
        informer.store.on_change(lambda key, new, old: changes.append((key[1], "gone" if new is None else "here")))
        listening.set()
        await until(lambda: names(informer) == {"y"})
        assert fake.requests[0].query["sendInitialEvents"] == "true"
        assert fake.requests[0].query["resourceVersionMatch"] == "NotOlderThan"

    first = (event("ADDED", "x"), end_of_list("5"))
    after = (event("ADDED", "y", "6"), event("DELETED", "x", "7"))

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"".join(first))
        await listening.wait()
        await response.write(b"".join(after))
        await asyncio.sleep(3600)
        return response

    informing(handler, check)
    assert changes == [("y", "here"), ("x", "gone")]


def test_a_server_without_streamed_lists_gets_a_paged_list() -> None:
    async def check(informer: Informer[WirePod], fake: Fake) -> None:
        await until(lambda: len(fake.requests) == 3)
        assert names(informer) == {"x"}
        assert fake.requests[1].query["limit"] == "500"
        assert fake.requests[2].query["resourceVersion"] == "3"
        assert "sendInitialEvents" not in fake.requests[2].query

    refusal = web.json_response({"code": 422, "message": "sendInitialEvents is forbidden"}, status=422)
    informing(script(refusal, items("x", version="3"), stream(hold=True)), check)


def test_a_dropped_connection_continues_from_the_last_bookmark() -> None:
    async def check(informer: Informer[WirePod], fake: Fake) -> None:
        await until(lambda: names(informer) == {"x", "y"})
        assert fake.requests[1].query["resourceVersion"] == "42"

    first = stream(event("ADDED", "x"), end_of_list("5"), event("BOOKMARK", version="42"))
    informing(script(first, stream(event("ADDED", "y", "43"), hold=True)), check)


def test_410_inside_the_stream_lists_again_and_tells_what_vanished() -> None:
    gone: list[str] = []

    async def check(informer: Informer[WirePod], fake: Fake) -> None:
        informer.store.on_change(lambda key, new, old: gone.append(key[1]) if new is None else None)
        await until(lambda: names(informer) == {"y"})
        assert gone == ["x"]
        assert fake.requests[1].query["sendInitialEvents"] == "true"

    first = stream(event("ADDED", "x"), end_of_list("5"), error(410))
    informing(script(first, stream(event("ADDED", "y"), end_of_list("9"), hold=True)), check)


def test_410_as_a_status_lists_again() -> None:
    async def check(informer: Informer[WirePod], fake: Fake) -> None:
        await until(lambda: names(informer) == {"y"})
        assert [request.query.get("resourceVersion") for request in fake.requests] == [None, "5", None]

    first = stream(event("ADDED", "x"), end_of_list("5"))
    gone = web.json_response({"code": 410}, status=410)
    informing(script(first, gone, stream(event("ADDED", "y"), end_of_list("9"), hold=True)), check)


def test_another_error_event_continues_where_it_was() -> None:
    async def check(informer: Informer[WirePod], fake: Fake) -> None:
        await until(lambda: len(fake.requests) == 2)
        assert fake.requests[1].query["resourceVersion"] == "5"

    informing(script(stream(event("ADDED", "x"), end_of_list("5"), error(500)), stream(hold=True)), check)


def test_a_next_line_character_in_an_annotation_does_not_split_the_line() -> None:
    odd = "one\u0085two\u2028three\rfour\x1cfive"

    async def check(informer: Informer[WirePod], fake: Fake) -> None:
        pod = informer.store.get("a", "x")
        assert pod is not None
        assert pod.metadata.annotations == {"trimtab.dev/note": odd}
        assert len(fake.requests) == 1

    # json leaves U+0085 and U+2028 as they are, so they are on the wire; cut inside a character on purpose
    line = event("ADDED", "x", annotations={"trimtab.dev/note": odd})
    cut = line.index("\u0085".encode()) + 1
    informing(stream(line[:cut], line[cut:], end_of_list("5"), hold=True), check)


def test_an_unreadable_object_is_left_out_and_the_rest_goes_on() -> None:
    async def check(informer: Informer[WirePod], fake: Fake) -> None:
        await until(lambda: names(informer) == {"x", "y"})
        assert informer.store.unreadable == 1

    bad = b'{"type": "ADDED", "object": {"metadata": {"name": "bad"}, "spec": "text"}}\n'
    informing(stream(event("ADDED", "x"), bad, end_of_list("5"), event("ADDED", "y"), hold=True), check)


def test_trouble_is_kept_for_who_asks_and_cleared_when_it_is_over() -> None:
    async def check(informer: Informer[WirePod], fake: Fake) -> None:
        assert informer.store.trouble is None

    async def run() -> None:
        forbidden = web.json_response({"code": 403, "message": "pods is forbidden"}, status=403)
        async with Fake(script(forbidden)) as fake, fake.kube() as kube:
            informer = Informer(kube, WirePod, PODS)
            task = asyncio.create_task(informer.run())
            async with asyncio.timeout(60):
                await until(lambda: informer.store.trouble is not None)
            assert "pods is forbidden" in str(informer.store.trouble)
            assert not informer.store.synced.is_set()
            fake.handler = stream(event("ADDED", "x"), end_of_list("5"), hold=True)
            async with asyncio.timeout(60):
                await informer.store.synced.wait()
            await check(informer, fake)
            task.cancel()

    asyncio.run(run())


def test_silence_is_no_trouble_where_the_server_takes_the_watch_up_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nothing changes in a quiet collection: every 90 s its watch was called broken while all was well."""

    async def check(informer: Informer[WirePod], fake: Fake) -> None:
        await until(lambda: len(fake.requests) >= 3, every_s=30.0)
        assert informer.store.trouble is None and names(informer) == {"x"}

    first = stream(event("ADDED", "x"), end_of_list("5"), hold=True)
    informing(script(first, stream(hold=True)), check, loop.SOCKETS_S)
    assert "watch of pods" not in caplog.text


def test_a_server_that_answers_no_more_is_trouble() -> None:
    async def check(informer: Informer[WirePod], fake: Fake) -> None:
        forbidden = web.json_response({"code": 403, "message": "pods is forbidden"}, status=403)
        fake.handler = script(forbidden)
        await until(lambda: informer.store.trouble is not None, every_s=30.0)
        assert names(informer) == {"x"}, "what was known stays known, as old"

    informing(stream(event("ADDED", "x"), end_of_list("5"), hold=True), check, loop.SOCKETS_S)
