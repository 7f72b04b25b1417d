"""Stored samples where the server gives them, the query where it does not: trying never costs the answer."""

from __future__ import annotations

import asyncio
import logging

import numpy as np
import pytest
from aiohttp import web

from tests.history.chunks import Sample, chunk, frame, series
from tests.wire.fake import Fake
from trimtab.history import stored_samples
from trimtab.history.promql import StoredSamples, in_order
from trimtab.history.source import Level, Metric, Selection, fetch
from trimtab.history.workload_history import WorkloadHistory
from trimtab.series import Frame
from trimtab.wire.access import prometheus_access
from trimtab.wire.prometheus import Prometheus

START, STEPS = 1_760_000_400, 10
QUERIED, STORED = 7.0, 2.0  # cores: which way an answer came


def counter(first: int = -10, after: int = STEPS, cores: float = STORED) -> list[Sample]:
    return [((START + 60 * index) * 1000, cores * 60 * (index + 20)) for index in range(first, after)]


def labels(pod: str, namespace: str = "shop", container: str = "main") -> dict[str, str]:
    return {"__name__": "container_cpu_usage_seconds_total", "namespace": namespace, "pod": pod, "container": container}


class Server:
    """A metrics server with one Deployment, shop/web, which answers remote reads with `answer`."""

    def __init__(self, answer: web.Response) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(what := request.path.rpartition("/")[2])
        if what == "read":
            return web.Response(status=self.answer.status, body=self.answer.body)
        if what == "series":
            kind = "replicaset" if "kube_replicaset_owner" in await request.text() else "pod"
            owner = {"pod": ("ReplicaSet", "web-1"), "replicaset": ("Deployment", "web")}[kind]
            name = {"pod": "web-1-a", "replicaset": "web-1"}[kind]
            found = {"namespace": "shop", kind: name, "owner_kind": owner[0], "owner_name": owner[1]}
            return web.json_response({"status": "success", "data": [found]})
        values = [[START + 60 * step, str(QUERIED)] for step in range(STEPS)]
        row = {
            "metric": {"namespace": "shop", "stem": "web-1", "pod": "web-1-a", "container": "main"},
            "values": values,
        }
        return web.json_response({"status": "success", "data": {"resultType": "matrix", "result": [row]}})


def read(server: Server, *kinds: tuple[Metric, Level], matchers: str = "") -> list[Frame]:
    async def run() -> list[Frame]:
        async with Fake(server) as fake, Prometheus(prometheus_access(fake.url), timeout_s=60.0) as prometheus:
            source = WorkloadHistory(prometheus, matchers=matchers)
            asked = [Selection(metric, level) for metric, level in kinds or (("cpu", "workload"),)]
            return [await fetch(source, one, START, START + 60 * STEPS, 60) for one in asked]

    return asyncio.run(run())


def answer(*messages: bytes) -> web.Response:
    return web.Response(body=b"".join(map(frame, messages)))


def test_pods_of_a_workload_are_added_up_and_others_left_out() -> None:
    sent = (
        series(labels("web-1-a"), chunk(counter(-10, 2))),
        series(labels("web-1-a"), chunk(counter(2))),  # a long series goes on in a second frame
        series(labels("web-1-b"), chunk(counter(5, cores=0.5))),
        series(labels("web-1-a", namespace="elsewhere"), chunk(counter())),
    )
    server = Server(answer(*sent))
    (frame,) = read(server)
    assert server.asked.count("query_range") == 0
    assert frame.names == ("shop/Deployment/web",)
    np.testing.assert_allclose(frame.values[0, :6], STORED)  # the second pod's rate needs two samples
    np.testing.assert_allclose(frame.values[0, 7:], STORED + 0.5)


