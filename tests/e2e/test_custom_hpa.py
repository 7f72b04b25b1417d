"""Nanit custom-hpa on a real control plane: the chart's container as a process, under the chart's service account."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.bed import Bed, always, eventually
from tests.bed.manifests import deployment
from tests.bed.ports import free_port
from tests.live.process import ServingProcess
from tests.live.running import autoscaler, install_crds, replicas

pytestmark = pytest.mark.e2e
CHART = Path(__file__).parents[2] / "deploy" / "custom-hpa"
SCALED_WITHIN_S = 40
EXAMPLE = {  # the install line of nanit custom-hpa
    "target.deployment": "web",
    "target.value": "100",
    "minReplicas": "10",
    "maxReplicas": "50",
}


class Release:
    """One installed chart, and its container run here: `with release.running() as process`."""

    def __init__(self, bed: Bed, namespace: str, folder: Path, **values: Any) -> None:
        self.bed, self.namespace, self.folder = bed, namespace, folder
        self.port, self.log = free_port(), folder / "custom-hpa.log"
        self.values = {
            "target.namespace": namespace,
            "prometheus.query": rf'queue_length{{namespace="{namespace}"\,app="web"}}',
        }
        self.values |= EXAMPLE | _address(bed.prometheus_lane(namespace)) | {"controlLoopPeriod": 1} | values
        said = self._helm("install", "--generate-name", str(CHART), "--version", "1.0.0", "-o", "json")
        self.name = json.loads(said)["name"]
        self.kubeconfig = bed.kubeconfig_for(namespace, "web-custom-hpa")

    def upgrade(self, **values: Any) -> None:
        self.values |= values
        self._helm("upgrade", self.name, str(CHART))

    def _helm(self, *args: str) -> str:
        settings = [part for name, value in self.values.items() for part in ("--set", f"{name}={value}")]
        return self.bed.helm(*args, "-n", self.namespace, *settings)

    def memory(self) -> dict[str, Any]:
        data = self.bed.get("configmap", self.name, "-n", self.namespace).get("data", {})
        found: dict[str, Any] = json.loads(data.get("memory", "{}"))
        return found

    def running(self) -> Process:
        return Process(self)


class Process(ServingProcess):
    """The container's command with its environment, in a working directory that is new and empty."""

    def __init__(self, release: Release) -> None:
        self.release = release
        made = release.bed.get("deployment", "web-custom-hpa", "-n", release.namespace)
        container = made["spec"]["template"]["spec"]["containers"][0]
        program = str(Path(sys.executable).with_name(container["command"][0]))
        super().__init__([program, *container["command"][1:]], release.port, release.log)
        self.env = {entry["name"]: entry["value"] for entry in container["env"]}
        self.env |= {"KUBECONFIG": str(release.kubeconfig), "PORT": str(release.port), "PATH": os.environ["PATH"]}

    def __enter__(self) -> Process:
        empty = self.release.folder / f"cwd-{time.monotonic_ns()}"
        empty.mkdir()
        self.start(empty, self.env)
        eventually(lambda: self.get("/ping") == "pong", 20, "/ping answers")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if kind is not None:
            print(self.last_words())

    def metrics(self) -> dict[str, float]:
        lines = (line.rsplit(" ", 1) for line in self.get("/metrics").splitlines() if not line.startswith("#"))
        return {name.replace('deployment="web",', "").replace('{deployment="web"}', ""): float(v) for name, v in lines}

    def said(self, pattern: str) -> bool:
        return re.search(pattern, self.release.log.read_text()) is not None


def _address(url: str) -> dict[str, str]:
    parts = urlsplit(url)
    return {"prometheus.url": f"http://{parts.hostname}{parts.path}", "prometheus.port": str(parts.port)}


Install = Callable[..., Release]


@pytest.fixture
def install(bed: Bed, namespace: str, tmp_path: Path) -> Iterator[Install]:
    """A Deployment of 10 replicas whose query gives 100, which is the target; then the chart."""
    made: list[Release] = []

    def make(queue: float = 100, start: int = 10, **values: Any) -> Release:
        bed.apply(deployment(namespace, "web", replicas=start))
        bed.load(namespace, "web", queue=queue)
        eventually(lambda: _sample(bed, namespace) == queue, 20, "Prometheus has the sample")
        made.append(Release(bed, namespace, tmp_path, **values))
        return made[-1]

    yield make
    for release in made:
        bed.helm("uninstall", release.name, "-n", namespace)


def _sample(bed: Bed, namespace: str) -> float:
    return float(bed.query(f'queue_length{{namespace="{namespace}",app="web"}}')[0]["value"][1])


