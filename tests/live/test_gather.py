"""Questions are grouped, answers are typed: a value for each pod, a total, or Missing with its reason."""

from __future__ import annotations

import asyncio
import math
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from tests.wire.fake import Fake
from trimtab.core.model import Missing, Pod, PodSamples, Reason, Samples, TotalSample
from trimtab.live.measure.gather import Gather, Wanted
from trimtab.live.measure.readings import amounts_of, counted
from trimtab.policy import Metric, MetricKind, PodAverage, Signal, Total, TotalAverage, Utilization
from trimtab.wire.access import Access
from trimtab.wire.objects import ContainerUsage, PodMetrics, Usage
from trimtab.wire.prometheus import Prometheus

PODS = (Pod(name="a"), Pod(name="b"))
CPU = Utilization(metric=Metric(kind=MetricKind.RESOURCE, name="cpu"), percent=50)
MEMORY = PodAverage(metric=Metric(kind=MetricKind.RESOURCE, name="memory"), target=1.0)
PROXY = Utilization(metric=Metric(kind=MetricKind.CONTAINER, name="cpu", container="proxy"), percent=50)
RATE = PodAverage(metric=Metric(kind=MetricKind.PODS, name="rate"), target=10)
QUEUE = TotalAverage(metric=Metric(kind=MetricKind.EXTERNAL, name="queue", selector="app=web"), target=10)
HITS = Total(metric=Metric(kind=MetricKind.OBJECT, name="hits", object="v1/Service/front"), target=10)
QUERY = TotalAverage(metric=Metric(kind=MetricKind.PROMETHEUS, query="sum(x)"), target=10)


def stamp(age_s: float = 0.0) -> str:
    return datetime.fromtimestamp(time.time() - age_s, UTC).isoformat()


def usage(name: str, namespace: str = "shop", age_s: float = 0.0, **containers: tuple[str, str]) -> dict[str, Any]:
    listed = [{"name": each, "usage": {"cpu": cpu, "memory": memory}} for each, (cpu, memory) in containers.items()]
    meta = {"name": name, "namespace": namespace}
    return {"metadata": meta, "timestamp": stamp(age_s), "window": "10.5s", "containers": listed}


async def ask(
    answers: dict[str, Any], *wanted: Wanted, everywhere: bool = False, scrape_s: float = 60.0
) -> tuple[list[tuple[Samples | Missing, ...]], list[str]]:
    """What is gathered from a server that answers each path so, and the paths it was asked."""

    async def handler(request: web.Request) -> web.StreamResponse:
        found = answers.get(request.path)
        if isinstance(found, int):
            return web.Response(status=found, text="no")
        return web.json_response(found) if found is not None else web.json_response({"message": "none"}, status=404)

    async with Fake(handler) as fake:
        kube, prometheus = fake.kube(), Prometheus(Access(fake.url))
        try:
            gathered = (
                await Gather(kube, prometheus, everywhere=everywhere, scrape_s=scrape_s).gather(wanted, time.time())
            ).samples
        finally:
            await kube.close()
            await prometheus.close()
        return gathered, [request.path for request in fake.requests]


def one(answers: dict[str, Any], signal: Signal, **options: Any) -> Samples | Missing:
    gathered, _ = asyncio.run(ask(answers, Wanted("shop", (signal,), PODS), **options))
    return gathered[0][0]


METRICS = "/apis/metrics.k8s.io/v1beta1"
LIST = f"{METRICS}/namespaces/shop/pods"


def two() -> dict[str, Any]:
    """Made when it is asked for, so that a slow run of all tests does not make it stale."""
    return {"items": [usage("a", app=("250000000n", "64Mi"), proxy=("5m", "1Ki")), usage("b", app=("1", "1Gi"))]}


def test_a_sample_keeps_the_window_of_its_own_scrape() -> None:
    odd = usage("b", app=("1", "1Gi")) | {"window": "9.998s"}
    found = one({LIST: {"items": [two()["items"][0], odd]}}, CPU)
    assert isinstance(found, PodSamples) and (found.window_s, found.windows_s) == (10.5, {"b": 9.998})


