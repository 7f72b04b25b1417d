"""What people see of each kind with kubectl: get, get --watch, describe, explain."""

from __future__ import annotations

import json
import re
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bed import Bed, always, eventually
from tests.bed.manifests import deployment
from tests.live.running import Running, autoscaler, install_crds

pytestmark = pytest.mark.e2e
WITHIN_S = 40
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}


class Desk:
    """A namespace with one object of each kind, each with a Deployment of its own, and an operator."""

    def __init__(self, bed: Bed, namespace: str) -> None:
        self.bed, self.namespace = bed, namespace

    def kubectl(self, *words: str) -> str:
        return self.bed.kubectl(*words, "-n", self.namespace)

    def row(self, kind: str) -> dict[str, str]:
        """The table of `kubectl get`, by its columns, which begin below their headers."""
        header, line = self.kubectl("get", kind).splitlines()
        found = list(re.finditer(r"\S+", header))
        ends = [*(one.start() for one in found[1:]), None]
        return {one[0]: line[one.start() : end].strip() for one, end in zip(found, ends, strict=True)}


def target(name: str) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}


def manifest(namespace: str, version: str, kind: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "web", "namespace": namespace}, "spec": spec}


@pytest.fixture(scope="module")
def desk(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    install_crds(bed)
    namespace = f"desk-{uuid.uuid4().hex[:8]}"
    bed.kubectl("create", "namespace", namespace)
    for name in ("own", "effective", "both"):
        bed.apply(deployment(namespace, name, replicas=4, cpu="250m"))
        bed.load(namespace, name, cores=0.5)  # 50 % of 4 x 250m
    own = autoscaler(namespace, "web", scaleTargetRef=target("own"))
    hvpa: dict[str, Any] = {
        "hpaTemplate": {"minReplicas": 2, "maxReplicas": 6, "metrics": [CPU]},
        "weightBasedScalingIntervals": [{"vpaWeight": 0.4}],
    }
    bed.apply(
        own,
        manifest(
            namespace,
            "autoscaling.crane.io/v1alpha1",
            "EffectiveHorizontalPodAutoscaler",
            scaleTargetRef=target("effective"),
            minReplicas=2,
            maxReplicas=6,
            scaleStrategy="Preview",
            metrics=[CPU],
        ),
        manifest(namespace, "autoscaling.k8s.io/v1alpha1", "Hvpa", targetRef=target("both"), **hvpa),
        manifest(
            namespace,
            "analysis.crane.io/v1alpha1",
            "Analytics",
            type="Resource",
            resourceSelectors=[{"kind": "Deployment", "apiVersion": "apps/v1", "name": "own"}],
        ),
    )
    with Running(bed, namespace, tmp_path_factory.mktemp("operator")):
        yield Desk(bed, namespace)
    bed.kubectl("delete", "namespace", namespace, "--wait=false")


GET: dict[str, dict[str, str]] = {
    "autoscaler": {"NAME": "web", "REFERENCE": "own", "TARGETS": "cpu: 50%/50%", "MINPODS": "1", "MAXPODS": "10"}
    | {"REPLICAS": "4", "MODE": "Auto"},
    "ehpa": {"NAME": "web", "STRATEGY": "Preview", "MINPODS": "2", "MAXPODS": "6", "REPLICAS": "4"},
    "hvpa": {"NAME": "web", "TARGET": "both", "REPLICAS": "4", "HPAWEIGHT": "60", "VPAWEIGHT": "40"},
    "analytics": {"NAME": "web"},
    "recommend": {"TYPE": "Resource", "TARGETKIND": "Deployment", "TARGETNAME": "own", "STRATEGY": "Once"},
}


@pytest.mark.parametrize("kind", GET)
def test_get(desk: Desk, kind: str) -> None:
    def shown() -> bool:
        row = desk.row(kind)
        return {name: row[name] for name in GET[kind]} == GET[kind]

    eventually(shown, WITHIN_S, f"{GET[kind]}")


DESCRIBE = {
    "autoscaler": (
        "Current Metrics:",
        "Average Utilization:  50",
        "Reason:                ValidMetricFound",
        "Last Decision:",
    ),
    "ehpa": ("Expect Replicas:   4", "Type:                  ScalingActive", "Scale Strategy:  Preview"),
    "hvpa": ("Target Selector:", "app=both", "Vpa Weight:", "Type:                  AbleToScale"),
    "analytics": ("Reason:", "Recommendations:", "Config:"),
    "recommend": ("Adoption Type:", "Type:                  Ready"),
}


@pytest.mark.parametrize("kind", DESCRIBE)
def test_describe(desk: Desk, kind: str) -> None:
    def told() -> bool:
        text = desk.kubectl("describe", kind)
        missing = [words for words in DESCRIBE[kind] if " ".join(words.split()) not in " ".join(text.split())]
        assert not missing, text
        return True

    eventually(told, WITHIN_S)


EXPLAIN = {
    "autoscaler.spec.onMetricFailure": ("holdSeconds", "Keep the size for so long"),
    "ehpa.spec.prediction": ("predictionAlgorithm", "may only add replicas"),
    "hvpa.spec": ("weightBasedScalingIntervals", "how much of each change is vertical"),
    "analytics.spec": ("resourceSelectors", "The keys of Crane's HPA recommendation"),
    "recommend.status": ("recommendedValue", "what to apply"),
}


@pytest.mark.parametrize("path", EXPLAIN)
def test_explain(desk: Desk, path: str) -> None:
    text = " ".join(desk.bed.kubectl("explain", path).split())
    for words in EXPLAIN[path]:
        assert words in text


WATCHED = {"autoscaler": "own", "ehpa": "effective", "hvpa": "both"}


@pytest.mark.parametrize("kind", WATCHED)
def test_watch(desk: Desk, kind: str, tmp_path: Path) -> None:
    """A line when the object changes, and silence while it does not."""
    eventually(lambda: desk.row(kind)["REPLICAS"] == "4", WITHIN_S)
    out = tmp_path / "watched"
    words = [str(desk.bed.binaries["kubectl"]), "--kubeconfig", str(desk.bed.kubeconfig)]
    with out.open("wb") as file:
        watching = subprocess.Popen([*words, "get", kind, "web", "--watch", "-n", desk.namespace], stdout=file)
    try:
        eventually(lambda: len(out.read_text().splitlines()) == 2, 10, "the header and the object as it is")
        always(lambda: len(out.read_text().splitlines()) <= 3, 5, "at most one measurement")
        desk.bed.load(desk.namespace, WATCHED[kind], cores=0.625)
        eventually(
            lambda: out.read_text().splitlines()[-1].split() != out.read_text().splitlines()[1].split(), WITHIN_S
        )
        eventually(lambda: " 5 " in out.read_text().splitlines()[-1], WITHIN_S, "five replicas")
    finally:
        watching.terminate()
        watching.wait(10)
        desk.bed.load(desk.namespace, WATCHED[kind], cores=0.5)


@pytest.mark.parametrize("kind", ["autoscaler", "ehpa", "hvpa", "analytics"])
def test_what_we_leave_on_an_object(desk: Desk, kind: str) -> None:
    """Its status, by server-side apply under our name; no finalizer keeps anybody from deleting it."""

    def ours() -> list[dict[str, Any]]:
        words = ("get", kind, "web", "--show-managed-fields", "-o", "json")
        entries = json.loads(desk.kubectl(*words))["metadata"]["managedFields"]
        return [one for one in entries if one["manager"] == "trimtab"]

    (entry,) = eventually(ours, WITHIN_S)
    assert entry["operation"] == "Apply" and set(entry["fieldsV1"]) == {"f:status"}
    assert "finalizers" not in desk.bed.get(kind, "web", "-n", desk.namespace)["metadata"]
