"""Every right that the chart asks for, with the code that needs it; and what the admission policy leaves of it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.live.running import ROOT, Running, autoscaler, conditions, install_crds, replicas

CHART = ROOT / "deploy" / "trimtab"
LIVE, WIRE = "trimtab/live/", "trimtab/wire/"
ALL_RIGHTS = (
    "rights.templates=true",
    "rights.adoption=true",
    "targets[0].group=argoproj.io",
    "targets[0].resource=rollouts",
)
FOLLOWS = (WIRE + "watch.py", "listing = await self.kube.list(")
SCALES = (LIVE + "act/apply.py", 'Patch.MERGE, "scale")')
READS_SCALE = (LIVE + "look/cluster.py", 'self.kube.get(Scale, resource, namespace, name, "scale")')
WHOLE_WORKLOAD = (LIVE + "look/revert.py", "cluster.kube.get(ManagedWorkload")
FLOORS = (LIVE + "act/floor.py", "await writer.patch(Custom, HPAS")
STATUS = (LIVE + "tell/status_writer.py", 'self.writer.apply(Custom, resource, body, "status")')
OWN_VERSION = (LIVE + "tell/status_writer.py", "self.writer.get(Custom, resource")
GATHER, INSTALLATIONS = LIVE + "measure/gather.py", LIVE + "look/installations.py"
CHECKPOINTS = LIVE + "measure/checkpoint.py"


class Need(NamedTuple):
    """A place in the code that needs a right."""

    file: str
    code: str


class Right(NamedTuple):
    group: str
    resource: str
    verb: str


def rights(group: str, resources: str, **verbs: tuple[str, str]) -> Iterator[tuple[Right, Need]]:
    for resource in resources.split():
        for verb, need in verbs.items():
            yield Right(group, resource, verb), Need(*need)


def followed(group: str, resources: str, **more: tuple[str, str]) -> Iterator[tuple[Right, Need]]:
    yield from rights(group, resources, list=FOLLOWS, watch=FOLLOWS, **more)


ADVICE = LIVE + "advice.py"
NEEDED: dict[Right, Need] = dict(
    [
        *followed("trimtab.dev", "autoscalers", get=OWN_VERSION),
        *followed("autoscaling.k8s.io", "hvpas", get=OWN_VERSION),
        *followed(
            "autoscaling.crane.io",
            "effectivehorizontalpodautoscalers",
            get=OWN_VERSION,
            create=("trimtab/advisor/adopt.py", "await writer.create("),
            patch=("trimtab/advisor/adopt.py", "found[0].metadata.name, body, Patch.MERGE)"),
        ),
        *rights("trimtab.dev", "autoscalers/status", patch=STATUS),
        *rights("autoscaling.k8s.io", "hvpas/status", patch=STATUS),
        *rights("autoscaling.crane.io", "effectivehorizontalpodautoscalers/status", patch=STATUS),
        *followed("analysis.crane.io", "analytics", get=(ADVICE, "self.kube.get(Custom, await self._resource(kind)")),
        *followed(
            "analysis.crane.io",
            "recommendations",
            get=(ADVICE, "self.kube.get(Custom, await self._resource(kind)"),
            create=(ADVICE, "self.kube.create(Custom"),
            delete=(ADVICE, "self.kube.delete("),
        ),
        *rights(
            "analysis.crane.io",
            "analytics/status recommendations/status",
            patch=(ADVICE, 'self.kube.apply(Custom, resource, body, "status")'),
        ),
        *followed("autoscaling", "horizontalpodautoscalers", patch=FLOORS),
        *followed("autoscaling.k8s.io", "verticalpodautoscalers"),
        *followed("keda.sh", "scaledobjects"),
        *followed("datadoghq.com", "watermarkpodautoscalers"),
        *followed("jamiethompson.me", "predictivehorizontalpodautoscalers"),
        *followed("apps", "deployments statefulsets replicasets daemonsets", get=WHOLE_WORKLOAD),
        *rights("apps", "deployments/scale statefulsets/scale replicasets/scale", get=READS_SCALE, patch=SCALES),
        *rights("argoproj.io", "rollouts", get=WHOLE_WORKLOAD),
        *rights("argoproj.io", "rollouts/scale", get=READS_SCALE, patch=SCALES),
        *followed("", "pods"),
        *rights("", "pods/resize", patch=(LIVE + "act/sizes.py", 'Patch.STRATEGIC, "resize"')),
        *followed("", "resourcequotas limitranges"),
        *followed("policy", "poddisruptionbudgets"),
        *rights("", "events", create=(LIVE + "tell/status_writer.py", "await writer.create(Custom, EVENTS")),
        *rights("metrics.k8s.io", "pods", list=(GATHER, "self.kube.list(PodMetrics")),
        *rights("custom.metrics.k8s.io", "*", get=(GATHER, "custom_metric_path(version")),
        *rights("external.metrics.k8s.io", "*", list=(GATHER, "external_metric_path(question")),
        # Of the whole cluster.
        *followed("", "namespaces", patch=(INSTALLATIONS, "await kube.patch(PartialObject, NAMESPACES")),
        *followed("", "nodes"),
        *followed("coordination.k8s.io", "leases", get=(INSTALLATIONS, "self.kube.get(Lease, LEASES, *place)")),
        # In its own namespace.
        *rights(
            "coordination.k8s.io",
            "leases",
            create=(WIRE + "lease.py", "self.kube.create(Lease"),
            patch=(WIRE + "lease.py", "self.kube.patch(Lease"),
        ),
        *rights(
            "",
            "configmaps",
            get=(CHECKPOINTS, "self.kube.get(ConfigMap"),
            list=(CHECKPOINTS, "self.kube.list(PartialObject, CONFIG_MAPS"),
            create=(CHECKPOINTS, "await self.kube.apply("),
            patch=(CHECKPOINTS, "await self.kube.apply("),
            delete=(CHECKPOINTS, "self.kube.delete(CONFIG_MAPS"),
        ),
        # Where rights.templates says so; of DaemonSets only annotations.
        *rights("apps", "deployments statefulsets", patch=(LIVE + "act/sizes.py", "body, Patch.STRATEGIC)")),
        *rights("apps", "daemonsets", patch=("trimtab/advisor/adopt.py", 'ref["name"], body, Patch.MERGE)')),
    ]
)  # fmt: skip


@pytest.mark.parametrize("right", NEEDED, ids=str)
def test_a_right_is_needed_by_code_that_exists(right: Right) -> None:
    need = NEEDED[right]
    assert need.code in (ROOT / need.file).read_text()


# --- with Helm and a control plane -----------------------------------------------------------------------------------

e2e = pytest.mark.e2e


def rendered(bed: Bed, *given: str, release: str = "trimtab", home: str = "home") -> list[dict[str, Any]]:
    words = [part for one in given for part in ("--set", one)]
    text = bed.helm("template", release, str(CHART), "--namespace", home, *words)
    return [one for one in yaml.safe_load_all(text) if one]


def rules(manifests: list[dict[str, Any]]) -> set[Right]:
    """Of the operator's account; those for people are not its own."""
    bound = {
        one["roleRef"]["name"]
        for one in manifests
        if one["kind"] in ("RoleBinding", "ClusterRoleBinding") and one["subjects"][0]["kind"] == "ServiceAccount"
    }
    roles = [one for one in manifests if one["kind"] in ("Role", "ClusterRole") and one["metadata"]["name"] in bound]
    return {
        Right(group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@e2e
def test_the_chart_asks_for_what_is_needed_and_nothing_else(bed: Bed) -> None:
    assert rules(rendered(bed, *ALL_RIGHTS)) == set(NEEDED)


@e2e
def test_templates_are_patched_only_where_somebody_said_so(bed: Bed) -> None:
    def places(*given: str) -> list[tuple[str, str]]:
        found = [one for one in rendered(bed, *given) if one["metadata"]["name"] == "trimtab-templates"]
        return [(one["kind"], one["metadata"].get("namespace", "")) for one in found]

    workloads = {Right("apps", kind, "patch") for kind in ("deployments", "statefulsets", "daemonsets")}
    assert not workloads & rules(rendered(bed)) and places() == []
    assert places("rights.templates=true") == [("ClusterRole", ""), ("ClusterRoleBinding", "")]
    chosen = places("rights.templates={shop,bank}")
    assert chosen == [("ClusterRole", ""), ("RoleBinding", "shop"), ("RoleBinding", "bank")]
    alone = places("rights.templates=true", "namespace=shop")
    assert alone == [("Role", "shop"), ("RoleBinding", "shop")]


@e2e
def test_a_stolen_token_changes_nothing_that_the_operator_would_not(bed: Bed, namespace: str, tmp_path: Path) -> None:
    """The whole chart's rights, templates too, in the hands of somebody else; then in those of the operator."""
    install_crds(bed)
    release = f"trimtab-{namespace}"
    kinds = {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
    kinds |= {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    given = rendered(bed, "rights.templates=true", release=release, home=namespace)
    made = [one for one in given if one["kind"] in kinds]
    (role,) = (one for one in made if one["kind"] == "ClusterRole" and one["metadata"]["name"] == release)
    role["rules"].append(  # kubectl reads what it patches
        {"apiGroups": ["", "autoscaling"], "resources": ["namespaces", "horizontalpodautoscalers"], "verbs": ["get"]}
    )
    bed.apply(*made)
    kubeconfig = bed.kubeconfig_for(namespace, release)
    hpa = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 3},
    }
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app", "namespace": namespace}}
    system = deployment("kube-system", f"dns-{namespace}", replicas=1)
    bed.apply(deployment(namespace, "web"), hpa, settings, system)

    def tried(*words: str) -> str:
        command = [str(bed.binaries["kubectl"]), "--kubeconfig", str(kubeconfig), *words]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.stderr if done.returncode else "done"

    def patched(kind: str, name: str, body: dict[str, Any], where: str = namespace, *more: str) -> str:
        return tried("patch", kind, name, "-n", where, "--type=strategic", "-p", json.dumps(body), *more)

    def template(**spec: Any) -> dict[str, Any]:
        return {"spec": {"template": {"spec": spec}}}

    image = bed.get("deployment", "web", "-n", namespace)["spec"]["template"]["spec"]["containers"][0]["name"]
    try:
        eventually(
            lambda: _denied(patched("deployment", f"dns-{namespace}", {"spec": {"replicas": 0}}, "kube-system")), 60
        )
        for kind, name, body in (
            ("deployment", "web", template(containers=[{"name": image, "image": "example.test/evil:1"}])),
            ("deployment", "web", template(containers=[{"name": image, "command": ["sh"]}])),
            ("deployment", "web", template(containers=[{"name": "more", "image": "example.test/evil:1"}])),
            ("deployment", "web", template(initContainers=[{"name": "more", "image": "example.test/evil:1"}])),
            ("deployment", "web", template(hostPID=True)),
            ("deployment", "web", template(serviceAccountName="default", hostNetwork=True)),
            ("deployment", "web", template(volumes=[{"name": "root", "hostPath": {"path": "/"}}])),
            ("hpa", "web", {"spec": {"maxReplicas": 1000}}),
            ("configmap", "app", {"data": {"key": "value"}}),
        ):
            _denied(patched(kind, name, body))
        _denied(tried("delete", "configmap", "app", "-n", namespace))
        _denied(tried("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=privileged"))
        scaled = {"spec": {"replicas": 0}}
        _denied(patched("deployment", f"dns-{namespace}", scaled, "kube-system", "--subresource=scale"))
        assert (
            patched(
                "deployment", "web", template(containers=[{"name": image, "resources": {"requests": {"cpu": "99m"}}}])
            )
            == "done"
        )
        bed.kubectl("delete", "hpa", "web", "-n", namespace)
        bed.load(namespace, "web", queue=40)
        queue = {"metric": {"name": "queue_length", "selector": {"matchLabels": {"app": "web"}}}}
        external = {"type": "External", "external": queue | {"target": {"type": "AverageValue", "averageValue": "10"}}}
        bed.apply(autoscaler(namespace, metrics=[external]))
        with Running(bed, namespace, tmp_path, kubeconfig=kubeconfig):
            eventually(lambda: replicas(bed, namespace) == 4, 60)
            eventually(lambda: conditions(bed, namespace)["Ready"]["status"] == "True", 20)
    finally:
        whole = [one for one in made if "namespace" not in one["metadata"]]
        bed.kubectl(
            "delete",
            "--ignore-not-found",
            "-f",
            "-",
            input=json.dumps({"apiVersion": "v1", "kind": "List", "items": whole}),
        )
        bed.kubectl("delete", "deployment", f"dns-{namespace}", "-n", "kube-system")


def _denied(said: str) -> str:
    assert "ValidatingAdmissionPolicy" in said and "denied request: trimtab " in said, said
    return said
