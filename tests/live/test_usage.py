"""Usage of containers is sampled when it is time to; kills count at once."""

from __future__ import annotations

from math import inf

from tests.live.build import AT, pod_metrics
from tests.live.memory_api import MemoryApi
from tests.live.shop import stock, watched
from trimtab.core.model import Missing, UsageEstimates
from trimtab.core.usage.settings import HistogramSettings
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.live.look.memory import OomKill
from trimtab.live.measure.usage import UsageWatch
from trimtab.wire.objects import PodMetrics
from trimtab.wire.resources import DEPLOYMENTS

WEB = ScaleTarget(DEPLOYMENTS, "shop", "web", "d-web", "1", 2, 2)


def cluster() -> WatchedCluster:
    api = MemoryApi()
    stock(api)
    return watched(api)


def at_cores(cores: float, at: float = AT) -> dict[str, PodMetrics]:
    return {f"shop/{pod}": pod_metrics(cores, 2.0**25, at) for pod in ("web-a", "web-b")}


def test_pod_metrics_are_wanted_only_when_it_is_time_again() -> None:
    usage = UsageWatch(cluster(), HistogramSettings(), every_s=60.0)
    assert usage.namespaces([], -inf) == set() and usage.namespaces([WEB], AT) == {"shop"}
    usage.look([WEB], at_cores(0.2), AT)
    assert usage.namespaces([WEB], AT + 59) == set() and usage.namespaces([WEB], AT + 60) == {"shop"}


def test_what_nobody_measured_is_missing_and_not_nothing() -> None:
    usage = UsageWatch(cluster(), HistogramSettings())
    usage.look([WEB], {}, AT)
    assert isinstance(usage.of(WEB), Missing)
    usage.look([WEB], at_cores(0.2, AT + 60), AT + 60)
    found = usage.of(WEB)
    assert isinstance(found, UsageEstimates) and (found.containers["app"].target.cpu_cores or 0) > 0.2


def test_a_kill_for_memory_raises_the_estimate_at_once() -> None:
    seen = cluster()
    usage = UsageWatch(seen, HistogramSettings())
    usage.look([WEB], at_cores(0.2), AT)
    before = usage.of(WEB)
    kill = OomKill(finished_at=AT + 10, request_bytes=2.0**26, pod="web-a")
    usage.look([WEB], {}, AT + 15, {WEB.uid: {"app": kill}})
    after = usage.of(WEB)
    assert isinstance(before, UsageEstimates) and isinstance(after, UsageEstimates)
    assert after.containers["app"].oom_at == AT + 10 and before.containers["app"].oom_at is None
    assert (after.containers["app"].target.memory_bytes or 0) > (before.containers["app"].target.memory_bytes or 0)
