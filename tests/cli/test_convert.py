"""trimtab convert: what one autoscaler says, in the words of another; what cannot be said is listed."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given, settings

from tests.kinds import generate
from trimtab.cli import main
from trimtab.errors import InvalidInput
from trimtab.kinds import Scaler, read
from trimtab.kinds.convert import TARGETS, convert
from trimtab.policy import Policy

NOW = 1_700_000_000.0
Manifest = dict[str, Any]


def policy(manifest: Manifest) -> Policy:
    obj = read(manifest)
    assert isinstance(obj, Scaler)
    return obj.to_policy(NOW)


def there_and_back(manifest: Manifest, home: str) -> tuple[Manifest, list[str]]:
    out, lost = convert(manifest, "autoscaler")
    back, more = convert(out, home)
    return back, [one.path for one in (*lost, *more)]


@settings(max_examples=100, deadline=None)
@given(manifest=generate.HPAS)
def test_an_hpa_survives_the_way_there_and_back(manifest: Manifest) -> None:
    back, lost = there_and_back(manifest, "hpa")
    assert lost == []
    if not manifest["spec"].get("metrics"):
        manifest["spec"].pop("metrics", None)  # an empty list says what no list says
    assert back == manifest


@settings(max_examples=150, deadline=None)
@given(manifest=generate.EHPAS)
def test_an_ehpa_survives_unless_a_loss_is_reported(manifest: Manifest) -> None:
    back, lost = there_and_back(manifest, "ehpa")
    if not lost:
        assert policy(back) == policy(manifest)
    else:
        assert all("prediction" in path or "specificReplicas" in path for path in lost)


@settings(max_examples=150, deadline=None)
@given(manifest=generate.HVPAS)
def test_the_blend_and_the_bounds_of_an_hvpa_survive(manifest: Manifest) -> None:
    back, lost = there_and_back(manifest, "hvpa")
    before, after = policy(manifest), policy(back)
    assert (after.blend, after.bounds) == (before.blend, before.bounds)
    if not any("deploy" in path for path in lost):
        assert after.signals == before.signals


@settings(max_examples=100, deadline=None)
@given(manifest=generate.CUSTOM)
def test_the_same_kind_is_the_same_manifest(manifest: Manifest) -> None:
    for name, target in TARGETS.items():
        if target.kind == manifest["kind"]:
            assert convert(manifest, name) == (manifest, [])


@settings(max_examples=200, deadline=None)
@given(manifest=generate.AUTOSCALERS)
def test_what_an_autoscaler_says_is_either_kept_or_reported(manifest: Manifest) -> None:
    for name in ("hpa", "ehpa", "hvpa"):
        if "maxReplicas" not in manifest["spec"]:
            with pytest.raises(InvalidInput, match="vertical alone"):
                convert(manifest, name)
            continue
        made, lost = convert(manifest, name)
        policy(made)  # what comes out can run
        spoken = set(manifest["spec"]) - {"scaleTargetRef", "minReplicas", "maxReplicas", "metrics"}
        kept = json.dumps(made).replace("stabilizationDuration", "behavior").replace("updateMode", "behavior")
        for field in spoken:
            value = manifest["spec"][field]
            said = any(one.path.startswith(f"spec.{field}") for one in lost)
            words = {"forecast": "predict", "schedules": "crons", "mode": "Preview", "vertical": "vpa", "blend": ""}
            assert said or not value or value == "Auto" or words.get(field, field) in kept or "paused" in kept


def test_predictive_hpa_and_forecast_are_the_same_thing() -> None:
    manifest = yaml.safe_load(HPA)
    manifest["metadata"]["annotations"] = {"predictive": "true"}
    made, lost = convert(manifest, "autoscaler")
    assert (made["spec"]["forecast"], lost) == ({"model": "linear"}, [])
    assert "annotations" not in made["metadata"]
    assert convert(made, "hpa").manifest["metadata"]["annotations"] == {"predictive": "true"}


HPA = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, uid: x, resourceVersion: "1", creationTimestamp: null}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 5
"""
KEDA = """
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: web, annotations: {autoscaling.keda.sh/paused-replicas: "4"}}
spec:
  scaleTargetRef: {name: web}
  minReplicaCount: 0
  pollingInterval: 10
  cooldownPeriod: 60
  fallback: {failureThreshold: 3, replicas: 6, behavior: currentReplicasIfHigher}
  advanced:
    horizontalPodAutoscalerConfig:
      behavior: {scaleDown: {stabilizationWindowSeconds: 60}}
  triggers:
  - {type: cpu, metricType: Utilization, metadata: {value: "60", containerName: app}}
  - {type: memory, metricType: AverageValue, metadata: {value: 200Mi}}
  - {type: prometheus, metadata: {serverAddress: "http://p", query: up, threshold: "50", activationThreshold: "1"}}
  - {type: cron, metadata: {timezone: Europe/Berlin, start: 0 8 * * 1-5, end: 0 18 * * 1-5, desiredReplicas: "10"}}
  - {type: kafka, metadata: {topic: orders}}
"""


