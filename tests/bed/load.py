"""The load server: plays the kubelets' and the applications' metrics, and a Prometheus that can fail.

POST /load    [{"namespace", "app", "cores": 1.5, "rate": [[0, 10], [60, 300]], "memory_bytes", "queue",
               "fault"}, ...]
              a number, or straight lines between [seconds from now, value]; the same words, as JSON, may
              stand in the annotation bed.trimtab.dev/load of a pod template
POST /fault   {"lane", "kind": "die" | "error" | "late" | "nan" | "warnings" | "empty" | null, "seconds"}
GET  /metrics, /nodes/NODE/metrics/resource, /apis/{custom.,external.,}metrics.k8s.io/...
any  /prometheus/LANE/...    the real Prometheus, with the fault of that lane
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import json
import ssl
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from aiohttp import web

from tests.bed import adapter, exposition
from tests.bed.sharing import Script, World

TICK_S = 0.25
LANE_FAULTS = (None, "die", "error", "late", "nan", "warnings", "empty")
WORLD = web.AppKey("world", World)
LANES = web.AppKey("lanes", dict[str, dict[str, Any]])
OPTIONS = web.AppKey("options", argparse.Namespace)
CLIENT = web.AppKey("client", aiohttp.ClientSession)


# The pods, as the API server tells them.


async def follow_pods(world: World, api_url: str, tls: ssl.SSLContext) -> None:
    """List, then watch; whatever goes wrong, list again."""
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
    async with aiohttp.ClientSession(api_url, timeout=timeout) as session:
        while True:
            try:
                await _list_and_watch(world, session, tls)
            except (aiohttp.ClientError, OSError, TimeoutError):
                await asyncio.sleep(TICK_S)


async def _list_and_watch(world: World, session: aiohttp.ClientSession, tls: ssl.SSLContext) -> None:
    async with session.get("/api/v1/pods", ssl=tls, raise_for_status=True) as response:
        listed = await response.json()
    gone = set(world.pods) - {pod["metadata"]["uid"] for pod in listed["items"]}
    for uid in gone:
        world.forget(uid)
    for pod in listed["items"]:
        _see(world, pod)
    since = listed["metadata"]["resourceVersion"]
    watch = {"watch": "1", "resourceVersion": since, "allowWatchBookmarks": "true"}
    async with session.get("/api/v1/pods", params=watch, ssl=tls, raise_for_status=True) as response:
        async for line in _lines(response.content):
            event = json.loads(line)
            if event["type"] == "ERROR":
                return
            world.set_clock(time.time())
            if event["type"] == "DELETED":
                world.forget(event["object"]["metadata"]["uid"])
            elif event["type"] != "BOOKMARK":
                _see(world, event["object"])


def _see(world: World, pod: dict[str, Any]) -> None:
    started = pod.get("status", {}).get("startTime")
    started_at = dt.datetime.fromisoformat(started).timestamp() if started else world.now
    try:
        world.see(pod, started_at)
    except ValueError as error:  # somebody's annotation is wrong; the others still need their load
        print(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}: {error}", flush=True)


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line


async def keep_time(world: World) -> None:
    while True:
        world.advance_ramps(time.time())
        await asyncio.sleep(TICK_S)


# What tests set.


async def post_load(request: web.Request) -> web.Response:
    world, now = request.app[WORLD], time.time()
    world.set_clock(now)
    try:
        for script in await request.json():
            workload = script.pop("namespace"), script.pop("app")
            world.post(workload, Script.parse(script, now))
    except (KeyError, ValueError) as error:
        raise web.HTTPBadRequest(text=f"{error}") from None
    return web.json_response({})


async def post_fault(request: web.Request) -> web.Response:
    body = await request.json()
    if body.get("kind") not in LANE_FAULTS:
        raise web.HTTPBadRequest(text=f"kind: {body.get('kind')!r} is not one of {LANE_FAULTS}")
    request.app[LANES][body["lane"]] = body
    return web.json_response({})


# What others read.


async def kubelet(request: web.Request) -> web.Response:
    return web.Response(text=exposition.kubelet(_now(request), request.match_info["node"]))


async def application(request: web.Request) -> web.Response:
    return web.Response(text=exposition.application(_now(request)))


async def custom(request: web.Request) -> web.Response:
    at, world = request.match_info, _now(request)
    if at["resource"] == "pods":
        return web.json_response(exposition.custom_pods(world, at["namespace"], at["metric"], _selector(request)))
    kind = at["resource"].split(".")[0].rstrip("s").capitalize()
    return web.json_response(exposition.custom_object(world, at["namespace"], kind, at["name"], at["metric"]))


async def external(request: web.Request) -> web.Response:
    at = request.match_info
    return web.json_response(exposition.external(_now(request), at["namespace"], at["metric"], _selector(request)))


async def resource(request: web.Request) -> web.Response:
    client, prometheus = request.app[CLIENT], request.app[OPTIONS].prometheus
    namespace, selector = request.match_info["namespace"], _selector(request)
    return web.json_response(await adapter.pods(client, prometheus, request.app[WORLD], namespace, selector))


async def resource_resources(_: web.Request) -> web.Response:
    return web.json_response(adapter.resources())


async def custom_resources(_: web.Request) -> web.Response:
    return web.json_response(exposition.custom_resources())


async def external_resources(_: web.Request) -> web.Response:
    return web.json_response(exposition.external_resources())


async def healthz(_: web.Request) -> web.Response:
    return web.Response(text="ok")


def _now(request: web.Request) -> World:
    world = request.app[WORLD]
    world.set_clock(time.time())
    return world


def _selector(request: web.Request) -> dict[str, str]:
    """Equality only, which is what matchLabels becomes."""
    text = request.query.get("labelSelector", "")
    return dict(pair.split("=", 1) for pair in text.split(",") if pair)


# Prometheus, with faults.


async def prometheus(request: web.Request) -> web.StreamResponse:
    fault = request.app[LANES].get(request.match_info["lane"], {})
    kind = fault.get("kind")
    if kind == "die" and request.transport:
        request.transport.abort()
    if kind == "error":
        return web.json_response({"status": "error", "error": "fault of the test bed"}, status=503)
    if kind == "late":
        await asyncio.sleep(fault["seconds"])
    return await _forward(request, kind)


async def _forward(request: web.Request, kind: str | None) -> web.Response:
    options, client = request.app[OPTIONS], request.app[CLIENT]
    headers = {"Content-Type": request.headers["Content-Type"]} if request.can_read_body else {}
    url = f"{options.prometheus}/{request.match_info['path']}"
    async with client.request(
        request.method, url, params=request.query, data=await request.read(), headers=headers
    ) as answer:
        body = await answer.read()
    if kind in ("nan", "warnings", "empty"):
        body = json.dumps(_spoil(json.loads(body), kind)).encode()
    return web.Response(body=body, status=answer.status, content_type=answer.content_type)


def _spoil(answer: dict[str, Any], kind: str) -> dict[str, Any]:
    result = answer.get("data", {}).get("result", [])
    if kind == "warnings":
        return {**answer, "warnings": ["fault of the test bed: results may be incomplete"]}
    if kind == "empty":
        return {**answer, "data": {**answer["data"], "result": []}}
    for series in result:
        for name, samples in (("value", [series.get("value")]), ("values", series.get("values", []))):
            if name in series:
                broken = [[at_s, "NaN"] for at_s, _ in samples]
                series[name] = broken[0] if name == "value" else broken
    return answer


async def serve(options: argparse.Namespace) -> None:
    app = web.Application()
    world = app[WORLD] = World(now=round(time.time(), 3))
    app[LANES], app[OPTIONS] = {}, options
    app.add_routes(
        [
            web.get("/healthz", healthz),
            web.post("/load", post_load),
            web.post("/fault", post_fault),
            web.get("/metrics", application),
            web.get("/nodes/{node}/metrics/resource", kubelet),
            web.route("*", "/prometheus/{lane}/{path:.*}", prometheus),
            web.get(f"/apis/{adapter.RESOURCE}", resource_resources),
            web.get(f"/apis/{adapter.RESOURCE}/namespaces/{{namespace}}/pods", resource),
            web.get(f"/apis/{exposition.CUSTOM}", custom_resources),
            web.get(f"/apis/{exposition.CUSTOM}/namespaces/{{namespace}}/{{resource}}/{{name}}/{{metric}}", custom),
            web.get(f"/apis/{exposition.EXTERNAL}", external_resources),
            web.get(f"/apis/{exposition.EXTERNAL}/namespaces/{{namespace}}/{{metric}}", external),
        ]
    )
    api_url, client_tls = _api_access(options.kubeconfig)
    async with aiohttp.ClientSession() as app[CLIENT]:
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        server_tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        server_tls.load_cert_chain(options.tls_cert, options.tls_key)
        await web.TCPSite(runner, "127.0.0.1", options.port).start()
        await web.TCPSite(runner, "127.0.0.1", options.tls_port, ssl_context=server_tls).start()
        await asyncio.gather(keep_time(world), follow_pods(world, api_url, client_tls))


def _api_access(kubeconfig: str) -> tuple[str, ssl.SSLContext]:
    with open(kubeconfig) as file:
        config = json.load(file)  # the bed writes its kubeconfigs as JSON
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
    tls.load_cert_chain(user["client-certificate"], user["client-key"])
    return cluster["server"], tls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("kubeconfig", "port", "tls-port", "tls-cert", "tls-key", "prometheus"):
        parser.add_argument(f"--{name}", required=True, type=int if name.endswith("port") else str)
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
