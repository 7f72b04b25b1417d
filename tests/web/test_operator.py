"""A running operator: its answers through the API server's service proxy are those of its journal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer, make_mocked_request
from click.testing import CliRunner

from tests.web.conftest import Shop
from trimtab.cli.kubectl import plugin
from trimtab.errors import TrimtabError
from trimtab.journal import ObjectName
from trimtab.kinds.annotations import API_CREDENTIAL
from trimtab.web.operator import (
    MOST_WAITING,
    TOKEN_HEADER,
    TRIES,
    AnswerProcess,
    OperatorSource,
    _may_ask,
    answer_on,
)
from trimtab.web.sources import Answer, JournalSource, NoAnswer, answered, encoded, in_words
from trimtab.wire.access import Access

WEB = ObjectName("Autoscaler", "shop", "web")._asdict()
CACHE = ObjectName("HorizontalPodAutoscaler", "shop", "cache")._asdict()
AUTOSCALER = "/apis/trimtab.dev/v1alpha1/namespaces/shop/autoscalers/{name:web|calm|unseen}"
PROXY = "/api/v1/namespaces/trimtab/services/trimtab:8080/proxy"


@pytest.fixture
def standing_by() -> list[bool]:
    """Whether who is asked next stands by; the last of them first."""
    return []


@pytest.fixture
def proxied(shop: Shop, standing_by: list[bool]) -> Iterator[OperatorSource]:
    """An API server that knows three Autoscalers, and one service, which an operator answers."""
    loop, started = asyncio.new_event_loop(), []

    async def autoscaler(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        status = {"lastDecision": "4 replicas are right"} if name == "calm" else {}
        body = {"metadata": {"name": name, "namespace": "shop"}, "status": status}
        return web.json_response({"apiVersion": "trimtab.dev/v1alpha1", "kind": "Autoscaler"} | body)

    async def serve() -> None:
        operator, server = web.Application(), web.Application()
        answer_on(operator, JournalSource(shop.path, "shop"), lambda: not (standing_by and standing_by.pop()))
        server.add_subapp(PROXY, operator)
        server.router.add_get(AUTOSCALER, autoscaler)
        runner = web.AppRunner(server)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        started.append(runner)

    loop.run_until_complete(serve())
    thread = Thread(target=loop.run_forever)
    thread.start()
    address = started[0].addresses[0]
    yield OperatorSource(Access(f"http://127.0.0.1:{address[1]}"), "trimtab", "trimtab")
    asyncio.run_coroutine_threadsafe(started[0].cleanup(), loop).result(300)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.mark.parametrize("question", ["fleet", "workload", "decision", "health", "about"])
def test_the_operator_says_what_its_journal_says(proxied: OperatorSource, shop: Shop, question: str) -> None:
    assert encoded(proxied.answer(question, WEB)) == encoded(JournalSource(shop.path, "shop").answer(question, WEB))


def test_what_costs_is_computed_by_who_asks_and_is_the_same(proxied: OperatorSource, shop: Shop) -> None:
    for question, query in (("whatif", WEB | {"target": "0.5"}), ("advice", CACHE), ("history.csv", WEB)):
        found = encoded(answered(proxied, question, query))
        assert found == encoded(answered(JournalSource(shop.path, "shop"), question, query))
        assert found.status == (422 if question == "advice" else 200)  # advice needs two days, the shop has one
        with pytest.raises(TrimtabError):  # the operator itself does not compute it
            proxied.answer(question, query)


def test_one_that_stands_by_is_passed_over(proxied: OperatorSource, shop: Shop, standing_by: list[bool]) -> None:
    standing_by += [True] * 3
    assert proxied.version() == JournalSource(shop.path, "shop").version() and standing_by == []
    standing_by += [True] * TRIES
    with pytest.raises(TrimtabError, match="no operator leads now"):
        proxied.version()


def test_it_follows_what_is_new(proxied: OperatorSource, shop: Shop) -> None:
    assert proxied.version() == JournalSource(shop.path, "shop").version()


def test_a_refusal_stays_a_sentence(proxied: OperatorSource) -> None:
    with pytest.raises(TrimtabError, match="knows nothing of it"):
        proxied.answer("workload", WEB | {"name": "nobody"})
    with pytest.raises(TrimtabError):
        proxied.answer("nothing", {})


@pytest.fixture
def kubeconfig(proxied: OperatorSource, tmp_path: Path) -> Path:
    cluster = {"name": "here", "cluster": {"server": proxied.access.url}}
    context = {"name": "here", "context": {"cluster": "here", "user": "me", "namespace": "shop"}}
    config = {"clusters": [cluster], "contexts": [context], "users": [{"name": "me", "user": {}}]}
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config | {"current-context": "here"}))
    return path


def test_kubectl_trimtab_says_why(kubeconfig: Path, shop: Shop) -> None:
    said = JournalSource(shop.path, "shop").answer("decision", WEB)
    assert isinstance(said, dict)
    flags = ["--kubeconfig", str(kubeconfig)]
    why = CliRunner().invoke(plugin, ["why", "web", *flags])
    assert why.exit_code == 0 and why.output.strip() == said["sentence"]
    explained = CliRunner().invoke(plugin, ["explain", "asc/web", "-n", "shop", *flags]).output
    assert explained.startswith(f"Autoscaler shop/web at {said['time']}: ") and said["rows"][0][3] in explained


def test_before_the_first_change_why_says_what_the_last_look_saw(kubeconfig: Path) -> None:
    calm = CliRunner().invoke(plugin, ["why", "calm", "--kubeconfig", str(kubeconfig)])
    assert calm.exit_code == 0 and calm.output == "nothing has been changed yet: 4 replicas are right\n"
    unseen = CliRunner().invoke(plugin, ["why", "unseen", "--kubeconfig", str(kubeconfig)])
    assert unseen.exit_code == 2 and "nothing to explain" in unseen.output


def test_kubectl_trimtab_names_what_it_does_not_find(kubeconfig: Path) -> None:
    done = CliRunner().invoke(plugin, ["why", "nobody", "--kubeconfig", str(kubeconfig)])
    assert done.exit_code == 2 and "nothing of trimtab's is called so in namespace shop" in done.output


def test_a_stranger_needs_the_token() -> None:
    """Every pod may reach the port: without the token it reads nothing of the journal."""
    asked = make_mocked_request("GET", "/api/fleet")
    stranger, own_machine = asked.clone(remote="10.0.0.7"), asked.clone(remote="127.0.0.1")
    assert _may_ask(own_machine, None) and not _may_ask(stranger, None)
    for headers, token, may in (
        ({}, "s3cret", False),
        ({TOKEN_HEADER: "guess"}, "s3cret", False),
        ({TOKEN_HEADER: "s3cret"}, "s3cret", True),
        ({TOKEN_HEADER: ""}, "", False),
    ):
        for remote in ("10.0.0.7", "127.0.0.1"):
            request = asked.clone(remote=remote, headers=headers)
            assert _may_ask(request, lambda token=token: token) is may  # type: ignore[misc]


def test_the_token_comes_from_the_secret_that_the_service_names(shop: Shop) -> None:
    """Whoever may read Service and Secret is answered, whoever may not is told what is missing."""
    secret = {"metadata": {"name": "trimtab-api", "namespace": "trimtab"}, "data": {"token": "czNjcmV0"}}
    named = {"name": "trimtab", "namespace": "trimtab", "annotations": {API_CREDENTIAL: "trimtab-api"}}
    known = {"services/trimtab": {"metadata": named}, "secrets/trimtab-api": secret}

    async def said_to(may_read: bool) -> Answer:
        async def of_cluster(request: web.Request) -> web.Response:
            found = known[f"{request.match_info['plural']}/{request.match_info['name']}"]
            return web.json_response(found, status=200 if may_read else 403)

        operator, server = web.Application(), web.Application()
        answer_on(operator, JournalSource(shop.path, "shop"), token=lambda: "s3cret")
        server.add_subapp(PROXY, operator)
        server.router.add_get("/api/v1/namespaces/trimtab/{plural}/{name}", of_cluster)
        async with TestServer(server) as running:
            source = OperatorSource(Access(str(running.make_url("")).rstrip("/")), "trimtab", "trimtab")
            return await asyncio.to_thread(in_words, lambda: source.answer("about", {}), "about")

    assert isinstance(asyncio.run(said_to(True)), dict)
    refused = asyncio.run(said_to(False))
    assert isinstance(refused, NoAnswer) and "token of the operator's Secret" in refused.text


def test_questions_beyond_a_few_are_turned_away(shop: Shop) -> None:
    async def flood() -> list[int]:
        child = AnswerProcess(JournalSource(shop.path, "shop"))
        asked = [asyncio.create_task(child.answer("fleet", {})) for _ in range(5 * MOST_WAITING)]
        await asyncio.wait(asked)
        async for _ in child.closed_at_the_end(web.Application()):
            pass
        return [task.result().status for task in asked]

    assert asyncio.run(flood()) == [200] * MOST_WAITING + [429] * 4 * MOST_WAITING