def test_keda() -> None:
    made, lost = convert(yaml.safe_load(KEDA), "autoscaler")
    spec = made["spec"]
    assert spec["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    assert (spec["minReplicas"], spec["maxReplicas"]) == (0, 100)
    assert [metric["type"] for metric in spec["metrics"]] == ["ContainerResource", "Resource", "Prometheus"]
    assert spec["metrics"][2]["prometheus"]["query"] == "(up) * ((up) > bool 1)"
    assert spec["metrics"][2]["prometheus"]["target"] == {"type": "AverageValue", "averageValue": "50"}
    assert spec["schedules"] == [
        {
            "name": "cron-3",
            "timezone": "Europe/Berlin",
            "start": "0 8 * * 1-5",
            "end": "0 18 * * 1-5",
            "minReplicas": 10,
        }
    ]
    assert spec["onMetricFailure"] == {"holdSeconds": 30, "then": {"replicas": 6}}
    assert spec["behavior"] == {"scaleDown": {"stabilizationWindowSeconds": 60}}
    assert made["metadata"]["annotations"] == {"trimtab.dev/pin": "4"}
    assert {one.path for one in lost} == {
        "spec.triggers[2].metadata.serverAddress",
        "spec.triggers[2].metadata.ignoreNullValues",
        "spec.triggers[2].metadata.activationThreshold",
        "spec.triggers[4]",
        "spec.pollingInterval",
    }


@pytest.mark.parametrize(
    "change, path",
    [
        ({"minReplicaCount": "two"}, "spec.minReplicaCount"),
        ({"triggers": ["cpu"]}, "spec.triggers[0]"),
        ({"triggers": [{"type": "cpu", "metadata": {"value": "half"}}]}, "spec.triggers[0].metadata.value"),
        (
            {"triggers": [{"type": "cron", "metadata": {"desiredReplicas": "x"}}]},
            "spec.triggers[0].metadata.desiredReplicas",
        ),
        ({"scaleTargetRef": "web"}, "spec.scaleTargetRef"),
    ],
)
def test_what_keda_would_not_take_is_refused_with_its_path(change: Manifest, path: str) -> None:
    manifest = yaml.safe_load(KEDA)
    manifest["spec"] |= change
    with pytest.raises(InvalidInput) as caught:
        convert(manifest, "autoscaler")
    assert caught.value.path == path


def test_a_static_fallback_may_lower() -> None:
    manifest = yaml.safe_load(KEDA)
    del manifest["spec"]["fallback"]["behavior"]
    assert convert(manifest, "autoscaler").manifest["spec"]["onMetricFailure"]["then"]["allowDecrease"] is True


VPA = """
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  updatePolicy: {updateMode: %s, minReplicas: 2}
  resourcePolicy:
    containerPolicies:
    - {containerName: app, minAllowed: {cpu: 100m}, controlledValues: RequestsOnly}
  recommenders: [{name: other}]
"""


@pytest.mark.parametrize(
    "mode, apply",
    [
        ("Auto", "InPlaceOrRecreate"),
        ("Recreate", "Recreate"),
        ("null", "Recreate"),
        ("InPlace", "InPlace"),
        ('"Off"', "Never"),
        ("Initial", "InPlace"),
    ],
)
def test_vpa(mode: str, apply: str) -> None:
    made, lost = convert(yaml.safe_load(VPA % mode), "autoscaler")
    policies = [{"containerName": "app", "minAllowed": {"cpu": "100m"}, "controlledValues": "RequestsOnly"}]
    assert made["spec"]["vertical"] == {"apply": apply, "resourcePolicy": {"containerPolicies": policies}}
    assert policy(made).signals == ()
    expected = {"spec.updatePolicy.minReplicas", "spec.recommenders"}
    assert {one.path for one in lost} == expected | ({"spec.updatePolicy.updateMode"} if mode == "Initial" else set())


def test_whole_cores_of_a_vpa() -> None:
    vpa = yaml.safe_load(VPA % "Auto")
    prefix = "vpa-post-processor.kubernetes.io/"
    vpa["metadata"]["annotations"] = {f"{prefix}app_integerCPU": "true", f"{prefix}db_integerCPU": "true", "team": "a"}
    made, _ = convert(vpa, "autoscaler")
    rules = policy(made).vertical.containers  # type: ignore[union-attr]
    assert {rule.name: rule.whole_cores for rule in rules} == {"app": True, "db": True, "*": False}
    assert made["metadata"]["annotations"] == {"team": "a"}


def test_an_hvpa_made_of_something_that_blends_nothing_is_all_horizontal() -> None:
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 2,
        "maxReplicas": 9,
    }
    hpa = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}, "spec": spec}
    (stage,) = policy(convert(hpa, "hvpa").manifest).blend.stages  # type: ignore[union-attr]
    assert (stage.vertical_share, stage.first, stage.last) == (0.0, 2, 9)


