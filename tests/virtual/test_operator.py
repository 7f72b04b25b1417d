"""The whole operator, as `trimtab run` starts it, over simulated pods: what it writes, when, and what it says."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.faults import BadMetrics, ClockStepped, Killed
from tests.virtual.fields import encoded
from trimtab.acts import Fate
from trimtab.cli.kubectl import FoundObject, status_row
from trimtab.journal_replay import replay
from trimtab.live.look.cluster import WatchedCluster
from trimtab.live.look.installations import OwnOperators
from trimtab.live.look.subject import ChangeRules
from trimtab.live.tell.kept_journal import KeptJournal
from trimtab.live.tick import Ticker
from trimtab.wire.decode import decode
from trimtab.wire.objects import Custom
from trimtab.wire.resources import HPAS, ServedKinds


def rush(seconds: float) -> float:
    """An hour of six cores between quiet ones."""
    return 6.0 if 600 <= seconds < 4200 else 1.0


def test_cpu_goes_up_at_once_and_down_after_its_window() -> None:
    with Cluster(seed=1) as cluster:
        cluster.deploy("shop/web", replicas=2, load=rush)
        cluster.apply(autoscaler("shop/web"))
        cluster.run(hours=2)
        writes = cluster.writes("shop/web")
        up = [write for write in writes if write[0] < 4200]
        down = [write for write in writes if write[0] >= 4200]
        assert up[0][0] == 615.0 and up[-1][0] <= 900 and up[-1][1] == 11
        assert down[0][0] >= 4200 + 300 and down[-1][1] == 2
        assert cluster.replicas("shop/web") == len(cluster.workload("shop/web").pods.all) == 2
        assert cluster.events("shop/web").count("SuccessfulRescale") == len(writes)
        checked = replay(cluster.journal().path)
        assert checked.checked >= len(writes) and not checked.differences


def test_a_restart_within_the_window_lowers_nothing_before_a_whole_one_has_passed() -> None:
    with Cluster(seed=2) as cluster:
        cluster.deploy("shop/web", replicas=2, load=rush)
        cluster.apply(autoscaler("shop/web"))
        cluster.faults(Killed(4300.0, back_after_s=30.0))
        cluster.run(hours=2)
        lowered = [at for at, replicas in cluster.writes("shop/web") if at > 4200]
        assert lowered and lowered[0] >= 4330 + 300
        assert cluster.replicas("shop/web") == 2


def test_another_leader_goes_on_where_the_first_was_killed() -> None:
    with Cluster(seed=3, operators=2) as cluster:
        cluster.deploy("shop/web", replicas=2, load=rush)
        cluster.apply(autoscaler("shop/web"))
        cluster.run(minutes=5)
        first = cluster.get("Lease", "trimtab-system/trimtab")["spec"]["holderIdentity"]
        other = "operator-1" if first == "operator-0" else "operator-0"
        cluster.faults(Killed(610.0, who=first))
        cluster.run(hours=1)
        assert cluster.writes("shop/web", who=first) == []
        assert 610 < cluster.writes("shop/web", who=other)[0][0] <= 660
        lease = cluster.get("Lease", "trimtab-system/trimtab")["spec"]
        assert (lease["holderIdentity"], lease["leaseTransitions"]) == (other, 1)


def test_a_deploy_that_carries_replicas_is_undone_at_the_next_tick_of_need() -> None:
    with Cluster(seed=4) as cluster:
        cluster.deploy("shop/web", replicas=2, load=4.0)
        cluster.apply(autoscaler("shop/web"))
        cluster.run(minutes=30)
        before = cluster.replicas("shop/web")
        cluster.deploy("shop/web", replicas=2, image="web:2")
        assert (before, cluster.replicas("shop/web")) == (8, 2)
        cluster.run(minutes=30)
        assert all(pod["spec"]["containers"][0]["image"] == "web:2" for pod in cluster.pods("shop/web"))


@pytest.mark.parametrize("load", [0.2, 6.0])
def test_missing_metrics_change_nothing(load: float) -> None:
    with Cluster(seed=5) as cluster:
        cluster.deploy("shop/web", replicas=4, load=2.0)
        cluster.apply(autoscaler("shop/web"))
        cluster.run(minutes=20)
        cluster.load("shop/web", load)
        cluster.faults(BadMetrics(1200.0, 4000.0, workload="shop/web"))
        cluster.run(minutes=40)
        assert cluster.writes("shop/web") == []
        assert cluster.conditions("Autoscaler", "shop/web")["ScalingActive"] == ("False", "FailedGetResourceMetric")
        cluster.run(minutes=40)
        assert cluster.replicas("shop/web") != 4
        assert cluster.conditions("Autoscaler", "shop/web")["ScalingActive"] == ("True", "ValidMetricFound")


def test_shadow_decides_records_and_writes_nothing() -> None:
    with Cluster(seed=6) as cluster:
        cluster.deploy("shop/web", replicas=2, load=rush)
        cluster.apply(autoscaler("shop/web", mode="Shadow"))
        cluster.run(hours=1)
        assert cluster.writes("shop/web") == []
        acts = list(cluster.journal().acts("shop", "web"))
        assert acts and {part.fate for act in acts for part in act.outcome} == {Fate.SHADOW}
        assert cluster.get("Autoscaler", "shop/web")["status"]["desiredReplicas"] > 2


def test_a_pin_holds_against_the_load_and_ends() -> None:
    with Cluster(seed=7) as cluster:
        cluster.deploy("shop/web", replicas=2, load=6.0)
        cluster.apply(autoscaler("shop/web"))
        cluster.patch("Autoscaler", "shop/web", {"metadata": {"annotations": {"trimtab.dev/pin": "5"}}})
        cluster.run(hours=1)
        assert cluster.writes("shop/web") == [(15.0, 5)]
        cluster.patch("Autoscaler", "shop/web", {"metadata": {"annotations": {"trimtab.dev/pin": None}}})
        cluster.run(minutes=10)
        assert cluster.replicas("shop/web") >= 11


def test_the_floor_of_an_annotated_hpa_is_ahead_of_a_ramp() -> None:
    hpa = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop, annotations: {predictive: "true"}}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 40
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
"""
    with Cluster(seed=8) as cluster:
        cluster.deploy("shop/web", replicas=4, startup_s=120.0)
        cluster.load("shop/web", lambda seconds: 1.0 + max(0.0, min(seconds - 900, 1800)) / 200)
        cluster.apply(hpa)
        cluster.run(minutes=20)
        cluster.patch("Deployment", "shop/web", {"spec": {"replicas": 5}}, by="somebody")  # pods whose start-up is seen
        cluster.run(minutes=15)
        found = cluster.get("HorizontalPodAutoscaler", "shop/web")
        assert found["spec"]["minReplicas"] > 2
        assert found["metadata"]["annotations"]["trimtab.dev/min-replicas"] == "2"
        assert cluster.writes("shop/web") == []  # the HPA scales, we only move its floor
        cluster.load("shop/web", 0.9)
        cluster.run(hours=1)
        found = cluster.get("HorizontalPodAutoscaler", "shop/web")
        assert found["spec"]["minReplicas"] == 2
        assert set(found["metadata"]["annotations"]) == {"predictive", "trimtab.dev/forecast"}
        cluster.patch("HorizontalPodAutoscaler", "shop/web", {"metadata": {"annotations": {"predictive": None}}})
        cluster.run(minutes=1)
        found = cluster.get("HorizontalPodAutoscaler", "shop/web")
        assert found["spec"]["minReplicas"] == 2 and not found["metadata"].get("annotations")


