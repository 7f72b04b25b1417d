"""A restart forgets nothing, whatever Prometheus really remembers: what it does not, a checkpoint does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi, sin
from typing import NamedTuple

import numpy as np
import pytest

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.faults import Refusing, Slow, Unreachable
from tests.virtual.fields import Object
from tests.virtual.machines import OWN_NAMESPACE
from tests.virtual.metrics import FakePrometheus
from tests.virtual.test_restart import METRICS, of_kind
from trimtab.core.demand import keys_of
from trimtab.core.forecast.demand_forecasts import DemandForecasts
from trimtab.core.model import Forecast
from trimtab.kinds import read
from trimtab.kinds.autoscaler import Autoscaler
from trimtab.kinds.effective_hpa import EffectiveHpa
from trimtab.live.measure.past_demand import LOOK_AGAIN_S
from trimtab.live.object_tick import ObjectTick
from trimtab.series import Series

WEB, DAY_S, HOUR_S = "shop/web", 86400.0, 3600.0
STORED = f"/api/v1/namespaces/{OWN_NAMESPACE}/configmaps"
QUERY = {"type": "Prometheus", "prometheus": {"query": WEB, "target": {"type": "AverageValue", "averageValue": "1"}}}
SEASONAL = {"model": "seasonal", "horizon": "1h"}
DSP = {"predictionWindowSeconds": 3600, "predictionAlgorithm": {"algorithmType": "dsp"}}
BY_QUERY = autoscaler(WEB, metrics=[QUERY], forecast=SEASONAL)
BY_CPU = autoscaler(WEB, forecast=SEASONAL)
EFFECTIVE = of_kind(
    "autoscaling.crane.io/v1alpha1", "EffectiveHorizontalPodAutoscaler", metrics=METRICS, prediction=DSP
)
WRITTEN_S = 2 * LOOK_AGAIN_S + 660.0  # until what was noticed at a look has been written


def daily(seconds: float) -> float:
    return 5.0 + 3.0 * sin(2 * pi * seconds / DAY_S)


class Listening:
    """Of each tick, whether every signal of every object had a forecast."""

    def __init__(self, cluster: Cluster) -> None:
        self.spoken: list[bool] = []
        cluster.on_tick.append(self)

    def __call__(self, ticks: Sequence[ObjectTick]) -> None:
        said = [forecast for tick in ticks for forecast in tick.seen.forecasts]
        self.spoken.append(bool(said) and all(isinstance(each, Forecast) for each in said))


def set_up(cluster: Cluster, manifest: Object, prometheus: Callable[[FakePrometheus], None]) -> Listening:
    """A workload, its object, and what Prometheus remembers of it."""
    assert cluster.prometheus is not None
    prometheus(cluster.prometheus)
    cluster.deploy(WEB, replicas=4, load=daily, startup_s=60.0)
    cluster.apply(manifest)
    return Listening(cluster)


def leave_checkpoint(cluster: Cluster, manifest: Object) -> None:
    """Ten days, as an operator of before has left them."""
    kind, at = manifest["kind"], cluster.start
    uid = cluster.get(kind, WEB)["metadata"]["uid"]
    found = read(manifest)
    assert isinstance(found, Autoscaler | EffectiveHpa)
    policy, past = found.to_policy(at), DemandForecasts()
    times = at - 300.0 * np.arange(10 * 288.0, -1.0, -1.0)
    values = np.array([daily(each - at) for each in times.tolist()])
    for key in keys_of(uid, policy):
        past.restore(uid, policy, key, Series(times, values), 300.0)
    labels = {"trimtab.dev/object-uid": uid, "trimtab.dev/object-namespace": "shop"}
    meta = {"name": f"trimtab-usage.{kind.lower()}.shop.web", "namespace": OWN_NAMESPACE, "labels": labels}
    data = {"demand.json": past.save(uid, policy, at).decode()}
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}, by="trimtab")


def restart(cluster: Cluster) -> None:
    cluster.kill("operator-0", back_after_s=15.0)
    cluster.run(minutes=2)


def demand_written(cluster: Cluster) -> list[float]:
    """When, in seconds from the start."""
    writes = [each for each in cluster.audit("operator-0", "patch", STORED) if each.status < 300]
    return [each.at - cluster.start for each in writes if "demand.json" in each.body["data"]]


def checkpoints(cluster: Cluster) -> list[str]:
    names = [name for _, name in cluster.server.store.of(cluster._kind("ConfigMap")).items]
    return [name for name in names if not name.startswith("trimtab-recent")]


def known_minutes(cluster: Cluster, minutes: int) -> int:
    """Of the last ones, how many the operator knows of the worst of all signals."""
    operator = cluster.processes["operator-0"].operator
    assert operator is not None
    log, first = operator.forecasts.demand.log, int(cluster.now() // 60) - minutes
    return min(int(log.known_minutes(key, first, minutes).sum()) for key in log._rows)


def remembers(prometheus: FakePrometheus) -> None:
    prometheus.past[WEB] = prometheus.used[WEB] = daily


def keeps_six_hours(prometheus: FakePrometheus) -> None:
    prometheus.past[WEB], prometheus.keeps_s = daily, 6 * HOUR_S


def has_a_series_for_each_release(prometheus: FakePrometheus) -> None:
    prometheus.past[WEB], prometheus.apart = daily, {WEB}


def knows_nothing(prometheus: FakePrometheus) -> None:
    pass


class Trouble(NamedTuple):
    manifest: Object
    prometheus: Callable[[FakePrometheus], None]


TROUBLES = {
    "no series": Trouble(BY_CPU, knows_nothing),
    "no series of an EffectiveHPA": Trouble(EFFECTIVE, knows_nothing),
    "six hours": Trouble(BY_QUERY, keeps_six_hours),
    "ambiguous": Trouble(BY_QUERY, has_a_series_for_each_release),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_who_speaks_before_a_restart_speaks_after_it(trouble: str) -> None:
    """Ten days are known, of which Prometheus knows less or nothing, and half an hour is learned."""
    manifest, prometheus = TROUBLES[trouble]
    with Cluster(seed=1) as cluster:
        listening = set_up(cluster, manifest, prometheus)
        leave_checkpoint(cluster, manifest)
        cluster.run(minutes=31)
        assert all(listening.spoken[4:]) and len(demand_written(cluster)) == 3
        ticks = len(listening.spoken)
        restart(cluster)
        assert listening.spoken[-1] and listening.spoken[ticks:].count(False) <= 4, "in the first minute"
        assert known_minutes(cluster, 10 * 1440) >= 0.99 * 10 * 1440
        cluster.run(hours=1)
        restart(cluster)
        assert listening.spoken[-1] and known_minutes(cluster, 100) >= 80, "what was learned since is known as well"


@pytest.mark.parametrize("manifest", [BY_QUERY, BY_CPU, EFFECTIVE], ids=["query", "cpu", "EffectiveHPA"])
def test_what_prometheus_remembers_is_not_written(manifest: Object) -> None:
    with Cluster(seed=1) as cluster:
        listening = set_up(cluster, manifest, remembers)
        cluster.run(hours=2)
        assert all(listening.spoken[4:])
        restart(cluster)
        assert listening.spoken[-1] and known_minutes(cluster, 15 * 1440) >= 0.99 * 15 * 1440
        cluster.run(hours=1)
        assert demand_written(cluster) == [] and checkpoints(cluster) == []


def test_a_prometheus_that_is_down_is_noticed_before_a_restart_needs_it() -> None:
    with Cluster(seed=1) as cluster:
        listening = set_up(cluster, BY_CPU, remembers)
        cluster.run(hours=1)
        assert listening.spoken[-1] and demand_written(cluster) == []
        cluster.faults(Unreachable(HOUR_S, 4 * HOUR_S, plural="prometheus"))
        cluster.run(seconds=WRITTEN_S)
        assert demand_written(cluster)
        ticks = len(listening.spoken)
        restart(cluster)
        assert listening.spoken[-1] and listening.spoken[ticks:].count(False) <= 4
        cluster.run(hours=3)
        cluster.run(seconds=WRITTEN_S)
        assert checkpoints(cluster) == [], "it is back, and remembers all"


def test_who_was_silent_while_prometheus_was_down_speaks_as_soon_as_it_is_back() -> None:
    """Both went down at once, so nobody had written anything."""
    with Cluster(seed=1) as cluster:
        listening = set_up(cluster, BY_QUERY, remembers)
        cluster.run(minutes=30)
        cluster.faults(Unreachable(1800.0, 4 * HOUR_S, plural="prometheus"))
        restart(cluster)
        assert not listening.spoken[-1]
        cluster.run(hours=3, minutes=30)
        cluster.run(minutes=3)
        assert listening.spoken[-1] and known_minutes(cluster, 15 * 1440) >= 0.99 * 15 * 1440


@pytest.mark.parametrize("keeps_s", [6 * HOUR_S, 0.0], ids=["keeps less", "was emptied"])
def test_a_prometheus_that_forgets_while_we_run_is_noticed(keeps_s: float) -> None:
    with Cluster(seed=1) as cluster:
        listening = set_up(cluster, BY_QUERY, remembers)
        assert cluster.prometheus is not None
        cluster.run(hours=1)
        assert demand_written(cluster) == []
        cluster.prometheus.keeps_s = keeps_s
        cluster.run(seconds=WRITTEN_S)
        restart(cluster)
        assert listening.spoken[-1] and known_minutes(cluster, 14 * 1440) >= 0.99 * 14 * 1440
        cluster.prometheus.keeps_s = 30 * DAY_S
        cluster.run(seconds=WRITTEN_S + HOUR_S)
        assert checkpoints(cluster) == [], "it keeps enough again"


def test_a_change_of_leader_forgets_as_little_as_a_restart() -> None:
    with Cluster(seed=1, operators=2) as cluster:
        listening = set_up(cluster, BY_QUERY, keeps_six_hours)
        leave_checkpoint(cluster, BY_QUERY)
        cluster.run(minutes=31)
        first = str(cluster.get("Lease", f"{OWN_NAMESPACE}/trimtab")["spec"]["holderIdentity"])
        cluster.kill(first)
        cluster.run(minutes=3)
        second = str(cluster.get("Lease", f"{OWN_NAMESPACE}/trimtab")["spec"]["holderIdentity"])
        assert second != first and listening.spoken[-1]


def test_a_signal_that_is_new_while_the_past_is_being_read_is_read_as_well() -> None:
    with Cluster(seed=1) as cluster:
        listening = set_up(cluster, BY_QUERY, remembers)
        assert cluster.prometheus is not None
        cluster.prometheus.past["orders"] = cluster.metrics.external["orders"] = lambda seconds: 2 * daily(seconds)
        other = {**QUERY, "prometheus": {**QUERY["prometheus"], "query": "orders"}}  # type: ignore[dict-item]
        cluster.faults(Slow(0.0, 120.0, plural="prometheus", about="query_range", seconds=20.0))
        cluster.run(seconds=30)
        cluster.apply(autoscaler(WEB, metrics=[QUERY, other], forecast=SEASONAL))
        cluster.run(minutes=5)
        assert listening.spoken[-1] and known_minutes(cluster, 15 * 1440) >= 0.99 * 15 * 1440
        cluster.run(hours=1)
        assert checkpoints(cluster) == []


def test_the_demand_of_a_target_that_was_replaced_is_not_the_new_ones() -> None:
    with Cluster(seed=1) as cluster:
        set_up(cluster, BY_CPU, knows_nothing)
        leave_checkpoint(cluster, BY_CPU)
        cluster.deploy("shop/new", replicas=2, load=1.0, startup_s=60.0)
        cluster.run(minutes=12)
        cluster.patch("Autoscaler", WEB, {"spec": {"scaleTargetRef": {"name": "new"}}})
        cluster.run(minutes=5)
        assert known_minutes(cluster, 1440) <= 6
        restart(cluster)
        assert known_minutes(cluster, 1440) <= 8, "its checkpoint is still the old one's"
        cluster.run(minutes=15)
        restart(cluster)
        assert 10 <= known_minutes(cluster, 1440) <= 29, "no more than the bins of the checkpoint can add"


def test_a_checkpoint_that_is_written_for_usage_never_loses_demand_that_nobody_else_remembers() -> None:
    """What Prometheus remembers is not known yet when usage is due: it answers, but not to this."""
    manifest = autoscaler(WEB, metrics=[QUERY], forecast=SEASONAL, vertical={"apply": "InPlace"}, mode="Shadow")
    with Cluster(seed=1) as cluster:
        listening = set_up(cluster, manifest, keeps_six_hours)
        leave_checkpoint(cluster, manifest)
        cluster.faults(Slow(0.0, plural="prometheus", about="query_range", seconds=59.0))
        cluster.run(hours=1)
        writes = cluster.audit("operator-0", "patch", f"{STORED}/trimtab-usage")
        assert len(writes) >= 5 and all({"main", "demand.json"} <= each.body["data"].keys() for each in writes)
        restart(cluster)
        assert listening.spoken[-1]


def test_a_checkpoint_of_usage_lives_on_without_demand_that_prometheus_remembers() -> None:
    manifest = autoscaler(WEB, metrics=[QUERY], forecast=SEASONAL, vertical={"apply": "InPlace"}, mode="Shadow")
    with Cluster(seed=1) as cluster:
        set_up(cluster, manifest, remembers)
        leave_checkpoint(cluster, manifest)
        cluster.run(hours=1)
        kept = cluster.get("ConfigMap", f"{OWN_NAMESPACE}/trimtab-usage.autoscaler.shop.web")
        assert list(kept["data"]) == ["main"]


def test_demand_that_cannot_be_read_is_not_written_over() -> None:
    with Cluster(seed=1) as cluster:
        listening = set_up(cluster, BY_CPU, knows_nothing)
        leave_checkpoint(cluster, BY_CPU)
        cluster.faults(Refusing(0.0, 1500.0, plural="configmaps", methods=("GET",), status=403))
        cluster.run(minutes=24)
        assert demand_written(cluster) == [] and not any(listening.spoken)
        cluster.run(minutes=5)
        assert listening.spoken[-1]


@pytest.mark.many
def test_days_that_nobody_but_the_operator_saw_survive() -> None:
    with Cluster(seed=1, tick_s=300.0) as cluster:
        listening = set_up(cluster, EFFECTIVE, knows_nothing)
        cluster.run(hours=54)
        assert listening.spoken[-1]
        cluster.kill("operator-0", back_after_s=15.0)
        cluster.run(minutes=15)
        assert listening.spoken[-1]


def many(number: int) -> Cluster:
    cluster = Cluster(seed=1)
    assert cluster.prometheus is not None
    for each in range(number):
        cluster.prometheus.past[f"shop/w{each}"] = daily
    return cluster


def test_at_a_start_nobody_asks_for_what_is_not_there_nor_lists_what_is_in_it() -> None:
    """Forty objects, of which two have a checkpoint."""
    with many(40) as cluster:
        for each in range(40):
            query = {"query": f"shop/w{each}", "target": {"type": "AverageValue", "averageValue": "1"}}
            metrics = [{"type": "Prometheus", "prometheus": query}]
            cluster.deploy(f"shop/w{each}", replicas=1, load=daily)
            cluster.apply(autoscaler(f"shop/w{each}", metrics=metrics, forecast=SEASONAL))
        for each in range(2):
            uid = cluster.get("Autoscaler", f"shop/w{each}")["metadata"]["uid"]
            labels = {"trimtab.dev/object-uid": uid, "trimtab.dev/object-namespace": "shop"}
            meta = {"name": f"trimtab-usage.autoscaler.shop.w{each}", "namespace": OWN_NAMESPACE, "labels": labels}
            cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {}})
        cluster.run(minutes=5)
        asked = [(each.verb, each.path) for each in cluster.audit("operator-0", path="/configmaps")]
        asked = [(verb, path) for verb, path in asked if "trimtab-recent" not in path]
        assert sorted(asked) == [("get", f"{STORED}/trimtab-usage.autoscaler.shop.w{each}") for each in range(2)] + [
            ("list", STORED)
        ]
        cluster.run(minutes=30)
        assert checkpoints(cluster) == [], "Prometheus remembers all of them"
        assert not cluster.audit("operator-0", "patch", "/configmaps/trimtab-usage")
