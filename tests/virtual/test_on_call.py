"""What whoever is called at night reads: events, conditions, /readyz and the log, each thing once, with what to do."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.faults import Killed, Refusing, Slow
from tests.virtual.fields import Object
from tests.virtual.machines import OWN_NAMESPACE
from tests.virtual.served import Served
from trimtab.live.object_tick import ObjectTick
from trimtab.wire.resources import Resource

ROLLOUTS = Resource("argoproj.io", "v1alpha1", "rollouts", "Rollout")
HPA = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 5},
}


def rush(seconds: float) -> float:
    return 6.0 if 600 <= seconds < 1800 else 1.0


def events(cluster: Cluster) -> list[Object]:
    return list(cluster.server.store.of(cluster._kind("Event")).items.values())


def analytics(namespace: str, name: str = "all", **more: Any) -> Object:
    spec: dict[str, Any] = {"type": "HPA", "resourceSelectors": [{"kind": "Deployment", "apiVersion": "apps/v1"}]}
    spec, meta = spec | more, {"name": name, "namespace": namespace}
    return {"apiVersion": "analysis.crane.io/v1alpha1", "kind": "Analytics", "metadata": meta, "spec": spec}


def test_no_event_is_told_twice_in_a_second() -> None:
    """Nor again in every tick, whatever goes wrong."""
    with Cluster(seed=1, operators=2) as cluster:
        cluster.apply(autoscaler("shop/gone"), autoscaler("shop/bad", minReplicas=5, maxReplicas=1))
        cluster.deploy("shop/web", replicas=2, load=rush)
        cluster.apply(autoscaler("shop/web"), HPA)  # another HPA moves the same replicas
        cluster.deploy("shop/refused", replicas=2, load=rush)
        cluster.apply(autoscaler("shop/refused"))
        cluster.faults(
            Refusing(0.0, 900.0, plural="deployments", about="/refused/scale", methods=("PATCH",), status=403)
        )
        cluster.faults(Killed(700.0, back_after_s=30.0))
        cluster.run(minutes=30)
        told = Counter(
            (each["involvedObject"]["name"], each["reason"], each["firstTimestamp"]) for each in events(cluster)
        )
        assert told and set(told.values()) == {1}
        warned = Counter((name, reason) for name, reason, _ in told if reason != "SuccessfulRescale")
        assert {"FailedGetScale", "InvalidSpec", "Conflict", "FailedUpdateScale"} <= {reason for _, reason in warned}
        assert max(warned.values()) <= 2, "once by each leader"


def test_a_kind_that_we_may_not_scale_names_the_value_of_the_chart() -> None:
    with Cluster(seed=1) as cluster:
        cluster.server.install(Served(ROLLOUTS, frozenset({"scale", "status"})))
        cluster.faults(Refusing(0.0, plural="rollouts", status=403))
        ref = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web"}
        cluster.apply(autoscaler("shop/web", scaleTargetRef=ref))
        cluster.run(minutes=1)
        found = cluster.get("Autoscaler", "shop/web")["status"]["conditions"]
        said = next(each["message"] for each in found if each["type"] == "Ready")
        assert "403" in said and "targets: [{group: argoproj.io, resource: rollouts}]" in said


def test_a_definition_that_is_gone_is_said_until_it_is_back() -> None:
    with Cluster(seed=1) as cluster:
        cluster.deploy("shop/web", replicas=2, load=1.0)
        cluster.apply(autoscaler("shop/web"))
        cluster.run(minutes=5)
        assert cluster.ready() == (200, "ok, leading\n")
        served = cluster.server.served["trimtab.dev/v1alpha1", "autoscalers"]
        cluster.server.uninstall(served.resource)
        cluster.run(minutes=5)
        status, said = cluster.ready()
        assert status == 200 and said.startswith("degraded, leading\nnot followed: Autoscaler: ") and "404" in said
        cluster.server.install(served)
        cluster.run(minutes=5)
        assert cluster.ready() == (200, "ok, leading\n")


def test_a_kind_that_was_never_installed_is_named_and_no_fault() -> None:
    with Cluster(seed=1) as cluster:
        cluster.server.uninstall(cluster.server.served["autoscaling.k8s.io/v1alpha1", "hvpas"].resource)
        cluster.run(minutes=5)
        assert cluster.ready() == (200, "ok, leading\nnot installed: Hvpa\n")


def test_an_hour_in_which_all_is_well_logs_no_trouble(caplog: pytest.LogCaptureFixture) -> None:
    """Watches in which nothing happens end and begin again; nobody need know."""
    with caplog.at_level(logging.INFO), Cluster(seed=1) as cluster:
        cluster.deploy("shop/web", replicas=2, load=1.0)
        cluster.apply(autoscaler("shop/web"))
        cluster.run(hours=1)
        assert [record.getMessage() for record in caplog.records if record.levelno > logging.INFO] == []
        assert cluster.ready() == (200, "ok, leading\n")


@pytest.mark.parametrize("namespace, selects", [(OWN_NAMESPACE, True), ("crane-system", True), ("evil", False)])
def test_an_analytics_of_an_administrators_namespace_looks_everywhere(namespace: str, selects: bool) -> None:
    with Cluster(seed=1, advice_namespaces=("crane-system",)) as cluster:
        cluster.deploy("shop/web", replicas=2, load=1.0)
        cluster.apply(analytics(namespace))
        cluster.run(minutes=5)
        status = cluster.get("Analytics", f"{namespace}/all")["status"]
        (ready,) = status["conditions"]
        if selects:
            (found,) = status["recommendations"]
            assert found["targetRef"]["namespace"] == "shop"
        else:
            assert ready["reason"] == "FailedSelectResource" and "--advice-namespace evil" in ready["message"]


def test_an_object_of_which_nothing_is_new_is_not_told_of() -> None:
    with Cluster(seed=1) as cluster:
        cluster.deploy("shop/web", replicas=2, load=1.0)
        cluster.apply(autoscaler("shop/web"))
        words: list[int] = []

        def count(_: Sequence[ObjectTick]) -> None:
            operator = cluster.processes["operator-0"].operator
            assert operator is not None
            words.append(len(operator.ticker.teller._words))

        cluster.on_tick.append(count)
        cluster.run(hours=1)
        assert len(words) > 200 and sum(words) < 20


def test_a_hundred_slow_analytics_of_one_tenant_delay_nobody_elses() -> None:
    every_second = {"completionStrategyType": "Periodical", "periodSeconds": 1}
    with Cluster(seed=1) as cluster:
        cluster.deploy("evil/e", replicas=1, load=0.5)
        cluster.deploy("shop/web", replicas=2, load=1.0)
        cluster.apply(*(analytics("evil", f"a{number}", completionStrategy=every_second) for number in range(100)))
        cluster.faults(Slow(0.0, about="evil", seconds=20.0))
        cluster.run(minutes=2)
        cluster.apply(analytics("shop"))
        cluster.run(minutes=1)
        assert cluster.get("Analytics", "shop/all")["status"]["conditions"]
        before = len(cluster.audit("operator-0", path="/namespaces/evil/analytics"))
        cluster.run(minutes=10)
        asked = len(cluster.audit("operator-0", path="/namespaces/evil/analytics")) - before
        assert 0 < asked <= 2 * 600 / 20, "two of the three places, all the while"
