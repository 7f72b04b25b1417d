"""The test bed itself: what other end-to-end tests take for granted."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
import textwrap
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.bed import Bed, eventually
from tests.bed.bed import sweep
from tests.bed.manifests import deployment

pytestmark = [pytest.mark.e2e, pytest.mark.smoke]

METRICS_WITHIN_S = 60  # two samples of metrics-server, 10 s apart, and the time of a busy machine


def ready_pods(bed: Bed, namespace: str, count: int) -> list[dict[str, Any]]:
    """The pods, once exactly `count` are ready and none other is there."""

    def all_ready() -> list[dict[str, Any]] | None:
        pods = bed.get("pods", "-n", namespace)["items"]
        ready = [pod for pod in pods if condition(pod, "Ready").get("status") == "True"]
        return pods if len(pods) == len(ready) == count else None

    pods = eventually(all_ready, 60, f"{count} ready pods")
    assert pods is not None
    return pods


def condition(pod: dict[str, Any], kind: str) -> dict[str, Any]:
    conditions = {each["type"]: each for each in pod["status"].get("conditions", [])}
    return conditions.get(kind, {})


def pod_cpu_milli(bed: Bed, namespace: str) -> list[int]:
    usage = json.loads(bed.kubectl("get", "--raw", f"/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods"))
    texts = [pod["containers"][0]["usage"]["cpu"] for pod in usage["items"]]
    return [round(int(text.removesuffix("n")) / 1e6) for text in texts]


def test_a_write_is_recorded_with_its_body_and_its_author(bed: Bed, namespace: str) -> None:
    bed.apply(deployment(namespace, "web"))

    def created() -> list[dict[str, Any]]:
        return [
            event
            for event in bed.audit()
            if event["verb"] == "create" and event.get("objectRef", {}).get("resource") == "deployments"
            if event["objectRef"]["namespace"] == namespace
        ]

    event = eventually(created, 10)[0]
    assert event["user"]["username"] == "admin"
    assert event["requestObject"]["spec"]["replicas"] == 1


def test_pods_become_ready_after_their_delay(bed: Bed, namespace: str) -> None:
    bed.apply(deployment(namespace, "web", replicas=3, annotations={"ready-after": "4s"}))
    for pod in ready_pods(bed, namespace, 3):
        started, ready = (
            dt.datetime.fromisoformat(at)
            for at in (pod["status"]["startTime"], condition(pod, "Ready")["lastTransitionTime"])
        )
        assert (ready - started).total_seconds() >= 4, "the API keeps whole seconds"


def test_usage_falls_when_replicas_rise(bed: Bed, namespace: str) -> None:
    bed.apply(deployment(namespace, "web", replicas=2, annotations={"load": '{"cores": 0.8}'}))
    ready_pods(bed, namespace, 2)
    eventually(lambda: pod_cpu_milli(bed, namespace) == [400, 400], METRICS_WITHIN_S, "400m for each of 2")
    bed.kubectl("scale", "deployment", "web", "-n", namespace, "--replicas=4")
    eventually(lambda: pod_cpu_milli(bed, namespace) == [200] * 4, METRICS_WITHIN_S, "200m for each of 4")
    eventually(lambda: bed.kubectl("top", "pods", "-n", namespace, "--no-headers").count(" 200m ") == 4, 10)


def test_the_built_in_autoscaler_closes_the_loop(bed: Bed, namespace: str) -> None:
    bed.apply(deployment(namespace, "web", replicas=2, cpu="250m"))
    bed.load(namespace, "web", cores=0.5)
    bed.kubectl("autoscale", "deployment", "web", "-n", namespace, "--cpu=50%", "--min=1", "--max=10")
    ready_pods(bed, namespace, 4)  # 0.5 cores / (50 % of 0.25) = 4
    hpa = eventually(lambda: _settled(bed, namespace), METRICS_WITHIN_S, "50 % with 4 pods")
    assert hpa and hpa["status"]["desiredReplicas"] == 4


def _settled(bed: Bed, namespace: str) -> dict[str, Any] | None:
    hpa: dict[str, Any] = bed.get("hpa", "web", "-n", namespace)
    measured = hpa["status"]["currentMetrics"][0]["resource"]["current"]["averageUtilization"]
    return hpa if measured == 50 else None


def test_the_built_in_autoscaler_reads_custom_and_external_metrics(bed: Bed, namespace: str) -> None:
    bed.apply(deployment(namespace, "web", replicas=1), deployment(namespace, "worker", replicas=1))
    bed.load(namespace, "web", rate=30)
    bed.load(namespace, "worker", queue=20)
    pods = {
        "metric": {"name": "requests_per_second"},
        "target": {"type": "AverageValue", "averageValue": "10"},
    }
    queue = {
        "metric": {"name": "queue_length", "selector": {"matchLabels": {"app": "worker"}}},
        "target": {"type": "AverageValue", "averageValue": "10"},
    }
    bed.apply(
        _hpa(namespace, "web", {"type": "Pods", "pods": pods}),
        _hpa(namespace, "worker", {"type": "External", "external": queue}),
    )
    eventually(lambda: _replicas(bed, namespace, "web") == 3, METRICS_WITHIN_S, "30 requests a second / 10")
    eventually(lambda: _replicas(bed, namespace, "worker") == 2, METRICS_WITHIN_S, "20 items / 10")


def _hpa(namespace: str, app: str, metric: dict[str, Any]) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": app}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": app, "namespace": namespace},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 10, "metrics": [metric]},
    }


def _replicas(bed: Bed, namespace: str, app: str) -> int:
    replicas: int = bed.get("deployment", app, "-n", namespace)["spec"]["replicas"]
    return replicas


class PodUnderTest:
    """One pod of a Deployment, resized and annotated by name."""

    def __init__(self, bed: Bed, namespace: str) -> None:
        bed.apply(deployment(namespace, "web", cpu="250m"))
        self.bed, self.at = bed, ("-n", namespace)
        self.name: str = ready_pods(bed, namespace, 1)[0]["metadata"]["name"]

    def seen(self) -> dict[str, Any]:
        pod: dict[str, Any] = self.bed.get("pod", self.name, *self.at)
        return pod

    def container(self) -> dict[str, Any]:
        status: dict[str, Any] = self.seen()["status"]["containerStatuses"][0]
        return status

    def cpu(self) -> str:
        cpu: str = self.container()["resources"]["requests"]["cpu"]
        return cpu

    def annotate(self, name: str, value: str | None) -> None:
        words = f"bed.trimtab.dev/{name}={value}" if value else f"bed.trimtab.dev/{name}-"
        self.bed.kubectl("annotate", "pod", self.name, *self.at, "--overwrite", words)

    def resize(self, cpu: str) -> None:
        patch = {"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": cpu}}}]}}
        arguments = ("--subresource=resize", "--type=strategic", "-p", json.dumps(patch))
        self.bed.kubectl("patch", "pod", self.name, *self.at, *arguments)


@pytest.fixture
def pod(bed: Bed, namespace: str) -> PodUnderTest:
    return PodUnderTest(bed, namespace)


def test_a_pod_is_resized_in_place(pod: PodUnderTest) -> None:
    uid = pod.seen()["metadata"]["uid"]
    pod.resize("500m")
    eventually(lambda: pod.cpu() == "500m", 10)
    assert pod.seen()["metadata"]["uid"] == uid
    assert pod.container()["restartCount"] == 0


def test_a_resize_may_restart_the_container(pod: PodUnderTest) -> None:
    pod.annotate("resize", "Restart")
    pod.resize("500m")
    eventually(lambda: pod.container()["restartCount"] == 1 and pod.cpu() == "500m", 10)


@pytest.mark.parametrize("reason", ["Deferred", "Infeasible"])
def test_a_resize_may_wait(pod: PodUnderTest, reason: str) -> None:
    pod.annotate("resize", reason)
    pod.resize("500m")
    eventually(lambda: condition(pod.seen(), "PodResizePending").get("reason") == reason, 10)
    assert pod.cpu() == "250m"
    pod.annotate("resize", None)
    eventually(lambda: pod.cpu() == "500m" and not condition(pod.seen(), "PodResizePending"), 10)


@pytest.mark.parametrize(
    ("fate", "path", "value"),
    [
        pytest.param("Unready", ("containerStatuses", 0, "ready"), False, id="unready"),
        pytest.param("Evicted", ("reason",), "Evicted", id="evicted"),
        pytest.param("Failed", ("phase",), "Failed", id="failed"),
        pytest.param("Succeeded", ("phase",), "Succeeded", id="succeeded"),
        pytest.param(
            "OOMKilled",
            ("containerStatuses", 0, "lastState", "terminated", "reason"),
            "OOMKilled",
            id="killed for its memory",
        ),
    ],
)
def test_a_pod_meets_its_fate(pod: PodUnderTest, fate: str, path: tuple[str | int, ...], value: object) -> None:
    def seen() -> Any:
        found: Any = pod.seen()["status"]
        for step in path:
            found = found[step]
        return found

    pod.annotate("fate", fate)
    eventually(lambda: seen() == value, 10)


def test_prometheus_has_the_metrics_of_the_application(bed: Bed, namespace: str) -> None:
    bed.apply(deployment(namespace, "web", replicas=2))
    ready_pods(bed, namespace, 2)
    bed.load(namespace, "web", rate=100)
    now_rate = f'sum(requests_per_second{{namespace="{namespace}",app="web"}})'
    counted = f'sum(rate(http_requests_total{{namespace="{namespace}"}}[5s]))'
    eventually(lambda: float(bed.query(now_rate)[0]["value"][1]) == 100, 15)
    eventually(lambda: 95 < float(bed.query(counted)[0]["value"][1]) < 105, 20)
    bed.load(namespace, "web", rate=100, fault="silent")
    eventually(lambda: bed.query(now_rate) == [], 15)


def ask_lane(bed: Bed, lane: str, timeout_s: float = 30) -> dict[str, Any]:
    url = f"{bed.prometheus_lane(lane)}/api/v1/query?query=vector(1)"
    with urllib.request.urlopen(url, timeout=timeout_s) as response:
        answer: dict[str, Any] = json.load(response)
    return answer


def test_a_lane_to_prometheus_fails_as_told_and_alone(bed: Bed, namespace: str) -> None:
    healthy = ask_lane(bed, namespace)
    assert healthy["data"]["result"][0]["value"][1] == "1" and "warnings" not in healthy
    bed.fault(namespace, "nan")
    assert ask_lane(bed, namespace)["data"]["result"][0]["value"][1] == "NaN"
    assert ask_lane(bed, f"{namespace}-other")["data"]["result"][0]["value"][1] == "1"
    bed.fault(namespace, "empty")
    assert ask_lane(bed, namespace)["data"]["result"] == []
    bed.fault(namespace, "warnings")
    assert ask_lane(bed, namespace)["warnings"]
    bed.fault(namespace, "late", seconds=60)
    with pytest.raises(TimeoutError):
        ask_lane(bed, namespace, timeout_s=0.5)
    bed.fault(namespace, "error")
    with pytest.raises(urllib.error.HTTPError, match="503"):
        ask_lane(bed, namespace)
    bed.fault(namespace, "die")
    with pytest.raises(OSError):
        ask_lane(bed, namespace)
    bed.fault(namespace, None)
    assert ask_lane(bed, namespace) | {"data": None} == healthy | {"data": None}


def test_a_service_account_may_do_only_what_its_roles_say(bed: Bed, namespace: str) -> None:
    bed.kubectl("create", "serviceaccount", "reader", "-n", namespace)
    own = bed.kubeconfig_for(namespace, "reader")
    with pytest.raises(subprocess.CalledProcessError) as refused:
        bed.kubectl("get", "pods", "-n", namespace, kubeconfig=own)
    assert f"system:serviceaccount:{namespace}:reader" in refused.value.stderr
    role = ("--clusterrole=view", f"--serviceaccount={namespace}:reader", "-n", namespace)
    bed.kubectl("create", "rolebinding", "reader", *role)
    eventually(lambda: bed.kubectl("get", "pods", "-n", namespace, "-o", "name", kubeconfig=own) == "", 10)


def test_helm_installs_a_chart(bed: Bed, namespace: str, tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: tiny\nversion: 0.1.0\n")
    template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: tiny}\ndata: {word: '{{ .Values.word }}'}\n"
    (tmp_path / "templates" / "map.yaml").write_text(template)
    assert "v4" in bed.helm("version")
    bed.helm("install", "tiny", str(tmp_path), "-n", namespace, "--set", "word=hello")
    assert bed.get("configmap", "tiny", "-n", namespace)["data"] == {"word": "hello"}


def test_an_api_server_alone_keeps_its_data_over_a_restart() -> None:
    with Bed.start(parts=("apiserver",)) as alone:
        assert alone.processes.names() == ["etcd", "apiserver"]
        before = alone.processes.pid("apiserver")
        alone.kubectl("create", "namespace", "kept")
        alone.restart_apiserver()
        assert alone.processes.pid("apiserver") not in (None, before)
        assert alone.get("namespace", "kept")["status"]["phase"] == "Active"
    assert not alone.directory.exists()


def test_what_a_killed_test_run_leaves_is_swept_and_nothing_else(bed: Bed) -> None:
    script = textwrap.dedent("""
        import os, signal
        from tests.bed import Bed
        bed = Bed.start(parts=("apiserver",))
        print(bed.directory, *(bed.processes.pid(part) for part in bed.processes.names()), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    root = Path(__file__).parents[2]
    killed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=root)
    directory, *pids = killed.stdout.split()
    assert len(pids) == 2, "they ran, and whoever starts a bed meanwhile may have swept them already"
    sweep()
    assert not Path(directory).exists()
    eventually(lambda: not any(_running(pid) for pid in pids), 10)
    assert bed.processes.pid("apiserver") is not None


def _running(pid: str) -> bool:
    """A process that ended but has no parent to notice it is not running."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0] != "Z"
    except FileNotFoundError:
        return False
