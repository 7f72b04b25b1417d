"""Workload history from a real Prometheus, filled by promtool with series whose sums are known by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.bed import Bed
from tests.history.filled import Filled, fill, serve
from trimtab.errors import MetricsUnavailable, NotEnoughData
from trimtab.history.pod_owners import SeriesMatchers
from trimtab.history.query_pages import QueryPage, query_page
from trimtab.history.source import Level, Selection, fetch, time_grid
from trimtab.history.workload_history import WorkloadHistory
from trimtab.promql import parse_matchers
from trimtab.series import Frame
from trimtab.wire.access import prometheus_access
from trimtab.wire.kube import Kube
from trimtab.wire.kubeconfig import connect
from trimtab.wire.prometheus import Prometheus

pytestmark = [pytest.mark.e2e, pytest.mark.smoke]

START, END = 1_760_000_400, 1_760_000_400 + 2 * 3600  # two hours on the minute
TIMES = np.arange(START - 600, END + 60, 60)
HALF = START + 3600
JOB = "kube-state-metrics"


def usage(namespace: str, pod: str, container: str, cores: float, times: NDArray[np.int64] = TIMES) -> Iterator[Filled]:
    """A counter that runs at `cores` and starts again half an hour before the end; a constant working set."""
    labels = f'namespace="{namespace}",pod="{pod}",container="{container}"'
    counter = np.where(times < END - 1800, cores * (times - START + 600), cores * (times - END + 1860))
    yield Filled(f"container_cpu_usage_seconds_total{{{labels}}}", times, counter.astype(float))
    yield Filled(f"container_memory_working_set_bytes{{{labels}}}", times, np.full(len(times), cores * 1e9))


def owned(namespace: str, pod: str, kind: str, owner: str, instance: str = "one") -> Iterator[Filled]:
    controller = "true" if kind else ""
    by = (
        f'owner_kind="{kind}",owner_name="{owner}",owner_is_controller="{controller}",instance="{instance}",job="{JOB}"'
    )
    yield Filled(f'kube_pod_owner{{namespace="{namespace}",pod="{pod}",{by}}}', TIMES, np.ones(len(TIMES)))


def replica_set(namespace: str, name: str, deployment: str) -> Filled:
    by = f'owner_kind="Deployment",owner_name="{deployment}",owner_is_controller="true",job="{JOB}"'
    labels = f'namespace="{namespace}",replicaset="{name}",{by}'
    return Filled(f"kube_replicaset_owner{{{labels}}}", TIMES, np.ones(len(TIMES)))


def pods(prefix: str) -> Iterator[Filled]:
    """web: a rollout after an hour (2 pods of 0.5, then 1 of 0.7); web-api: its name begins like web's."""
    before, after = TIMES[TIMES < HALF], TIMES[TIMES >= HALF]
    yield from usage(f"{prefix}shop", "web-aaa-11111", "main", 0.5, before)
    yield from usage(f"{prefix}shop", "web-aaa-22222", "main", 0.5, before)
    yield from usage(f"{prefix}shop", "web-bbb-33333", "main", 0.7, after)
    yield from usage(f"{prefix}shop", "web-api-ccc-44444", "main", 3.0)
    yield from usage(f"{prefix}shop", "web-api-ccc-44444", "sidecar", 0.25)
    yield from usage(f"{prefix}shop", "web-api-ccc-44444", "", 3.25)  # the pod's own cgroup: counted in its parts
    yield from usage(f"{prefix}shop", "web-api-ccc-44444", "POD", 0.01)
    yield from usage(f"{prefix}shop", "db-0", "main", 1.0)
    yield from usage(f"{prefix}shop", "db-backup", "main", 9.0)  # a bare pod that only looks like one of db's
    yield from usage(f"{prefix}other", "web-aaa-11111", "main", 7.0)  # the same pod name in another namespace
    yield from usage(f"{prefix}other", "nightly-1-55555", "main", 5.0)


def kube_state() -> Iterator[Filled]:
    for namespace, pod, owner in (
        ("shop", "web-aaa-11111", "web-aaa"),
        ("shop", "web-aaa-22222", "web-aaa"),
        ("shop", "web-bbb-33333", "web-bbb"),
        ("shop", "web-api-ccc-44444", "web-api-ccc"),
        ("other", "web-aaa-11111", "web-aaa"),
    ):
        yield from owned(namespace, pod, "ReplicaSet", owner)
    yield from owned("shop", "web-bbb-33333", "ReplicaSet", "web-bbb", instance="a second kube-state-metrics")
    yield from owned("shop", "db-0", "StatefulSet", "db")
    yield from owned("shop", "db-backup", "", "")
    yield from owned("other", "nightly-1-55555", "Job", "nightly-1")
    for namespace, name, deployment in (
        ("shop", "web-aaa", "web"),
        ("shop", "web-bbb", "web"),
        ("shop", "web-api-ccc", "web-api"),
        ("other", "web-aaa", "web"),
    ):
        yield replica_set(namespace, name, deployment)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory: Path = tmp_path_factory.mktemp("prometheus")
    fill(directory, [*pods(""), *kube_state(), *pods("bare-")])
    with serve(directory) as (address, _):
        yield address


