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
BUCKETS = "buckets: [{replicas: {min: 1, max: 1}, cpu: {min: 0, max: 1}}, {replicas: {min: 2, max: 8}, cpu: {min: %s, max: 9}}]"  # noqa: E501


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
    ("never-down", [AUTOSCALER % ("Deployment", "behavior: {scaleDown: {selectPolicy: Disabled}}")], [AUTOSCALER % ("Deployment", "behavior: {scaleUp: {selectPolicy: Disabled}}")]),  # noqa: E501
    ("dead-direction", [custom(behavior={"scaleUpMaxFactor": 0.1})], [custom(behavior={"scaleUpMaxFactor": 0.2})]),
    ("fallback-lowers", [AUTOSCALER % ("Deployment", "onMetricFailure: {then: {replicas: 2, allowDecrease: true}}")], [AUTOSCALER % ("Deployment", "onMetricFailure: {then: {replicas: 2}}")]),  # noqa: E501
    ("schedule-above-max", [EHPA % "crons: [{name: a, start: 0 8 * * *, end: 0 18 * * *, targetReplicas: 11}]"], [EHPA % "crons: [{name: a, start: 0 8 * * *, end: 0 18 * * *, targetReplicas: 10}]"]),  # noqa: E501
    ("cron-order", [AUTOSCALER % ("Deployment", "schedules: [{name: a, start: 0 18 * * *, end: 0 8 * * *, minReplicas: 2}]")], [AUTOSCALER % ("Deployment", "schedules: [{name: a, start: 0 8 * * *, end: 0 18 * * *, minReplicas: 2}]")]),  # noqa: E501
    ("stage-overlap", [HVPA % ("", STAGES % (60, 7))], [HVPA % ("", STAGES % (60, 6))]),
    ("stage-gap", [HVPA % ("", STAGES % (60, 5))], [HVPA % ("", STAGES % (60, 6))]),
    ("weight-of-one", [HVPA % ("", STAGES % (1, 6))], [HVPA % ("", STAGES % (100, 6))]),
    ("bucket-gap", [HVPA % ("", BUCKETS % 1)], [HVPA % ("", BUCKETS % "500m")]),
    ("ignored-field", [HVPA % ("selector: {},", BUCKETS % "500m")], [HVPA % ("", BUCKETS % "500m")]),
    ("type-mismatch", [(HPA % (1, "cpu", 50)).replace("type: Utilization", "type: Value")], [HPA % (1, "cpu", 50)]),
    ("two-autoscalers", [HPA % (1, "cpu", 50), EHPA % ""], [HPA % (1, "cpu", 50), EHPA % "scaleStrategy: Preview"]),
    ("same-resource", [HPA % (1, "cpu", 50), VPA % "Auto"], [HPA % (1, "cpu", 50), VPA % '"Off"']),
    ("missing-request", [HPA % (1, "cpu", 50), (DEPLOYMENT % ("", "")).replace("cpu: 100m, ", "")], [HPA % (1, "cpu", 50), DEPLOYMENT % ("", "")]),  # noqa: E501
    ("replicas-in-manifest", [HPA % (1, "cpu", 50), DEPLOYMENT % ("replicas: 3", "")], [DEPLOYMENT % ("replicas: 3", "")]),  # noqa: E501
    ("short-window", [HPA % (1, "cpu", 50), DEPLOYMENT % ("", ", readinessProbe: {initialDelaySeconds: 301}")], [HPA % (1, "cpu", 50), DEPLOYMENT % ("", ", readinessProbe: {initialDelaySeconds: 300}")]),  # noqa: E501
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
    assert "1 documents: 0 error, 1 warning, 0 info, 0 unreadable" in err
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
        pytest.param(
            "apiVersion: analysis.crane.io/v1alpha1\nkind: RecommendationRule\n", "0 error", id="a neighbour's kind"
        ),
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
    assert "fix: keep one of them: kubectl delete effectivehorizontalpodautoscaler web -n default" in out
    _, out, _ = run("-", text=HPA % (1, "cpu", 50) + "---\n" + custom())
    assert "fix: keep one of them: helm uninstall the release of these values" in out


def test_a_folder_without_manifests_is_a_mistake(tmp_path: Path) -> None:
    code, _, err = run(str(tmp_path))
    assert code == 2
    assert "this folder holds no manifest (.yaml, .yml, .json)" in err
