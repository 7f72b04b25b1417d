"""What may be a target: a ReplicaSet of nobody, anything with a scale, a DaemonSet for advice, and never ourselves."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bed import Bed, always, eventually
from tests.bed.manifests import deployment
from tests.e2e.test_operator_modes import Shop, queue_metric
from tests.live.accounts import chart_account
from tests.live.running import Running, autoscaler, install_crds

pytestmark = pytest.mark.e2e
SOON_S = 40
ROLLOUT = ("argoproj.io/v1alpha1", "Rollout")


@pytest.fixture(scope="module")
def shop(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """An operator that is told that it is the Deployment `trimtab` of its namespace."""
    install_crds(bed)
    bed.apply(rollouts())
    bed.kubectl("wait", "--for=condition=Established", "crd/rollouts.argoproj.io", "--timeout=300s")
    name = f"targets-{uuid.uuid4().hex[:8]}"
    bed.kubectl("create", "namespace", name)
    quick = ("--usage-every", "2s", "--grow-after", "5s")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "TRIMTAB_DEPLOYMENT", "trimtab")
        folder = tmp_path_factory.mktemp("operator")
        account = at_home(chart_account(bed, name), name, folder)
        with Running(bed, name, folder, *quick, kubeconfig=account) as running:
            yield Shop(bed, name, running)
    bed.kubectl("delete", "namespace", name, "--wait=false")


def at_home(kubeconfig: Path, namespace: str, folder: Path) -> Path:
    """Its namespace is its own, as it is for a pod."""
    config = json.loads(kubeconfig.read_text())
    config["contexts"][0]["context"]["namespace"] = namespace
    made = folder / "kubeconfig"
    made.write_text(json.dumps(config))
    return made


def rollouts() -> dict[str, Any]:
    """Argo's kind as far as a scaler sees it."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    version["subresources"] = {"scale": paths, "status": {}}
    names = {"kind": "Rollout", "plural": "rollouts", "singular": "rollout", "listKind": "RolloutList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "rollouts.argoproj.io"},
        "spec": {"group": "argoproj.io", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def test_a_replica_set_of_nobody_is_scaled(shop: Shop) -> None:
    made = deployment(shop.namespace, "alone", replicas=1)
    made["kind"] = "ReplicaSet"
    shop.bed.load(shop.namespace, "alone", queue=30)
    shop.bed.apply(made)
    shop.scaler("alone", scaleTargetRef={"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "alone"})
    eventually(lambda: shop.bed.get("rs", "alone", "-n", shop.namespace)["spec"]["replicas"] == 3, SOON_S)


def test_a_rollout_is_scaled_by_its_scale(shop: Shop) -> None:
    version, kind = ROLLOUT
    meta = {"name": "canary", "namespace": shop.namespace}
    shop.bed.load(shop.namespace, "canary", queue=30)
    shop.bed.apply({"apiVersion": version, "kind": kind, "metadata": meta, "spec": {"replicas": 1}})
    shop.scaler("canary", scaleTargetRef={"apiVersion": version, "kind": kind, "name": "canary"})
    eventually(lambda: shop.bed.get("rollout", "canary", "-n", shop.namespace)["spec"]["replicas"] == 3, SOON_S)


def test_never_ourselves(shop: Shop) -> None:
    shop.open("trimtab", queue=90, minReplicas=3)
    assert "trimtab itself" in shop.says("trimtab", "Ready", "False", "InvalidSpec")
    shop.stays("trimtab", 1)


def test_a_daemon_set_is_advised_and_left_alone(shop: Shop) -> None:
    made = deployment(shop.namespace, "agent", cpu="100m")
    made["kind"] = "DaemonSet"
    del made["spec"]["replicas"]
    shop.bed.load(shop.namespace, "agent", cores=1.2)  # on three nodes
    target = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent"}
    spec = {"scaleTargetRef": target, "vertical": {"apply": "Recreate"}}
    shop.bed.apply(made, autoscaler(shop.namespace, "agent") | {"spec": spec})

    def advice() -> str:
        cpu: str = shop.status("agent")["sizes"][0]["cpu"]
        return cpu

    eventually(lambda: int(advice().removesuffix("m")) > 400, SOON_S, "more is advised")
    shop.says("agent", "AbleToScale", "True", "ReadyForNewScale")
    before = shop.bed.get("ds", "agent", "-n", shop.namespace)["metadata"]["generation"]
    always(lambda: shop.bed.get("ds", "agent", "-n", shop.namespace)["metadata"]["generation"] == before, 4)
    shop.scaler("agent", scaleTargetRef=target, metrics=queue_metric("agent"))
    assert "one pod a node" in shop.says("agent", "Ready", "False", "InvalidSpec")


def test_a_stateful_set_is_lowered_though_a_pod_of_it_is_long_on_its_way_out(shop: Shop) -> None:
    """As on a lost node: its status counts the pod until it is gone."""
    made = deployment(shop.namespace, "db", replicas=3, annotations={"gone-after": "3600s"})
    made["kind"], made["spec"]["podManagementPolicy"] = "StatefulSet", "Parallel"
    made["spec"].pop("strategy", None)
    read = lambda: shop.bed.get("sts", "db", "-n", shop.namespace)  # noqa: E731
    shop.bed.load(shop.namespace, "db", cores=0.03)
    shop.bed.apply(made)
    eventually(lambda: read()["status"].get("readyReplicas") == 3, SOON_S)
    shop.kubectl("delete", "pod", "db-1", "--wait=false")
    eventually(lambda: read()["status"]["updatedReplicas"] == 2, SOON_S)
    assert read()["status"]["replicas"] == 3
    ref = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    shop.scaler("db", scaleTargetRef=ref, metrics=[{"type": "Resource", "resource": cpu}])
    eventually(lambda: read()["spec"]["replicas"] == 1, SOON_S)