def test_vertical_alone_cannot_be_an_hpa() -> None:
    with pytest.raises(InvalidInput, match="vertical alone has no equivalent"):
        convert(yaml.safe_load(VPA % "Auto"), "hpa")


def test_custom_hpa_values() -> None:
    values = {
        "target": {"deployment": "web", "namespace": "shop", "value": 100},
        "minReplicas": 10,
        "maxReplicas": 50,
        "prometheus": {"url": "http://localhost", "port": 80, "query": "up"},
        "behavior": {"scaleUpMaxFactor": 0.5},
        "dryRun": True,
    }
    made, lost = convert(values, "autoscaler")
    assert made["metadata"] == {"name": "web-custom-hpa", "namespace": "shop"}
    assert made["spec"]["behavior"]["scaleUp"] == {
        "stabilizationWindowSeconds": 0,
        "tolerance": 0,
        "cooldownSeconds": 15,
        "minFactor": 0.1,
        "maxFactor": 0.5,
    }
    assert made["spec"]["mode"] == "Shadow"
    assert [one.path for one in lost] == ["prometheus.url", "prometheus.port"]


def test_hvpa_reports_its_gates() -> None:
    spec = {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "hpaTemplate": {"maxReplicas": 4},
        "vpaTemplate": {"updatePolicy": {}, "resourcePolicy": {"containerPolicies": [{"MinAllowed": {"cpu": "1"}}]}},
        "scaleUpStabilizationWindow": "2m",
        "weightBasedScalingIntervals": [{"vpaWeight": 0.6}],
    }
    hvpa = {"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "Hvpa", "metadata": {"name": "web"}, "spec": spec}
    made, lost = convert(copy.deepcopy(hvpa), "autoscaler")
    assert made["spec"]["vertical"]["resourcePolicy"]["containerPolicies"] == [{"minAllowed": {"cpu": "1"}}]
    paths = [one.path for one in lost]
    assert paths == ["spec.scaleUpStabilizationWindow", "spec.minCpuChange", "spec.vpaTemplate.updatePolicy"]
    assert made["spec"]["behavior"] == {"scaleUp": {"cooldownSeconds": 120}}


def test_what_gates_an_hvpas_replicas_is_behavior_there_and_back() -> None:
    spec: Manifest = {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "hpa": {
            "scaleUp": {"stabilizationDuration": "120s"},
            "scaleDown": {"updatePolicy": {"updateMode": "Off"}},
            "template": {"spec": {"maxReplicas": 4}},
        },
        "vpa": {
            "scaleUp": {"updatePolicy": {"updateMode": "MaintenanceWindow"}, "stabilizationDuration": "5m"},
            "scaleDown": {"minChange": {"cpu": {"value": "1"}}},
        },
        "maintenanceTimeWindow": {"begin": "220000+0000", "end": "230000+0000"},
        "weightBasedScalingIntervals": [{"vpaWeight": 60}],
    }
    hvpa = {"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "Hvpa", "metadata": {"name": "web"}, "spec": spec}
    made, lost = convert(hvpa, "autoscaler")
    assert made["spec"]["behavior"] == {"scaleUp": {"cooldownSeconds": 120}, "scaleDown": {"selectPolicy": "Disabled"}}
    assert [loss.path for loss in lost] == [
        "spec.vpa.scaleUp.updatePolicy.updateMode",
        "spec.vpa.scaleUp.stabilizationDuration",
        "spec.vpa.scaleDown.minChange",
    ]
    back = convert(made, "hvpa").manifest["spec"]["hpa"]
    assert {way: back[way] for way in ("scaleUp", "scaleDown")} == {
        way: spec["hpa"][way] for way in ("scaleUp", "scaleDown")
    }


V2BETA1 = """
apiVersion: autoscaling/v2beta1
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 9
  metrics:
  - {type: Resource, resource: {name: cpu, targetAverageUtilization: 60}}
  - {type: Resource, resource: {name: memory, targetAverageValue: 200Mi}}
  - {type: Pods, pods: {metricName: packets, targetAverageValue: 1k}}
  - {type: Object, object: {metricName: rps, target: {apiVersion: v1, kind: Service, name: web}, targetValue: 2k}}
  - type: External
    external: {metricName: depth, metricSelector: {matchLabels: {queue: mail}}, targetAverageValue: "30"}
"""


@pytest.mark.parametrize("to", ["autoscaler", "hpa"])
def test_an_hpa_of_v2beta1_is_read_and_becomes_v2(to: str) -> None:
    made, lost = convert(yaml.safe_load(V2BETA1), to)
    kinds = [type(signal).__name__ for signal in policy(made).signals]
    assert kinds == ["Utilization", "PodAverage", "PodAverage", "Total", "TotalAverage"]
    assert policy(made) == policy(yaml.safe_load(V2BETA1))
    assert (made["spec"]["metrics"][4]["external"]["metric"]["selector"], lost) == (
        {"matchLabels": {"queue": "mail"}},
        [],
    )


def run(*args: str, text: str = "", path: str = "-") -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["convert", path, *args], input=text)
    return result.exit_code, result.stdout, result.stderr


def test_the_command_converts_what_it_can_and_says_what_it_cannot() -> None:
    text = HPA + "---\nkind: Deployment\nmetadata: {name: web}\n---" + KEDA + "---\nbroken: [\n"
    code, out, err = run("--to", "autoscaler", "--force", text=text)
    made = list(yaml.safe_load_all(out))
    assert code == 2
    assert [one["kind"] for one in made] == ["Autoscaler", "Autoscaler"]
    assert "uid" not in made[0]["metadata"]
    assert "left out: Deployment is no autoscaler" in err
    assert "warning: spec.triggers[4]" in err
    assert ": error: line " in err


def test_strict_and_json() -> None:
    code, out, _ = run("--to", "autoscaler", "--strict", "--force", "-o", "json", text=KEDA)
    assert code == 1
    assert json.loads(out)["kind"] == "Autoscaler"
    assert run("--to", "autoscaler", "--strict", text=HPA)[0] == 0
    assert run("--to", "autoscaler", "--strict", text=HPA + "---\nkind: Deployment\nmetadata: {name: web}\n")[0] == 1


def test_what_loses_its_signal_is_refused_unless_forced() -> None:
    code, out, err = run("--to", "autoscaler", text=KEDA)
    assert (code, out) == (1, "")
    assert "error: spec.triggers[4]: trigger kafka: consumerGroup is not written here" in err
    assert "refused: its signal would be lost; --force converts it all the same" in err
    code, out, err = run("--to", "autoscaler", "--force", text=KEDA)
    assert (code, yaml.safe_load(out)["kind"]) == (0, "Autoscaler")
    assert "warning: spec.triggers[4]" in err


def test_a_scaled_job_is_refused_by_name() -> None:
    code, out, err = run("--to", "autoscaler", text="kind: ScaledJob\nmetadata: {name: nightly}\nspec: {}\n")
    assert (code, out) == (2, "")
    assert "kind: 'ScaledJob': it starts Jobs" in err


def test_an_http_scaled_object_is_refused_with_an_alternative() -> None:
    code, out, err = run("--to", "autoscaler", text="kind: HTTPScaledObject\nmetadata: {name: web}\nspec: {}\n")
    assert (code, out) == (2, "")
    assert "an Autoscaler on the rate of requests" in err


def test_a_word_that_yaml_takes_for_a_boolean_is_told_so() -> None:
    vpa = "apiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {name: db}\n"
    spec = "spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: db}, updatePolicy: {updateMode: Off}}\n"
    code, _, err = run("--to", "autoscaler", text=vpa + spec)
    assert code == 2 and "quote it: YAML reads an unquoted Off, No or false as a boolean" in err


@pytest.mark.parametrize(
    "spec, said",
    [
        pytest.param(
            "metrics: []", "autoscaling/v1 has no such field: write apiVersion: autoscaling/v2", id="v2 in v1"
        ),
        pytest.param(
            "behavior: {}", "autoscaling/v1 has no such field: write apiVersion: autoscaling/v2", id="behavior"
        ),
    ],
)
def test_a_field_of_another_version_is_told_so(spec: str, said: str) -> None:
    text = HPA.replace("autoscaling/v2", "autoscaling/v1").split("  metrics")[0] + f"  {spec}\n"
    code, _, err = run("--to", "autoscaler", text=text)
    assert (code, said in err) == (2, True), err


def test_a_metric_written_as_v2beta1_would_is_told_so() -> None:
    _, _, err = run("--to", "autoscaler", text=V2BETA1.replace("v2beta1", "v2"))
    assert "targetAverageUtilization: 60: there is no such field; it is of v2beta1; write target: {type: Utiliz" in err
    assert "pods.metricName: 'packets': there is no such field; it is of v2beta1; write metric: {name: ...}" in err


@pytest.mark.parametrize(
    "text", ["", "---\n# nothing\n", "apiVersion: v1\nkind: List\nitems: []\n", "just text\n", "kind: Service\n"]
)
def test_what_holds_no_autoscaler_is_not_converted(text: str) -> None:
    """Else a pipe whose first half has failed would leave an empty file, and nobody would know."""
    code, out, err = run("--to", "autoscaler", text=text)
    assert (code, out) == (2, "") and "there is no autoscaler in it" in err


def test_patches_and_templates_are_left_out_with_the_command_that_makes_them_whole(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: [hpa.yaml]\npatches: [{path: more.yaml}]\n")
    (tmp_path / "hpa.yaml").write_text(V2BETA1)
    (tmp_path / "more.yaml").write_text("kind: HorizontalPodAutoscaler\napiVersion: autoscaling/v2\nspec: {}\n")
    (tmp_path / "template.yaml").write_text("apiVersion: autoscaling/v2\nspec: {{ .Values.spec }}\n")
    code, out, err = run("--to", "autoscaler", path=str(tmp_path))
    assert (code, [document["kind"] for document in yaml.safe_load_all(out)]) == (0, ["Autoscaler"])
    assert "more.yaml:1: left out: a patch, no whole object: kustomize build DIR | trimtab convert -" in err
    assert "template.yaml:2: left out: a Helm template: helm template CHART | trimtab convert -" in err
    assert run("--to", "autoscaler", "--strict", path=str(tmp_path))[0] == 1


def test_an_invalid_object_is_refused_with_its_lines() -> None:
    code, out, err = run("--to", "ehpa", text=HPA.replace("maxReplicas: 5", "maxReplicas: five"))
    assert (code, out) == (2, "")
    assert "-:7: error: spec.maxReplicas: 'five': write a whole number" in err


@pytest.mark.parametrize("to", ["autoscaler", "hpa", "ehpa", "hvpa"])
@pytest.mark.parametrize(
    "change, path",
    [
        pytest.param(
            {"spec": {"advanced": {"horizontalPodAutoscalerConfig": {"behavior": {"scaleDown": "x"}}}}},
            "spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleDown",
            id="behavior",
        ),
        pytest.param({"metadata": {"name": "web", "annotations": ["x"]}}, "metadata.annotations", id="annotations"),
    ],
)
def test_what_another_system_would_refuse_is_refused_here_with_its_path(change: Manifest, path: str, to: str) -> None:
    base: Manifest = {"scaleTargetRef": {"name": "web"}, "triggers": [{"type": "cpu", "metadata": {"value": "50"}}]}
    head = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "web"}}
    scaled = {**head, **change, "spec": base | change.get("spec", {})}
    with pytest.raises(InvalidInput) as caught:
        convert(scaled, to)
    assert caught.value.path == path


