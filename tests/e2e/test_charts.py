"""The charts: what Helm makes of them, and what is left when they go."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.bed import Bed, build
from tests.live.running import autoscaler
from trimtab.errors import InvalidInput
from trimtab.kinds import CustomHpa
from trimtab.kinds.crd import CRDS
from trimtab.kinds.custom_hpa import _ENV
from trimtab.promql import parse_matchers

DEPLOY = Path(__file__).parents[2] / "deploy"
OPERATOR, CUSTOM_HPA = DEPLOY / "trimtab", DEPLOY / "custom-hpa"
EXAMPLE = CUSTOM_HPA / "ci" / "example-values.yaml"
NO_CRDS = ("crds.trimtab=false", "crds.craneAutoscaling=false", "crds.craneAnalysis=false", "crds.hvpa=false")
SWITCHES = {
    "trimtab.dev": "trimtab",
    "autoscaling.crane.io": "craneAutoscaling",
    "analysis.crane.io": "craneAnalysis",
    "autoscaling.k8s.io": "hvpa",
}


def values(*given: str) -> list[str]:
    return [part for one in given for part in ("--set", one)]


def rendered(bed: Bed, chart: Path, *args: str) -> list[dict[str, Any]]:
    text = bed.helm("template", "made", str(chart), "--namespace", "home", *args)
    return [one for one in yaml.safe_load_all(text) if one]


def of_kind(manifests: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [one for one in manifests if one["kind"] == kind]


def refusal(run: Callable[[], object]) -> str:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run()
    return str(caught.value.stderr)


# --- what needs no cluster -------------------------------------------------------------------------------------------


def test_the_chart_s_definitions_are_those_of_the_kinds() -> None:
    module = program("write_crds")
    present = {file.name: file.read_text() for file in module.FOLDER.glob("*")}
    assert present == module.files(), f"the kinds have changed: run {module.__file__}"


def test_the_page_of_values_is_that_of_the_chart() -> None:
    module = program("write_values")
    assert module.PAGE.read_text() == module.page(), f"the values have changed: run {module.__file__}"


def program(name: str) -> Any:
    """One of the chart's own."""
    spec = importlib.util.spec_from_file_location(name, OPERATOR / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_custom_hpa_s_values_are_those_of_the_kind() -> None:
    defaults = yaml.safe_load((CUSTOM_HPA / "values.yaml").read_text())
    schema = json.loads((CUSTOM_HPA / "values.schema.json").read_text())["properties"]
    parts = {"target": "target", "prometheus": "prometheus", "behavior": "behavior"}
    known = {_camel(name) for name in CustomHpa.model_fields} - {"port"}  # in a pod of its own there is no other
    assert set(schema) - {"global"} == set(defaults) == known
    for name in parts:
        inner = CustomHpa.model_fields[name].annotation
        assert set(schema[name]["properties"]) == set(defaults[name]) == {_camel(one) for one in inner.model_fields}  # type: ignore[union-attr]
    needed = yaml.safe_load(EXAMPLE.read_text())
    assert CustomHpa.from_values(defaults | needed) == CustomHpa.from_values(needed).model_copy(
        update={"tolerations": [], "affinity": {}, "image_tag": ""}
    )


TAKEN = ("", 'a="b"', 'a="b",c!="", d =~ "x|y.*",e!~"z"', 'a="b",')
REFUSED = (" ", ",", "a", "a=b", 'a=="b"', '{a="b"}', "a='b'", 'a="b" c="d"', 'a="b\\"c"', 'a="b",,c="d"', '1a="b"')


@pytest.mark.parametrize("text", [*TAKEN, *REFUSED])
def test_the_chart_takes_the_matchers_that_the_operator_takes(text: str) -> None:
    schema = json.loads((OPERATOR / "values.schema.json").read_text())["definitions"]["matchers"]
    assert (re.search(schema["pattern"], text) is not None) == (text in TAKEN)
    with nullcontext() if text in TAKEN else pytest.raises(InvalidInput):
        parse_matchers(text, "--history-matchers")


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


# --- what Helm makes of them -----------------------------------------------------------------------------------------

e2e = pytest.mark.e2e


@pytest.fixture(scope="module")
def bare() -> Iterator[Bed]:
    """An API server of our own: definitions belong to a whole cluster, and others' tests need theirs."""
    with Bed.start(parts=("apiserver",)) as started:
        started.binaries |= build.binaries(("helm",))
        yield started


@e2e
@pytest.mark.smoke
def test_helm_finds_nothing_to_complain_about(bed: Bed) -> None:
    bed.helm("lint", "--strict", str(OPERATOR))
    bed.helm("lint", "--strict", str(CUSTOM_HPA), "-f", str(EXAMPLE))


@e2e
@pytest.mark.parametrize(
    "chart, given, path",
    [
        pytest.param(OPERATOR, "tick=soon", "/tick", id="a duration"),
        pytest.param(OPERATOR, "crd.trimtab=false", "'crd'", id="a word nobody knows"),
        pytest.param(OPERATOR, "prometheus.url=localhost", "/prometheus/url", id="an address"),
        pytest.param(OPERATOR, "prometheus.historyMatchers=prod", "/prometheus/historyMatchers", id="a matcher"),
        pytest.param(OPERATOR, "targets[0].group=argoproj.io", "/targets/0", id="half a target"),
        pytest.param(CUSTOM_HPA, "minReplicas=some", "/minReplicas", id="a number"),
        pytest.param(CUSTOM_HPA, "behavior.scaleUpMinFactor=tenth", "/behavior/scaleUpMinFactor", id="a factor"),
        pytest.param(CUSTOM_HPA, "target.value=0", "/target/value", id="nothing"),
        pytest.param(CUSTOM_HPA, "target.name=web", "'name'", id="a field nobody knows"),
        pytest.param(CUSTOM_HPA, "minReplicas=60", "minReplicas: 60: must not be above", id="min above max"),
    ],
)
def test_a_wrong_value_is_refused_with_its_path(bed: Bed, chart: Path, given: str, path: str) -> None:
    example = ["-f", str(EXAMPLE)] if chart == CUSTOM_HPA else []
    assert path in refusal(lambda: rendered(bed, chart, *example, "--set", given))


@e2e
def test_custom_hpa_says_everything_to_its_process(bed: Bed) -> None:
    query = values("prometheus.query=sum(up) > $(X)", "behavior.scaleUpMaxFactor=0.5", "dryRun=true", "imageTag=r/t:1")
    made = rendered(bed, CUSTOM_HPA, "-f", str(EXAMPLE), *query)
    container = of_kind(made, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0]
    env = {one["name"]: one["value"] for one in container["env"]}
    assert set(env) == {*_ENV, "RELEASE", "RELEASE_NAMESPACE"}
    assert env["PROMETHEUS_QUERY"] == "sum(up) > $$(X)"  # the kubelet makes one $ of it again
    assert container["image"] == "r/t:1"
    custom = CustomHpa.from_env(env)
    assert (custom.dry_run, custom.behavior.scale_up_max_factor, custom.target.value) == (True, 0.5, 100)


@e2e
def test_custom_hpa_may_scale_in_one_namespace_and_remember_in_another(bed: Bed) -> None:
    made = rendered(bed, CUSTOM_HPA, "-f", str(EXAMPLE), *values("target.namespace=shop", "appNameSuffix=b"))
    for kind in ("Role", "RoleBinding"):
        places = {one["metadata"]["name"]: one["metadata"]["namespace"] for one in of_kind(made, kind)}
        assert places == {"web-custom-hpa-b": "shop", "web-custom-hpa-b-memory": "home"}
    subjects = [one for binding in of_kind(made, "RoleBinding") for one in binding["subjects"]]
    account = {"kind": "ServiceAccount", "name": "web-custom-hpa-b", "namespace": "home"}
    assert subjects == [account, account]
    memory = {"configmaps": ["made"]}
    named = [rule for role in of_kind(made, "Role") for rule in role["rules"] if "resourceNames" in rule]
    assert {rule["resources"][0]: rule["resourceNames"] for rule in named} == memory | {
        "deployments/scale": ["web"],
        "deployments": ["web"],
        "namespaces": ["shop"],
    }


@e2e
@pytest.mark.parametrize("group, switch", SWITCHES.items())
def test_each_group_of_definitions_has_a_switch(bed: Bed, group: str, switch: str) -> None:
    expected = {crd.name for crd in CRDS}
    made = of_kind(rendered(bed, OPERATOR), "CustomResourceDefinition")
    assert {one["metadata"]["name"] for one in made} == expected
    assert {one["metadata"]["annotations"]["helm.sh/resource-policy"] for one in made} == {"keep"}
    without = of_kind(rendered(bed, OPERATOR, *values(f"crds.{switch}=false")), "CustomResourceDefinition")
    assert {one["metadata"]["name"] for one in without} == {crd.name for crd in CRDS if crd.group != group}


@e2e
def test_in_one_namespace_it_is_content_with_roles(bed: Bed) -> None:
    made = rendered(bed, OPERATOR, *values("namespace=shop", *NO_CRDS))
    kinds = {"ServiceAccount", "Role", "RoleBinding", "Deployment", "Service"}
    kinds |= {"PodDisruptionBudget", "NetworkPolicy", "Job", "Pod", "Secret"}
    assert {one["kind"] for one in made} == kinds
    places = {one["metadata"]["name"]: one["metadata"]["namespace"] for one in of_kind(made, "Role")}
    assert places == {"made-trimtab": "shop", "made-trimtab-lease": "shop", "made-trimtab-dashboard": "home"}
    wide = rendered(bed, OPERATOR, *values(*NO_CRDS))
    cluster = next(one for one in of_kind(wide, "ClusterRole") if one["metadata"]["name"] == "made-trimtab")
    role = next(one for one in of_kind(made, "Role") if one["metadata"]["name"] == "made-trimtab")
    assert cluster["rules"][: len(role["rules"])] == role["rules"]


@e2e
def test_further_kinds_of_targets_get_their_rules_and_no_more(bed: Bed) -> None:
    one = values("targets[0].group=argoproj.io", "targets[0].resource=rollouts", "namespace=shop", *NO_CRDS)
    rules = of_kind(rendered(bed, OPERATOR, *one), "Role")
    found = [rule for role in rules for rule in role["rules"] if "argoproj.io" in rule["apiGroups"]]
    assert found == [
        {"apiGroups": ["argoproj.io"], "resources": ["rollouts"], "verbs": ["get"]},
        {"apiGroups": ["argoproj.io"], "resources": ["rollouts/scale"], "verbs": ["get", "patch"]},
    ]


@e2e
def test_the_operator_is_told_which_series_are_its_clusters(bed: Bed) -> None:
    given = values('prometheus.historyMatchers=cluster=~"a$(B)"', "prometheus.url=http://mimir")
    (deployment,) = of_kind(rendered(bed, OPERATOR, *given), "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert '--history-matchers=cluster=~"a$$(B)"' in container["args"]  # the kubelet makes one $ of it again
    (plain,) = of_kind(rendered(bed, OPERATOR, *values("prometheus.url=http://mimir")), "Deployment")
    assert "history-matchers" not in str(plain)


@e2e
def test_a_digest_decides_which_image_runs(bed: Bed) -> None:
    digest = "sha256:" + "0" * 64
    (deployment,) = of_kind(rendered(bed, OPERATOR, *values(f"image.digest={digest}", "image.tag=1.0")), "Deployment")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == f"trimtab/trimtab@{digest}"


@e2e
@pytest.mark.parametrize(
    "switch, resource",
    [
        pytest.param("floors", "horizontalpodautoscalers", id="floors of annotated HPAs"),
        pytest.param("resize", "pods/resize", id="resizes"),
    ],
)
def test_rights_that_are_switched_off_are_not_asked_for(bed: Bed, switch: str, resource: str) -> None:
    def may_patch(*given: str) -> bool:
        roles = of_kind(rendered(bed, OPERATOR, *values(*given)), "ClusterRole")
        rules = next(role["rules"] for role in roles if role["metadata"]["name"] == "made-trimtab")
        return any(resource in rule["resources"] and "patch" in rule["verbs"] for rule in rules)

    assert may_patch() and not may_patch(f"rights.{switch}=false")


@e2e
def test_each_shard_has_a_deployment_a_service_and_a_lease_of_its_own(bed: Bed) -> None:
    manifests = rendered(bed, OPERATOR, *values("shards=3"))
    names = [f"made-trimtab-{number}" for number in range(3)]
    deployments, services = of_kind(manifests, "Deployment"), of_kind(manifests, "Service")
    assert [found["metadata"]["name"] for found in (*deployments, *services)] == names * 2
    for number, (deployment, service) in enumerate(zip(deployments, services, strict=True)):
        pod = deployment["spec"]["template"]
        (container,) = pod["spec"]["containers"]
        assert f"--shard={number}/3" in container["args"]
        assert container["env"][0] == {"name": "TRIMTAB_DEPLOYMENT", "value": ",".join(names)}
        (spread,) = pod["spec"]["topologySpreadConstraints"]
        chosen_by = (deployment["spec"]["selector"], spread["labelSelector"])
        for chosen in (*(each["matchLabels"] for each in chosen_by), service["spec"]["selector"]):
            assert chosen["trimtab.dev/shard"] == str(number) and chosen.items() <= pod["metadata"]["labels"].items()
    lease = next(role for role in of_kind(manifests, "Role") if role["metadata"]["name"] == "made-trimtab-lease")
    assert lease["rules"][0]["resourceNames"] == ["trimtab", "trimtab-0", "trimtab-1", "trimtab-2"]
    (alone,) = of_kind(rendered(bed, OPERATOR), "Deployment")
    assert (
        alone["metadata"]["name"] == "made-trimtab"
        and "trimtab.dev/shard" not in alone["spec"]["selector"]["matchLabels"]
    )


@e2e
def test_pods_are_spread_kept_through_drains_and_closed_to_strangers(bed: Bed) -> None:
    manifests = rendered(bed, OPERATOR)
    pod = of_kind(manifests, "Deployment")[0]["spec"]["template"]
    selects = [of_kind(manifests, kind)[0]["spec"] for kind in ("PodDisruptionBudget", "NetworkPolicy")]
    chosen = [selects[0]["selector"]["matchLabels"], selects[1]["podSelector"]["matchLabels"]]
    chosen += [pod["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"]]
    assert all(labels.items() <= pod["metadata"]["labels"].items() for labels in chosen)
    own_test, rule = selects[1]["ingress"]
    assert rule["from"] and rule["ports"] == own_test["ports"] == [{"port": "http"}]
    (pod,) = of_kind(manifests, "Pod")
    assert own_test["from"] == [{"podSelector": {"matchLabels": pod["metadata"]["labels"]}}]
    nobody = of_kind(rendered(bed, OPERATOR, "--set-json", "networkPolicy.from=[]"), "NetworkPolicy")[0]
    assert nobody["spec"]["ingress"] == [own_test], "nobody else may, where nobody is named"


@e2e
def test_a_journal_on_volumes_of_its_own_outlives_the_pods(bed: Bed) -> None:
    usual = of_kind(rendered(bed, OPERATOR), "Deployment")[0]["spec"]["template"]["spec"]
    given = values("journal.persistentVolume.enabled=true", "journal.persistentVolume.size=8Gi", "journal.keep=4Gi")
    made = rendered(bed, OPERATOR, *given)
    (kept,) = of_kind(made, "StatefulSet")
    assert not of_kind(made, "Deployment")
    (claim,) = kept["spec"]["volumeClaimTemplates"]
    assert claim["metadata"]["name"] == "journal" and claim["spec"]["resources"] == {"requests": {"storage": "8Gi"}}
    assert kept["spec"]["serviceName"] == of_kind(made, "Service")[0]["metadata"]["name"]
    pod = kept["spec"]["template"]["spec"]
    assert "--journal-size=4Gi" in pod["containers"][0]["args"]
    others = [volume for volume in usual["volumes"] if volume["name"] != "journal"]
    assert pod["volumes"] == others and pod["containers"][0]["volumeMounts"] == usual["containers"][0]["volumeMounts"]
    here = kept | {"metadata": kept["metadata"] | {"namespace": "default"}}
    bed.kubectl("apply", "--dry-run=server", "-f", "-", input=json.dumps(here))


@e2e
def test_before_it_goes_it_is_frozen_and_puts_back_what_is_in_force(bed: Bed) -> None:
    (job,) = of_kind(rendered(bed, OPERATOR), "Job")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-delete"
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["trimtab", "freeze", "--own", "--undo", "--namespace=home"]
    (job,) = of_kind(rendered(bed, OPERATOR, *values("namespace=shop")), "Job")
    assert job["spec"]["template"]["spec"]["containers"][0]["command"] == ["trimtab", "restore", "--namespace=shop"]


@e2e
def test_definitions_outlive_the_chart_and_are_taken_up_again(bare: Bed) -> None:
    bare.kubectl("create", "namespace", "steady")
    bare.helm("install", "trimtab", str(OPERATOR), "-n", "steady")
    for crd in CRDS:
        bare.kubectl("wait", "--for=condition=Established", f"crd/{crd.name}", "--timeout=300s")
    before = {crd.name: bare.get("crd", crd.name)["metadata"]["uid"] for crd in CRDS}
    bare.apply(autoscaler("steady"))
    bare.helm("upgrade", "trimtab", str(OPERATOR), "-n", "steady", *values("shadow=true", "replicas=1"))
    args = bare.get("deployment", "trimtab", "-n", "steady")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--shadow" in args
    bare.helm("uninstall", "trimtab", "-n", "steady", "--no-hooks")
    assert left_of_trimtab(bare) == ""
    assert bare.get("autoscaler", "web", "-n", "steady")["spec"]["maxReplicas"] == 10
    bare.helm("install", "trimtab", str(OPERATOR), "-n", "steady")
    assert {crd.name: bare.get("crd", crd.name)["metadata"]["uid"] for crd in CRDS} == before
    bare.helm("uninstall", "trimtab", "-n", "steady", "--no-hooks")
    bare.kubectl("delete", "crd", *before)


def left_of_trimtab(bare: Bed) -> str:
    """Whatever of the chart's kinds still has its name."""
    kinds = "deployment,statefulset,serviceaccount,secret,configmap,role,rolebinding,service,clusterrole"
    kinds += ",clusterrolebinding,poddisruptionbudget,networkpolicy,job,persistentvolumeclaim"
    kinds += ",validatingadmissionpolicy,validatingadmissionpolicybinding"
    names = bare.kubectl("get", kinds, "-A", "-o", "name").splitlines()
    return "\n".join(name for name in names if "trimtab" in name)


@e2e
def test_the_previous_release_is_upgraded_rolled_back_and_upgraded_again(bare: Bed) -> None:
    """With the values that its users have; objects and definitions stay, and the token of /api is made once."""
    (previous,) = (Path(__file__).parent / "older").glob("trimtab-*.tgz")
    given = values("rights.templates=true", "prometheus.url=http://prometheus:9090", "replicas=3")
    bare.kubectl("create", "namespace", "older")
    bare.helm("install", "trimtab", str(previous), "-n", "older", *given)
    for crd in CRDS:
        bare.kubectl("wait", "--for=condition=Established", f"crd/{crd.name}", "--timeout=300s")
    bare.apply(autoscaler("older"))
    before = bare.get("autoscaler", "web", "-n", "older")["spec"]

    def token() -> str:
        return str(bare.get("secret", "trimtab-api", "-n", "older")["data"]["token"])

    bare.helm("upgrade", "trimtab", str(OPERATOR), "-n", "older", *given)
    made = bare.get("deployment", "trimtab", "-n", "older")["spec"]
    first = token()
    assert made["replicas"] == 3 and "--api-token-file=/etc/trimtab/api/token" in str(made["template"])
    assert bare.get("clusterrolebinding", "trimtab-templates")["subjects"][0]["name"] == "trimtab"
    bare.helm("rollback", "trimtab", "1", "-n", "older", "--no-hooks")
    assert "--api-token-file" not in str(bare.get("deployment", "trimtab", "-n", "older"))
    bare.helm("upgrade", "trimtab", str(OPERATOR), "-n", "older", *given)
    again = token()
    bare.helm("upgrade", "trimtab", str(OPERATOR), "-n", "older", *given, *values("shadow=true"))
    assert token() == again and len(first) == len(again) > 40
    assert bare.get("autoscaler", "web", "-n", "older")["spec"] == before
    bare.helm("uninstall", "trimtab", "-n", "older", "--no-hooks")
    assert left_of_trimtab(bare) == ""
    bare.kubectl("delete", "crd", *(crd.name for crd in CRDS))


@e2e
def test_values_for_a_cloud_s_identity_reach_account_and_pod(bed: Bed) -> None:
    """The values of docs/guides/managed-prometheus.md, each of its blocks."""
    page = (DEPLOY.parent / "docs" / "guides" / "managed-prometheus.md").read_text()
    blocks = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 3
    for text in blocks:
        given = yaml.safe_load(text)
        flags = [part for name, value in given.items() for part in ("--set-json", f"{name}={json.dumps(value)}")]
        more = values("extraEnv[0].name=A", "extraEnv[0].value=b", "podAnnotations.c=d", "priorityClassName=high")
        made = rendered(bed, OPERATOR, *flags, *more)
        (account,), (deployment,) = of_kind(made, "ServiceAccount"), of_kind(made, "Deployment")
        template = deployment["spec"]["template"]
        own, *others = template["spec"]["containers"]
        assert account["metadata"]["annotations"] == given["serviceAccount"]["annotations"]
        assert others == given["extraContainers"] and {"name": "A", "value": "b"} in own["env"]
        assert given.get("podLabels", {}).items() <= template["metadata"]["labels"].items()
        assert template["metadata"]["annotations"] == {"c": "d"} and template["spec"]["priorityClassName"] == "high"
        assert f"--prometheus={given['prometheus']['url']}" in own["args"]


@e2e
def test_somebody_else_s_definitions_are_named_and_left_alone(bare: Bed) -> None:
    name = "hvpas.autoscaling.k8s.io"
    foreign = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": name,
            "annotations": {"api-approved.kubernetes.io": "unapproved", "meta.helm.sh/release-name": "their-hvpa"},
        },
        "spec": {
            "group": "autoscaling.k8s.io",
            "scope": "Namespaced",
            "names": {"kind": "Hvpa", "plural": "hvpas", "singular": "hvpa", "listKind": "HvpaList"},
            "versions": [
                {
                    "name": "v1alpha1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }
    bare.apply(foreign)
    try:
        said = refusal(lambda: bare.helm("install", "trimtab", str(OPERATOR), "--take-ownership"))
        assert f"{name} (of Helm release their-hvpa): keep it with --set crds.hvpa=false" in said
        assert "autoscalers.trimtab.dev" not in said
        bare.helm("install", "trimtab", str(OPERATOR), *values("crds.hvpa=false"))
        schema = bare.get("crd", name)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        assert schema == foreign["spec"]["versions"][0]["schema"]["openAPIV3Schema"]  # type: ignore[index]
        bare.helm("uninstall", "trimtab", "--no-hooks")
    finally:
        bare.kubectl("delete", "crd", "--all")


@e2e
@pytest.mark.parametrize("chart", [OPERATOR, CUSTOM_HPA], ids=["trimtab", "custom-hpa"])
def test_the_pod_keeps_the_restricted_standard(bare: Bed, chart: Path) -> None:
    namespace = f"restricted-{chart.name}"
    bare.kubectl("create", "namespace", namespace)
    bare.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    args = values(f"target.namespace={namespace}") if chart == CUSTOM_HPA else values(*NO_CRDS)
    example = ["-f", str(EXAMPLE)] if chart == CUSTOM_HPA else []
    bare.helm("install", "made", str(chart), "-n", namespace, *example, *args)
    (made,) = bare.get("deployment", "-n", namespace)["items"]
    template = made["spec"]["template"]
    assert template["spec"]["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "namespace": namespace}}
    bare.kubectl("apply", "--dry-run=server", "-f", "-", input=json.dumps(pod | {"spec": template["spec"]}))
    template["spec"]["containers"][0]["securityContext"].pop("capabilities")
    spoilt = json.dumps(pod | {"spec": template["spec"]})
    said = refusal(lambda: bare.kubectl("apply", "--dry-run=server", "-f", "-", input=spoilt))
    assert "violates PodSecurity" in said
    bare.helm("uninstall", "made", "-n", namespace, "--no-hooks")
