"""Whatever bytes come instead of HTTP: a request ends with an answer or an error of ours, and a watch goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.errors import ClusterUnavailable, TrimtabError
from trimtab.wire import http
from trimtab.wire.access import Access
from trimtab.wire.budget import Budget
from trimtab.wire.http import Request
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Lease, WirePod
from trimtab.wire.resources import LEASES, PODS
from trimtab.wire.watch import Informer, Store

LEASE = b'{"metadata":{"name":"trimtab","namespace":"x"},"spec":{}}'
HEAD = b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s"
FAR = b"Retry-After: Mon, 01 Jan 2024 00:00:00 +%s\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\n"


def whole(status: bytes = b"200 OK", headers: bytes = b"", body: bytes = LEASE) -> bytes:
    return HEAD % (status, headers, len(body), body)


ANSWERS = [
    whole(),
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(LEASE), LEASE),
    whole(b"429 Too Many", FAR % b"0100"),
    whole(b"429 Too Many", FAR % b"9999999999999"),
    whole(headers=b"Content-Encoding: gzip\r\n"),
    whole(headers=b"Content-Encoding: br\r\n"),
    whole(headers=b"Set-Cookie: a=b; max-age=99999999999999999999\r\n"),
    whole(b"302 Found", b"Location: http://[::1/\r\n"),
    whole(b"99999 Odd"),
    whole(b"101 Switching", b"Upgrade: x\r\nConnection: upgrade\r\n"),
    b"HTTP/1.1 103 Early Hints\r\n\r\n" + whole(),
    b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n{}\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 3000 + b"\r\n",
    b"\x15\x03\x01\x00\x02\x02\x16",
    b"",
]


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    """One of them, as it is or with something else at some place."""
    told = draw(st.sampled_from(ANSWERS))
    for _ in range(draw(st.integers(0, 3))):
        at, less = draw(st.integers(0, len(told))), draw(st.integers(0, 4))
        told = (
            told[:at]
            + draw(st.sampled_from([b"\r\n", b"\0", b":", b"\xff", b"9999999999", b"-", b""]))
            + told[at + less :]
        )
    return told


@asynccontextmanager
async def saying(answer: bytes, then_silent: bool = False) -> AsyncIterator[Kube]:
    """A server that gives this answer to everything, and hangs up."""
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
            if then_silent:
                await over.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    async with Kube(Access(f"http://{host}:{port}"), Budget(1e9, 1e9), timeout_s=60.0) as kube:
        yield kube
    over.set()
    server.close()


async def asked(kube: Kube) -> None:
    await kube.get(Lease, LEASES, "x", "trimtab")


async def streamed(kube: Kube) -> None:
    async with kube.http.stream(Request("watch", "leases", "GET", "/x"), 60.0) as (_, pieces):
        async for _ in pieces:
            pass


@pytest.mark.parametrize("ask", [asked, streamed])
@given(answer=answers())
def test_whatever_is_answered_is_an_answer_or_an_error_of_ours(
    ask: Callable[[Kube], Coroutine[Any, Any, None]], answer: bytes
) -> None:
    async def run() -> None:
        async with saying(answer) as kube:
            with suppress(TrimtabError):
                await ask(kube)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http, "ATTEMPTS", 1)
        patch.setattr(http, "LONGEST_WAIT_S", 0.0)
        asyncio.run(run())


def test_a_watch_does_not_wait_for_ever_for_what_hints_have_announced() -> None:
    async def run() -> None:
        async with saying(b"HTTP/1.1 103 Early Hints\r\n\r\n", then_silent=True) as kube, asyncio.timeout(60):
            with pytest.raises(ClusterUnavailable):
                async with kube.http.stream(Request("watch", "leases", "GET", "/x"), 0.1):
                    raise AssertionError("nothing was answered")

    asyncio.run(run())


def test_a_collection_that_breaks_us_is_said_and_listed_anew(caplog: pytest.LogCaptureFixture) -> None:
    """One that never ends by itself: it would end all the others."""

    class Broken(Store[WirePod]):
        def replace(self, fresh: Any) -> None:
            raise ZeroDivisionError("a pod of no size")

    async def run() -> Store[WirePod]:
        listed = b'{"metadata":{"resourceVersion":"1"},"items":[]}'
        async with saying(whole(body=listed)) as kube, asyncio.timeout(60):
            informer = Informer(kube, WirePod, PODS)
            informer.store, informer._streams_lists = Broken(), False
            following = asyncio.create_task(informer.run())
            while kube.counts["list", "pods", 200] < 2:
                await asyncio.sleep(0.01)
            following.cancel()
            return informer.store

    store = asyncio.run(run())
    assert "a pod of no size" in str(store.trouble) and not store.synced.is_set()
    assert "watch of pods: a bug of trimtab" in caplog.text
