"""serve: `trimtab custom-hpa`. A period after the other, /ping and /metrics, and an end within seconds when told to."""

from __future__ import annotations

import asyncio
import logging
import signal
from urllib.parse import urlsplit

from aiohttp import web

from trimtab.errors import InvalidInput, TrimtabError
from trimtab.kinds import CustomHpa
from trimtab.live.custom_hpa.loop import FirstSeries, Loop, ReleaseMemory
from trimtab.live.look.cluster import Feed, WatchedCluster
from trimtab.live.tell.telemetry import listen
from trimtab.wire.access import Access, prometheus_access
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Custom
from trimtab.wire.prometheus import Prometheus

log = logging.getLogger(__name__)
TIMEOUT_S = 1.0  # the program's: a sample that takes longer is none
END_WITHIN_S = 3.0
LOOK_AGAIN_S = 1.0


def prometheus_url(custom: CustomHpa) -> str:
    """The document's url and port as one address; a path in the url stays behind the port."""
    given = custom.prometheus
    parts = urlsplit(given.url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput("PROMETHEUS_URL", given.url, "write an address such as http://prometheus.monitoring")
    if parts.port not in (None, given.port):
        raise InvalidInput("PROMETHEUS_URL", given.url, f"leave its port out: PROMETHEUS_PORT says {given.port}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{given.port}{parts.path}"


async def serve(custom: CustomHpa, access: Access, release: str, release_namespace: str) -> None:
    """Until SIGTERM or SIGINT."""
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    source = FirstSeries if custom.exact else Prometheus
    async with (
        Kube(access, timeout_s=10.0) as kube,
        source(prometheus_access(prometheus_url(custom)), timeout_s=TIMEOUT_S) as prometheus,
    ):
        cluster = WatchedCluster(kube, custom.target.namespace)
        loop = Loop(custom, kube, prometheus, ReleaseMemory(kube, release_namespace, release), cluster)
        others = [] if custom.exact else [cluster.hpas, cluster.scaled_objects, *cluster.ours.values()]
        server = await _listen(loop)
        try:
            await _until(ended, loop, others)
        finally:
            await server.cleanup()


async def _until(ended: asyncio.Event, loop: Loop, others: list[Feed[Custom]]) -> None:
    tasks = [asyncio.create_task(work) for work in (_periods(loop, others), *(feed.run() for feed in others))]
    stop = asyncio.create_task(ended.wait())
    try:
        done, _ = await asyncio.wait([*tasks, stop], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()  # none of them ends by itself: raise what ended it
    finally:
        for task in (*tasks, stop):
            task.cancel()
        await asyncio.wait([*tasks, stop], timeout=END_WITHIN_S)


async def _periods(loop: Loop, others: list[Feed[Custom]]) -> None:
    clock = loop.kube.clock
    period_s, said = float(loop.custom.control_loop_period), ""
    while True:
        started = clock.since_boot()
        unknown = [feed for feed in others if not feed.settled]
        why = "; ".join(map(_trouble, unknown))
        if why and why != said and any(feed.store.trouble for feed in unknown):  # what stays wrong is said once
            log.warning("who else scales the Deployment is not known yet: %s", why)
        said = why
        if not unknown:
            await _guarded(loop)
        wait_s = min(period_s, LOOK_AGAIN_S) if unknown else period_s
        await asyncio.sleep(max(0.0, started + wait_s - clock.since_boot()))


async def _guarded(loop: Loop) -> None:
    try:
        await loop.period(loop.kube.clock.now())
    except TrimtabError as error:
        loop.gauges.statuses = set()
        log.warning("this period was given up, the Deployment keeps its size: %s", error)
    except Exception:
        loop.gauges.statuses = set()
        log.exception("this period was given up: a bug of trimtab; the next one tries again")


def _trouble(feed: Feed[Custom]) -> str:
    return f"{feed.name}: {feed.store.trouble or 'not listed yet'}"


async def _listen(loop: Loop) -> web.AppRunner:
    port = loop.custom.port
    routes = {"/ping": lambda: (200, "pong"), "/metrics": lambda: (200, loop.gauges.render())}
    try:
        return await listen("", port, routes)
    except OSError as error:
        raise InvalidInput("PORT", port, f"cannot listen there: {error.strerror}") from error
