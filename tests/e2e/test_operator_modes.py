"""Modes, pins, conflicts and reverts: who may act on a target, and what is written when nobody may."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.bed import Bed, always, eventually
from tests.bed.manifests import deployment
from tests.live.running import Running, autoscaler, conditions, install_crds, replicas

pytestmark = pytest.mark.e2e
SOON_S = 20
QUICK_DOWN = {"scaleDown": {"stabilizationWindowSeconds": 0}}


def queue_metric(name: str) -> list[dict[str, Any]]:
    metric = {"name": "queue_length", "selector": {"matchLabels": {"app": name}}}
    target = {"type": "AverageValue", "averageValue": "10"}
    return [{"type": "External", "external": {"metric": metric, "target": target}}]


class Shop:
    """A namespace with an operator; each test works with a Deployment of its own name."""

    def __init__(self, bed: Bed, namespace: str, operator: Running) -> None:
        self.bed, self.namespace, self.operator = bed, namespace, operator

    def open(self, name: str, queue: float, count: int = 1, **spec: Any) -> None:
        self.bed.load(self.namespace, name, queue=queue)
        self.bed.apply(deployment(self.namespace, name, replicas=count))
        self.scaler(name, **spec)

    def scaler(self, name: str, **spec: Any) -> None:
        made = autoscaler(self.namespace, name, **({"metrics": queue_metric(name), "behavior": QUICK_DOWN} | spec))
        self.bed.apply(made)

    def replicas(self, name: str) -> int:
        return replicas(self.bed, self.namespace, name)

    def becomes(self, name: str, count: int, within_s: float = SOON_S) -> None:
        eventually(lambda: self.replicas(name) == count, within_s, f"{name} with {count} replicas")

    def stays(self, name: str, count: int, for_s: float = 5) -> None:
        always(lambda: self.replicas(name) == count, for_s, f"{name} with {count} replicas")

    def says(self, name: str, kind: str, status: str, reason: str, of: str = "autoscaler") -> str:
        def said() -> str | None:
            one = conditions(self.bed, self.namespace, name, of)[kind]
            assert (one["status"], one["reason"]) == (status, reason), one
            return str(one["message"]) or "?"

        return eventually(said, SOON_S, f"{kind}={status} ({reason}) of {name}") or ""

    def status(self, name: str, of: str = "autoscaler") -> dict[str, Any]:
        found: dict[str, Any] = self.bed.get(of, name, "-n", self.namespace)["status"]
        return found

    def kubectl(self, *words: str) -> str:
        return self.bed.kubectl(*words, "-n", self.namespace)


@pytest.fixture(scope="module")
def shop(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    install_crds(bed)
    name = f"modes-{uuid.uuid4().hex[:8]}"
    bed.kubectl("create", "namespace", name)
    with Running(bed, name, tmp_path_factory.mktemp("operator")) as running:
        yield Shop(bed, name, running)
    bed.kubectl("delete", "namespace", name, "--wait=false")


def stamp(in_s: float) -> str:
    return datetime.fromtimestamp(time.time() + in_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_shadow_says_what_it_would_do_and_starts_no_cooldown(shop: Shop) -> None:
    shop.open("shadow", queue=40, mode="Shadow")
    eventually(lambda: shop.status("shadow")["desiredReplicas"] == 4, SOON_S)
    shop.stays("shadow", 1)
    assert "up_at" not in shop.status("shadow")["memory"].get("core", {})
    assert "lastScaleTime" not in shop.status("shadow")
    shop.scaler("shadow", mode="Auto")
    shop.becomes("shadow", 4)


def test_paused_writes_nothing_not_even_bounds(shop: Shop) -> None:
    shop.open("paused", queue=90, mode="Paused", minReplicas=3)
    shop.says("paused", "ScalingActive", "False", "Paused")
    shop.stays("paused", 1)
    shop.scaler("paused", minReplicas=3)
    shop.becomes("paused", 9)
    shop.kubectl("annotate", "autoscaler", "paused", "trimtab.dev/paused=true")
    shop.says("paused", "ScalingActive", "False", "Paused")
    shop.bed.load(shop.namespace, "paused", queue=30)
    shop.stays("paused", 9)


def test_paused_until_ends_by_itself(shop: Shop) -> None:
    shop.open("rest", queue=10)
    shop.says("rest", "Ready", "True", "Running")
    shop.kubectl("annotate", "autoscaler", "rest", f"trimtab.dev/paused-until={stamp(10)}")
    shop.says("rest", "ScalingActive", "False", "Paused")
    shop.bed.load(shop.namespace, "rest", queue=30)
    shop.becomes("rest", 3)
    shop.says("rest", "ScalingActive", "True", "ValidMetricFound")


def test_a_pin_overrules_the_metrics_until_it_expires(shop: Shop) -> None:
    shop.open("pinned", queue=20)
    shop.becomes("pinned", 2)
    shop.kubectl("annotate", "autoscaler", "pinned", "trimtab.dev/pin=7", f"trimtab.dev/pin-until={stamp(12)}")
    shop.becomes("pinned", 7, within_s=10)
    shop.becomes("pinned", 2)


def test_zero_by_hand_means_off_and_only_a_pin_wakes_it(shop: Shop) -> None:
    shop.open("zero", queue=20)
    shop.becomes("zero", 2)
    shop.kubectl("scale", "deployment", "zero", "--replicas=0")
    shop.says("zero", "ScalingActive", "False", "ScalingDisabled")
    shop.bed.load(shop.namespace, "zero", queue=50)
    shop.stays("zero", 0)
    shop.kubectl("annotate", "autoscaler", "zero", "trimtab.dev/pin=3")
    shop.becomes("zero", 3)


def test_zero_that_is_ours_is_woken_by_the_load(shop: Shop) -> None:
    shop.open("nap", queue=0, count=2, minReplicas=0)
    shop.becomes("nap", 0)
    shop.says("nap", "ScaledToZero", "True", "ScaledToZero")
    shop.bed.load(shop.namespace, "nap", queue=30)
    shop.becomes("nap", 3)
    shop.says("nap", "ScaledToZero", "False", "NotScaledToZero")


def test_bounds_hold_without_metrics(shop: Shop) -> None:
    target = {"type": "AverageValue", "averageValue": "10"}
    silent = [{"type": "Prometheus", "prometheus": {"query": "sum(nobody_knows_this)", "target": target}}]
    shop.open("bounds", queue=0, minReplicas=3, metrics=silent)
    shop.becomes("bounds", 3)
    shop.says("bounds", "ScalingActive", "False", "FailedGetPrometheusMetric")
    events = ("get", "events", "--field-selector=involvedObject.name=bounds")
    eventually(lambda: "FailedGetPrometheusMetric" in shop.kubectl(*events), SOON_S)


def hpa(namespace: str, name: str) -> dict[str, Any]:
    return autoscaler(namespace, name) | {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}


def test_another_hpa_is_a_conflict_that_names_the_remedy(shop: Shop) -> None:
    shop.bed.apply(hpa(shop.namespace, "both"))
    shop.open("both", queue=40)
    message = shop.says("both", "Conflict", "True", "Conflict")
    assert f"kubectl delete hpa both -n {shop.namespace}" in message
    shop.stays("both", 1)
    shop.kubectl("delete", "hpa", "both")
    shop.becomes("both", 4)
    shop.says("both", "Conflict", "False", "NoConflict")


def test_shadow_does_not_conflict_with_the_incumbent(shop: Shop) -> None:
    shop.bed.apply(hpa(shop.namespace, "watched"))
    shop.open("watched", queue=40, mode="Shadow")
    eventually(lambda: shop.status("watched")["desiredReplicas"] == 4, SOON_S)
    shop.says("watched", "Conflict", "False", "NoConflict")


def test_the_younger_of_two_of_ours_holds_still(shop: Shop) -> None:
    shop.open("twice", queue=40)
    shop.becomes("twice", 4)
    younger = autoscaler(shop.namespace, "twice", metrics=queue_metric("twice"), minReplicas=8)
    younger["metadata"]["name"] = "twice-again"
    eventually(lambda: int(time.time()) > _created(shop, "twice"), 5)  # the API server keeps whole seconds
    shop.bed.apply(younger)
    message = shop.says("twice-again", "Conflict", "True", "Conflict")
    assert f"Autoscaler {shop.namespace}/twice " in message
    shop.stays("twice", 4)
    shop.kubectl("delete", "autoscaler", "twice")
    shop.becomes("twice", 8)


def _created(shop: Shop, name: str) -> int:
    found = shop.bed.get("autoscaler", name, "-n", shop.namespace)["metadata"]["creationTimestamp"]
    return int(datetime.fromisoformat(found).timestamp())


def open_crd(group: str, version: str, kind: str, plural: str) -> dict[str, Any]:
    """A foreign kind, as far as we look at it."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    meta: dict[str, Any] = {"name": f"{plural}.{group}"}
    if group.endswith("k8s.io"):
        meta["annotations"] = {"api-approved.kubernetes.io": "unapproved, for a test"}
    one = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": meta,
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [one]},
    }