def test_one_list_answers_every_resource_metric_of_a_namespace() -> None:
    wanted = [Wanted("shop", (CPU, MEMORY, PROXY), PODS), Wanted("shop", (CPU,), PODS[1:])]
    gathered, paths = asyncio.run(ask({LIST: two()}, *wanted))
    assert paths == [LIST]
    cpu, memory, proxy = gathered[0]
    assert isinstance(cpu, PodSamples) and cpu.values == {"a": pytest.approx(0.255), "b": 1.0} and cpu.window_s == 10.5
    assert isinstance(memory, PodSamples) and memory.values == {"a": 64 * 2**20 + 1024, "b": 2**30}
    assert isinstance(proxy, PodSamples) and proxy.values == {"a": 0.005}
    assert isinstance(gathered[1][0], PodSamples) and gathered[1][0].values == {"b": 1.0}


def test_many_namespaces_are_asked_for_at_once_where_we_may() -> None:
    wanted = [Wanted(f"n{index}", (CPU,), PODS[:1]) for index in range(6)]
    items = [usage("a", f"n{index}", app=(f"{index}", "1")) for index in range(6)]
    gathered, paths = asyncio.run(ask({f"{METRICS}/pods": {"items": items}}, *wanted, everywhere=True))
    assert paths == [f"{METRICS}/pods"]
    assert [found[0].values for found in gathered if isinstance(found[0], PodSamples)] == [{"a": i} for i in range(6)]


def test_of_one_list_only_pods_of_namespaces_that_ask_are_read() -> None:
    spaces = [f"n{index}" for index in range(6)]
    items = [usage("a", space, app=("1", "1")) for space in (*spaces, "elsewhere")]

    async def run() -> set[str]:
        async with Fake(lambda _: _answer({"items": items})) as fake:
            kube = fake.kube()
            found = await Gather(kube, None, everywhere=True).gather([], time.time(), spaces)
            await kube.close()
        return set(found.usage)

    assert asyncio.run(run()) == {f"{space}/a" for space in spaces}


async def _answer(content: dict[str, Any]) -> web.StreamResponse:
    return web.json_response(content)


def test_a_silent_container_makes_its_pod_unknown_and_an_old_sample_is_none() -> None:
    silent = usage("a", app=("1", "1"))
    silent["containers"].append({"name": "proxy", "usage": {}})
    old = usage("b", age_s=121, app=("1", "1"))
    assert one({LIST: {"items": [silent, usage("b", app=("1", "1"))]}}, CPU).values == {"b": 1.0}  # type: ignore[union-attr]
    assert one({LIST: {"items": [usage("a", app=("1", "1")), old]}}, CPU).values == {"a": 1.0}  # type: ignore[union-attr]


def test_what_is_wrong_with_every_pod_is_the_reason() -> None:
    old = usage("b", age_s=121, app=("1", "1"))
    for items, reason in (
        ([], Reason.ABSENT),
        ([old], Reason.STALE),
        ([usage("a", app=("-1", "1")), usage("b", app=("-5m", "1"))], Reason.NEGATIVE),
    ):
        found = one({LIST: {"items": items}}, CPU)
        assert isinstance(found, Missing) and found.reason is reason


def test_thousandths_are_rounded_up_as_kubernetes_does() -> None:
    found = one({LIST: {"items": [usage("a", app=("124999001n", "1")), usage("b", app=("1u", "1"))]}}, CPU)
    assert found.values == {"a": 0.125, "b": 0.001}  # type: ignore[union-attr]


@pytest.mark.parametrize("text", ["0Ki", "16384Ki", "9999999999Ki", "1n", "124999001n", "96000000000n"])
def test_what_is_read_quickly_is_read_rightly(text: str) -> None:
    pod = PodMetrics(containers=(ContainerUsage(name="app", usage=Usage(cpu=text)),))
    assert amounts_of(pod, "cpu") == {"app": counted(text)} and amounts_of(pod, "memory") == {"app": None}


HOSTILE = ("NaN", "", "1e400", "1e9999999", "9" * 5000 + "n", "1e308", "x" * 100, "-inf", "\u0663n")


@pytest.mark.parametrize("text", HOSTILE)
def test_a_pod_whose_usage_is_no_number_is_missing_for_itself(text: str) -> None:
    bad = usage("a", app=(text, text))
    for listed in ([bad, usage("b", app=("1", "1Gi"))], [bad | {"window": text}, usage("b", app=("1", "1Gi"))]):
        for signal, value in ((CPU, 1.0), (MEMORY, 2.0**30)):
            found = one({LIST: {"items": listed}}, signal)
            assert isinstance(found, PodSamples) and found.values["b"] == value
            assert set(found.values) <= {"a", "b"} and all(math.isfinite(each) for each in found.values.values())