@pytest.mark.smoke
def test_it_scales_by_the_document_s_examples_and_keeps_its_cooldown_over_a_restart(
    bed: Bed, namespace: str, install: Install
) -> None:
    cooldown = "behavior.scaleUpCooldown"
    release = install(queue=160, **{"behavior.scaleUpMaxFactor": 0.5, cooldown: 3600})
    with release.running() as process:
        eventually(lambda: replicas(bed, namespace) == 15, SCALED_WITHIN_S, "10 x 1.6, at most by half, is 15")
        scaled_at = eventually(lambda: release.memory()["core"]["up_at"], 5)
        now = eventually(lambda: _blocked(process), 5)
        assert now["custom_hpa_scale_factor"] == 1.6
        assert now["custom_hpa_metric_samples"] == 160
        assert now["custom_hpa_status_desired_replicas"] == 15
        assert now["custom_hpa_status_current_replicas"] == 15
        assert now['custom_hpa_metric_requests{status="success"}'] >= 2
        assert now['custom_hpa_status{status="above-max-factor",scale="up"}'] == 1
        assert process.stop() == 0
    with release.running() as process:
        eventually(lambda: _blocked(process), 10, "it looks again, and waits")
        assert (replicas(bed, namespace), release.memory()["core"]["up_at"]) == (15, scaled_at)
    release.upgrade(**{cooldown: 1, "maxReplicas": "23"})
    with release.running():
        eventually(lambda: replicas(bed, namespace) == 23, SCALED_WITHIN_S, "15 x 1.5")
        eventually(lambda: release.memory()["core"]["up_at"] > scaled_at, 5)


def _blocked(process: Process) -> dict[str, float]:
    now = process.metrics()
    return now if now['custom_hpa_status{status="cooldown",scale="up"}'] == 1 else {}


def test_an_upgrade_leaves_the_memory_and_a_lower_load_scales_down(bed: Bed, namespace: str, install: Install) -> None:
    release = install(queue=160, start=20)
    with release.running():
        eventually(lambda: replicas(bed, namespace) == 32, SCALED_WITHIN_S, "20 x 1.6")
        before = eventually(release.memory, 5)
    release.upgrade(**{"behavior.scaleDownMaxFactor": 0.5})
    assert release.memory() == before
    bed.load(namespace, "web", queue=40)
    with release.running() as process:
        eventually(lambda: replicas(bed, namespace) == 16, SCALED_WITHIN_S, "0.4 is at most 0.5: 32 x 0.5")
        assert eventually(lambda: release.memory()["core"]["down_at"], 5)
        assert release.memory()["core"]["up_at"] == before["core"]["up_at"]
        assert eventually(process.metrics, 5)["custom_hpa_scale_factor"] == 0.4


@pytest.mark.parametrize("fault", ["nan", "empty", "warnings", "error", "die", "late"])
def test_without_a_sound_answer_the_size_is_kept(bed: Bed, namespace: str, install: Install, fault: str) -> None:
    reasons = {"nan": "NotFinite", "empty": "Absent", "warnings": "Partial"}
    release = install(queue=100, start=20)
    with release.running() as process:
        eventually(lambda: process.metrics()["custom_hpa_metric_samples"] == 100, 20)
        bed.fault(namespace, fault, seconds=3)
        bed.load(namespace, "web", queue=10)
        failed = 'custom_hpa_metric_requests{status="failure"}'
        eventually(lambda: process.metrics()[failed] >= 2, 20)
        always(lambda: replicas(bed, namespace) == 20, 2)
        assert process.said(reasons.get(fault, "Unreachable"))
        statuses = {value for name, value in process.metrics().items() if name.startswith("custom_hpa_status{")}
        assert statuses == {0.0}
        bed.fault(namespace, None)
        eventually(lambda: replicas(bed, namespace) == 10, SCALED_WITHIN_S, "after recovery it scales down")


def test_several_series_hold_and_in_exact_mode_the_first_counts(bed: Bed, namespace: str, install: Install) -> None:
    several = rf'label_replace(queue_length{{namespace="{namespace}"}}\,"n"\,"1"\,""\,"") or vector(7)'
    release = install(queue=160, **{"prometheus.query": several})
    with release.running() as process:
        eventually(lambda: process.said("Ambiguous"), 20)
        always(lambda: replicas(bed, namespace) == 10, 2)
    release.upgrade(exact="true")
    with release.running():
        eventually(lambda: replicas(bed, namespace) == 16, SCALED_WITHIN_S)


