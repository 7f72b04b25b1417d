"""A running operator: it answers from its journal on its own port, and a laptop asks it through the API server.

Kubernetes decides who may look: the service proxy asks for `get` on services/proxy, and the operator for the token of a
Secret, which the user's own kubeconfig must be able to read. Every pod of the cluster can reach the port itself.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import multiprocessing
import os
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

import msgspec
from aiohttp import web

from trimtab.errors import ClusterUnavailable, Refused
from trimtab.kinds.annotations import API_CREDENTIAL
from trimtab.web.packing import MAGIC, unpacked
from trimtab.web.sources import Answer, Found, HttpAnswer, JournalSource, NoAnswer, encoded, in_words
from trimtab.wire.access import Access
from trimtab.wire.kube import Kube
from trimtab.wire.objects import PartialObject, Secret
from trimtab.wire.resources import SECRETS, SERVICES

log = logging.getLogger(__name__)
PORT = 8080
TRIES = 40  # each may meet one that stands by
TOKEN_HEADER = "Trimtab-Token"  # noqa: S105  (the API server keeps `Authorization` for itself)
OWN_MACHINE = ("127.0.0.1", "::1")
MOST_WAITING = 8
NICENESS = 10
Token = Callable[[], str]


def token_in(file: str) -> Token | None:
    """Read the token for each request: a Secret that is mounted may be renewed. Without the file nobody is answered."""

    def token() -> str:
        try:
            return Path(file).read_text().strip()
        except OSError as error:
            log.warning("/api answers nobody: the token cannot be read: %s", error)
            return ""

    return token if file else None


def answer_on(
    app: web.Application, source: JournalSource, leads: Callable[[], bool] = lambda: True, token: Token | None = None
) -> None:
    """Let an operator's server answer the page's questions, beside its ticks and read-only.

    Without a token only this machine may ask. One that stands by has no journal, or an old one: it sends whoever asks
    to another.
    """
    child = AnswerProcess(source)

    async def handler(request: web.Request) -> web.StreamResponse:
        if not _may_ask(request, token):
            found = encoded(NoAnswer(HTTPStatus.UNAUTHORIZED, NOT_PERMITTED))
        elif not leads():
            said = "this operator stands by: ask the one that leads"
            found = encoded(NoAnswer(HTTPStatus.MISDIRECTED_REQUEST, said))
        else:
            found = await child.answer(request.match_info["question"], dict(request.query))
        return web.Response(body=found.content, content_type=found.type, status=found.status)

    app.router.add_get("/api/{question}", handler)
    app.cleanup_ctx.append(child.closed_at_the_end)


NOT_PERMITTED = (
    "this needs the token of the operator's Secret: `trimtab dashboard` and `kubectl trimtab` send it if you may get "
    "the operator's Service and the Secret that its annotation trimtab.dev/api-token-secret names"
)


def _may_ask(request: web.Request, token: Token | None) -> bool:
    if token is None:
        return request.remote in OWN_MACHINE
    wanted = token().encode()
    return bool(wanted) and hmac.compare_digest(
        request.headers.get(TOKEN_HEADER, "").encode(errors="surrogateescape"), wanted
    )


class AnswerProcess:
    """Answers one question after the other in a process of its own, with a low priority: no tick waits for it."""

    def __init__(self, source: JournalSource) -> None:
        self._source = source.path, source.title
        self._pool: ProcessPoolExecutor | None = None
        self._waiting = 0

    async def answer(self, question: str, query: Mapping[str, str]) -> HttpAnswer:
        if self._waiting >= MOST_WAITING:
            return encoded(NoAnswer(HTTPStatus.TOO_MANY_REQUESTS, "too many questions at once: ask again in a moment"))
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, context, initializer=os.nice, initargs=(NICENESS,))
        self._waiting += 1
        try:
            ask = self._pool.submit(_answer_from, *self._source, question, query)
            return await asyncio.wrap_future(ask)
        except BrokenProcessPool:
            self._pool = None
            return encoded(NoAnswer(HTTPStatus.SERVICE_UNAVAILABLE, "the process that answers has died: ask again"))
        finally:
            self._waiting -= 1

    async def closed_at_the_end(self, app: web.Application) -> AsyncIterator[None]:
        yield
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


def _answer_from(path: Path, title: str, question: str, query: Mapping[str, str]) -> HttpAnswer:
    found: Answer = in_words(lambda: _source(path, title).answer(question, query), question)
    return encoded(found)


_source = lru_cache(maxsize=1)(JournalSource)  # it keeps the newest fleet


class OperatorSource:
    """Asks the operator's service, whichever of its pods answers, until it is the one that leads."""

    def __init__(self, access: Access, namespace: str, service: str) -> None:
        self.access, self.namespace, self.service = access, namespace, service
        self._with_token: Access | None = None
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
        self._with_token = self._with_token or replace(self.access, headers=await self._headers())
        async with Kube(self._with_token) as kube:
            for _ in range(TRIES):
                try:
                    return await kube.raw(path, query)
                except Refused as error:
                    if error.status != HTTPStatus.MISDIRECTED_REQUEST:
                        raise
        raise ClusterUnavailable("no operator leads now: the ones that answered stand by; try again in a moment")

    async def _headers(self) -> Mapping[str, str]:
        """With the token, where the Service names its Secret and we may read both."""
        async with Kube(self.access) as kube:
            try:
                service = await kube.get(PartialObject, SERVICES, self.namespace, self.service)
                if not (name := service.metadata.notes.get(API_CREDENTIAL)):
                    return self.access.headers
                token = (await kube.get(Secret, SECRETS, self.namespace, name)).data.get("token", "")
            except Refused:
                return self.access.headers
        return {**self.access.headers, TOKEN_HEADER: b64decode(token).decode()}
