"""A running operator: it answers from its journal on its own port, and a laptop asks it through the API server.

The service proxy of the API server with the user's own kubeconfig: Kubernetes decides who may look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from urllib.parse import quote

import msgspec
from aiohttp import web

from trimtab.web.journal_history import unpack_history
from trimtab.web.sources import JSON, JournalSource, PageAnswer, answered, judged
from trimtab.wire.access import Access
from trimtab.wire.kube import Kube

PORT = 8080
COSTLY = ("whatif", "advice")  # computed by who asks


def answer_on(app: web.Application, source: JournalSource) -> None:
    """Let an operator's server answer the page's questions, beside its ticks and read-only."""

    async def handler(request: web.Request) -> web.StreamResponse:
        question = request.match_info["question"]
        if question in COSTLY:
            raise web.HTTPNotFound
        found = await asyncio.to_thread(answered, source, question, dict(request.query))
        return web.Response(body=found.content, content_type=found.type, status=found.status)

    app.router.add_get("/api/{question}", handler)


class OperatorSource:
    """Asks the operator's service; what-if is computed here, from the history it sends."""

    def __init__(self, access: Access, namespace: str, service: str) -> None:
        self.access = access
        self.path = f"/api/v1/namespaces/{quote(namespace)}/services/{quote(service)}:{PORT}/proxy/api/"

    def answer(self, question: str, query: Mapping[str, str]) -> PageAnswer:
        if question == "whatif":
            return judged(unpack_history(self._get("known", query)), query)
        content = self._get(question, query)
        return PageAnswer(content, JSON) if content[:1] == b"{" else PageAnswer(content)

    def version(self) -> float:
        return float(msgspec.json.decode(self._get("about", {}))["now"])

    def _get(self, question: str, query: Mapping[str, str]) -> bytes:
        return asyncio.run(self._ask(self.path + quote(question), query))

    async def _ask(self, path: str, query: Mapping[str, str]) -> bytes:
        async with Kube(self.access) as kube:
            return await kube.raw(path, query)
