"""The time before a journal, and a hole in it, come from the operator's own metrics; what the journal knows stays."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from aiohttp import web

from tests.live.build import AT, custom, object_tick, spec, subject
from tests.web.recorded import PLAIN, START
from trimtab.core.model import Observation, Pod, PodSamples
from trimtab.journal import Journal, ObjectName
from trimtab.live.tell.telemetry import Telemetry
from trimtab.policy import Size
from trimtab.ticks import Tick
from trimtab.web.packing import PageTable
from trimtab.web.past import METRICS, PastSource, expression
from trimtab.web.sources import Answer, JournalSource, answered
from trimtab.wire.access import Access

WEB = ObjectName("Autoscaler", "shop", "web")
HOUR, DAY = 3600, 86400
KNOWN = (*range(2 * HOUR, 3 * HOUR, 60), *range(4 * HOUR, 5 * HOUR, 60))  # seconds of a day that the journal has


class StoredMetrics:
    """A Prometheus that has seen the day before START and that day: the load is 1000 + minutes since START."""

    def __init__(self) -> None:
        self.queries: list[dict[str, Any]] = []
        self.status = 200

    async def query_range(self, request: web.Request) -> web.Response:
        asked = dict(await request.post())
        self.queries.append(asked)
        start, end, step = (float(str(asked[key])) for key in ("start", "end", "step"))
        moments = [at for at in np.arange(start, end + 1, step) if START - DAY <= at < START + DAY]
        rows = [
            {
                "metric": {"__name__": name},
                "values": [[at, str(self.load(at) if name == "trimtab_load" else 7)] for at in moments],
            }
            for name in METRICS
            if moments and name != "trimtab_bridge_factor"
        ]
        return web.json_response(
            {"status": "success", "data": {"resultType": "matrix", "result": rows}}, status=self.status
        )

    @staticmethod
    def load(at: float) -> float:
        return 1000 + (at - START) / 60


@pytest.fixture
def stored() -> StoredMetrics:
    return StoredMetrics()


@pytest.fixture
def source(stored: StoredMetrics, tmp_path: Path) -> Iterator[PastSource]:
    journal = Journal(tmp_path / "j.db")
    journal.write([], [Tick(WEB, START + at, 3, 3, 3, 1.0, 50.0, 80.0, policy=PLAIN) for at in KNOWN])
    journal.close()
    loop, started = asyncio.new_event_loop(), []

    async def serve() -> None:
        app = web.Application()
        app.router.add_post("/api/v1/query_range", stored.query_range)
        started.append(web.AppRunner(app))
        await started[0].setup()
        await web.TCPSite(started[0], "127.0.0.1", 0).start()

    loop.run_until_complete(serve())
    thread = Thread(target=loop.run_forever)
    thread.start()
    port = started[0].addresses[0][1]
    yield PastSource(JournalSource(tmp_path / "j.db", "shop"), Access(f"http://127.0.0.1:{port}"))
    asyncio.run_coroutine_threadsafe(started[0].cleanup(), loop).result(60)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def table(found: Answer) -> PageTable:
    assert isinstance(found, PageTable)
    return found


def test_what_the_journal_knows_stays_and_the_rest_is_filled(source: PastSource, stored: StoredMetrics) -> None:
    about, columns = table(source.answer("workload", WEB._asdict()))
    at, load = columns["at"], columns["load"]
    assert at[0] == START - DAY and at[-1] == START + KNOWN[-1] and (np.diff(at) == 60).all()
    ours = np.isin(at, START + np.array(KNOWN))
    assert (load[ours] == 50).all() and (columns["replicas"][ours] == 3).all()
    assert np.allclose(load[~ours], 1000 + (at[~ours] - START) / 60) and (columns["ready"][~ours] == 7).all()
    assert np.isnan(columns["cpu_cores"]).all() and "past" not in about


def test_questions_are_few_and_not_asked_again(source: PastSource, stored: StoredMetrics) -> None:
    source.answer("workload", WEB._asdict())
    asked = len(stored.queries)
    assert asked <= 6, "thirty days in weeks"
    assert all(float(one["end"]) - float(one["start"]) <= 7 * DAY and one["step"] == "60" for one in stored.queries)
    source.answer("workload", WEB._asdict())
    source.answer("fleet", {})
    assert len(stored.queries) == asked


def test_what_if_judges_the_longer_history(source: PastSource) -> None:
    alone, _ = table(answered(source.source, "whatif", WEB._asdict()))
    longer, _ = table(answered(source, "whatif", WEB._asdict()))
    assert alone["days"] == pytest.approx(3 / 24) and longer["days"] == pytest.approx(1 + 5 / 24)
    rows = str(answered(source, "history.csv", WEB._asdict())).splitlines()
    assert rows[1] == f"{START - DAY:.0f},{StoredMetrics.load(START - DAY)!r}"


def test_a_prometheus_that_does_not_answer_is_said_and_nothing_is_lost(
    source: PastSource, stored: StoredMetrics
) -> None:
    stored.status = 400
    about, columns = table(source.answer("workload", WEB._asdict()))
    assert "400" in about["past"] and len(columns["at"]) == (KNOWN[-1] - KNOWN[0]) / 60 + 1


def test_a_hostile_name_stays_inside_its_quotes() -> None:
    assert r'name="a\"} or up{x=\""' in expression(ObjectName("Autoscaler", "shop", 'a"} or up{x="'))


def test_every_metric_that_is_asked_for_is_told() -> None:
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    about = subject(custom(spec=spec(metrics=[cpu], bridge={})))
    pod = Pod(name="a", ready_since=AT - 900, started_at=AT - 900, requests=Size(cpu_cores=0.5))
    samples = (PodSamples(values={"a": 0.25}, at=AT),)
    seen = Observation(at=AT, spec_replicas=1, status_replicas=1, pods=(pod,), samples=samples)
    telemetry = Telemetry()
    telemetry.saw([object_tick(about, seen)])
    told = dict(re.findall(r"^(\w+)\{.*\} (\S+)$", telemetry.render(), re.MULTILINE))
    assert set(METRICS) <= set(told)
    assert (told["trimtab_load"], told["trimtab_capacity"], told["trimtab_ready_replicas"]) == ("0.25", "0.5", "1")
    telemetry.stand_by()
    assert "trimtab_load" not in telemetry.render(), "who stands by does not know"
