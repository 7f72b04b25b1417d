"""What `-f` of backtest and tune takes: README's own policy, its workload, other systems' kinds, and modes."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.advisor.workloads import target
from trimtab.advisor.manifests import Shape, manifest
from trimtab.cli import main
from trimtab.cli.policy_files import NamedPolicy, read_policies, standing_still
from trimtab.core.advise import WorkloadAdvice
from trimtab.policy import Advice

README = Path(__file__).parents[2] / "README.md"
LOAD = "generate:diurnal,days=2,peak=6"
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      initContainers:
      - {name: prepare, resources: {requests: {cpu: "8"}}}
      containers:
      - {name: main, resources: {requests: {cpu: 400m}}}
      - {name: proxy, resources: {limits: {cpu: 100m}}}
"""
EHPA: dict[str, Any] = {
    "apiVersion": "autoscaling.crane.io/v1alpha1",
    "kind": "EffectiveHorizontalPodAutoscaler",
    "metadata": {"name": "web"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 2,
        "maxReplicas": 30,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
            }
        ],
    },
}
SCALED_OBJECT = """
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: web}
spec:
  scaleTargetRef: {name: web}
  minReplicaCount: 2
  maxReplicaCount: 30
  pollingInterval: 10
  triggers: [{type: cpu, metricType: Utilization, metadata: {value: "60"}}]
"""
VPA = """
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web}
spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
"""


@pytest.fixture
def readme_policy(tmp_path: Path) -> Path:
    file = tmp_path / "policy.yaml"
    block = re.search(r"```yaml\n(.*?)```", README.read_text(), re.DOTALL)
    assert block is not None
    file.write_text(block[1])
    return file


@pytest.fixture
def deployment(tmp_path: Path) -> Path:
    file = tmp_path / "deployment.yaml"
    file.write_text(DEPLOYMENT)
    return file


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def figures(*arguments: str | Path) -> dict[str, Any]:
    done = invoke("backtest", *arguments, "--load", LOAD, "-o", "json")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def read(path: Path) -> NamedPolicy:
    (named,) = read_policies((str(path),), 0.0, 86400.0)
    return named


def written(path: Path, content: dict[str, Any]) -> Path:
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.mark.parametrize("command", ["backtest", "tune"])
def test_readme_s_policy_works_as_printed_and_says_what_it_assumes(command: str, readme_policy: Path) -> None:
    done = invoke(command, "-f", readme_policy, "--load", LOAD)
    assert done.exit_code == 0, done.output
    said = " ".join(done.stdout.split())
    assert "one pod is taken to request 1 (add the manifest of its workload with -f)" in said


def test_a_pod_carries_what_its_workload_requests(readme_policy: Path, deployment: Path) -> None:
    beside = figures("-f", readme_policy, "-f", deployment)
    assert "a pod of Deployment/web requests 500m" in beside["load"]["notes"][0]
    said = figures("-f", readme_policy, "--pod-capacity", "0.5")  # taken for the request where nobody knows one
    assert beside["policies"][0]["podHours"] == said["policies"][0]["podHours"]


def test_a_folder_and_several_documents_in_a_file_do_as_well(readme_policy: Path, deployment: Path) -> None:
    apart = figures("-f", readme_policy.parent)
    deployment.write_text(f"{readme_policy.read_text()}---\n{DEPLOYMENT}")
    assert figures("-f", deployment)["policies"] == apart["policies"]


def test_a_workload_of_another_name_or_namespace_says_nothing(readme_policy: Path, deployment: Path) -> None:
    deployment.write_text(DEPLOYMENT.replace("name: web", "name: api"))
    assert "taken to request 1" in figures("-f", readme_policy, "-f", deployment)["load"]["notes"][0]
    readme_policy.write_text(readme_policy.read_text().replace("{name: web}\nspec", "{name: web, namespace: a}\nspec"))
    deployment.write_text(DEPLOYMENT.replace("{name: web}", "{name: web, namespace: b}"))
    assert "taken to request 1" in figures("-f", readme_policy, "-f", deployment)["load"]["notes"][0]


@pytest.mark.parametrize(
    "old, new, said",
    [
        (", resources: {limits: {cpu: 100m}}", "", "Deployment/web: 'no CPU request': give every container"),
        ("cpu: 400m", "cpu: much", "'much'"),
        ("- {name: main, resources: {requests: {cpu: 400m}}}", "- 3", "Deployment/web: 'Expected `object`"),
    ],
    ids=["no request", "no quantity", "no container"],
)
def test_a_workload_that_says_too_little_is_named(
    readme_policy: Path, deployment: Path, old: str, new: str, said: str
) -> None:
    deployment.write_text(DEPLOYMENT.replace(old, new))
    done = invoke("backtest", "-f", readme_policy, "-f", deployment, "--load", LOAD)
    assert done.exit_code == 2 and said in done.stderr
    assert "Traceback" not in done.output


