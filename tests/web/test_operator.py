"""A running operator: its answers through the API server's service proxy are those of its journal."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from threading import Thread

import pytest
from aiohttp import web

from tests.web.conftest import Shop
from trimtab.errors import TrimtabError
from trimtab.journal import ObjectName
from trimtab.web.operator import OperatorSource, answer_on
from trimtab.web.sources import JournalSource
from trimtab.wire.access import Access

WEB = ObjectName("Autoscaler", "shop", "web")._asdict()
PROXY = "/api/v1/namespaces/trimtab/services/trimtab:8080/proxy"


@pytest.fixture
def proxied(shop: Shop) -> Iterator[OperatorSource]:
    """An API server that knows one service, which an operator answers."""
    loop, started = asyncio.new_event_loop(), []

    async def serve() -> None:
        operator, server = web.Application(), web.Application()
        answer_on(operator, JournalSource(shop.path, "shop"))
        server.add_subapp(PROXY, operator)
        runner = web.AppRunner(server)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        started.append(runner)

    loop.run_until_complete(serve())
    thread = Thread(target=loop.run_forever)
    thread.start()
    address = started[0].addresses[0]
    yield OperatorSource(Access(f"http://127.0.0.1:{address[1]}"), "trimtab", "trimtab")
    asyncio.run_coroutine_threadsafe(started[0].cleanup(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.mark.parametrize("question", ["fleet", "workload", "decision", "health", "about", "history.csv"])
def test_the_operator_says_what_its_journal_says(proxied: OperatorSource, shop: Shop, question: str) -> None:
    assert proxied.answer(question, WEB).content == JournalSource(shop.path, "shop").answer(question, WEB).content


def test_what_if_is_computed_by_who_asks_and_is_the_same(proxied: OperatorSource, shop: Shop) -> None:
    query = WEB | {"target": "0.5"}
    assert proxied.answer("whatif", query) == JournalSource(shop.path, "shop").answer("whatif", query)


def test_it_follows_what_is_new(proxied: OperatorSource, shop: Shop) -> None:
    assert proxied.version() == JournalSource(shop.path, "shop").version()


def test_a_refusal_stays_a_sentence(proxied: OperatorSource) -> None:
    with pytest.raises(TrimtabError, match="knows nothing of it"):
        proxied.answer("workload", WEB | {"name": "nobody"})
    with pytest.raises(TrimtabError):
        proxied.answer("nothing", {})