def test_an_annotated_hpa_says_whether_its_forecast_works_and_what_it_asks_for() -> None:
    def hpa(cluster: Cluster) -> tuple[str, str]:
        found = cluster.get("HorizontalPodAutoscaler", "shop/web")
        row = status_row(FoundObject(HPAS, decode(encoded(found), Custom)))
        return found["metadata"]["annotations"].get("trimtab.dev/forecast", ""), row.decision

    with Cluster(seed=8) as cluster:
        cluster.deploy("shop/web", replicas=4, load=lambda seconds: 1.0 + seconds / 2400)
        manifest = autoscaler("shop/web", maxReplicas=40, minReplicas=4)
        manifest |= {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
        manifest["metadata"]["annotations"] = {"predictive": "true"}
        cluster.apply(manifest)
        cluster.run(seconds=20)
        note, row = hpa(cluster)
        assert note.startswith("silent: ") and row == f"forecast {note}"
        cluster.run(minutes=40)
        assert re.fullmatch("works: it asks for [345] replicas", hpa(cluster)[0])
        writes = cluster.audit("operator-0", "patch", "/horizontalpodautoscalers/web")
        assert len(writes) <= 10, "not at every tick"
        cluster.faults(BadMetrics(0.0, workload="shop/web"))
        cluster.run(minutes=10)
        assert hpa(cluster)[0].startswith("silent: ")


def test_requests_follow_usage_in_place() -> None:
    with Cluster(seed=9, change_rules=ChangeRules(up_after_s=300.0, down_after_s=300.0)) as cluster:
        cluster.deploy("shop/web", replicas=2, load=3.0)
        cluster.apply(autoscaler("shop/web", metrics=[], minReplicas=2, maxReplicas=2, vertical={"apply": "InPlace"}))
        cluster.run(hours=1)
        requests = [pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in cluster.pods("shop/web")]
        resizes = cluster.audit("operator-0", "patch", "/resize")
        assert len(resizes) >= 2 and {each.status for each in resizes} == {200}
        assert len(set(requests)) == 1 and requests[0] != "1"
        template = cluster.get("Deployment", "shop/web")["spec"]["template"]["spec"]["containers"][0]
        assert template["resources"]["requests"]["cpu"] == "1"


def test_an_hvpa_moves_both_axes() -> None:
    with Cluster(seed=10) as cluster:
        cluster.deploy("shop/web", replicas=2, load=rush)
        cluster.apply(HVPA)
        cluster.run(hours=2)
        status = cluster.get("Hvpa", "shop/web")["status"]
        assert cluster.writes("shop/web") and status["lastScaling"]["hpaStatus"]
        assert cluster.conditions("Hvpa", "shop/web")["Ready"][0] == "True"


HVPA = """
apiVersion: autoscaling.k8s.io/v1alpha1
kind: Hvpa
metadata: {name: web, namespace: shop}
spec:
  replicas: 1
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  hpa:
    deploy: true
    scaleUp: {updatePolicy: {updateMode: Auto}, stabilizationDuration: 1m}
    scaleDown: {updatePolicy: {updateMode: Auto}, stabilizationDuration: 5m}
    template:
      spec:
        minReplicas: 1
        maxReplicas: 10
        metrics: [{type: Resource, resource: {name: cpu, targetAverageUtilization: 50}}]
  vpa:
    deploy: true
    scaleUp: {updatePolicy: {updateMode: Auto}, stabilizationDuration: 5m}
    scaleDown: {updatePolicy: {updateMode: Auto}, stabilizationDuration: 10m}
    template: {spec: {resourcePolicy: {containerPolicies: []}}}
  weightBasedScalingIntervals:
  - {vpaWeight: 50, startReplicaCount: 1, lastReplicaCount: 10}
"""


def test_a_bug_between_two_ticks_costs_nobody_the_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it looks at beside them may be anything; the same load is followed as if nothing were wrong."""
    monkeypatch.setattr(OwnOperators, "look", lambda *_: 1 / 0)
    monkeypatch.setattr(KeptJournal, "pruning", lambda *_: iter([1 / 0 for _ in "x"]))
    with Cluster(seed=1) as cluster:
        cluster.deploy("shop/web", replicas=2, load=rush)
        cluster.apply(autoscaler("shop/web"))
        cluster.run(minutes=30)
        assert cluster.writes("shop/web")[0][0] == 615.0 and cluster.replicas("shop/web") == 11
        assert 'trimtab_object_failures_total{error="Loop"}' in cluster.metrics_page()
        assert {"ZeroDivisionError" in met for met in cluster.bugs.met} == {True}
        cluster.bugs.met.clear()


@pytest.mark.parametrize(("of", "what"), [(Ticker, "take_over"), (WatchedCluster, "unsettled"), (ServedKinds, "find")])
def test_a_bug_in_the_loop_costs_a_pass_and_not_the_process(
    of: type, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried again at the next tick, and then the load is followed as ever."""
    failures, right = iter([ZeroDivisionError()] * 2), getattr(of, what)

    def wrong(*given: Any) -> Any:
        for failure in failures:
            raise failure
        return right(*given)

    monkeypatch.setattr(of, what, wrong)
    with Cluster(seed=1) as cluster:
        cluster.faults(ClockStepped(100.0, by_s=60.0), ClockStepped(200.0, by_s=-60.0), ClockStepped(300.0, by_s=9.0))
        cluster.deploy("shop/web", replicas=2, load=rush)
        cluster.apply(autoscaler("shop/web"))
        cluster.run(minutes=30)
        assert 600.0 < cluster.writes("shop/web")[0][0] < 640.0 and cluster.replicas("shop/web") == 11
        assert len(cluster.bugs.met) == 2 and "ZeroDivisionError" in cluster.bugs.met[0]
        cluster.bugs.met.clear()


def test_a_loop_that_always_fails_is_unhealthy(monkeypatch: pytest.MonkeyPatch) -> None:
    with Cluster(seed=1) as cluster:
        cluster.run(minutes=5)
        operator = cluster.processes["operator-0"].operator
        assert operator is not None and operator.health() == (200, "ok\n")
        monkeypatch.setattr(WatchedCluster, "unsettled", lambda *_: 1 / 0)
        cluster.run(minutes=5)
        assert operator.health()[0] == 500
        cluster.bugs.met.clear()
