"""A running operator: it answers from its journal on its own port, and a laptop asks it through the API server.

The service proxy of the API server with the user's own kubeconfig: Kubernetes decides who may look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from http import HTTPStatus
from urllib.parse import quote

import msgspec
from aiohttp import web

from trimtab.errors import ClusterUnavailable, Refused
from trimtab.web.packing import MAGIC, unpacked
from trimtab.web.sources import Answer, Found, JournalSource, NoAnswer, encoded, in_words
from trimtab.wire.access import Access
from trimtab.wire.kube import Kube

PORT = 8080
TRIES = 40  # each may meet one that stands by


def answer_on(app: web.Application, source: JournalSource, leads: Callable[[], bool] = lambda: True) -> None:
    """Let an operator's server answer the page's questions, beside its ticks and read-only.

    One that stands by has no journal, or an old one: it sends whoever asks to another.
    """

    async def handler(request: web.Request) -> web.StreamResponse:
        question = request.match_info["question"]
        if not leads():
            found: Answer = NoAnswer(HTTPStatus.MISDIRECTED_REQUEST, "this operator stands by: ask the one that leads")
        else:
            query = dict(request.query)
            found = await asyncio.to_thread(in_words, lambda: source.answer(question, query), question)
        response = await asyncio.to_thread(encoded, found)
        return web.Response(body=response.content, content_type=response.type, status=response.status)

    app.router.add_get("/api/{question}", handler)


class OperatorSource:
    """Asks the operator's service, whichever of its pods answers, until it is the one that leads."""

    def __init__(self, access: Access, namespace: str, service: str) -> None:
        self.access = access
        self.path = f"/api/v1/namespaces/{quote(namespace)}/services/{quote(service)}:{PORT}/proxy/api/"

    def answer(self, question: str, query: Mapping[str, str]) -> Found:
        content = asyncio.run(self._ask(self.path + quote(question), query))
        found: Found = unpacked(content) if content.startswith(MAGIC) else msgspec.json.decode(content)
        return found

    def version(self) -> float:
        about = self.answer("about", {})
        assert isinstance(about, dict)
        return float(about["now"])

    async def _ask(self, path: str, query: Mapping[str, str]) -> bytes:
        async with Kube(self.access) as kube:
            for _ in range(TRIES):
                try:
                    return await kube.raw(path, query)
                except Refused as error:
                    if error.status != HTTPStatus.MISDIRECTED_REQUEST:
                        raise
        raise ClusterUnavailable("no operator leads now: the ones that answered stand by; try again in a moment")