def test_a_scaled_object_and_its_hpa_are_one_conflict(shop: Shop) -> None:
    shop.bed.apply(open_crd("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects"))
    shop.bed.kubectl("wait", "--for=condition=Established", "crd/scaledobjects.keda.sh", "--timeout=300s")
    meta = {"name": "keda", "namespace": shop.namespace}
    ref = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": meta}
    shop.bed.apply(ref | {"spec": {"scaleTargetRef": {"name": "keda"}}})
    owner = shop.bed.get("scaledobject", "keda", "-n", shop.namespace)["metadata"]["uid"]
    child = hpa(shop.namespace, "keda")
    child["metadata"] |= {"name": "keda-hpa-keda"}
    child["metadata"]["ownerReferences"] = [
        {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "keda", "uid": owner, "controller": True}
    ]
    shop.bed.apply(child)
    shop.open("keda", queue=40)
    shop.says("keda", "Conflict", "True", "Conflict")  # by its HPA, while KEDA's kind is new
    remedy = "autoscaling.keda.sh/paused=true"
    eventually(lambda: remedy in shop.says("keda", "Conflict", "True", "Conflict"), 40)
    assert shop.says("keda", "Conflict", "True", "Conflict").count("moves the replicas") == 1
    shop.stays("keda", 1)