@pytest.mark.parametrize("bad", [{"timestamp": "now"}, {"containers": 5}, {"window": 3}, {"containers": [{"name": 1}]}])
def test_a_pod_whose_metrics_have_another_shape_is_missing_for_itself(bad: dict[str, Any]) -> None:
    found = one({LIST: {"items": [usage("a", app=("1", "1")) | bad, usage("b", app=("1", "1"))]}}, CPU)
    assert isinstance(found, PodSamples) and found.values == {"b": 1.0}


@pytest.mark.parametrize("bad", [*({"value": text} for text in HOSTILE), {"value": 5}, {"timestamp": "now"}])
def test_a_custom_metric_of_one_pod_is_missing_for_itself(bad: dict[str, Any]) -> None:
    other = item() | {"describedObject": {"kind": "Pod", "name": "b"}} | bad
    found = one({CUSTOM.format("v1beta2", "pods/*/rate"): {"items": [other, item()]}}, RATE)
    assert isinstance(found, PodSamples) and found.values["a"] == 10.5
    assert all(math.isfinite(each) for each in found.values.values())


@pytest.mark.parametrize("text", ["NaN", "1e9999999", "x"])
def test_a_sum_with_a_part_that_is_no_number_is_none(text: str) -> None:
    path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue"
    items = [{"metricName": "queue", "timestamp": stamp(), "value": value} for value in ("7", text)]
    found = one({path: {"items": items}}, QUEUE)
    assert isinstance(found, Missing) and found.reason is Reason.NOT_FINITE


def test_an_unforeseen_failure_is_one_questions(caplog: pytest.LogCaptureFixture) -> None:
    strange = {"status": "success", "data": {"resultType": "vector", "result": [{"value": [time.time(), "abc"]}]}}
    wanted = Wanted("shop", (QUERY, CPU), PODS)
    (found,), _ = asyncio.run(ask({"/api/v1/query": strange, LIST: two()}, wanted))
    assert isinstance(found[0], Missing) and isinstance(found[1], PodSamples)


def test_pods_nobody_knows_are_left_out() -> None:
    items = [usage("a", app=("1", "1")), usage("stranger", app=("9", "1"))]
    assert one({LIST: {"items": items}}, CPU).values == {"a": 1.0}  # type: ignore[union-attr]


CUSTOM = "/apis/custom.metrics.k8s.io/{}/namespaces/shop/{}"


def item() -> dict[str, Any]:
    return {"describedObject": {"kind": "Pod", "name": "a"}, "timestamp": stamp(), "value": "10500m"}


@pytest.mark.parametrize("version", ["v1beta2", "v1beta1"])
def test_custom_metrics_of_either_version(version: str) -> None:
    found = one({CUSTOM.format(version, "pods/*/rate"): {"items": [item()]}}, RATE)
    assert isinstance(found, PodSamples) and found.values == {"a": 10.5}
    found = one({CUSTOM.format(version, "services/front/hits"): {"items": [item()]}}, HITS)
    assert isinstance(found, TotalSample) and found.value == 10.5


def test_a_metric_of_a_namespace_is_one_of_the_objects_own() -> None:
    """HPA takes the namespace it is in, whichever is named; anything else would read other tenants' metrics."""
    other = Total(metric=Metric(kind=MetricKind.OBJECT, name="bill", object="v1/Namespace/kube-system"), target=10)
    found, asked = asyncio.run(
        ask({CUSTOM.format("v1beta2", "metrics/bill"): {"items": [item()]}}, Wanted("shop", (other,), PODS))
    )
    assert isinstance(found[0][0], TotalSample) and asked == [CUSTOM.format("v1beta2", "metrics/bill")]


def test_values_of_another_namespace_are_left_out() -> None:
    foreign = item() | {"describedObject": {"kind": "Pod", "name": "b", "namespace": "elsewhere"}}
    found = one({CUSTOM.format("v1beta2", "pods/*/rate"): {"items": [item(), foreign]}}, RATE)
    assert isinstance(found, PodSamples) and found.values == {"a": 10.5}


