"""trimtab lint: each check fires on what it is for and is silent on the same thing mended."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from trimtab.cli import main
from trimtab.kinds.lint import CHECKS, lint
from trimtab.kinds.yaml import documents

NOW = 1_700_000_000.0

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  %s
  template:
    spec:
      containers:
      - {name: app, image: nginx, resources: {requests: {cpu: 100m, memory: 1Gi}}%s}
"""
DEPLOYMENT_GUARANTEED = (DEPLOYMENT % ("", "")).replace(
    "requests: {cpu: 100m, memory: 1Gi}", "limits: {cpu: 100m, memory: 1Gi}"
)
HPA = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: %s
  maxReplicas: 10
  metrics:
  - {type: Resource, resource: {name: %s, target: {type: Utilization, averageUtilization: %s}}}
"""
VPA = """\
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  updatePolicy: {updateMode: %s}
"""
AUTOSCALER = """\
apiVersion: trimtab.dev/v1alpha1
kind: Autoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: %s, name: web}
  maxReplicas: 10
  %s
"""
HVPA = """\
apiVersion: autoscaling.k8s.io/v1alpha1
kind: Hvpa
metadata: {name: web}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  hpa: {%s template: {spec: {maxReplicas: 10}}}
  vpa: {}
  %s
"""
EHPA = """\
apiVersion: autoscaling.crane.io/v1alpha1
kind: EffectiveHorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 10
  %s
"""
STAGES = "weightBasedScalingIntervals: [{vpaWeight: %s, startReplicaCount: 1, lastReplicaCount: %s}, {vpaWeight: 0, startReplicaCount: 7, lastReplicaCount: 10}]"  # noqa: E501
HORIZONTAL, BOTH = (
    "{vpaWeight: 0, startReplicaCount: 1, lastReplicaCount: 2}",
    "{vpaWeight: 60, startReplicaCount: 3, lastReplicaCount: 9}",
)
TRAP = "weightBasedScalingIntervals: [%s, %s]"
BUCKETS = "buckets: [{replicas: {min: 1, max: 1}, cpu: {min: 0, max: 1}}, {replicas: {min: 2, max: 8}, cpu: {min: %s, max: 9}}]"  # noqa: E501

KEDA = """\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: web}
spec: {scaleTargetRef: {name: web}, minReplicaCount: %s, maxReplicaCount: 5, triggers: %s}
"""
QUEUE = "metrics: [{type: Prometheus, prometheus: {query: 'sum(%s)', target: {type: AverageValue, averageValue: 5}}}]"
CRANE = "apiVersion: %s.crane.io/v1alpha1\nkind: %s\nmetadata: {name: web}\nspec: {}\n"
RULE = """\
apiVersion: analysis.crane.io/v1alpha1
kind: RecommendationRule
metadata: {name: rule}
spec:
  resourceSelectors: [{kind: Deployment, apiVersion: apps/v1}]
  namespaceSelector: {any: true}
  recommenders: [{name: HPA}]
