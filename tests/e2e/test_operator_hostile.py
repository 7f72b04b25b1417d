"""Tenants who mean no good, on the real control plane: what they write is refused, or is nobody else's trouble."""

from __future__ import annotations

import json
import resource
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.bed import Bed, always, eventually
from tests.bed.manifests import deployment
from tests.e2e.conftest import namespaces
from tests.e2e.test_bed import ready_pods
from tests.live.running import Running, autoscaler, conditions, install_crds, replicas

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
AT_ONCE = {"scaleDown": {"stabilizationWindowSeconds": 0}}
ANALYSIS = "analysis.crane.io/v1alpha1"


def tenant(bed: Bed, namespace: str) -> Path:
    """Somebody with `edit` in one namespace, and our kinds."""
    bed.kubectl("create", "serviceaccount", "tenant", "-n", namespace)
    bed.kubectl(
        "create", "rolebinding", "tenant", "-n", namespace, "--clusterrole=edit", f"--serviceaccount={namespace}:tenant"
    )
    kinds = "autoscalers.trimtab.dev,recommendations.analysis.crane.io,analytics.analysis.crane.io"
    bed.kubectl("create", "role", "kinds", "-n", namespace, "--verb=*", f"--resource={kinds}")
    bed.kubectl(
        "create", "rolebinding", "kinds", "-n", namespace, "--role=kinds", f"--serviceaccount={namespace}:tenant"
    )
    return bed.kubeconfig_for(namespace, "tenant")


def refusal(bed: Bed, account: Path, manifest: dict[str, Any]) -> str:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        bed.kubectl("create", "-f", "-", input=json.dumps(manifest), kubeconfig=account)
    return str(refused.value.stderr)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "../../../../../apis/apps/v1/namespaces/kube-system/deployments/coredns"),
        ("name", "web/scale"),
        ("apiVersion", "../api/v1/pods"),
        ("kind", "Deployment/x"),
    ],
)
def test_a_name_that_climbs_is_refused_at_the_door(bed: Bed, namespace: str, field: str, value: str) -> None:
    """C1."""
    install_crds(bed)
    climbing = autoscaler(namespace)
    climbing["spec"]["scaleTargetRef"][field] = value
    said = refusal(bed, tenant(bed, namespace), climbing)
    assert f"spec.scaleTargetRef.{field}" in said and "should match" in said


def test_a_status_that_a_tenant_writes_into_a_recommendation_is_dropped(bed: Bed, namespace: str) -> None:
    """C2: what is adopted was computed."""
    install_crds(bed)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "kube-system"}
    forged = {
        "apiVersion": ANALYSIS,
        "kind": "Recommendation",
        "metadata": {"name": "forged", "namespace": namespace},
        "spec": {"targetRef": target, "type": "Replicas", "adoptionType": "Auto"},
        "status": {"recommendedValue": "scaleStrategy: Auto\nmaxReplicas: 1\n"},
    }
    bed.kubectl("create", "-f", "-", input=json.dumps(forged), kubeconfig=tenant(bed, namespace))
    assert "status" not in bed.get("recommendations.analysis.crane.io", "forged", "-n", namespace)