def test_who_puts_replicas_back_again_and_again_is_named_and_increases_go_on(shop: Shop) -> None:
    shop.open("undone", queue=40, count=2)
    for _ in range(3):
        shop.becomes("undone", 4)
        eventually(lambda: shop.status("undone")["currentReplicas"] == 4, SOON_S)
        shop.kubectl("scale", "deployment", "undone", "--replicas=2")
    message = shop.says("undone", "Reverted", "True", "Reverted")
    assert "kubectl puts the replicas back" in message and "for 1h" in message
    shop.becomes("undone", 4)


def test_a_number_of_ones_own_is_no_revert(shop: Shop) -> None:
    shop.open("byhand", queue=40, count=2)
    shop.becomes("byhand", 4)
    eventually(lambda: shop.status("byhand")["currentReplicas"] == 4, SOON_S)
    shop.kubectl("scale", "deployment", "byhand", "--replicas=7")
    shop.becomes("byhand", 4)
    assert conditions(shop.bed, shop.namespace, "byhand")["Reverted"]["status"] == "False"


def test_a_deleted_object_leaves_the_workload_as_it_is(shop: Shop) -> None:
    shop.open("left", queue=40)
    shop.becomes("left", 4)
    shop.kubectl("delete", "autoscaler", "left")
    shop.bed.load(shop.namespace, "left", queue=90)
    shop.stays("left", 4)


def test_one_bad_object_says_where_and_does_not_stop_the_rest(shop: Shop) -> None:
    bad = [{"name": "office", "timezone": "Mars/Olympus", "start": "0 8 * * *", "end": "0 18 * * *", "minReplicas": 2}]
    shop.open("bad", queue=40, schedules=bad)
    shop.open("lost", queue=40)
    shop.kubectl("delete", "deployment", "lost")
    shop.open("good", queue=40)
    assert "spec.schedules[0].timezone" in shop.says("bad", "Ready", "False", "InvalidSpec")
    assert "does not exist" in shop.says("lost", "Ready", "False", "FailedGetScale")
    shop.becomes("good", 4)
    shop.stays("bad", 1, for_s=2)


def test_a_replica_set_that_belongs_to_somebody_is_left_alone(shop: Shop) -> None:
    shop.bed.apply(deployment(shop.namespace, "owned", replicas=1))
    listed = ("rs", "-l", "app=owned", "-n", shop.namespace)
    found = eventually(lambda: shop.bed.get(*listed)["items"][0]["metadata"]["name"], SOON_S)
    target = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": found}
    shop.scaler("owned", scaleTargetRef=target, minReplicas=3)
    assert "Deployment/owned" in shop.says("owned", "Ready", "False", "InvalidSpec")