def test_a_dry_run_writes_nothing_and_starts_no_cooldown(bed: Bed, namespace: str, install: Install) -> None:
    release = install(queue=160, dryRun="true")
    with release.running() as process:
        eventually(lambda: process.metrics()["custom_hpa_status_desired_replicas"] == 16, 20)
        eventually(lambda: process.metrics()["custom_hpa_up"] >= 4, 20)
        assert process.metrics()['custom_hpa_status{status="cooldown",scale="up"}'] == 0
        assert process.metrics()['custom_hpa_status{status="scaled",scale="up"}'] == 0
    assert replicas(bed, namespace) == 10
    assert release.memory().get("core", {}).get("up_at") is None


def test_a_refused_write_is_named_and_starts_no_cooldown(bed: Bed, namespace: str, install: Install) -> None:
    release = install(queue=160)
    _allow_scale(bed, namespace, "get")
    with release.running() as process:
        eventually(lambda: process.said(r'403 .*cannot patch resource \\?"deployments/scale'), 20)
        assert process.metrics()['custom_hpa_status{status="cooldown",scale="up"}'] == 0
        assert release.memory().get("core", {}).get("up_at") is None
        _allow_scale(bed, namespace, "get", "patch")
        eventually(lambda: replicas(bed, namespace) == 16, SCALED_WITHIN_S, "allowed again, without a cooldown")


def _allow_scale(bed: Bed, namespace: str, *verbs: str) -> None:
    change = json.dumps([{"op": "replace", "path": "/rules/0/verbs", "value": verbs}])
    bed.kubectl("patch", "role", "web-custom-hpa", "-n", namespace, "--type=json", "-p", change)


@pytest.mark.parametrize(
    "resource", ["deployments/scale", "horizontalpodautoscalers", "autoscalers", "namespaces", "configmaps"]
)
def test_a_missing_permission_is_named_and_nothing_happens(
    bed: Bed, namespace: str, install: Install, resource: str
) -> None:
    release = install(queue=160)
    role = "web-custom-hpa-memory" if resource == "configmaps" else "web-custom-hpa"
    rules = bed.get("role", role, "-n", namespace)["rules"]
    left = [rule for rule in rules if resource not in rule["resources"]]
    assert len(left) == len(rules) - 1
    change = json.dumps([{"op": "replace", "path": "/rules", "value": left}])
    bed.kubectl("patch", "role", role, "-n", namespace, "--type=json", "-p", change)
    with release.running() as process:
        eventually(lambda: process.said(rf'403 .*cannot \w+ resource \\?"{resource}'), 30)
        always(lambda: replicas(bed, namespace) == 10, 2)


@pytest.mark.parametrize("kind", ["HorizontalPodAutoscaler", "Autoscaler"])
def test_another_autoscaler_of_the_same_deployment_is_named_and_wins(
    bed: Bed, namespace: str, install: Install, kind: str
) -> None:
    install_crds(bed)
    other = autoscaler(namespace, "web", minReplicas=10, maxReplicas=10)
    if kind != "Autoscaler":
        other |= {"apiVersion": "autoscaling/v2", "kind": kind}
    bed.apply(other)
    release = install(queue=160)
    with release.running() as process:
        eventually(lambda: process.said(f"{kind} {namespace}/web moves the replicas"), 20)
        always(lambda: replicas(bed, namespace) == 10, 2)
        bed.kubectl("delete", kind.lower(), "web", "-n", namespace)
        eventually(lambda: replicas(bed, namespace) == 16, SCALED_WITHIN_S)


def test_a_namespace_that_opts_out_is_left_alone(bed: Bed, namespace: str, install: Install) -> None:
    bed.kubectl("label", "namespace", namespace, "trimtab.dev/enabled=false")
    release = install(queue=160)
    with release.running() as process:
        eventually(lambda: process.said("paused"), 20)
        always(lambda: replicas(bed, namespace) == 10, 2)


def test_a_scaling_that_is_put_back_is_a_new_starting_point(bed: Bed, namespace: str, install: Install) -> None:
    release = install(queue=160)
    with release.running():
        eventually(lambda: replicas(bed, namespace) == 16, SCALED_WITHIN_S)
        eventually(lambda: release.memory()["wrote"], 5)
        bed.kubectl("scale", "deployment", "web", "-n", namespace, "--replicas=10", "--current-replicas=16")
        eventually(lambda: release.memory()["quarrels"]["replicas"]["by"] == "kubectl", 20)
        eventually(lambda: replicas(bed, namespace) == 16, SCALED_WITHIN_S)
