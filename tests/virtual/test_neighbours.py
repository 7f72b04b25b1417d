"""However slow or broken what one tenant's objects need is, everybody else's scale-up leaves in its own tick."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.faults import BadMetrics, Slow
from tests.virtual.fields import Object
from trimtab.kinds.annotations import ORIGINAL_FLOOR, PREDICTIVE, RAISED_FLOOR, RAISED_FLOOR_UNTIL
from trimtab.sim.cluster_spec import FaultKind
from trimtab.sim.grid import STEP_S
from trimtab.wire.budget import AT_ONCE

RUSH_S = 60.0
HONEST = ("bank/web", "shop/api", "shop/web")
TARGET = {"type": "AverageValue", "averageValue": "1"}


def rush(seconds: float) -> float:
    return 6.0 if seconds >= RUSH_S else 1.0


def of_queries(name: str, count: int) -> Object:
    """An object whose metrics are as many different queries."""
    queries = [{"query": f"{name}-{number}", "target": TARGET} for number in range(count)]
    return autoscaler(name, metrics=[{"type": "Prometheus", "prometheus": query} for query in queries])


def of_external(name: str, count: int) -> Object:
    named = [{"metric": {"name": f"evil-{number}"}, "target": TARGET} for number in range(count)]
    return autoscaler(name, metrics=[{"type": "External", "external": metric} for metric in named])


def served(cluster: Cluster) -> None:
    for name in HONEST:
        cluster.deploy(name, replicas=2, load=rush)
        cluster.apply(autoscaler(name))


def left_in_their_tick(cluster: Cluster) -> bool:
    """The first tick that can see the rush wrote for everybody before the next one was due."""
    return all(RUSH_S + STEP_S <= cluster.writes(name)[0][0] < RUSH_S + 2 * STEP_S for name in HONEST)


@settings(max_examples=6, deadline=None)
@given(
    seconds=st.sampled_from([0.3, 4.9, 5.1, 29.0, 1e9]),
    objects=st.integers(1, 30),
    make=st.sampled_from([of_queries, of_external]),
    metrics=st.sampled_from([1, 10]),
    everything=st.booleans(),
)
def test_a_slow_tenant_is_slow_for_itself(seconds, objects, make, metrics, everything) -> None:  # type: ignore[no-untyped-def]
    with Cluster(seed=1) as cluster:
        for number in range(objects):
            cluster.deploy(f"evil/e{number}", replicas=2, load=rush)
            cluster.apply(make(f"evil/e{number}", metrics))
        served(cluster)
        methods = ("GET", "POST", "PATCH") if everything else ("GET", "POST")
        cluster.faults(Slow(0.0, about="evil", seconds=seconds, methods=methods))
        cluster.run(seconds=RUSH_S + 2 * STEP_S)
        assert left_in_their_tick(cluster)


def test_many_metrics_of_one_tenant_cost_the_others_no_tick() -> None:
    """Two thousand questions are forty seconds of the API server's budget."""
    with Cluster(seed=1) as cluster:
        for number in range(100):
            cluster.deploy(f"evil/e{number}", replicas=2)
            external = of_external(f"evil/e{number}", 20)
            for index, metric in enumerate(external["spec"]["metrics"]):
                metric["external"]["metric"]["name"] = f"m{number}-{index}"
            cluster.apply(external)
        served(cluster)
        cluster.run(seconds=RUSH_S + 2 * STEP_S)
        assert left_in_their_tick(cluster)
        text = cluster.metrics_page()
        assert 'trimtab_late_answers_total{namespace="evil"}' in text
        assert 'trimtab_late_answers_total{namespace="shop"}' not in text


def test_kinds_that_nobody_has_are_not_looked_for_by_each_of_many_objects() -> None:
    with Cluster(seed=1) as cluster:
        nowhere = {"apiVersion": "nobody.example.com/v1", "kind": "Nothing", "name": "here"}
        for number in range(300):
            cluster.apply(autoscaler(f"evil/e{number}", scaleTargetRef=nowhere))
        served(cluster)
        cluster.run(seconds=RUSH_S + 2 * STEP_S)
        assert left_in_their_tick(cluster)
        ticks = (RUSH_S + 2 * STEP_S) / STEP_S
        assert len(cluster.audit("operator-0", path="nobody.example.com")) <= ticks * AT_ONCE