"""
LINE = "forecast: {model: linear, exact: true}\n  metrics: [{type: Resource, resource: {name: %s, target: {type: Utilization, averageUtilization: 50}}}]"  # noqa: E501
CPU = "[{type: cpu, metricType: Utilization, metadata: {value: '50'}}]"


def rules(*texts: str) -> set[str]:
    return {one.rule for one in lint(list(documents("---\n".join(texts))), NOW)}


def custom(**values: Any) -> str:
    base: dict[str, Any] = {
        "target": {"deployment": "web", "namespace": "default", "value": 1},
        "minReplicas": 1,
        "maxReplicas": 5,
        "prometheus": {"url": "http://p", "port": 80, "query": "up"},
    }
    return json.dumps(base | values)


CASES: list[tuple[str, list[str], list[str]]] = [
    ("invalid", [HPA % (11, "cpu", 50)], [HPA % (1, "cpu", 50)]),
    ("removed-version", [(HPA % (1, "cpu", 50)).replace("/v2", "/v2beta2")], [HPA % (1, "cpu", 50)]),
    ("min-equals-max", [HPA % (10, "cpu", 50)], [HPA % (9, "cpu", 50)]),
    ("daemonset-target", [AUTOSCALER % ("DaemonSet", "")], [(AUTOSCALER % ("DaemonSet", "vertical: {}")).replace("  maxReplicas: 10\n", "")]),  # noqa: E501
    ("high-target", [HPA % (1, "cpu", 95)], [HPA % (1, "cpu", 90)]),
    ("upstream-field", [(HPA % (1, "cpu", 50)).replace("maxReplicas", "syncPeriodSeconds: 5\n  maxReplicas")], [HPA % (1, "cpu", 50)]),  # noqa: E501
    ("upstream-field", [(HPA % (1, "cpu", 50)).replace("maxReplicas", "selectionStrategy: LabelSelector\n  maxReplicas")], [(HPA % (1, "cpu", 50)).replace("maxReplicas", "selectionStrategy: OwnerReferences\n  maxReplicas")]),  # noqa: E501
    ("not-read", [CRANE % ("prediction", "TimeSeriesPrediction")], [CRANE % ("other", "Thing")]),
    ("not-read", [CRANE % ("autoscaling", "EffectiveVerticalPodAutoscaler")], [CRANE % ("other", "Thing")]),
    ("not-read", ["apiVersion: http.keda.sh/v1alpha1\nkind: HTTPScaledObject\nmetadata: {name: web}\n"], [CRANE % ("other", "Thing")]),  # noqa: E501
    ("recommendation-rule", [RULE], [HPA % (1, "cpu", 50)]),
    ("exact-without-cpu", [AUTOSCALER % ("Deployment", LINE % "memory")], [AUTOSCALER % ("Deployment", LINE % "cpu")]),
    ("high-target", [HPA % (1, "cpu", 81), DEPLOYMENT_GUARANTEED], [HPA % (1, "cpu", 100), DEPLOYMENT % ("", "")]),
    ("stored-service-level", [AUTOSCALER % ("Deployment", 'objective: {serviceLevel: "0.8"}')], [AUTOSCALER % ("Deployment", 'objective: {serviceLevel: "0.7"}')]),  # noqa: E501
    ("idle-bridge", [AUTOSCALER % ("Deployment", "bridge: {}"), DEPLOYMENT % ("", "")], [AUTOSCALER % ("Deployment", "bridge: {}"), DEPLOYMENT_GUARANTEED]),  # noqa: E501
    ("never-down", [AUTOSCALER % ("Deployment", "behavior: {scaleDown: {selectPolicy: Disabled}}")], [AUTOSCALER % ("Deployment", "behavior: {scaleUp: {selectPolicy: Disabled}}")]),  # noqa: E501
    ("dead-direction", [custom(behavior={"scaleUpMaxFactor": 0.1})], [custom(behavior={"scaleUpMaxFactor": 0.2})]),
    ("fallback-lowers", [AUTOSCALER % ("Deployment", "onMetricFailure: {then: {replicas: 2, allowDecrease: true}}")], [AUTOSCALER % ("Deployment", "onMetricFailure: {then: {replicas: 2}}")]),  # noqa: E501
    ("schedule-above-max", [EHPA % "crons: [{name: a, start: 0 8 29 2 *, end: 0 18 29 2 *, targetReplicas: 11}]"], [EHPA % "crons: [{name: a, start: 0 8 29 2 *, end: 0 18 29 2 *, targetReplicas: 10}]"]),  # noqa: E501
    ("schedule-above-max", [EHPA % "crons: [{name: a, start: 0 8 * * *, end: 0 18 * * *, targetReplicas: 11}]"], [EHPA % "crons: [{name: a, start: 0 8 * * *, end: 0 18 * * *, targetReplicas: 10}]"]),  # noqa: E501
    ("cron-order", [AUTOSCALER % ("Deployment", "schedules: [{name: a, start: 0 18 * * *, end: 0 8 * * *, minReplicas: 2}]")], [AUTOSCALER % ("Deployment", "schedules: [{name: a, start: 0 8 * * *, end: 0 18 * * *, minReplicas: 2}]")]),  # noqa: E501
    ("stage-overlap", [HVPA % ("", STAGES % (60, 7))], [HVPA % ("", STAGES % (60, 6))]),
    ("stage-gap", [HVPA % ("", STAGES % (60, 5))], [HVPA % ("", STAGES % (60, 6))]),
    ("stage-trap", [HVPA % ("", TRAP % (HORIZONTAL, BOTH))], [HVPA % ("", TRAP % (BOTH.replace("startReplicaCount: 3, ", ""), HORIZONTAL))]),  # noqa: E501
    ("weight-of-one", [HVPA % ("", STAGES % (1, 6))], [HVPA % ("", STAGES % (100, 6))]),
    ("bucket-gap", [HVPA % ("", BUCKETS % 1)], [HVPA % ("", BUCKETS % "500m")]),
    ("ignored-field", [HVPA % ("selector: {},", BUCKETS % "500m")], [HVPA % ("", BUCKETS % "500m")]),
    ("type-mismatch", [(HPA % (1, "cpu", 50)).replace("type: Utilization", "type: Value")], [HPA % (1, "cpu", 50)]),
    ("two-autoscalers", [HPA % (1, "cpu", 50), EHPA % ""], [HPA % (1, "cpu", 50), EHPA % "scaleStrategy: Preview"]),
    ("no-trigger", [KEDA % (1, "[]")], [KEDA % (1, CPU)]),
    ("missing-target", [HPA % (1, "cpu", 50), (DEPLOYMENT % ("", "")).replace("web", "wep")], [HPA % (1, "cpu", 50), DEPLOYMENT % ("", "")]),  # noqa: E501
    ("same-resource", [HPA % (1, "cpu", 50), VPA % "Auto"], [HPA % (1, "cpu", 50), VPA % '"Off"']),
    ("missing-request", [HPA % (1, "cpu", 50), (DEPLOYMENT % ("", "")).replace("cpu: 100m, ", "")], [HPA % (1, "cpu", 50), DEPLOYMENT % ("", "")]),  # noqa: E501
    ("replicas-in-manifest", [HPA % (1, "cpu", 50), DEPLOYMENT % ("replicas: 3", "")], [DEPLOYMENT % ("replicas: 3", "")]),  # noqa: E501
    ("short-window", [HPA % (1, "cpu", 50), DEPLOYMENT % ("", ", readinessProbe: {initialDelaySeconds: 301}")], [HPA % (1, "cpu", 50), DEPLOYMENT % ("", ", readinessProbe: {initialDelaySeconds: 300}")]),  # noqa: E501
    ("queue-length", [AUTOSCALER % ("Deployment", QUEUE % "vllm:num_requests_waiting")], [AUTOSCALER % ("Deployment", QUEUE % "rate(http_requests_total[1m])")]),  # noqa: E501
    ("memory-of-java", [HPA % (1, "memory", 50), (DEPLOYMENT % ("", "")).replace("nginx", "openjdk:21")], [HPA % (1, "memory", 50), DEPLOYMENT % ("", "")]),  # noqa: E501
]  # fmt: skip


@pytest.mark.parametrize("rule, bad, good", CASES, ids=[case[0] for case in CASES])
def test_a_check_fires_on_its_case_and_on_nothing_mended(rule: str, bad: list[str], good: list[str]) -> None:
    assert rule in rules(*bad)
    assert rule not in rules(*good)


def test_every_check_has_a_case() -> None:
    assert len({rule for rule, _, _ in CASES}) >= len(CHECKS)


def test_an_hpa_owned_by_keda_is_not_its_rival() -> None:
    scaled = (
        "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: web}\nspec: {scaleTargetRef: {name: web}}\n"
    )
    child = (HPA % (1, "cpu", 50)).replace(
        "{name: web}\nspec", "{name: k, ownerReferences: [{controller: true}]}\nspec"
    )
    assert "two-autoscalers" not in rules(scaled, child)
    assert "two-autoscalers" in rules(scaled, HPA % (1, "cpu", 50))


def test_one_object_for_both_axes_does_not_fight_itself() -> None:
    assert "same-resource" not in rules(AUTOSCALER % ("Deployment", "vertical: {}"))


def run(*args: str, text: str | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["lint", *args], input=text)
    return result.exit_code, result.stdout, result.stderr


def test_exit_codes_and_text(tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_text(HPA % (1, "cpu", 50))
    assert run(str(file))[0] == 0
    file.write_text(HPA % (10, "cpu", 50))
    code, out, err = run(str(tmp_path))
    assert code == 1
    assert f"{file}:6: warning HorizontalPodAutoscaler/web spec.minReplicas [min-equals-max]" in out
    assert "1 document: 0 error, 1 warning, 0 info, 0 unreadable" in err
    assert run(str(file), "--severity", "error")[0] == 0


def test_a_broken_document_is_named_and_the_others_are_still_looked_at() -> None:
    code, out, err = run("-", text="a: [\n---\n" + HPA % (10, "cpu", 50))
    assert code == 2
    assert "min-equals-max" in out
    assert "cannot be read: line" in err


def test_json() -> None:
    code, out, _ = run("-", "-o", "json", text=HPA % (10, "cpu", 95))
    said = json.loads(out)
    assert code == 1
    assert said["unreadable"] == []
    assert [one["rule"] for one in said["findings"]] == ["min-equals-max", "high-target"]
    assert set(said["findings"][0]) == {"severity", "rule", "object", "path", "why", "fix", "file", "line"}


def test_problems_of_an_object_stand_on_their_own_lines() -> None:
    text = textwrap.dedent("""\
        apiVersion: trimtab.dev/v1alpha1
        kind: Autoscaler
        metadata: {name: web}
        spec:
          scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
          maxReplicas: 10
          mode: Off
          shedules: []
        """)
    _, out, _ = run("-", text=text)
    assert "-:7: error Autoscaler/web spec.mode [invalid]" in out
    assert "did you mean schedules?" in out
    assert "quote it: YAML reads an unquoted Off" in out


def test_a_missing_file_is_unreadable() -> None:
    code, _, err = run("/nowhere.yaml")
    assert code == 2
    assert "no such file" in err


def test_every_rule_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "lint.md").read_text()
    assert [rule for rule, _, _ in CASES if f"| `{rule}` |" not in text] == []


@pytest.mark.parametrize(
    "text, said",
    [
        pytest.param("apiVersion: [a]\nkind: {b: c}\nmetadata: 3\n", "0 error", id="a list for a version"),
        pytest.param(
            HVPA % ("", ""),
            "spec.weightBasedScalingIntervals [invalid]\n    it is missing\n    fix: give at least one stage",
            id="nothing to blend by",
        ),
        pytest.param(
            (HPA % (1, "cpu", 50)).replace("PodAutoscaler", "PodAutoScaler"),
            "fix: did you mean HorizontalPodAutoscaler?",
            id="a kind nobody has",
        ),
        pytest.param("apiVersion: analysis.crane.io/v1alpha1\nkind: ConfigSet\n", "0 error", id="a neighbour's kind"),
        pytest.param(
            "target: {deployment: web, namespace: shop, value: null}\nminReplicas: 1\nmaxReplicas: 2\nprometheus: {}\n",
            "target.value [invalid]\n    it is missing\n    fix: add it",
            id="a value that is left open",
        ),
    ],
)
def test_odd_documents_are_answered_and_do_not_stop_the_others(text: str, said: str) -> None:
    code, out, err = run("-", text=text + "---\n" + HPA % (10, "cpu", 50))
    assert code == 1
    assert said in out + err
    assert "min-equals-max" in out


def test_the_way_out_of_a_rivalry_can_be_pasted() -> None:
    _, out, _ = run("-", text=HPA % (1, "cpu", 50) + "---\n" + EHPA % "")
    assert (
        "kubectl get horizontalpodautoscaler web -n default"
        " && kubectl delete effectivehorizontalpodautoscaler web -n default\n" in out
    )
    _, out, _ = run("-", text=HPA % (1, "cpu", 50) + "---\n" + custom())
    assert "where the other runs: helm uninstall the release of these values" in out


def test_in_a_repository_what_is_no_manifest_is_nobodys_concern(tmp_path: Path) -> None:
    """Tags of mkdocs, packages, hidden folders; a manifest that cannot be read is still named."""
    for name, text in {
        "mkdocs.yml": "emoji: !!python/name:material.emoji\n",
        "node_modules/x/broken.yaml": "apiVersion: [\n",
        ".github/broken.yml": "apiVersion: [\n",
        "fixtures/broken.json": "{",
        "k8s/web.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    code, _, err = run(str(tmp_path))
    assert code == 0 and "0 unreadable" in err
    (tmp_path / "k8s/hpa.yaml").write_text("apiVersion: autoscaling/v2\nspec: [\n")
    code, _, err = run(str(tmp_path))
    assert code == 2 and "k8s/hpa.yaml" in err
    assert run(str(tmp_path / "mkdocs.yml"))[0] == 2, "what is asked for by name is looked at"


def test_a_folder_without_manifests_is_a_mistake(tmp_path: Path) -> None:
    code, _, err = run(str(tmp_path))
    assert code == 2
    assert "this folder holds no manifest (.yaml, .yml, .json)" in err


def test_the_foreign_kinds_are_held_to_what_is_read_of_them() -> None:
    _, out, _ = run("-", text=KEDA % (6, CPU))
    assert "-:4: error ScaledObject/web spec.minReplicaCount [invalid]" in out
    _, out, _ = run("-", text=(VPA % "Auto") + "  resourcePolicy: {containerPolicies: [{containerName: [app]}]}\n")
    assert "spec.resourcePolicy.containerPolicies[0].containerName [invalid]" in out
    _, out, _ = run("-", text=VPA % "Sometimes")
    assert "spec.updatePolicy.updateMode [invalid]\n    'Sometimes' cannot be meant\n    fix: write one of: Auto" in out
    _, out, _ = run("-", text=(KEDA % (1, CPU)).replace("scaleTargetRef: {name: web}", "scaleTargetRef: {}"))
    assert "spec.scaleTargetRef.name [invalid]\n    it is missing\n    fix: add it" in out


def tree(folder: Path, **files: str) -> str:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_yaml", ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(folder)


@pytest.mark.parametrize(
    "files, rival",
    [
        pytest.param({"dev__hpa_yaml": HPA, "prod__hpa_yaml": HPA}, False, id="one object in two folders"),
        pytest.param({"overlays__dev__a_yaml": HPA, "overlays__prod__b_yaml": KEDA}, False, id="two overlays"),
        pytest.param({"web__hpa_yaml": HPA, "web__becomes__keda_yaml": KEDA}, False, id="its conversion, below it"),
        pytest.param({"hpa__web_yaml": HPA, "keda__web_yaml": KEDA}, True, id="a folder for each kind"),
        pytest.param({"web__hpa_yaml": HPA, "web__keda_yaml": KEDA}, True, id="one folder"),
    ],
)
def test_only_what_is_applied_together_is_a_rivalry(tmp_path: Path, files: dict[str, str], rival: bool) -> None:
    texts = {name: text % ((1, "cpu", 50) if text is HPA else (1, CPU)) for name, text in files.items()}
    _, out, _ = run(tree(tmp_path, **texts))
    assert ("two-autoscalers" in out) is rival


def test_a_patch_of_a_kustomization_is_no_whole_object(tmp_path: Path) -> None:
    patch = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec: {minReplicas: 3}\n"
    kustomization = "resources: [../../base]\npatches: [{path: more.yaml}]\n"
    whole = HPA % (1, "cpu", 50)
    folder = tree(tmp_path, base__hpa_yaml=whole, overlays__prod__more_yaml=patch)
    assert run(folder)[0] == 1
    tree(tmp_path, overlays__prod__kustomization_yaml=kustomization)
    assert run(folder)[:2] == (0, "")


@pytest.mark.parametrize("value", ["{{ .Values.max }}", '"{{ .Values.max }}"'], ids=["bare", "quoted"])
def test_a_helm_template_is_left_out_and_named(tmp_path: Path, value: str) -> None:
    text = (HPA % (1, "cpu", 50)).replace("maxReplicas: 10", f"maxReplicas: {value}")
    code, out, err = run(tree(tmp_path, templates__hpa_yaml=text, other_yaml=HPA % (10, "cpu", 50)))
    assert (code, "min-equals-max" in out) == (1, True)
    assert "hpa.yaml: left out, a Helm template: helm template CHART | trimtab lint -" in err


@pytest.mark.parametrize(
    "text, code",
    [
        pytest.param(HPA % ("10 # trimtab:ignore=min-equals-max", "cpu", 50), 0, id="on the line"),
        pytest.param(
            (HPA % (10, "cpu", 50)).replace("  minR", "  # trimtab:ignore=a,min-equals-max\n  minR"), 0, id="above"
        ),
        pytest.param("# trimtab:ignore=min-equals-max\n" + HPA % (10, "cpu", 50), 0, id="above it all"),
        pytest.param("# trimtab:ignore=high-target\n" + HPA % (10, "cpu", 50), 1, id="another rule"),
        pytest.param("# trimtab:ignore=min-equals-max\n---\n" + HPA % (10, "cpu", 50), 1, id="another document"),
    ],
)
def test_a_comment_silences_a_rule_where_it_stands(text: str, code: int) -> None:
    assert run("-", text=text)[0] == code


def test_what_the_baseline_knows_is_left_out_wherever_it_moves(tmp_path: Path) -> None:
    folder = tree(tmp_path, web_yaml=HPA % (10, "cpu", 50))
    assert run(folder)[0] == 1
    assert run(folder, "--update-baseline")[0] == 0
    assert run(folder)[:2] == (0, "")
    tree(tmp_path, web_yaml="# moved\n" + HPA % (10, "cpu", 95))
    code, out, _ = run(folder)
    assert (code, "min-equals-max" in out, "high-target" in out) == (1, False, True)
    (tmp_path / ".trimtab-baseline").write_text("[]")
    code, _, err = run(folder)
    assert (code, "write it again: --update-baseline" in err) == (2, True)


def test_sarif_and_markdown() -> None:
    code, out, _ = run("-", "-o", "sarif", text=HPA % (10, "cpu", 50))
    (scan,) = json.loads(out)["runs"]
    assert (code, scan["tool"]["driver"]["rules"]) == (1, [{"id": "min-equals-max"}])
    (result,) = scan["results"]
    assert (result["ruleId"], result["level"]) == ("min-equals-max", "warning")
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 6}
    code, out, _ = run("-", "-o", "markdown", text=HPA % (10, "cpu", 50))
    row = "| warning | `-:6` HorizontalPodAutoscaler/web `spec.minReplicas` | `min-equals-max` |"
    assert (code, row in out) == (1, True)


def test_the_examples_are_clean() -> None:
    """What `convert` makes of KEDA's queues still goes by their length: their ScaledObjects know no service time."""
    examples = Path(__file__).parents[2] / "examples"
    _, out, _ = run(str(examples), "-o", "json")
    assert {(each["rule"], Path(each["file"]).parts[-2]) for each in json.loads(out)["findings"]} == {
        ("queue-length", "becomes")
    }