def test_a_scaled_object_is_read_as_an_autoscaler_and_says_what_is_lost(tmp_path: Path, deployment: Path) -> None:
    file = tmp_path / "keda.yaml"
    file.write_text(SCALED_OBJECT)
    found = figures("-f", file, "-f", deployment)
    assert found["policies"][0]["violations"] < 5
    assert "web: this ScaledObject is read as an Autoscaler" in found["load"]["notes"]
    assert any("spec.pollingInterval" in note for note in found["load"]["notes"])


def test_a_scaled_object_whose_signal_is_unknown_here_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "keda.yaml"
    file.write_text(
        SCALED_OBJECT.replace('{type: cpu, metricType: Utilization, metadata: {value: "60"}}', "{type: oracle}")
    )
    done = invoke("backtest", "-f", file, "--load", LOAD)
    assert done.exit_code == 2 and "keda.yaml:" in done.stderr and "signal would be lost" in done.stderr


def test_a_vpa_beside_its_workload_is_replayed(tmp_path: Path, deployment: Path) -> None:
    file = tmp_path / "vpa.yaml"
    file.write_text(VPA)
    assert figures("-f", file, "-f", deployment)["policies"][0]["name"] == "web"


@pytest.mark.parametrize("shape", ["ehpa", "hpa", "autoscaler"])
def test_what_recommend_writes_is_replayed_as_advised(shape: Shape, tmp_path: Path, deployment: Path) -> None:
    advised = WorkloadAdvice(min_replicas=2, max_replicas=40, target_percent=60, predictable=True)
    file = written(tmp_path / "advice.yaml", manifest(shape, Advice.HPA, target("web"), advised))
    (found,) = figures("-f", file, "-f", deployment)["policies"]
    assert found["violations"] < 5 and found["churn"] > 0, "in Preview, too, it acts here"


def test_preview_is_simulated_as_if_it_were_on(tmp_path: Path) -> None:
    on = read(written(tmp_path / "on.yaml", EHPA))
    preview = EHPA | {"spec": {**EHPA["spec"], "scaleStrategy": "Preview", "specificReplicas": 4}}
    watching = read(written(tmp_path / "preview.yaml", preview))
    assert watching.policy == on.policy and on.notes == ()
    assert watching.notes == ("web: it is in Preview mode and simulated as if it were on",)


def test_shadow_is_simulated_as_if_it_were_on_and_a_pause_is_told(tmp_path: Path, readme_policy: Path) -> None:
    on, text = read(readme_policy), readme_policy.read_text()
    readme_policy.write_text(f"{text}  mode: Shadow\n")
    assert read(readme_policy).policy == on.policy
    assert "Shadow" in read(readme_policy).notes[0]
    readme_policy.write_text(
        text.replace("{name: web}\nspec", '{name: web, annotations: {trimtab.dev/pin: "7"}}\nspec')
    )
    assert standing_still(read(readme_policy)) == ["web: it is pinned to 7 replicas"]
    readme_policy.write_text(
        text.replace("{name: web}\nspec", '{name: web, annotations: {trimtab.dev/paused: "true"}}\nspec')
    )
    assert standing_still(read(readme_policy)) == ["web: it is paused and changes nothing in that time"]


def test_a_repository_is_searched_for_what_scales(tmp_path: Path, readme_policy: Path, deployment: Path) -> None:
    """Patches, charts, values and other objects lie beside it; an object may have its name from the API server."""
    alone = figures("-f", readme_policy, "-f", deployment)
    patch = DEPLOYMENT.replace("cpu: 400m", "memory: 1Gi")
    files = {
        "overlays/prod/kustomization.yaml": "resources: [../../base]\npatches: [{path: deployment.yaml}]\n",
        "overlays/prod/deployment.yaml": patch,
        "Chart.yaml": "apiVersion: v2\nname: shop\n",
        "values.yaml": "prometheus: {enabled: true}\n",
        "package.json": '["no manifest"]\n',
        "analytics.yaml": "apiVersion: analysis.crane.io/v1alpha1\nkind: Analytics\nmetadata: {name: a}\n",
    }
    for name, text in files.items():
        path = readme_policy.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert figures("-f", readme_policy.parent)["policies"] == alone["policies"]
    readme_policy.write_text(readme_policy.read_text().replace("{name: web}\nspec", "{generateName: web-}\nspec"))
    assert figures("-f", readme_policy, "-f", deployment)["policies"][0]["name"] == "web-"


def test_schedules_far_from_the_start_of_a_history_are_in_force_too(tmp_path: Path) -> None:
    start = datetime(2026, 11, 10, tzinfo=UTC).timestamp()
    payday = {"name": "payday", "start": "0 8 25 * *", "end": "0 18 25 * *", "targetReplicas": 20}
    file = tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump(EHPA | {"spec": EHPA["spec"] | {"crons": [payday]}}))
    (named,) = read_policies((str(file),), start, 20 * 86400.0)
    (span,) = named.policy.bounds.spans
    assert datetime.fromtimestamp(span.start, UTC) == datetime(2026, 11, 25, 8, tzinfo=UTC)
