"""The operator under the chart's own service account: its Role suffices, and a rule that is missing is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.live.running import ROOT, Running, autoscaler, conditions, install_crds, replicas

pytestmark = pytest.mark.e2e
CHART = ROOT / "deploy" / "trimtab"
RBAC = ("ServiceAccount", "Role", "RoleBinding")


class Install:
    """The chart's account and roles in one namespace, as `helm template` gives them."""

    def __init__(self, bed: Bed, namespace: str) -> None:
        self.bed, self.namespace = bed, namespace
        words = ("template", "trimtab", str(CHART), "-n", namespace, "--set", f"namespace={namespace}")
        found = [one for one in yaml.safe_load_all(bed.helm(*words)) if one and one["kind"] in RBAC]
        bed.apply(*found)
        self.role = next(one for one in found if one["kind"] == "Role" and one["metadata"]["name"] == "trimtab")
        account = next(one["metadata"]["name"] for one in found if one["kind"] == "ServiceAccount")
        self.kubeconfig = bed.kubeconfig_for(namespace, account)

    def without(self, resource: str, group: str) -> None:
        """Take one resource out of every rule."""
        rules = []
        for rule in self.role["rules"]:
            if group in rule["apiGroups"] and (resource in rule["resources"] or rule["resources"] == ["*"]):
                left = [one for one in rule["resources"] if one not in (resource, "*")]
                rule = rule | {"resources": left}
            if rule["resources"]:
                rules.append(rule)
        assert rules != self.role["rules"]
        self.bed.kubectl("replace", "-f", "-", input=json.dumps(self.role | {"rules": rules}))


@pytest.fixture
def install(bed: Bed, namespace: str) -> Install:
    install_crds(bed)
    return Install(bed, namespace)


def external(name: str) -> list[dict[str, Any]]:
    metric = {"name": "queue_length", "selector": {"matchLabels": {"app": name}}}
    return [
        {"type": "External", "external": {"metric": metric, "target": {"type": "AverageValue", "averageValue": "10"}}}
    ]


def open_shop(bed: Bed, namespace: str) -> None:
    bed.load(namespace, "web", queue=40)
    bed.apply(deployment(namespace, "web"), autoscaler(namespace, metrics=external("web")))


@pytest.mark.smoke
def test_the_role_of_the_chart_is_enough(bed: Bed, namespace: str, install: Install, tmp_path: Path) -> None:
    open_shop(bed, namespace)
    with Running(bed, namespace, tmp_path, kubeconfig=install.kubeconfig) as running:
        eventually(lambda: replicas(bed, namespace) == 4, 40)
        eventually(lambda: conditions(bed, namespace)["Ready"]["status"] == "True", 20)
        eventually(lambda: "SuccessfulRescale" in bed.kubectl("get", "events", "-n", namespace), 10)
        assert "forbidden" not in running.log.read_text(), "nothing was refused"


@pytest.mark.parametrize(
    ("resource", "group"),
    [
        ("pods", ""),
        ("deployments", "apps"),
        ("replicasets", "apps"),
        ("autoscalers", "trimtab.dev"),
        ("hvpas", "autoscaling.k8s.io"),
        ("horizontalpodautoscalers", "autoscaling"),
        ("resourcequotas", ""),
        ("limitranges", ""),
        ("poddisruptionbudgets", "policy"),
    ],
)
def test_what_cannot_be_watched_is_named_by_readyz(
    bed: Bed, namespace: str, install: Install, tmp_path: Path, resource: str, group: str
) -> None:
    install.without(resource, group)
    running = Running(bed, namespace, tmp_path, kubeconfig=install.kubeconfig)
    running.start()
    try:
        said = eventually(lambda: _naming(running.get("/readyz"), f'"{resource}"'), 30, f"{resource} is named")
        assert "forbidden" in said
    finally:
        running.stop()


def _naming(text: str, word: str) -> str:
    assert word in text, text
    return text


@pytest.mark.parametrize(
    ("resource", "group", "where"),
    [
        ("deployments/scale", "apps", "AbleToScale"),
        ("*", "external.metrics.k8s.io", "ScalingActive"),
        ("autoscalers/status", "trimtab.dev", "log"),
        ("events", "", "log"),
    ],
)
def test_what_cannot_be_done_is_named_where_it_belongs(
    bed: Bed, namespace: str, install: Install, tmp_path: Path, resource: str, group: str, where: str
) -> None:
    install.without(resource, group)
    open_shop(bed, namespace)
    with Running(bed, namespace, tmp_path, kubeconfig=install.kubeconfig) as running:
        if where == "log":
            wanted = resource.split("/")[0]
            eventually(lambda: "forbidden" in running.log.read_text() and wanted in running.log.read_text(), 30)
            eventually(lambda: replicas(bed, namespace) == 4, 30, "it scales all the same")
            return
        said = eventually(lambda: _refused(conditions(bed, namespace)[where]), 30)
        assert "403" in said and "forbidden" in said
        assert replicas(bed, namespace) == 1


def _refused(one: dict[str, Any]) -> str:
    assert one["status"] == "False", one
    return str(one["message"])