def test_a_stateful_set_and_anything_with_a_scale_are_targets(shop: Shop) -> None:
    made = deployment(shop.namespace, "stateful", replicas=1)
    made["kind"], made["spec"]["serviceName"] = "StatefulSet", "stateful"
    shop.bed.load(shop.namespace, "stateful", queue=30)
    shop.bed.apply(made)
    shop.scaler("stateful", scaleTargetRef={"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "stateful"})
    eventually(lambda: shop.bed.get("sts", "stateful", "-n", shop.namespace)["spec"]["replicas"] == 3, SOON_S)
    made = deployment(shop.namespace, "controller", replicas=1)
    made["apiVersion"], made["kind"], made["spec"]["selector"] = "v1", "ReplicationController", {"app": "controller"}
    shop.bed.load(shop.namespace, "controller", queue=30)
    shop.bed.apply(made)
    shop.scaler(
        "controller", scaleTargetRef={"apiVersion": "v1", "kind": "ReplicationController", "name": "controller"}
    )
    eventually(lambda: shop.bed.get("rc", "controller", "-n", shop.namespace)["spec"]["replicas"] == 3, SOON_S)


def test_preview_writes_only_its_specific_replicas(shop: Shop) -> None:
    made = autoscaler(shop.namespace, "preview", metrics=queue_metric("preview"))
    made["apiVersion"], made["kind"] = "autoscaling.crane.io/v1alpha1", "EffectiveHorizontalPodAutoscaler"
    made["spec"]["scaleStrategy"] = "Preview"
    shop.bed.load(shop.namespace, "preview", queue=40)
    shop.bed.apply(deployment(shop.namespace, "preview", replicas=1), made)
    eventually(lambda: shop.status("preview", "ehpa")["expectReplicas"] == 4, SOON_S)
    shop.stays("preview", 1)
    made["spec"]["specificReplicas"] = 2
    shop.bed.apply(made)
    shop.becomes("preview", 2)
    made["spec"] |= {"scaleStrategy": "Auto", "behavior": QUICK_DOWN}
    shop.bed.apply(made)
    shop.becomes("preview", 4)


def test_a_namespace_may_opt_out(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    bed.kubectl("label", "namespace", namespace, "trimtab.dev/enabled=false")
    with Running(bed, namespace, tmp_path) as running:
        shop = Shop(bed, namespace, running)
        shop.open("web", queue=40, minReplicas=3)
        shop.says("web", "ScalingActive", "False", "Paused")
        shop.stays("web", 1, for_s=3)
        bed.kubectl("label", "namespace", namespace, "trimtab.dev/enabled-")
        shop.becomes("web", 4)


def test_the_shadow_flag_writes_nothing_on_any_target(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    raised = hpa(namespace, "raised")
    raised["metadata"]["annotations"] = {"trimtab.dev/min-replicas": "1", "trimtab.dev/floor": "3"}
    raised["spec"]["minReplicas"] = 3
    bed.apply(raised)
    with Running(bed, namespace, tmp_path, "--shadow") as running:
        shop = Shop(bed, namespace, running)
        shop.open("web", queue=40)
        shop.kubectl("annotate", "autoscaler", "web", "trimtab.dev/pin=6")
        eventually(lambda: shop.status("web")["desiredReplicas"] == 4, SOON_S)
        shop.stays("web", 1)
        assert bed.get("hpa", "raised", "-n", namespace)["spec"]["minReplicas"] == 3, "not even a floor put back"


def test_the_fleet_breaker_doubts_a_fall_of_everybody_for_one_window(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    names = [f"web-{index}" for index in range(11)]
    with Running(bed, namespace, tmp_path, "--breaker-window", "12s") as running:
        shop = Shop(bed, namespace, running)
        for name in names:
            shop.open(name, queue=30, count=3)
        for name in names:
            shop.says(name, "ScalingActive", "True", "ValidMetricFound")
        for name in names:
            shop.bed.load(namespace, name, queue=[[0, 30], [3, 30], [3.001, 10]])  # all at once
        eventually(lambda: "trimtab_breaker_trips_total 1" in running.get("/metrics"), SOON_S, every_s=0.05)
        tripped_at = time.monotonic()
        assert {shop.replicas(name) for name in names} == {3}
        shop.becomes(names[0], 1, within_s=40)
        assert time.monotonic() - tripped_at > 8
        for name in names:
            shop.becomes(name, 1)
