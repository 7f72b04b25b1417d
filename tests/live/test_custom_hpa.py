"""Custom-hpa's loop against an API server and a Prometheus that answer as they are told."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from click.testing import CliRunner

from tests.kinds.test_custom_hpa import ENV
from tests.wire.fake import Fake
from trimtab.cli import main
from trimtab.errors import InvalidInput, Refused
from trimtab.kinds import CustomHpa
from trimtab.live.custom_hpa.loop import FirstSeries, Loop, ReleaseMemory
from trimtab.live.custom_hpa.serve import prometheus_url, serve
from trimtab.live.look.cluster import WatchedCluster
from trimtab.wire.access import Access, prometheus_access
from trimtab.wire.prometheus import Prometheus

REFUSALS = {403: "forbidden: cannot patch", 409: "the object has been modified", 404: "not found"}


class Cluster:
    """One Deployment with a scale, one ConfigMap, one namespace; `refuse` answers a verb and resource with a status."""

    def __init__(self, replicas: int = 10, memory: str | None = None, samples: tuple[str, ...] = ("160",)) -> None:
        self.replicas, self.samples, self.warnings = replicas, samples, False
        self.data = None if memory is None else ({"memory": memory} if memory else {})
        self.refuse: dict[tuple[str, str], int] = {}
        self.writes: list[tuple[str, Any]] = []
        self.labels: dict[str, str] = {}

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/api/v1/query":
            return self._sample()
        what = next(one for one in ("scale", "configmaps", "namespaces/shop", "deployments") if one in request.path)
        what = "configmaps" if "configmaps" in request.path else what
        if status := self.refuse.get((request.method, what)):
            return _no(status)
        body = json.loads(await request.read()) if request.method in ("PATCH", "POST") else None
        if body is not None:
            self.writes.append((f"{request.method} {what}", body))
        return self._scale(body) if what == "scale" else self._other(what, body, request.method)

    def _sample(self) -> web.Response:
        if not self.samples and self.warnings:
            return web.Response(status=503, text="down")
        result = [{"metric": {"n": str(i)}, "value": [time.time(), text]} for i, text in enumerate(self.samples)]
        more = {"warnings": ["half of it"]} if self.warnings else {}
        return web.json_response({"status": "success", "data": {"resultType": "vector", "result": result}} | more)

    def _scale(self, body: Any) -> web.Response:
        if body:
            assert body["metadata"]["resourceVersion"] == "7", "guarded by the version it was decided on"
            self.replicas = body["spec"]["replicas"]
        meta = {"name": "web", "namespace": "shop", "resourceVersion": "7", "uid": "u"}
        return web.json_response({"metadata": meta, "spec": {"replicas": self.replicas}, "status": {"replicas": 1}})

    def _other(self, what: str, body: Any, method: str) -> web.Response:
        if what == "configmaps":
            if method != "POST" and self.data is None:
                return _no(404)
            if body:
                self.data = (self.data or {}) | body["data"]
            return web.json_response({"metadata": {"name": "release"}, "data": self.data or {}})
        if what == "namespaces/shop":
            return web.json_response({"metadata": {"name": "shop", "labels": self.labels}})
        return web.json_response({"metadata": {"name": "web"}, "spec": {"replicas": self.replicas}})

    @property
    def memory(self) -> dict[str, Any]:
        return dict(json.loads((self.data or {}).get("memory", "{}")).get("core", {}))

    @property
    def scalings(self) -> list[int]:
        return [body["spec"]["replicas"] for what, body in self.writes if what == "PATCH scale"]


def _no(status: int) -> web.Response:
    return web.json_response({"message": REFUSALS[status], "code": status}, status=status)


@asynccontextmanager
async def started(cluster: Cluster, **env: str) -> AsyncIterator[Loop]:
    """A process that has just started."""
    custom = CustomHpa.from_env(ENV | env)
    source = FirstSeries if custom.exact else Prometheus
    async with (
        Fake(cluster.answer) as fake,
        fake.kube() as kube,
        source(prometheus_access(fake.url), timeout_s=60.0) as prometheus,
    ):
        yield Loop(custom, kube, prometheus, ReleaseMemory(kube, "home", "release"), WatchedCluster(kube, "shop"))


def periods(cluster: Cluster, count: int = 1, **env: str) -> Loop:
    async def run() -> Loop:
        async with started(cluster, **env) as loop:
            for _ in range(count):
                await loop.period(time.time())
            return loop

    return asyncio.run(run())


def status(loop: Loop) -> set[str]:
    return {f"{way}/{what}" for what, way in loop.gauges.statuses}


def test_it_scales_and_a_new_process_keeps_the_cooldown() -> None:
    cluster = Cluster(memory="")
    before = time.time()
    assert status(periods(cluster)) == {"up/scaled"}
    assert cluster.scalings == [16]
    assert before <= cluster.memory["up_at"] <= time.time()
    assert status(periods(cluster)) == {"up/cooldown"}
    assert cluster.scalings == [16]
    periods(cluster, SCALE_UP_COOLDOWN="0")
    assert cluster.scalings == [16, 26]


def test_the_memory_is_made_where_no_chart_has_made_it() -> None:
    cluster = Cluster()
    periods(cluster)
    assert [what for what, _ in cluster.writes] == ["PATCH scale", "PATCH configmaps", "POST configmaps"]
    assert cluster.memory["up_at"] > 0


def test_nothing_is_written_when_nothing_happens() -> None:
    cluster = Cluster(memory="", samples=("100",))
    periods(cluster, 3)
    cluster.samples = ("NaN",)
    periods(cluster, 3)
    assert cluster.writes == []
    cluster.samples = ("160",)
    periods(cluster)
    written = len(cluster.writes)
    cluster.samples = ("100",)
    periods(cluster, 3)
    assert len(cluster.writes) == written == 2


@pytest.mark.parametrize("code", [403, 409])
def test_a_refused_write_starts_no_cooldown(code: int) -> None:
    cluster = Cluster(memory="")
    cluster.refuse["PATCH", "scale"] = code
    assert status(periods(cluster, 2)) == set()
    assert cluster.memory.get("up_at") is None
    cluster.refuse.clear()
    periods(cluster)
    assert cluster.scalings == [16]


@pytest.mark.parametrize("exact", ["false", "true"])
def test_a_dry_run_says_what_it_would_do_and_starts_no_cooldown(exact: str) -> None:
    cluster = Cluster(memory="")
    loop = periods(cluster, 2, DRY_RUN="true", EXACT=exact)
    assert (cluster.scalings, cluster.memory.get("up_at")) == ([], None)
    assert status(loop) == set()
    assert 'custom_hpa_status_desired_replicas{deployment="web"} 16' in loop.gauges.render()


@pytest.mark.parametrize(
    "samples, warnings, why",
    [
        pytest.param(("NaN",), False, "NotFinite", id="not a number"),
        pytest.param(("+Inf",), False, "NotFinite", id="infinite"),
        pytest.param(("-5",), False, "Negative", id="less than nothing"),
        pytest.param((), False, "Absent", id="an empty answer"),
        pytest.param(("160", "170"), False, "Ambiguous", id="two series"),
        pytest.param(("5",), True, "Partial", id="half an answer"),
        pytest.param((), True, "Unreachable", id="no answer"),
    ],
)
def test_without_one_sound_value_the_size_is_kept_and_said(
    samples: tuple[str, ...], warnings: bool, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster(replicas=20, memory="", samples=samples)
    cluster.warnings = warnings
    with caplog.at_level("INFO"):
        loop = periods(cluster)
    assert cluster.scalings == []
    assert loop.gauges.requests == {"success": 0, "failure": 1}
    assert f"metrics are missing ({why}), the size is kept" in caplog.text


def test_exact_mode_takes_the_first_of_several_series() -> None:
    cluster = Cluster(memory="", samples=("160", "7"))
    periods(cluster, EXACT="true")
    assert cluster.scalings == [16]


def test_exact_mode_burns_a_cooldown_on_the_same_number_and_the_default_does_not() -> None:
    exact, ours = (Cluster(replicas=1, memory="", samples=("85",)) for _ in range(2))
    assert status(periods(exact, EXACT="true", MIN_REPLICAS="1")) == {"down/scaled"}
    assert exact.scalings == [1]
    assert exact.memory["down_at"] > 0
    assert status(periods(ours, MIN_REPLICAS="1")) == set()
    assert (ours.scalings, ours.memory.get("down_at")) == ([], None)


def test_without_its_memory_it_does_not_act() -> None:
    cluster = Cluster(memory="")
    cluster.refuse["GET", "configmaps"] = 403
    with pytest.raises(Refused, match="403"):
        periods(cluster)
    assert cluster.scalings == []


@pytest.mark.parametrize("written", ["{", "[]", '{"is": "ObjectMemory", "version": 99}', '{"core": 1}'])
def test_a_memory_that_cannot_be_read_starts_anew(written: str) -> None:
    cluster = Cluster(memory=written)
    periods(cluster)
    assert cluster.scalings == [16]
    assert cluster.memory["up_at"] > 0


def test_a_cooldown_that_could_not_be_stored_is_stored_later() -> None:
    cluster = Cluster(memory="")
    cluster.refuse["PATCH", "configmaps"] = 403

    async def run() -> None:
        async with started(cluster) as loop:
            await loop.period(time.time())
            assert status(loop) == {"up/scaled"}
            assert cluster.memory == {}
            cluster.refuse.clear()
            await loop.period(time.time())
            assert status(loop) == {"up/cooldown"}

    asyncio.run(run())
    assert cluster.memory["up_at"] > 0
    assert cluster.scalings == [16]


def test_a_namespace_can_opt_out() -> None:
    cluster = Cluster(memory="")
    cluster.labels["trimtab.dev/enabled"] = "false"
    periods(cluster)
    assert cluster.scalings == []


def test_the_metrics_have_the_program_s_names() -> None:
    text = periods(Cluster(memory=""), SCALE_UP_MAX_FACTOR="0.5").gauges.render()
    assert "# TYPE custom_hpa_up counter" in text
    assert "# TYPE custom_hpa_metric_requests counter" in text
    assert "# TYPE custom_hpa_scale_factor gauge" in text
    rows = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert all('deployment="web"' in name for name in rows)
    found = {name.replace('deployment="web"', "").replace("{}", "").replace("{,", "{"): v for name, v in rows.items()}
    assert found == {
        "custom_hpa_up": "1",
        'custom_hpa_metric_requests{status="success"}': "1",
        'custom_hpa_metric_requests{status="failure"}': "0",
        "custom_hpa_metric_samples": "160",
        "custom_hpa_status_current_replicas": "10",
        "custom_hpa_status_desired_replicas": "15",
        "custom_hpa_scale_factor": "1.6",
        "custom_hpa_spec_min_replicas": "10",
        "custom_hpa_spec_max_replicas": "50",
        "custom_hpa_spec_target_value": "100",
    } | {
        f'custom_hpa_status{{status="{what}",scale="{way}"}}': "01"[
            way == "up" and what in ("scaled", "above-max-factor")
        ]
        for what in ("cooldown", "below-min-factor", "above-max-factor", "scaled")
        for way in ("up", "down")
    }


@pytest.mark.parametrize(
    "url, port, address",
    [
        ("http://localhost", "80", "http://localhost:80"),
        ("https://thanos.example/query/", "443", "https://thanos.example:443/query/"),
        ("http://[::1]", "9090", "http://[::1]:9090"),
        ("http://localhost:9090", "9090", "http://localhost:9090"),
    ],
)
def test_url_and_port_are_one_address(url: str, port: str, address: str) -> None:
    assert prometheus_url(CustomHpa.from_env(ENV | {"PROMETHEUS_URL": url, "PROMETHEUS_PORT": port})) == address


@pytest.mark.parametrize("url", ["localhost", "http://localhost:9090"])
def test_an_address_that_cannot_be_meant_is_refused_by_its_variable(url: str) -> None:
    with pytest.raises(InvalidInput, match="PROMETHEUS_URL"):
        prometheus_url(CustomHpa.from_env(ENV | {"PROMETHEUS_URL": url}))


def test_missing_variables_are_all_named_and_it_ends_with_2() -> None:
    env = {name: value for name, value in ENV.items() if name not in ("DEPLOYMENT", "NAMESPACE")}
    done = CliRunner(env=env).invoke(main, ["custom-hpa"])
    assert done.exit_code == 2
    assert "DEPLOYMENT: missing" in done.output
    assert "NAMESPACE: missing" in done.output


def test_a_load_of_nothing_is_a_load() -> None:
    cluster = Cluster(memory="", samples=("0",))
    assert status(periods(cluster, MIN_REPLICAS="1", SCALE_DOWN_MAX_FACTOR="0.5")) == {
        "down/above-max-factor",
        "down/scaled",
    }
    assert cluster.scalings == [5]


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        custom = CustomHpa.from_env(ENV | {"PORT": str(taken.getsockname()[1])})
        with pytest.raises(InvalidInput, match=r"PORT: \d+: cannot listen there"):
            asyncio.run(serve(custom, Access("http://127.0.0.1:1"), "release", "home"))
