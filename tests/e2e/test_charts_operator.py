"""The operator's container as a process under the chart's service account: what it may do, and what it misses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bed import Bed, build, eventually
from tests.bed.manifests import deployment
from tests.bed.ports import free_port
from tests.live.process import ServingProcess
from tests.live.running import autoscaler, install_crds, replicas

pytestmark = pytest.mark.e2e
CHART = Path(__file__).parents[2] / "deploy" / "trimtab"
CRDS = ("trimtab", "craneAutoscaling", "craneAnalysis", "hvpa")
# Rules of what the operator does in other circumstances than those of `busy`.
ELSEWHERE = {("", "pods/resize")}
# (group, first resource of the rule) -> the resource in the API server's refusal
NOTICED = {
    ("trimtab.dev", "autoscalers"): "autoscalers",
    ("trimtab.dev", "autoscalers/status"): "autoscalers/status",
    ("autoscaling.k8s.io", "hvpas"): "hvpas",
    ("autoscaling.k8s.io", "hvpas/status"): "hvpas/status",
    ("autoscaling.k8s.io", "verticalpodautoscalers"): "verticalpodautoscalers",
    ("autoscaling.crane.io", "effectivehorizontalpodautoscalers"): "effectivehorizontalpodautoscalers",
    ("autoscaling.crane.io", "effectivehorizontalpodautoscalers/status"): "effectivehorizontalpodautoscalers/status",
    ("analysis.crane.io", "analytics"): "analytics",
    ("analysis.crane.io", "recommendations"): "recommendations",
    ("analysis.crane.io", "analytics/status"): "analytics/status",
    ("autoscaling", "horizontalpodautoscalers"): "horizontalpodautoscalers",
    ("keda.sh", "scaledobjects"): "scaledobjects",
    ("datadoghq.com", "watermarkpodautoscalers"): "watermarkpodautoscalers",
    ("jamiethompson.me", "predictivehorizontalpodautoscalers"): "predictivehorizontalpodautoscalers",
    ("apps", "deployments"): "deployments",
    ("apps", "deployments/scale"): "deployments/scale",
    ("", "pods"): "pods",
    ("", "resourcequotas"): "resourcequotas",
    ("policy", "poddisruptionbudgets"): "poddisruptionbudgets",
    ("", "events"): "events",
    ("", "configmaps"): "configmaps",
    ("metrics.k8s.io", "pods"): "pods",
    ("custom.metrics.k8s.io", "*"): "pods/requests_per_second",
    ("external.metrics.k8s.io", "*"): "queue_length",
    ("coordination.k8s.io", "leases"): "leases",
}


class Operator(ServingProcess):
    """The container of an installed chart as a process here; `said()` is all it told anybody."""

    def __init__(self, bed: Bed, namespace: str, folder: Path) -> None:
        self.bed, self.namespace, port = bed, namespace, free_port()
        made = bed.get("deployment", "trimtab", "-n", namespace)
        container = made["spec"]["template"]["spec"]["containers"][0]
        here = {"--listen": f"--listen=127.0.0.1:{port}", "--journal": f"--journal={folder / 'journal.db'}"}
        args = [here.get(arg.partition("=")[0], arg) for arg in container["args"]]
        program, *words = container["command"]
        super().__init__([str(Path(sys.executable).with_name(program)), *words, *args], port, folder / "operator.log")
        self.env = {one["name"]: one["value"] for one in container["env"]}
        self.env |= {"KUBECONFIG": str(bed.kubeconfig_for(namespace, "trimtab")), "PATH": os.environ["PATH"]}

    def __enter__(self) -> Operator:
        self.start(self.log.parent, self.env)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            print(self.last_words())
        self.stop()

    def said(self) -> str:
        objects = self.bed.get("autoscalers,ehpa,hvpa", "-n", self.namespace)["items"]
        conditions = [one.get("status", {}).get("conditions", []) for one in objects]
        return "\n".join([self.log.read_text(), self.get("/readyz"), json.dumps(conditions).replace('\\"', '"')])

    def lacks(self, resource: str) -> bool:
        return re.search(rf'cannot \w+ resource "{resource}"', self.said()) is not None


def install(bed: Bed, namespace: str, *given: str) -> None:
    settings = [*(f"crds.{one}=false" for one in CRDS), "tick=1s", *given]
    bed.helm("install", "trimtab", str(CHART), "-n", namespace, *(p for one in settings for p in ("--set", one)))


@pytest.fixture
def served(bed: Bed, namespace: str) -> Iterator[str]:
    """A namespace with the chart, and objects of every kind under a load that asks for more pods."""
    install_crds(bed)
    install_foreign_kinds(bed)
    install(bed, namespace, f"namespace={namespace}")
    busy(bed, namespace)
    yield namespace
    bed.helm("uninstall", "trimtab", "-n", namespace, "--no-hooks")


def busy(bed: Bed, namespace: str) -> None:
    average = {"type": "AverageValue", "averageValue": "10"}
    queue = {"metric": {"name": "queue_length", "selector": {"matchLabels": {"app": "web"}}}, "target": average}
    rate = {"metric": {"name": "requests_per_second"}, "target": average}
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    ref = {"apiVersion": "apps/v1", "kind": "Deployment"}
    horizontal = {"minReplicas": 1, "maxReplicas": 5, "metrics": [cpu]}
    ehpa = {"scaleTargetRef": ref | {"name": "crane"}, "scaleStrategy": "Auto"} | horizontal
    hvpa = {"targetRef": ref | {"name": "both"}, "hpa": {"template": {"spec": horizontal}}, "vpa": {}}
    hvpa |= {"weightBasedScalingIntervals": [{"vpaWeight": 0}]}
    bed.apply(
        *(deployment(namespace, name) for name in ("web", "rate", "crane", "both")),
        autoscaler(namespace, metrics=[{"type": "External", "external": queue}]),
        autoscaler(namespace, "rate", metrics=[{"type": "Pods", "pods": rate}]),
        _object("autoscaling.crane.io/v1alpha1", "EffectiveHorizontalPodAutoscaler", namespace, "crane", ehpa),
        _object("autoscaling.k8s.io/v1alpha1", "Hvpa", namespace, "both", hvpa),
    )
    bed.load(namespace, "web", queue=40)


def _object(version: str, kind: str, namespace: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def install_foreign_kinds(bed: Bed) -> None:
    """KEDA's, VPA's, WPA's and PHPA's, open to anything: the operator looks for them only where they are installed."""
    kinds = (
        ("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects"),
        ("datadoghq.com", "v1alpha1", "WatermarkPodAutoscaler", "watermarkpodautoscalers"),
        ("jamiethompson.me", "v1alpha1", "PredictiveHorizontalPodAutoscaler", "predictivehorizontalpodautoscalers"),
        ("autoscaling.k8s.io", "v1", "VerticalPodAutoscaler", "verticalpodautoscalers"),
    )
    for group, version, kind, plural in kinds:
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        one = {"name": version, "served": True, "storage": True, "schema": schema}
        names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
        meta = {"name": f"{plural}.{group}", "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"}}
        spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [one]}
        bed.apply(
            {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": meta}
            | {"spec": spec}
        )
        bed.kubectl("wait", "--for=condition=Established", f"crd/{plural}.{group}", "--timeout=300s")


def _rules(bed: Bed, namespace: str) -> dict[tuple[str, str], list[str]]:
    """(group, first resource) -> the roles that hold such a rule."""
    found: dict[tuple[str, str], list[str]] = {}
    for role in ("trimtab", "trimtab-lease"):
        for rule in bed.get("role", role, "-n", namespace)["rules"]:
            found.setdefault((rule["apiGroups"][0], rule["resources"][0]), []).append(role)
    return found


@pytest.mark.smoke
def test_the_operator_of_the_chart_scales_with_roles_alone(bed: Bed, served: str, tmp_path: Path) -> None:
    with Operator(bed, served, tmp_path) as operator:
        eventually(lambda: operator.get("/healthz") == "ok\n", 20)
        eventually(lambda: operator.get("/readyz").startswith("ok, leading"), 30)
        eventually(lambda: replicas(bed, served) == 4, 40, "40 queued, 10 for each")
        eventually(lambda: "New size: 4" in bed.kubectl("get", "events", "-n", served), 10)
        refused = set(re.findall(r'cannot \w+ resource "([^"]+)"', operator.said()))
        assert refused <= {"namespaces", "nodes"}, "what has no namespace is all that Roles cannot show"


def test_every_rule_of_the_chart_is_missed_by_a_test(bed: Bed, served: str) -> None:
    assert set(_rules(bed, served)) == set(NOTICED) | ELSEWHERE


@pytest.mark.parametrize("rule", NOTICED, ids=lambda rule: f"{rule[1]}.{rule[0]}")
def test_a_missing_rule_is_noticed_and_named(bed: Bed, served: str, tmp_path: Path, rule: tuple[str, str]) -> None:
    for role in set(_rules(bed, served)[rule]):
        rules = bed.get("role", role, "-n", served)["rules"]
        left = [one for one in rules if (one["apiGroups"][0], one["resources"][0]) != rule]
        change = json.dumps([{"op": "replace", "path": "/rules", "value": left}])
        bed.kubectl("patch", "role", role, "-n", served, "--type=json", "-p", change)
    with Operator(bed, served, tmp_path) as operator:
        eventually(lambda: operator.lacks(re.escape(NOTICED[rule])), 60, f"{rule} missed")


def test_it_may_not_do_what_it_does_not_need(bed: Bed, served: str) -> None:
    assert _may(bed, served, "list", "pods", served)
    assert not _may(bed, served, "list", "pods", "default")
    needless = {
        "get": ("secrets",),
        "list": ("secrets", "services"),
        "create": ("pods", "deployments"),
        "delete": ("pods", "deployments", "horizontalpodautoscalers"),
        "update": ("autoscalers", "roles"),
    }
    granted = [(verb, one) for verb, kinds in needless.items() for one in kinds if _may(bed, served, verb, one, served)]
    assert granted == []


def _may(bed: Bed, namespace: str, verb: str, what: str, where: str) -> bool:
    account = f"system:serviceaccount:{namespace}:trimtab"
    try:
        bed.kubectl("auth", "can-i", verb, what, "-n", where, "--as", account)
    except subprocess.CalledProcessError:
        return False
    return True


def test_cluster_wide_it_follows_everything(tmp_path: Path) -> None:
    """On an API server of its own: it would serve the objects of all other tests."""
    with Bed.start(parts=("apiserver",)) as bare:
        bare.binaries |= build.binaries(("helm",))
        bare.helm("install", "trimtab", str(CHART), "-n", "default", "--set", "tick=1s")
        bare.apply(deployment("default", "web"), autoscaler("default", minReplicas=3))
        with Operator(bare, "default", tmp_path) as operator:
            eventually(lambda: operator.get("/readyz").startswith("ok, leading"), 40)
            eventually(lambda: replicas(bare, "default") == 3, 30, "bounds hold without metrics")
            refused = re.findall(r'cannot \w+ resource "([^"]+)"', operator.said())
            assert refused == []
        rules = bare.get("clusterrole", "trimtab")["rules"]
        left = json.dumps(
            [{"op": "replace", "path": "/rules", "value": [r for r in rules if r["resources"] != ["nodes"]]}]
        )
        bare.kubectl("patch", "clusterrole", "trimtab", "--type=json", "-p", left)
        with Operator(bare, "default", tmp_path) as operator:
            eventually(lambda: operator.lacks("nodes"), 30, "the rule for nodes is missed")
