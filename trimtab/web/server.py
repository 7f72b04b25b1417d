"""The dashboard's server: read-only, for this machine alone, one page and its answers.

Nothing of another origin may ask it (the Host is checked, so that a name that is made to point here does not help), the
page may load nothing from elsewhere, and no script may stand in a document.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import suppress
from functools import partial

from aiohttp import web

from trimtab.errors import InvalidInput, TrimtabError
from trimtab.web.report import part, shell
from trimtab.web.sources import Answer, NoAnswer, PageSource, answered, base_query, derived, encoded

log = logging.getLogger(__name__)
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:;"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
LOCAL = ("localhost", "127.0.0.1", "[::1]")
LOOK_EVERY_S = 1.0
MOST_ANSWERS = 64
SLOW = ("whatif", "advice")  # answered by a process of its own


class Dashboard:
    """One source behind one page."""

    def __init__(self, source: PageSource, pool: Executor) -> None:
        self.source, self.pool = source, pool
        self._known: tuple[float, float] = (float("-inf"), 0.0)  # when it was looked, and the version then
        self._looking = asyncio.Lock()
        self._answers: dict[tuple[object, ...], asyncio.Task[Answer]] = {}
        self._answers_of = float("-inf")  # the version that they were asked at

    def app(self) -> web.Application:
        app = web.Application(middlewares=[_guarded])
        app.router.add_get("/", self._document(shell, "text/html"))
        for path, kind in (("page.js", "text/javascript"), ("page.css", "text/css")):
            app.router.add_get(f"/{path}", self._document(partial(part, path), kind))
        app.router.add_get("/api/events", self._events)
        app.router.add_get("/api/{question}", self._answer)
        return app

    def _document(self, text: Callable[[], str], kind: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handler(_: web.Request) -> web.StreamResponse:
            return web.Response(text=text(), content_type=kind, charset="utf-8")

        return handler

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        question, query = request.match_info["question"], dict(request.query)
        if question in SLOW:
            known = await self._shared("workload", base_query(query))
            found = await asyncio.get_running_loop().run_in_executor(self.pool, derived, question, known, query)
        else:
            found = await self._shared(question, query)
        return _response(found)

    async def _shared(self, question: str, query: dict[str, str]) -> Answer:
        """One answer for all pages that ask the same, until there is something new."""
        version, key = await self._version(), (question, *sorted(query.items()))
        if self._answers_of != version:
            self._answers_of, self._answers = version, {}
        if key not in self._answers:
            if len(self._answers) >= MOST_ANSWERS:
                self._answers.clear()
            self._answers[key] = asyncio.create_task(asyncio.to_thread(answered, self.source, question, query))
        found = await asyncio.shield(self._answers[key])
        if isinstance(found, NoAnswer):
            self._answers.pop(key, None)  # what failed is tried again
        return found

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """`data: VERSION` whenever there is something new; a comment now and then keeps the line open."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        known, quiet_s = -1.0, 0.0
        with suppress(ConnectionResetError, asyncio.CancelledError):
            while True:
                version = await self._version()
                if version != known:
                    await response.write(f"data: {version}\n\n".encode())
                    known, quiet_s = version, 0.0
                elif quiet_s >= 15:
                    await response.write(b": still here\n\n")
                    quiet_s = 0.0
                await asyncio.sleep(LOOK_EVERY_S)
                quiet_s += LOOK_EVERY_S
        return response

    async def _version(self) -> float:
        """One look for all pages that are open. Of a source that cannot be read now: none; the page is told why."""
        async with self._looking:
            now = asyncio.get_running_loop().time()
            if now - self._known[0] >= LOOK_EVERY_S / 2:
                try:
                    self._known = now, await asyncio.to_thread(self.source.version)
                except TrimtabError:
                    self._known = now, 0.0
        return self._known[1]


@web.middleware
async def _guarded(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    if request.host.rsplit(":", 1)[0] not in LOCAL:
        return _response(NoAnswer(403, "this page is for this machine alone: open it as http://localhost"))
    if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
        return _response(NoAnswer(403, "another site may not ask"))
    try:
        response = await handler(request)
    except web.HTTPException as error:
        response = _response(NoAnswer(error.status, error.reason))
    except Exception:
        log.exception("a bug of trimtab while answering %s", request.path)
        response = _response(NoAnswer(500, "this is a bug of trimtab; its log says more"))
    if not response.prepared:
        response.headers.update(HEADERS)
    return response


def _response(answer: Answer) -> web.Response:
    found = encoded(answer)
    return web.Response(status=found.status, body=found.content, content_type=found.type, headers=HEADERS)


async def serve(source: PageSource, port: int, opened: Callable[[str], None]) -> None:
    """Until SIGINT or SIGTERM; `opened` is told the address."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with ProcessPoolExecutor(1, initializer=_leave_interrupts) as pool:
        pool.submit(_load_simulator)
        runner = web.AppRunner(Dashboard(source, pool).app(), access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", port)
            await site.start()
            opened(f"http://localhost:{runner.addresses[0][1]}/")
            await stop.wait()
        except OSError as error:
            raise InvalidInput(
                "--port", port, f"cannot be used: {error.strerror}; name another, or 0 for any"
            ) from None
        finally:
            await runner.cleanup()


def _leave_interrupts() -> None:
    """Ctrl-C reaches every process of the terminal; the server ends its worker itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _load_simulator() -> None:
    """Compile the simulator before the first slider moves."""
    import numpy as np

    from trimtab.policy import Metric, MetricKind, Policy, TotalAverage
    from trimtab.sim.cluster_spec import ClusterSpec
    from trimtab.tune.case import Case
    from trimtab.tune.demand import Demand

    policy = Policy(signals=(TotalAverage(metric=Metric(kind=MetricKind.EXTERNAL, name="load"), target=0.7),))
    Case(Demand("", np.ones(480), 0.0), policy, ClusterSpec(), 32.0).outcome("")
