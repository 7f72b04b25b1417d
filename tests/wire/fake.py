"""A small HTTP server for faults that a real one cannot be made to show on demand."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable

from aiohttp import web

from trimtab.wire.access import Access
from trimtab.wire.http import Fence
from trimtab.wire.kube import Kube

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Fake:
    """Answers every request with `handler` and keeps them; `url` is where it listens."""

    def __init__(self, handler: Handler, tls: ssl.SSLContext | None = None) -> None:
        self.handler, self.tls = handler, tls
        self.requests: list[web.Request] = []
        self.url = ""

    async def __aenter__(self) -> Fake:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._record)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self.tls)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"{'https' if self.tls else 'http'}://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _record(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        self.requests.append(request)
        return await self.handler(request)

    def kube(self, fence: Fence | None = None) -> Kube:
        return Kube(Access(self.url), timeout_s=60.0, fence=fence)


def script(*answers: web.Response | Handler) -> Handler:
    """The answers in order; the last one stays."""
    left = list(answers)

    async def handler(request: web.Request) -> web.StreamResponse:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, web.Response):
            return web.Response(status=answer.status, body=answer.body, headers=answer.headers)
        return await answer(request)

    return handler