def test_a_slow_write_of_one_object_holds_up_nobody_and_is_seen_again() -> None:
    with Cluster(seed=1) as cluster:
        for number in range(20):
            cluster.deploy(f"evil/e{number}", replicas=2, load=rush)
            cluster.apply(autoscaler(f"evil/e{number}"))
        served(cluster)
        cluster.faults(Slow(0.0, 300.0, about="/evil/", seconds=1e9, methods=("PATCH",)))
        cluster.run(seconds=290)
        assert left_in_their_tick(cluster)
        assert cluster.writes("evil/e0") == []
        assert cluster.conditions("Autoscaler", "bank/web")["ScalingActive"][0] == "True"
        cluster.run(seconds=310)
        assert all(cluster.replicas(f"evil/e{number}") > 2 for number in range(20))


def test_a_slow_query_is_missing_for_its_own_object_and_used_when_it_comes() -> None:
    with Cluster(seed=1) as cluster:
        served(cluster)
        cluster.deploy("evil/slow", replicas=2, load=6.0)
        cluster.metrics.external["evil-load"] = lambda seconds: 6.0
        query = {"query": "evil-load", "target": {"type": "AverageValue", "averageValue": "1"}}
        cluster.apply(autoscaler("evil/slow", metrics=[{"type": "Prometheus", "prometheus": query}]))
        cluster.faults(Slow(0.0, about="evil-load", seconds=8.0))
        cluster.run(seconds=STEP_S)
        cluster.run(seconds=8)
        assert cluster.conditions("Autoscaler", "evil/slow")["ScalingActive"][0] == "False"
        cluster.run(seconds=60)
        assert cluster.conditions("Autoscaler", "evil/slow")["ScalingActive"][0] == "True"
        assert cluster.replicas("evil/slow") == 6


def test_metrics_that_are_no_numbers_are_missing_for_their_own_workload() -> None:
    with Cluster(seed=1) as cluster:
        served(cluster)
        cluster.deploy("shop/bad", replicas=2, load=rush)
        cluster.apply(autoscaler("shop/bad"))
        cluster.faults(BadMetrics(0.0, workload="shop/bad", kind=FaultKind.NAN))
        cluster.run(seconds=RUSH_S + 2 * STEP_S)
        assert left_in_their_tick(cluster)
        assert cluster.writes("shop/bad") == []


OTHERS = (
    ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler"),
    ("keda.sh/v1alpha1", "ScaledObject"),
    ("datadoghq.com/v1alpha1", "WatermarkPodAutoscaler"),
    ("jamiethompson.me/v1alpha1", "PredictiveHorizontalPodAutoscaler"),
)
ODD: tuple[object, ...] = ("x", [1], 5, {"kind": {}, "name": [1]}, {"updateMode": {}})
NOTES = (PREDICTIVE, RAISED_FLOOR, ORIGINAL_FLOOR, RAISED_FLOOR_UNTIL)


def test_objects_of_others_that_mean_nothing_cost_nobody_a_tick() -> None:
    """Definitions of others may have no schema: whatever stands in their objects is a tenant's word."""
    with Cluster(seed=1) as cluster:
        served(cluster)
        for version, kind in OTHERS:
            for number, odd in enumerate(ODD):
                path = cluster.resource(version, kind).path("evil", f"x{number}")
                cluster.server.put(path, {"spec": dict.fromkeys(("scaleTargetRef", "targetRef", "updatePolicy"), odd)})
        hpas = cluster.resource("autoscaling/v2", "HorizontalPodAutoscaler")
        ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "bad"}
        for number, text in enumerate(("", "abc", "nan", "1e999", "9" * 5000, "{}")):
            notes = {PREDICTIVE: "true"} | dict.fromkeys(NOTES[number % len(NOTES) :], text)
            body = {"metadata": {"annotations": notes}, "spec": {"scaleTargetRef": ref, "maxReplicas": 5}}
            cluster.server.put(hpas.path("evil", f"h{number}"), body)
        cluster.run(seconds=RUSH_S + 2 * STEP_S)
        assert left_in_their_tick(cluster)
        assert 'error="Tick"' not in cluster.metrics_page()