def test_many_batches_are_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = [series(labels(f"web-1-{index}"), chunk(counter(cores=index))) for index in range(30)]
    (whole,) = read(Server(answer(*sent)), ("cpu", "pod"))
    for name, value in (("BATCH", 25), ("BLOCK", 1), ("PIECE_BYTES", 100)):
        monkeypatch.setattr(stored_samples, name, value)
    (parts,) = read(Server(answer(*sent)), ("cpu", "pod"))
    assert parts.names == whole.names and len(whole.names) == 30
    np.testing.assert_array_equal(parts.values, whole.values)
    np.testing.assert_allclose(whole.values[:, -1], np.arange(30))


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(web.Response(status=400, text="unsupported path requested"), id="VictoriaMetrics"),
        pytest.param(web.Response(status=404, text="404 page not found"), id="Thanos"),
        pytest.param(web.Response(status=403, text="forbidden"), id="a proxy"),
        pytest.param(web.Response(status=405, text="method not allowed"), id="a proxy that only lets GET through"),
        pytest.param(web.Response(status=500, text="gate: too many reads"), id="a server that is busy"),
        pytest.param(web.Response(text="<html>Log in</html>" * 20), id="a login page"),
        pytest.param(answer(series(labels("web-1-a"), b"", encoding=4)), id="an encoding of later versions"),
        pytest.param(answer(series(labels("web-1-a"), chunk(counter())[:30])), id="a chunk that was cut"),
    ],
)
def test_the_query_is_the_way_out(refusal: web.Response, caplog: pytest.LogCaptureFixture) -> None:
    server = Server(refusal)
    with caplog.at_level(logging.DEBUG, "trimtab"):
        frames = read(server, ("cpu", "workload"), ("cpu", "pod"), ("memory", "pod"))
    assert all((frame.values == QUERIED).all() for frame in frames)
    assert (server.asked.count("read"), server.asked.count("query_range")) == (1, 3)  # tried once a source
    assert [record.levelname for record in caplog.records if "is queried" in record.message] == ["DEBUG"]


def test_an_answer_without_any_series_is_not_believed() -> None:
    """Some proxies say 200 to everything; the owners say that there were pods."""
    server = Server(web.Response(body=b""))
    assert (read(server)[0].values == QUERIED).all()


def test_unusual_matchers_are_for_promql() -> None:
    server = Server(answer())
    (frame,) = read(server, matchers=r'cluster="a\"b"')
    assert (frame.values == QUERIED).all() and "read" not in server.asked


def test_where_samples_are_many_the_server_adds_them_up() -> None:
    """Only for this kind of page: others may have fewer."""
    crowded = b"\xff\xff" + chunk(counter())[2:] + bytes(20_000)  # 65,535 samples for a page of 100 x 10 points
    server = Server(answer(series(labels("web-1-a"), crowded)))
    frames = read(server, ("cpu", "workload"), ("cpu", "workload"), ("cpu", "pod"))
    assert all((frame.values == QUERIED).all() for frame in frames)
    assert (server.asked.count("read"), server.asked.count("query_range")) == (2, 3)


def test_short_series_count_as_rows() -> None:
    """A thousand pods that lived for a minute are a thousand rows to add up."""
    sent = (series(labels(f"web-1-{index}"), chunk(counter(0, 1))) for index in range(1100))
    server = Server(answer(*sent))
    assert (read(server)[0].values == QUERIED).all()


def test_owners_are_found_once_for_all_that_is_asked_at_once() -> None:
    server = Server(answer(series(labels("web-1-a"), chunk(counter()))))

    async def run() -> None:
        async with Fake(server) as fake, Prometheus(prometheus_access(fake.url), timeout_s=60.0) as prometheus:
            source = WorkloadHistory(prometheus)
            both = (Selection("cpu"), Selection("cpu", "pod"))
            await asyncio.gather(*(fetch(source, one, START, START + 60 * STEPS, 60) for one in both))

    asyncio.run(run())
    assert (server.asked.count("series"), server.asked.count("read")) == (2, 2)


def test_overlapping_chunks_are_put_in_order() -> None:
    """As several replicas of a store may send them: of two samples at one time the first is kept."""
    times, values = [10, 20, 30, 20, 40, 5, 5], [1.0, 2.0, 3.0, 9.0, 4.0, 7.0, 8.0]
    sorted_ = in_order(StoredSamples(np.array(times), np.array(values), np.array([5, 2])))
    assert sorted_.times_ms.tolist() == [10, 20, 30, 40, 5]
    assert sorted_.values.tolist() == [1.0, 2.0, 3.0, 4.0, 7.0]
    assert sorted_.counts.tolist() == [4, 1]