@pytest.mark.parametrize("name", ["../../../../../api/v1/secrets", "..", "a/b", "%2e%2e"])
def test_a_metric_whose_name_leads_elsewhere_is_not_asked_for(name: str) -> None:
    kinds = (MetricKind.PODS, MetricKind.EXTERNAL)
    signals = [Total(metric=Metric(kind=kind, name=name), target=10) for kind in kinds]
    signals.append(Total(metric=Metric(kind=MetricKind.OBJECT, name="x", object=f"v1/Service/{name}"), target=10))
    found, asked = asyncio.run(ask({}, Wanted("shop", tuple(signals), PODS)))
    assert all(isinstance(each, Missing) for each in found[0])
    assert not any(".." in path or "secrets" in path for path in asked)


def test_external_metrics_are_summed() -> None:
    path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue"
    items = [{"metricName": "queue", "timestamp": stamp(), "value": value} for value in ("7", "500m")]
    found = one({path: {"items": items}}, QUEUE)
    assert isinstance(found, TotalSample) and found.value == 7.5
    nothing = one({path: {"items": []}}, QUEUE)
    assert isinstance(nothing, Missing) and nothing.reason is Reason.ABSENT
    half = one({path: {"items": [*items, items[0] | {"timestamp": stamp(age_s=121)}]}}, QUEUE)
    assert isinstance(half, Missing) and half.reason is Reason.STALE, "a sum with an old part is an old sum"


def vector(*values: str, **more: Any) -> dict[str, Any]:
    result = [{"metric": {"i": str(index)}, "value": [time.time(), value]} for index, value in enumerate(values)]
    return {"status": "success", "data": {"resultType": "vector", "result": result}} | more


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(vector(), Reason.ABSENT, id="no series"),
        pytest.param(vector("1", "2"), Reason.AMBIGUOUS, id="two series"),
        pytest.param(vector("NaN"), Reason.NOT_FINITE, id="not a number"),
        pytest.param(vector("+Inf"), Reason.NOT_FINITE, id="infinite"),
        pytest.param(vector("-1"), Reason.NEGATIVE, id="negative"),
        pytest.param(vector("1", warnings=["some shards are down"]), Reason.PARTIAL, id="warnings"),
        pytest.param(vector("1", isPartial=True), Reason.PARTIAL, id="partial"),
        pytest.param(403, Reason.UNREACHABLE, id="forbidden"),
        pytest.param(
            {"status": "error", "errorType": "bad_data", "error": "parse"}, Reason.UNSUPPORTED, id="bad query"
        ),
    ],
)
def test_what_is_no_answer_of_prometheus(answer: Any, reason: Reason) -> None:
    found = one({"/api/v1/query": answer}, QUERY)
    assert isinstance(found, Missing) and found.reason is reason


def test_an_old_sample_of_prometheus_is_none() -> None:
    old = vector("5")
    old["data"]["result"][0]["value"][0] -= 61
    found = one({"/api/v1/query": old}, QUERY, scrape_s=30)
    assert isinstance(found, Missing) and found.reason is Reason.STALE
    assert isinstance(one({"/api/v1/query": old}, QUERY, scrape_s=60), TotalSample)


def test_identical_queries_are_asked_once() -> None:
    wanted = [Wanted(f"n{index}", (QUERY, QUERY), PODS) for index in range(5)]
    gathered, paths = asyncio.run(ask({"/api/v1/query": vector("5")}, *wanted))
    assert paths == ["/api/v1/query"]
    assert all(isinstance(each, TotalSample) and each.value == 5 for found in gathered for each in found)


def test_a_source_that_fails_does_not_spoil_the_others() -> None:
    gathered, _ = asyncio.run(ask({"/api/v1/query": vector("5")}, Wanted("shop", (CPU, QUERY), PODS)))
    lost, good = gathered[0]
    assert isinstance(lost, Missing) and isinstance(good, TotalSample)


def test_without_prometheus_the_fix_is_named() -> None:
    async def alone() -> Missing:
        async with Fake(lambda _: web.Response()) as fake:  # type: ignore[arg-type,return-value]
            kube = fake.kube()
            found = (await Gather(kube, None).gather([Wanted("shop", (QUERY,), PODS)], time.time())).samples[0][0]
            await kube.close()
        assert isinstance(found, Missing)
        return found

    found = asyncio.run(alone())
    assert found.reason is Reason.NOT_CONFIGURED and "--prometheus" in found.detail
