"""An operator to measure: a real Ticker over a cluster in memory, which answers the page where the API server would.

It reads a number of ticks from its standard input, ticks so often, and prints what each has cost.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

from aiohttp import web

from tests.live.build import AT
from tests.live.memory_api import MemoryApi
from tests.live.shop import measure, stock, ticker, watched
from trimtab.live.tell.telemetry import Telemetry
from trimtab.web.operator import answer_on
from trimtab.web.sources import JournalSource

OPERATOR = "trimtab/trimtab"
PROXY = "/api/v1/namespaces/trimtab/services/trimtab:8080/proxy"
EVERY_S = 15.0  # as the chart has it
CORES = 0.125  # of 0.25 requested: exactly the target of 50 %, so that nothing changes


async def main(objects: int, journal: Path) -> None:
    api = MemoryApi()
    for number in range(objects):
        stock(api, f"web-{number}", CORES)
    found = ticker(api, watched(api), Telemetry(), journal)
    at = AT
    await found.tick(at)
    port = await serve(journal)
    print(port, flush=True)
    while count := await asyncio.to_thread(sys.stdin.readline):
        costs = []
        for _ in range(int(count)):
            at += 15.0
            for number in range(objects):
                for pod in ("a", "b"):
                    measure(api, f"web-{number}-{pod}", CORES, at)
            began = time.thread_time(), time.perf_counter()
            await found.tick(at)
            costs.append((time.thread_time() - began[0], time.perf_counter() - began[1]))
            await asyncio.sleep(max(0.0, EVERY_S - costs[-1][1]))
        print(json.dumps(costs), flush=True)


async def serve(journal: Path) -> int:
    operator, server = web.Application(), web.Application()
    answer_on(operator, JournalSource(journal, "bench"))
    server.add_subapp(PROXY, operator)
    runner = web.AppRunner(server)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port: int = runner.addresses[0][1]
    return port


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(int(sys.argv[1]), Path(folder) / "journal.db"))