def test_a_metric_that_is_lost_leaves_cpu_and_that_is_said() -> None:
    query = {"query": "sum(rate(requests[2m]))", "target": {"type": "AverageValue", "averageValue": "50"}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec: Manifest = {"scaleTargetRef": target, "maxReplicas": 9}
    spec |= {"metrics": [{"type": "Prometheus", "prometheus": query}]}
    manifest = {"apiVersion": "trimtab.dev/v1alpha1", "kind": "Autoscaler", "metadata": {"name": "web"}, "spec": spec}
    made, lost = convert(manifest, "hpa")
    assert "metrics" not in made["spec"]
    assert any(one.path == "spec.metrics" and "CPU at 80 %" in one.why for one in lost), lost


def test_every_field_of_vpa_that_means_nothing_here_is_named_with_its_own_reason() -> None:
    boost = {"cpu": {"type": "Factor", "factor": 2}}
    container = {"containerName": "*", "oomBumpUpRatio": "1.5", "oomMinBumpUp": "1Mi", "startupBoost": boost}
    spec = {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "startupBoost": boost,
        "updatePolicy": {"updateMode": "InPlace", "evictAfterOOMSeconds": 300, "evictionRequirements": []},
        "resourcePolicy": {"containerPolicies": [container | {"memoryAggregationIntervalSeconds": 3600}]},
    }
    kind = {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", "metadata": {"name": "web"}}
    made, lost = convert(kind | {"spec": spec}, "autoscaler")
    assert made["spec"]["vertical"]["apply"] == "InPlace"
    assert len(lost) == 7 and not any("no equivalent" in loss.why for loss in lost)
