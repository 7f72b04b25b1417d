"""Forecasts on a real control plane: they only add, in our own kinds and as the floor of an annotated HPA."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.bed import Bed, always, eventually
from tests.bed.manifests import deployment
from tests.e2e.test_bed import ready_pods
from tests.live.running import Running, autoscaler, install_crds, replicas, trimtab

pytestmark = pytest.mark.e2e
RAMP = [[0, 20], [20, 20], [80, 200]]


def rate_metric(namespace: str, kind: str = "Pods") -> list[dict[str, Any]]:
    target = {"type": "AverageValue", "averageValue": "20"}
    if kind == "Prometheus":
        query = f'sum(requests_per_second{{namespace="{namespace}",app="web"}})'
        return [{"type": "Prometheus", "prometheus": {"query": query, "target": target}}]
    return [{"type": "Pods", "pods": {"metric": {"name": "requests_per_second"}, "target": target}}]


def annotated_hpa(namespace: str, **metadata: Any) -> dict[str, Any]:
    made = autoscaler(namespace, metrics=rate_metric(namespace), minReplicas=1, maxReplicas=20)
    made["metadata"] |= {"annotations": {"predictive": "true"}} | metadata
    return made | {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}


def minimum(bed: Bed, namespace: str) -> int:
    found: int = bed.get("hpa", "web", "-n", namespace)["spec"]["minReplicas"]
    return found


def notes(bed: Bed, namespace: str) -> dict[str, str]:
    found: dict[str, str] = bed.get("hpa", "web", "-n", namespace)["metadata"].get("annotations", {})
    return found


def test_a_line_sees_a_ramp_coming_and_the_start_up_time_is_measured(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    spec: dict[str, Any] = {"metrics": rate_metric(namespace, "Prometheus"), "maxReplicas": 20}
    bed.apply(deployment(namespace, "web", annotations={"ready-after": "10s"}))
    bed.load(namespace, "web", rate=20)
    ready_pods(bed, namespace, 1)
    with Running(bed, namespace, tmp_path) as running:
        bed.apply(autoscaler(namespace, forecast={"model": "linear", "horizon": "30s"}, **spec))
        eventually(lambda: "startupSeconds" in bed.get("autoscaler", "web", "-n", namespace)["status"], 20)
        measured = bed.get("autoscaler", "web", "-n", namespace)["status"]["startupSeconds"]
        assert 9 <= measured <= 14
        bed.load(namespace, "web", rate=RAMP)
        decision = lambda: bed.get("autoscaler", "web", "-n", namespace)["status"]["lastDecision"]  # noqa: E731
        eventually(lambda: "query forecast wants" in decision(), 60, "the forecast speaks loudest")
        assert "trimtab_forecast{" in running.get("/metrics")


def test_the_floor_of_an_annotated_hpa_rises_and_goes_back(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    bed.apply(deployment(namespace, "web", annotations={"ready-after": "10s"}), annotated_hpa(namespace))
    bed.load(namespace, "web", rate=20)
    ready_pods(bed, namespace, 1)
    with Running(bed, namespace, tmp_path):
        always(lambda: minimum(bed, namespace) == 1, 5, "nothing to foresee")
        bed.load(namespace, "web", rate=RAMP)
        eventually(lambda: minimum(bed, namespace) > 1, 60, "the floor rises")
        assert notes(bed, namespace)["trimtab.dev/min-replicas"] == "1"
        assert minimum(bed, namespace) <= 20
        assert "ForecastFloor" in bed.kubectl("get", "events", "-n", namespace)
        before = minimum(bed, namespace)
        bed.load(namespace, "web", rate=20)
        eventually(lambda: minimum(bed, namespace) == 1, 150, f"the floor of {before} goes back")
        assert "trimtab.dev/min-replicas" not in notes(bed, namespace)


def test_the_users_edit_is_the_new_original_and_the_annotation_may_go(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    bed.apply(deployment(namespace, "web"), annotated_hpa(namespace))
    bed.load(namespace, "web", rate=20)
    ready_pods(bed, namespace, 1)
    with Running(bed, namespace, tmp_path):
        bed.load(namespace, "web", rate=[[0, 20], [10, 20], [150, 390]])
        eventually(lambda: minimum(bed, namespace) > 2, 60)
        patch = '{"spec":{"minReplicas":2}}'
        bed.kubectl("patch", "hpa", "web", "-n", namespace, "--type=merge", "-p", patch)
        eventually(lambda: notes(bed, namespace).get("trimtab.dev/min-replicas") == "2", 30)
        bed.kubectl("annotate", "hpa", "web", "-n", namespace, "predictive-")
        eventually(lambda: minimum(bed, namespace) == 2, 15)
        assert "trimtab.dev/floor" not in notes(bed, namespace)


def test_restore_puts_back_what_a_dead_operator_left(bed: Bed, namespace: str, tmp_path: Path) -> None:
    left = {"trimtab.dev/min-replicas": "3", "trimtab.dev/floor": "9", "trimtab.dev/floor-until": "99999999999"}
    made = annotated_hpa(namespace, annotations=left)
    made["spec"]["minReplicas"] = 9
    bed.apply(made)
    words = ("restore", "-n", namespace, "--kubeconfig", str(bed.kubeconfig))
    assert "minReplicas 9 -> 3" in trimtab(*words, "--dry-run").stdout
    assert minimum(bed, namespace) == 9
    done = trimtab(*words)
    assert done.returncode == 0 and "1 restored" in done.stdout
    assert minimum(bed, namespace) == 3 and "trimtab.dev/floor" not in notes(bed, namespace)


def test_an_hpa_of_somebody_is_left_alone_and_told_so(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    bed.kubectl("create", "configmap", "boss", "-n", namespace)
    uid = bed.get("configmap", "boss", "-n", namespace)["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "boss", "uid": uid, "controller": True}
    bed.apply(deployment(namespace, "web"), annotated_hpa(namespace, ownerReferences=[owner]))
    bed.load(namespace, "web", rate=20)
    with Running(bed, namespace, tmp_path):
        events = ("get", "events", "-n", namespace, "--field-selector=reason=ForecastNotUsed")
        eventually(lambda: "belongs to ConfigMap/boss" in bed.kubectl(*events), 40)
        assert minimum(bed, namespace) == 1


def test_a_cron_of_an_ehpa_is_a_floor(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    made = autoscaler(namespace, metrics=rate_metric(namespace))
    made |= {"apiVersion": "autoscaling.crane.io/v1alpha1", "kind": "EffectiveHorizontalPodAutoscaler"}
    hour = time.gmtime().tm_hour
    window = {"start": f"0 {(hour - 1) % 24} * * *", "end": f"0 {(hour + 2) % 24} * * *"}
    made["spec"]["crons"] = [{"name": "now", "targetReplicas": 5, **window}]
    bed.load(namespace, "web", rate=20)
    bed.apply(deployment(namespace, "web"), made)
    with Running(bed, namespace, tmp_path):
        eventually(lambda: replicas(bed, namespace) == 5, 30)
        eventually(lambda: bed.get("ehpa", "web", "-n", namespace)["status"]["expectReplicas"] == 5, 15)