@pytest.mark.disruptive  # an operator for the whole cluster serves everybody's objects
def test_among_hostile_tenants_an_honest_one_is_served(bed: Bed, tmp_path: Path) -> None:
    """C2, H5, H9 and M6 at once: nothing is written to, nor asked about, a bystander."""
    install_crds(bed)
    with namespaces(bed, "home", "honest", "evil", "bystander") as (home, honest, evil, bystander):
        account = tenant(bed, evil)
        bed.load(honest, "web", cores=0.3)
        bed.load(bystander, "safe", cores=0.3)
        bed.apply(deployment(honest, "web", replicas=2), deployment(bystander, "safe", replicas=2))
        ready_pods(bed, honest, 2)
        for manifest in hostile(bed, evil, honest, bystander):
            bed.kubectl("create", "-f", "-", input=json.dumps(manifest), kubeconfig=account)
        bed.apply(autoscaler(honest, maxReplicas=6))
        everywhere = ("--namespace", "", "--lease-namespace", home)
        with Running(bed, home, tmp_path, *everywhere) as running:
            bed.load(honest, "web", cores=0.6)
            eventually(lambda: replicas(bed, honest) == 5, 90, "0.6 cores at half of 250m need 5")
            always(lambda: replicas(bed, bystander, "safe") == 2, 6)
            user = f"system:serviceaccount:{home}:"
        asked = [event for event in bed.audit() if event["user"]["username"].startswith(user)]
        about = {(event.get("objectRef") or {}).get("namespace", "") for event in asked}
        assert honest in about and bystander not in about
        assert not bed.get("effectivehorizontalpodautoscalers.autoscaling.crane.io", "-n", bystander)["items"]
        assert "a bug of trimtab" not in running.log.read_text()


def hostile(bed: Bed, evil: str, honest: str, bystander: str) -> list[dict[str, Any]]:
    sets = bed.get("replicaset", "-n", honest)["items"]
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "safe", "namespace": bystander}
    adopting = {"targetRef": target, "type": "Replicas", "adoptionType": "Auto"}
    forged = {"apiVersion": ANALYSIS, "kind": "Recommendation", "metadata": {"name": "forged", "namespace": evil}}
    spying = {"describedObject": {"apiVersion": "v1", "kind": "Namespace", "name": bystander}}
    spying |= {"metric": {"name": "queue_length"}, "target": {"type": "Value", "value": "1"}}
    names = [f"trimtab-usage-{honest}-web", f"trimtab-usage.autoscaler.{honest}.web"]
    maps = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": evil}} for name in names]
    return [
        forged | {"spec": adopting},
        autoscaler(evil, "spy", metrics=[{"type": "Object", "object": spying}]),
        *(found | {"data": {"app": "[]", "demand": "[]"}} for found in maps),
        *(foreign_pod(evil, number, found["metadata"]) for found in sets for number in range(5)),
    ]


def foreign_pod(namespace: str, number: int, owner: dict[str, Any]) -> dict[str, Any]:
    """It says that it belongs to somebody else's ReplicaSet."""
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner["name"], "uid": owner["uid"]}
    pod: dict[str, Any] = deployment(namespace, "foreign")["spec"]["template"]
    meta = {"name": f"foreign-{number}", "namespace": namespace, "labels": {"app": "web"}}
    references = {"ownerReferences": [reference | {"controller": True}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta | references, "spec": pod["spec"]}


def test_a_damaged_journal_and_a_full_disk_stop_nothing(bed: Bed, namespace: str, tmp_path: Path) -> None:
    """M2: it starts beside the damaged file, says that it cannot record, and goes on when it can again."""
    install_crds(bed)
    bed.load(namespace, "web", cores=0.1)
    bed.apply(deployment(namespace, "web", replicas=1), autoscaler(namespace, behavior=AT_ONCE))
    ready_pods(bed, namespace, 1)
    (tmp_path / "journal.db").write_bytes(b"SQLite format 3\0" + b"not one" * 1000)
    with Running(bed, namespace, tmp_path) as running:
        eventually(lambda: conditions(bed, namespace)["ScalingActive"]["status"] == "True", 60)
        assert (tmp_path / "journal.db.unreadable").exists()
        assert running.process is not None
        usual = resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (4096, usual[1]))
        bed.load(namespace, "web", cores=0.5)
        eventually(lambda: replicas(bed, namespace) == 4, 60, "it scales without a journal")
        eventually(lambda: "journal" in running.get("/readyz") and running.get("/readyz").startswith("ok"), 60)
        resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, usual)
        eventually(lambda: "trimtab_journal_up 1" in running.get("/metrics"), 60, "and records again")
