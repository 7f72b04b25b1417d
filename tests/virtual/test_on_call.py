"""What whoever is called at night reads: events, conditions, /readyz and the log, each thing once, with what to do."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.faults import Killed, NodesFull, QuotaUsedUp, Refusing, Slow
from tests.virtual.fields import Object, encoded
from tests.virtual.machines import OWN_NAMESPACE
from tests.virtual.served import Served
from tests.virtual.workloads import KUBELET
from trimtab.cli.kubectl import FoundObject, StatusRow, status_row, types
from trimtab.live.look.subject import ChangeRules
from trimtab.live.object_tick import ObjectTick
from trimtab.live.tell.telemetry import Line
from trimtab.wire.decode import decode
from trimtab.wire.objects import Custom
from trimtab.wire.resources import PODS, RESOURCE_QUOTAS, Resource

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


def row(cluster: Cluster, name: str) -> StatusRow:
    """What `kubectl trimtab status` prints of an Autoscaler."""
    resource = types()["autoscaler"]
    return status_row(FoundObject(resource, decode(encoded(cluster.get("Autoscaler", name)), Custom)))


def not_ready(cluster: Cluster) -> set[tuple[str, str]]:
    found = re.findall(r"trimtab_object_not_ready\{(.*)\} 1", cluster.metrics_page())
    labels = [dict(re.findall(r'(\w+)="([^"]*)"', text)) for text in found]
    return {(f"{each['kind']}/{each['namespace']}/{each['name']}", each["reason"]) for each in labels}


def test_invalid_objects_among_valid_ones_are_visible_until_they_are_corrected() -> None:
    with Cluster(seed=1) as cluster:
        for name in ("web", "cart"):
            cluster.deploy(f"shop/{name}", replicas=2, load=1.0)
        cluster.apply(autoscaler("shop/web"), autoscaler("shop/cart", minReplicas=5, maxReplicas=1))
        cluster.apply(autoscaler("shop/gone"), analytics("evil"))
        cluster.run(minutes=5)
        assert not_ready(cluster) == {
            ("Autoscaler/shop/cart", "InvalidSpec"),
            ("Autoscaler/shop/gone", "FailedGetScale"),
            ("Analytics/evil/all", "FailedSelectResource"),
        }
        assert (row(cluster, "shop/web").ready, row(cluster, "shop/cart").ready) == ("True", "False")
        said = row(cluster, "shop/cart").decision
        assert said.startswith("InvalidSpec: ") and "spec.minReplicas: 5: must not be above maxReplicas" in said
        cluster.apply(autoscaler("shop/cart"))
        cluster.deploy("shop/gone", replicas=2, load=1.0)
        cluster.delete("Analytics", "evil/all")
        cluster.run(minutes=1)
        assert not_ready(cluster) == set() and row(cluster, "shop/cart").ready == "True"


def test_a_resize_that_the_kubelet_defers_is_counted_and_named() -> None:
    with Cluster(seed=1) as cluster:
        cluster.deploy("shop/web", replicas=2, load=1.0)
        cluster.apply(autoscaler("shop/web", vertical={"apply": "InPlace"}))
        cluster.run(minutes=2)
        assert (row(cluster, "shop/web").sized, row(cluster, "shop/web").held) == ("2/2", "")
        pod = cluster.pods("shop/web")[0]
        message = "Node didn't have enough resource: cpu, requested: 500"
        pending = {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": message}
        conditions = [*pod["status"]["conditions"], pending]
        cluster.server.store.write(PODS, pod | {"status": pod["status"] | {"conditions": conditions}}, KUBELET)
        cluster.run(minutes=1)
        assert 'trimtab_resize_pending{kind="Autoscaler",namespace="shop",name="web",reason="Deferred"} 1' in (
            cluster.metrics_page()
        )
        assert message in row(cluster, "shop/web").held


def test_a_size_that_a_quota_refuses_is_counted_and_named() -> None:
    with Cluster(seed=1, change_rules=ChangeRules(up_after_s=60.0)) as cluster:
        cluster.prometheus = None
        cluster.deploy("shop/web", replicas=2, load=3.0)
        cluster.apply(autoscaler("shop/web", metrics=[], minReplicas=2, maxReplicas=2, vertical={"apply": "InPlace"}))
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", "namespace": "shop"}}
        cluster.apply(quota | {"spec": {"hard": {"requests.cpu": "2"}}})
        cluster.server.store.write(
            RESOURCE_QUOTAS,
            cluster.get("ResourceQuota", "shop/team")
            | {"status": {"hard": {"requests.cpu": "2"}, "used": {"requests.cpu": "2"}}},
            KUBELET,
        )
        cluster.run(minutes=30)
        labels = 'kind="Autoscaler",namespace="shop",name="web",reason="ExceedsQuota"'
        assert f"trimtab_resize_blocked{{{labels}}} 1" in cluster.metrics_page()
        assert "ResourceQuota shop/team has 0 of requests.cpu left of 2" in row(cluster, "shop/web").held


def test_a_missing_standby_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIMTAB_DEPLOYMENT", "trimtab")
    own = f"{OWN_NAMESPACE}/trimtab"
    with Cluster(seed=1) as cluster:
        cluster.deploy(own, replicas=1, startup_s=600.0)
        cluster.run(minutes=1)
        assert 'trimtab_operators_wanted{deployment="trimtab"} 1' in cluster.metrics_page()
        cluster.deploy(own, replicas=2)  # the second one does not become ready for ten minutes
        cluster.run(minutes=1)
        page = cluster.metrics_page()
        assert 'trimtab_operators_wanted{deployment="trimtab"} 2' in page
        assert 'trimtab_operators_ready{deployment="trimtab"} 1' in page


def test_a_standby_that_takes_over_reports_what_fails_and_the_old_leader_stops() -> None:
    with Cluster(seed=1, operators=2) as cluster:
        cluster.apply(autoscaler("shop/gone"))
        cluster.run(minutes=5)
        leader, standby = sorted(cluster.processes, key=lambda who: "leading" not in cluster.ready(who)[1])
        assert "object_not_ready" in cluster.metrics_page(leader)
        assert "object_not_ready" not in cluster.metrics_page(standby)


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


def test_pods_without_a_node_are_named_and_more_of_them_are_asked_for() -> None:
    """Nodes are full for an hour: the load and the replicas grow on, and status and metrics say why."""
    with Cluster(seed=1) as cluster:
        cluster.deploy("shop/web", replicas=2, load=lambda seconds: 1.0 + seconds / 900)
        cluster.apply(autoscaler("shop/web", forecast={"model": "linear"}, maxReplicas=30))
        cluster.faults(NodesFull(300.0, 3900.0, "shop/web"))
        cluster.run(minutes=60)
        found = cluster.get("Autoscaler", "shop/web")["status"]["conditions"]
        said = next(each for each in found if each["type"] == "PodsUnschedulable")
        assert said["status"] == "True", said
        counted = re.fullmatch(
            r"(\d+) of (\d+) pods unschedulable since 2025-06-15 15:2\d UTC: insufficient cpu", said["message"]
        )
        assert counted, said["message"]
        assert 5 <= int(counted[1]) < int(counted[2]) == cluster.replicas("shop/web")
        assert said["message"] in row(cluster, "shop/web").held
        assert re.search(r'trimtab_pods_unschedulable\{.*name="web"\} \d', cluster.metrics_page())
        assert cluster.replicas("shop/web") >= 8, "pods that wait tell a node autoscaler what to add"
        cluster.run(minutes=30)
        assert cluster.conditions("Autoscaler", "shop/web")["PodsUnschedulable"] == ("False", "AllScheduled")
        waited = re.findall(r'trimtab_(\w+)_seconds\{.*percentile="90"\} (\S+)', cluster.metrics_page())
        seconds = {name: float(value) for name, value in waited}
        assert seconds["node_wait"] > 600 and seconds["startup"] <= 660 + 15, "no forecast looks that far ahead"


def test_a_quota_that_refuses_pods_holds_scale_ups_and_nothing_else() -> None:
    with Cluster(seed=1) as cluster:
        cluster.deploy("shop/web", replicas=2, load=lambda seconds: 1.0 if not 300 <= seconds < 1500 else 6.0)
        cluster.apply(autoscaler("shop/web"))
        cluster.run(minutes=4)
        cluster.faults(QuotaUsedUp(290.0, 1200.0, "shop/web"))
        cluster.run(minutes=12)
        wanted = cluster.replicas("shop/web")
        assert wanted < 12, "not what the load asks for: the quota refuses the first of them already"
        able = next(
            each
            for each in cluster.get("Autoscaler", "shop/web")["status"]["conditions"]
            if each["type"] == "AbleToScale"
        )
        assert able["reason"] == "QuotaRefuses" and "exceeded quota" in able["message"]
        cluster.run(minutes=8)
        assert cluster.replicas("shop/web") in (12, 13)


@pytest.mark.parametrize(
    ("path", "metrics", "api"),
    [
        ("/apis/metrics.k8s.io", None, "pods.metrics.k8s.io"),
        ("/apis/external.metrics.k8s.io", "queue", "external.metrics.k8s.io"),
    ],
)
def test_metrics_that_are_lost_name_their_api_and_no_address(path: str, metrics: str | None, api: str) -> None:
    target = {"type": "AverageValue", "averageValue": "1"}
    external = {"type": "External", "external": {"metric": {"name": metrics}, "target": target}}
    spec: dict[str, Any] = {"metrics": [external]}
    with Cluster(seed=1) as cluster:
        cluster.deploy("shop/web", replicas=2, load=1.0)
        cluster.metrics.external["queue"] = lambda seconds: 2.0
        cluster.apply(autoscaler("shop/web", **(spec if metrics else {})))
        cluster.faults(Refusing(60.0, path=path, status=503))
        cluster.run(minutes=4)
        found = cluster.get("Autoscaler", "shop/web")["status"]["conditions"]
        said = next(each["message"] for each in found if each["type"] == "ScalingActive")
        assert api in said and "://" not in said, said


def test_metrics_are_rendered_once_a_second_however_many_ask() -> None:
    """Anybody who reaches the port may ask; a tick must not wait for a thousand pages."""
    with Cluster(seed=1) as cluster:
        cluster.deploy("shop/web", replicas=2, load=1.0)
        cluster.apply(autoscaler("shop/web"))
        cluster.run(minutes=2)
        operator = cluster.processes["operator-0"].operator
        assert operator is not None
        rendered: list[int] = []

        def noted() -> list[Line]:
            rendered.append(1)
            return []

        operator.telemetry.extra.append(noted)
        pages = {operator.metrics() for _ in range(1000)}
        assert len(rendered) == len(pages) == 1
        cluster.run(seconds=15)
        operator.metrics()
        assert len(rendered) == 2