def history(url: str, selection: Selection, matchers: str = "") -> dict[str, Frame]:
    async def run() -> Frame:
        async with Prometheus(prometheus_access(url)) as prometheus:
            source = WorkloadHistory(prometheus, matchers=SeriesMatchers(parse_matchers(matchers)))
            frame = await fetch(source, selection, START, END, 60)
            ways = {what for _, what, _ in prometheus.counts} - {"series"}
            assert ways == {"query_range"}
            return frame

    frame = asyncio.run(run())
    return {
        name: Frame((name,), frame.start, frame.step_s, frame.values[i : i + 1]) for i, name in enumerate(frame.names)
    }


def level_of(frame: Frame, first: float, last: float) -> float:
    """The value between two times; the test fails if it is not constant there (counter resets included)."""
    within = (frame.times >= first) & (frame.times < last)
    values = frame.values[0][within]
    np.testing.assert_allclose(values, values[0], rtol=1e-9)
    return float(values[0])


def test_workload_sums_by_owner(url: str) -> None:
    found = history(url, Selection("cpu"))
    assert set(found) == {
        "shop/Deployment/web", "shop/Deployment/web-api", "shop/StatefulSet/db", "other/Deployment/web",
    }  # fmt: skip
    assert level_of(found["shop/Deployment/web"], START, HALF - 60) == pytest.approx(1.0)
    assert level_of(found["shop/Deployment/web"], HALF + 300, END) == pytest.approx(0.7)
    assert level_of(found["shop/Deployment/web-api"], START, END) == pytest.approx(3.25)
    assert level_of(found["shop/StatefulSet/db"], START, END) == pytest.approx(1.0)
    assert level_of(found["other/Deployment/web"], START, END) == pytest.approx(7.0)
    frame = found["shop/Deployment/web"]
    assert (frame.start, frame.end, frame.step_s, frame.values.shape) == (START, END, 60, (1, 120))


def test_memory_and_one_namespace(url: str) -> None:
    found = history(url, Selection("memory", namespaces=("other",)))
    assert set(found) == {"other/Deployment/web"}
    assert level_of(found["other/Deployment/web"], START, END) == pytest.approx(7e9)


@pytest.mark.parametrize(
    "level, expected",
    [
        ("container", {"shop/Deployment/web-api/main": 3.0, "shop/Deployment/web-api/sidecar": 0.25}),
        ("pod", {"shop/Deployment/web-api/main/web-api-ccc-44444": 3.0, "shop/StatefulSet/db/main/db-0": 1.0}),
    ],
)
def test_containers_and_pods(url: str, level: Level, expected: dict[str, float]) -> None:
    found = history(url, Selection("cpu", level, ("shop",)))
    assert not any("POD" in name or "backup" in name for name in found)
    for name, cores in expected.items():
        assert level_of(found[name], START, END) == pytest.approx(cores)


def test_matchers_narrow_everything(url: str) -> None:
    with pytest.raises(MetricsUnavailable, match="kube_pod_owner"):
        history(url, Selection("cpu"), matchers='cluster="elsewhere"')


def test_without_kube_state_metrics_it_says_what_to_do(url: str) -> None:
    with pytest.raises(MetricsUnavailable, match="let it scrape kube-state-metrics"):
        history(url, Selection("cpu", namespaces=("bare-shop",)))


def test_a_time_without_data(url: str) -> None:
    async def run() -> None:
        async with Prometheus(prometheus_access(url)) as prometheus:
            source = WorkloadHistory(prometheus)
            await source._members((), START, END)
            source._known = ((), 10 * START, 10 * START + 600), source._known[1]
            with pytest.raises(NotEnoughData, match="no cpu history"):
                await fetch(source, Selection("cpu"), 10 * START, 10 * START + 600, 60)

    asyncio.run(run())


def test_without_kube_state_metrics_the_api_server_knows_the_owners(url: str, bed: Bed, namespace: str) -> None:
    """ReplicaSets stay when their pods are gone, so the past of a Deployment is found without its pods."""

    def replica(name: str) -> dict[str, object]:
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "any"}]}}
        spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
        meta = {"name": name, "namespace": "bare-shop", "labels": labels}
        return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": spec}

    bed.kubectl("delete", "namespace", "bare-shop", "--ignore-not-found")  # what a run before this one left
    bed.kubectl("create", "namespace", "bare-shop")
    try:
        bed.apply(replica("web-aaa"), replica("web-api-ccc"))

        async def run() -> Frame:
            async with (
                Prometheus(prometheus_access(url)) as prometheus,
                Kube(connect(None, str(bed.kubeconfig))) as kube,
            ):
                source = WorkloadHistory(prometheus, kube)
                return await fetch(source, Selection("cpu", namespaces=("bare-shop",)), START, END, 60)

        frame = asyncio.run(run())
        assert frame.names == ("bare-shop/ReplicaSet/web-aaa", "bare-shop/ReplicaSet/web-api-ccc")
        assert frame.values[1, 0] == pytest.approx(3.25)
    finally:
        bed.kubectl("delete", "namespace", "bare-shop", "--wait=false")


def test_a_range_of_more_than_11000_points_is_split(url: str) -> None:
    async def run() -> Frame:
        async with Prometheus(prometheus_access(url)) as prometheus:
            page = QueryPage(
                'container_memory_working_set_bytes{pod="db-0",namespace="shop"}', lambda labels: labels["pod"]
            )
            frame = await query_page(prometheus, page, time_grid(START, START + 12_000, 0.5))
            assert prometheus.counts["get", "query_range", 200] == 3
            return frame

    frame = asyncio.run(run())
    assert frame.values.shape == (1, 24_000)
    inside = frame.times <= END
    np.testing.assert_array_equal(frame.values[0][inside], 1e9)
