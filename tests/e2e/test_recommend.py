"""Crane's recommendations on a real API server and a real Prometheus: the controllers, and `trimtab recommend`."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.bed import PATIENCE_S, Bed
from tests.bed.manifests import deployment
from tests.bed.waiting import always, eventually, until
from tests.history.filled import Filled, fill, serve
from tests.live.running import ROOT, Running, install_crds
from trimtab.advisor.run import server_time
from trimtab.live.advice import Advisor
from trimtab.series import Floats
from trimtab.wire.access import prometheus_access
from trimtab.wire.kube import Kube
from trimtab.wire.kubeconfig import connect
from trimtab.wire.objects import Custom
from trimtab.wire.prometheus import Prometheus

pytestmark = pytest.mark.e2e

TRIMTAB = str(Path(sys.executable).with_name("trimtab"))
DAY_S, WEEK_MINUTES = 86400, 7 * 1440
SETTLED_S = 60.0  # pods count as available when they have been ready for half a minute

EXAMPLE = ROOT / "examples" / "000-recommendation"
ANALYTICS = (EXAMPLE / "analytics-hpa.yaml").read_text()

PRINTED = """maxReplicas: 2
metrics:
- resource:
    name: cpu
    target:
      averageUtilization: {target}
      type: Utilization
  type: Resource
minReplicas: 2
"""


class Scene:
    """One namespace of a cluster with a week of history of its own."""

    def __init__(self, bed: Bed, namespace: str, folder: Path, stack: ExitStack) -> None:
        self.bed, self.namespace, self.folder, self.stack = bed, namespace, folder, stack
        self.url = ""

    def deploy(self, name: str, replicas: int, cpu: str = "250m", **labels: str) -> list[str]:
        """The names of its pods, once all are ready."""
        made = deployment(self.namespace, name, replicas=replicas, cpu=cpu)
        made["metadata"]["labels"] = {"app": name} | labels
        self.bed.apply(made)
        ready = lambda: self.get("deployment", name)["status"].get("readyReplicas", 0) == replicas  # noqa: E731
        eventually(ready, within_s=60)
        listed = self.bed.get("pods", "-n", self.namespace, "-l", f"app={name}")["items"]
        return [one["metadata"]["name"] for one in listed]

    def follow(self, file: Path, name: str, **labels: str) -> list[str]:
        """An example's Deployment as it stands there, but for labels that a deployer adds."""
        made = yaml.safe_load(file.read_text())
        made["metadata"] |= {"namespace": self.namespace, "labels": made["metadata"]["labels"] | labels}
        self.bed.apply(made)
        eventually(lambda: self.get("deployment", name)["status"].get("readyReplicas", 0) == 1, within_s=60)
        chosen = ",".join(f"{key}={value}" for key, value in made["spec"]["selector"]["matchLabels"].items())
        listed = self.bed.get("pods", "-n", self.namespace, "-l", chosen)["items"]
        return [one["metadata"]["name"] for one in listed]

    def remember(
        self, usage: dict[str, Floats], memory: dict[str, Floats] | None = None, restarted: tuple[str, ...] = ()
    ) -> None:
        """A Prometheus that has seen these pods use so many cores, a value a minute for a week until now."""
        end = int(time.time()) // 60 * 60
        times = np.arange(end - (WEEK_MINUTES - 1) * 60, end + 60, 60)

        def named(metric: str, pod: str, values: Floats) -> Filled:
            return Filled(f'{metric}{{namespace="{self.namespace}",container="app",pod="{pod}"}}', times, values)

        series = []
        for pod, cores in usage.items():
            counter = np.cumsum(cores * 60)
            if pod in restarted:  # in the middle of the week its counter begins again
                counter[WEEK_MINUTES // 2 :] -= counter[WEEK_MINUTES // 2 - 1]
            series.append(named("container_cpu_usage_seconds_total", pod, counter))
        series += [named("container_memory_working_set_bytes", pod, size) for pod, size in (memory or {}).items()]
        fill(self.folder, series)
        self.url, _ = self.stack.enter_context(serve(self.folder))

    def tick(self, at: float, url: str | None = None, own: str = "nobody", namespace: str | None = None) -> None:
        """What the operator does when it looks after advice, at that time."""

        async def run() -> None:
            async with Kube(connect(kubeconfig=str(self.bed.kubeconfig))) as kube:
                where = self.namespace if namespace is None else namespace
                advisor = Advisor(kube, prometheus_access(url or self.url), [own], where)
                async with advisor.following(), asyncio.timeout(2 * PATIENCE_S):
                    await until(lambda: all(feed.store.synced.is_set() for feed in advisor.feeds.values()))
                    await advisor.tick(at)
                    await until(lambda: _caught_up(kube, advisor))  # what was written comes back,
                    await advisor.tick(at)  # and is adopted

        asyncio.run(run())

    def get(self, *args: str) -> Any:
        return self.bed.get(*args, "-n", self.namespace)

    def recommendations(self) -> list[Any]:
        return list(self.get("recommend")["items"])

    def recommend(self, *args: str) -> subprocess.CompletedProcess[str]:
        """`trimtab recommend`, as a person types it."""
        env = {**os.environ, "KUBECONFIG": str(self.bed.kubeconfig)}
        command = [
            TRIMTAB,
            "recommend",
            "-n",
            self.namespace,
            "--prometheus",
            self.url,
            *args,
        ]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE_S)


async def _caught_up(kube: Kube, advisor: Advisor) -> bool:
    """It has seen every object as the API server has it now."""
    for feed in advisor.feeds.values():
        assert feed.resource is not None
        listed = (await kube.list(Custom, feed.resource, feed.namespace)).items
        there = {(one.metadata.uid, one.metadata.resource_version) for one in listed}
        if there != {(one.metadata.uid, one.metadata.resource_version) for one in feed.store}:
            return False
    return True


@pytest.fixture
def scene(bed: Bed, namespace: str, tmp_path: Path) -> Iterator[Scene]:
    install_crds(bed)
    with ExitStack() as stack:
        yield Scene(bed, namespace, tmp_path, stack)


def analytics(namespace: str, name: str, **changes: Any) -> dict[str, Any]:
    """Crane's, with some of its fields changed."""
    made: dict[str, Any] = yaml.safe_load(ANALYTICS)
    made["metadata"] = {"name": name, "namespace": namespace}
    made["spec"] |= changes
    return made


def office_hours(night: float, day: float) -> Floats:
    """Busy from 8 to 20 o'clock UTC, a value a minute for the week that ends now."""
    end = int(time.time()) // 60 * 60
    times = np.arange(end - (WEEK_MINUTES - 1) * 60, end + 60, 60)
    hours = times % DAY_S // 3600
    return np.where((hours >= 8) & (hours < 20), day, night).astype(np.float64)


OPEN = {"ehpa.fluctuation-threshold": "0", "ehpa.min-cpu-usage-threshold": "0"}


@pytest.mark.smoke
def test_crane_step_by_step(scene: Scene) -> None:
    """kubectl apply, kubectl get analytics, kubectl get recommend: what the document prints."""
    pods = scene.follow(EXAMPLE / "nginx-deployment.yaml", "nginx-deployment", **{"app.kubernetes.io/instance": "argo"})
    scene.remember({pods[0]: np.full(WEEK_MINUTES, 0.0005)})
    scene.bed.kubectl("apply", "-n", scene.namespace, "-f", "-", input=ANALYTICS)
    table = scene.bed.kubectl("get", "analytics", "-n", scene.namespace).split()
    assert table[:4] == ["NAME", "AGE", "READY", "nginx-hpa"]

    now = time.time() + SETTLED_S
    scene.tick(now)
    found = yaml.safe_load(scene.bed.kubectl("get", "analytics", "nginx-hpa", "-n", scene.namespace, "-o", "yaml"))
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    assert found["status"]["conditions"] == [
        {
            "lastTransitionTime": stamp,
            "message": "Analytics is ready",
            "reason": "AnalyticsReady",
            "status": "True",
            "type": "Ready",
        }
    ]
    assert found["status"]["lastUpdateTime"] == stamp
    (mission,) = found["status"]["recommendations"]
    name, uid = mission.pop("name"), mission.pop("uid")
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx-deployment", "namespace": scene.namespace}
    assert mission == {"lastStartTime": stamp, "message": "Success", "namespace": scene.namespace, "targetRef": ref}
    assert re.fullmatch(r"nginx-hpa-hpa-[a-z0-9]{5}", name)

    text = scene.bed.kubectl("get", "recommend", name, "-n", scene.namespace, "-o", "yaml")
    record = yaml.safe_load(text)
    meta = record["metadata"]
    assert meta["uid"] == uid and meta["generateName"] == "nginx-hpa-hpa-" and meta["generation"] == 1
    assert meta["labels"] == {
        "analysis.crane.io/analytics-name": "nginx-hpa",
        "analysis.crane.io/analytics-type": "HPA",
        "analysis.crane.io/analytics-uid": found["metadata"]["uid"],
        "app": "nginx",
    }
    assert meta["ownerReferences"] == [
        {
            "apiVersion": "analysis.crane.io/v1alpha1",
            "blockOwnerDeletion": False,
            "controller": False,
            "kind": "Analytics",
            "name": "nginx-hpa",
            "uid": found["metadata"]["uid"],
        }
    ]
    assert record["spec"] == {
        "adoptionType": "StatusAndAnnotation",
        "completionStrategy": {"completionStrategyType": "Once"},
        "targetRef": ref,
        "type": "HPA",
    }
    (ready,) = record["status"]["conditions"]
    assert (ready["message"], ready["reason"]) == ("Recommendation is ready", "RecommendationReady")
    assert record["status"]["lastUpdateTime"] == stamp
    assert record["status"]["recommendedValue"] == PRINTED.format(target=30)  # exact: an idle pod, the lowest target
    assert "recommendedValue: |\n    maxReplicas: 2\n    metrics:\n    - resource:" in text
    target = scene.get("deployment", "nginx-deployment")
    assert target["metadata"]["annotations"]["analysis.crane.io/hpa-recommendation"] == PRINTED.format(target=30)

    # The document's own number is that of its program.
    patch = {"spec": {"config": {"trimtab.dev/algorithm": "crane"}}}
    scene.bed.kubectl("patch", "analytics", "nginx-hpa", "-n", scene.namespace, "--type=merge", "-p", json.dumps(patch))
    scene.tick(now + 601)
    assert scene.recommendations()[0]["status"]["recommendedValue"] == PRINTED.format(target=75)
    assert scene.get("analytics", "nginx-hpa")["status"]["config"]["trimtab.dev/algorithm"] == "crane"


def test_a_diurnal_workload_by_hand(scene: Scene) -> None:
    """Four pods share 2 cores by night and 8 by day; each requests 2.5. Two of them have restarted meanwhile."""
    pods = scene.deploy("shop", 4, cpu="2500m")
    scene.remember({pod: office_hours(0.5, 2.0) for pod in pods}, restarted=tuple(pods[:2]))
    selectors = [{"kind": "Deployment", "apiVersion": "apps/v1", "name": "shop"}]
    scene.bed.apply(analytics(scene.namespace, "shop", resourceSelectors=selectors, config=OPEN))
    scene.tick(time.time() + SETTLED_S)
    value = yaml.safe_load(scene.recommendations()[0]["status"]["recommendedValue"])
    assert value["metrics"][0]["resource"]["target"]["averageUtilization"] == 75  # 2 / 2.5 = 80 %, capped
    assert value["minReplicas"] == 2  # 2 / (2.5 x 0.75) = 1.07
    assert value["maxReplicas"] == 13  # 8 x 3 / (2.5 x 0.75) = 12.8; a forecast 1 % above gives 12.9
    assert value["prediction"]["predictionAlgorithm"]["algorithmType"] == "dsp"
    evidence = scene.recommendations()[0]["status"]["evidence"]
    assert evidence["hourlyMedians"] == pytest.approx([8.0 if 8 <= hour < 20 else 2.0 for hour in range(24)], rel=0.01)


def test_metrics_and_behavior_come_from_the_workloads_own_hpa(scene: Scene) -> None:
    pods = scene.deploy("web", 2)
    scene.remember({pod: office_hours(0.1, 0.2) for pod in pods})
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    queue = {"type": "External", "external": {"metric": {"name": "jobs"}, "target": {"type": "Value", "value": "7"}}}
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 99}}}
    spec = {"scaleTargetRef": ref, "minReplicas": 2, "maxReplicas": 3, "metrics": [cpu, queue]}
    spec["behavior"] = {"scaleDown": {"stabilizationWindowSeconds": 77}}
    meta = {"name": "any-name", "namespace": scene.namespace}
    scene.bed.apply({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": meta, "spec": spec})
    selectors = [{"kind": "Deployment", "apiVersion": "apps/v1", "name": "web"}]
    scene.bed.apply(analytics(scene.namespace, "web", resourceSelectors=selectors, config=OPEN))
    scene.tick(time.time() + SETTLED_S)
    value = yaml.safe_load(scene.recommendations()[0]["status"]["recommendedValue"])
    assert [metric["type"] for metric in value["metrics"]] == ["Resource", "External"]
    assert value["metrics"][0]["resource"]["target"]["averageUtilization"] != 99
    assert value["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 77


def test_once_runs_once_and_periodical_again_after_its_period(scene: Scene) -> None:
    pods = scene.deploy("nginx-deployment", 1)
    scene.remember({pods[0]: office_hours(0.1, 0.2)})
    once = analytics(scene.namespace, "once", completionStrategy={"completionStrategyType": "Once"})
    scene.bed.apply(once, analytics(scene.namespace, "again"))
    now = int(time.time() + SETTLED_S)

    def updated() -> dict[str, str]:
        return {one["metadata"]["name"]: one["status"]["lastUpdateTime"] for one in scene.get("analytics")["items"]}

    scene.tick(now)
    first = updated()
    scene.tick(now + 599)
    assert updated() == first
    scene.tick(now + 600)
    second = updated()
    assert second["once"] == first["once"] and second["again"] > first["again"]
    assert len(scene.recommendations()) == 2  # the second round wrote into the first one's object

    scene.bed.apply(once | {"spec": once["spec"] | {"config": OPEN | {"ehpa.default-min-replicas": "3"}}})
    scene.tick(now + 610)
    third = updated()
    assert third["once"] > second["once"] and third["again"] == second["again"], "an edit is a new question"
    values = {one["metadata"]["generateName"]: one["status"]["recommendedValue"] for one in scene.recommendations()}
    assert "minReplicas: 3" in values["once-hpa-"]
    scene.tick(now + 620)
    assert updated() == third


def test_a_failed_second_run_leaves_the_first_result_in_place(scene: Scene) -> None:
    pods = scene.deploy("nginx-deployment", 1)
    scene.remember({pods[0]: office_hours(0.1, 0.2)})
    scene.bed.apply(analytics(scene.namespace, "nginx-hpa"))
    now = int(time.time() + SETTLED_S)
    scene.tick(now)
    (before,) = scene.recommendations()
    scene.tick(now + 601, url="http://127.0.0.1:9")
    (after,) = scene.recommendations()
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["recommendedValue"] == before["status"]["recommendedValue"]
    assert after["status"]["lastUpdateTime"] == before["status"]["lastUpdateTime"]
    kinds = {one["type"]: one for one in after["status"]["conditions"]}
    assert kinds["Ready"]["status"] == "True"
    assert kinds["LastRunSucceeded"]["reason"] == "MetricsUnavailable"
    assert "127.0.0.1:9" in kinds["LastRunSucceeded"]["message"]
    status = scene.get("analytics", "nginx-hpa")["status"]
    assert "127.0.0.1:9" in status["recommendations"][0]["message"]
    assert status["conditions"][0]["status"] == "False"

    scene.tick(now + 1300)  # Prometheus is back: the condition of the failure goes
    (again,) = scene.recommendations()
    assert [one["type"] for one in again["status"]["conditions"]] == ["Ready"]


@pytest.mark.smoke
def test_auto_adoption_and_a_users_edit_that_survives(scene: Scene) -> None:
    pods = scene.deploy("nginx-deployment", 2)
    scene.remember({pod: office_hours(0.05, 0.2) for pod in pods})
    scene.bed.apply(analytics(scene.namespace, "nginx-hpa"))
    now = int(time.time() + SETTLED_S)
    scene.tick(now)
    (record,) = scene.recommendations()
    auto = json.dumps({"spec": {"adoptionType": "Auto"}})
    name = record["metadata"]["name"]
    scene.bed.kubectl("patch", "recommend", name, "-n", scene.namespace, "--type=merge", "-p", auto)
    scene.tick(now + 1)
    made = scene.get("ehpa", "nginx-deployment")["spec"]
    assert made["scaleStrategy"] == "Preview"
    value = yaml.safe_load(record["status"]["recommendedValue"])
    assert (made["minReplicas"], made["maxReplicas"]) == (value["minReplicas"], value["maxReplicas"])

    edit = json.dumps({"spec": {"maxReplicas": 50, "scaleStrategy": "Auto"}})
    scene.bed.kubectl("patch", "ehpa", "nginx-deployment", "-n", scene.namespace, "--type=merge", "-p", edit)
    change = json.dumps({"spec": {"config": {"ehpa.default-min-replicas": "4", "ehpa.max-replicas-factor": "9"}}})
    scene.bed.kubectl("patch", "analytics", "nginx-hpa", "-n", scene.namespace, "--type=merge", "-p", change)
    scene.tick(now + 602)
    after = scene.get("ehpa", "nginx-deployment")["spec"]
    assert after["minReplicas"] == 4  # still ours, so it follows
    assert (after["maxReplicas"], after["scaleStrategy"]) == (50, "Auto")  # theirs, so it stays


def test_each_target_has_its_own_outcome(scene: Scene) -> None:
    """Names that are prefixes of each other, a workload without requests, half of the pods unseen, a DaemonSet."""
    pods = {name: scene.deploy(name, 2) for name in ("web", "web-api", "half")}
    bare = deployment(scene.namespace, "bare", replicas=1)
    del bare["spec"]["template"]["spec"]["containers"][0]["resources"]
    scene.bed.apply(bare)
    eventually(lambda: scene.get("deployment", "bare")["status"].get("readyReplicas") == 1, within_s=60)
    bare_pod = scene.bed.get("pods", "-n", scene.namespace, "-l", "app=bare")["items"][0]["metadata"]["name"]
    usage = {pod: office_hours(0.05, 0.1) for pod in pods["web"]} | {bare_pod: office_hours(0.1, 0.2)}
    usage |= {pod: office_hours(0.1, 0.2) for pod in pods["web-api"]} | {pods["half"][0]: office_hours(0.1, 0.2)}
    scene.remember(usage)
    selectors = [{"kind": "Deployment", "apiVersion": "apps/v1"}]
    scene.bed.apply(analytics(scene.namespace, "all", resourceSelectors=selectors, config=OPEN))
    scene.tick(time.time() + 1000)  # pods that have run for less than a quarter of an hour need no samples yet
    status = scene.get("analytics", "all")["status"]
    messages = {one["targetRef"]["name"]: one["message"] for one in status["recommendations"]}
    assert messages["web"] == messages["web-api"] == "Success"
    assert "container app has no CPU request" in messages["bare"]
    assert "only 1 of 2 running pods have samples" in messages["half"]
    assert status["conditions"][0]["status"] == "True"
    found = {one["spec"]["targetRef"]["name"]: one["status"] for one in scene.recommendations()}
    assert found["bare"]["conditions"][0]["reason"] == "NoRequest" and "recommendedValue" not in found["bare"]
    peaks = {name: found[name]["evidence"]["peakCores"] for name in ("web", "web-api")}
    assert peaks == pytest.approx({"web": 0.2, "web-api": 0.4}, rel=0.01)  # neither has counted the other's pods

    scene.bed.kubectl("delete", "deployment", "web", "-n", scene.namespace)
    scene.tick(time.time() + 1700)
    left = {one["spec"]["targetRef"]["name"] for one in scene.recommendations()}
    assert left == {"web-api", "bare", "half"}  # what is gone needs no advice; what only failed keeps its own


def test_selectors_and_the_operators_own_namespace(scene: Scene) -> None:
    pods = scene.deploy("red", 1, team="red") + scene.deploy("blue", 1, team="blue")
    scene.remember({pod: office_hours(0.1, 0.2) for pod in pods})
    own = f"{scene.namespace}-own"
    scene.bed.kubectl("create", "namespace", own)
    try:
        mark = {
            "matchLabels": {"team": "red"},
            "matchExpressions": [{"key": "app", "operator": "In", "values": ["red"]}],
        }
        selectors = [{"kind": "Deployment", "apiVersion": "apps/v1", "labelSelector": mark}]
        scene.bed.apply(analytics(own, "everywhere", resourceSelectors=selectors, config=OPEN))
        nothing = [{"kind": "Deployment", "apiVersion": "apps/v1", "name": "green"}]
        scene.bed.apply(analytics(scene.namespace, "nothing", resourceSelectors=nothing))
        scene.bed.apply(analytics(scene.namespace, "misspelt", config={"ehpa.fluctuation-treshold": "1"}))
        scene.tick(time.time() + SETTLED_S, own=own, namespace="")
        (found,) = scene.bed.get("recommend", "-n", own)["items"]
        assert found["spec"]["targetRef"]["namespace"] == scene.namespace
        assert found["spec"]["targetRef"]["name"] == "red" and found["status"]["recommendedValue"]
        (ready,) = scene.get("analytics", "nothing")["status"]["conditions"]
        assert (ready["status"], ready["reason"]) == ("False", "FailedSelectResource")
        assert "no workload" in ready["message"]
        (ready,) = scene.get("analytics", "misspelt")["status"]["conditions"]
        assert (ready["status"], ready["reason"]) == ("False", "InvalidSpec")
        assert "did you mean ehpa.fluctuation-threshold" in ready["message"]
    finally:
        scene.bed.kubectl("delete", "namespace", own, "--wait=false")


def test_a_recommendation_by_itself(scene: Scene) -> None:
    pods = scene.deploy("web", 2, cpu="1")
    scene.remember({pod: office_hours(4.0, 8.0) for pod in pods})
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    meta = {"name": "mine", "namespace": scene.namespace}
    spec = {"targetRef": ref, "type": "Replicas", "adoptionType": "Status"}
    made = {"apiVersion": "analysis.crane.io/v1alpha1", "kind": "Recommendation", "metadata": meta, "spec": spec}
    scene.bed.apply(made)
    scene.tick(time.time() + SETTLED_S)
    status = scene.get("recommend", "mine")["status"]
    assert yaml.safe_load(status["recommendedValue"]) == {"replicasRecommendation": {"replicas": 32}}  # 16 / 0.5
    annotations = scene.get("deployment", "web")["metadata"]["annotations"]
    assert not [key for key in annotations if key.startswith("analysis.crane.io")]


def test_the_operator_looks_after_analytics(scene: Scene) -> None:
    """`trimtab run` does all of it by itself: a recommendation, adopted, and a second one after an edit."""
    pods = scene.deploy("nginx-deployment", 1)
    scene.remember({pods[0]: office_hours(0.1, 0.2)})
    config = OPEN | {"ehpa.pod-min-ready-seconds": "0"}
    strategy = {"completionStrategyType": "Periodical", "periodSeconds": 2}
    scene.bed.kubectl("label", "namespace", scene.namespace, "trimtab.dev/enabled=false")
    scene.bed.apply(analytics(scene.namespace, "nginx-hpa", completionStrategy=strategy, config=config))
    with Running(scene.bed, scene.namespace, scene.folder, "--prometheus", scene.url) as operator:
        eventually(lambda: "leading" in operator.get("/readyz"), within_s=20)
        always(lambda: scene.recommendations() == [], for_s=4)
        scene.bed.kubectl("label", "namespace", scene.namespace, "trimtab.dev/enabled-")

        def least() -> int:
            (record,) = scene.recommendations()
            return int(yaml.safe_load(record["status"]["recommendedValue"])["minReplicas"])

        eventually(lambda: least() == 2, within_s=60)
        scene.bed.apply(
            analytics(
                scene.namespace,
                "nginx-hpa",
                completionStrategy=strategy,
                config=config | {"ehpa.default-min-replicas": "5"},
            )
        )
        eventually(lambda: least() == 5, within_s=60)

        def noted() -> bool:
            notes = scene.get("deployment", "nginx-deployment")["metadata"]["annotations"]
            return "minReplicas: 5" in notes["analysis.crane.io/hpa-recommendation"]

        eventually(noted, within_s=20)


def test_requests_of_each_container(scene: Scene) -> None:
    pods = scene.deploy("web", 2, cpu="1")
    memory = {pod: np.full(WEEK_MINUTES, 200.0 * 2**20) for pod in pods}
    scene.remember({pod: np.full(WEEK_MINUTES, 0.2) for pod in pods}, memory)
    selectors = [{"kind": "Deployment", "apiVersion": "apps/v1", "name": "web"}]
    scene.bed.apply(analytics(scene.namespace, "web", type="Resource", resourceSelectors=selectors, config={}))
    scene.tick(time.time() + SETTLED_S)
    value = yaml.safe_load(scene.recommendations()[0]["status"]["recommendedValue"])
    # P99 with 15 % on top
    assert value == {"containers": [{"containerName": "app", "target": {"cpu": "230m", "memory": "230Mi"}}]}
    notes = scene.get("deployment", "web")["metadata"]["annotations"]
    assert yaml.safe_load(notes["analysis.crane.io/resource-recommendation"]) == value
    patch = scene.recommend("--type", "resource", "--set", "pod-min-ready-seconds=0", "--as", "patch").stdout
    scene.bed.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-", input=patch)
    assert yaml.safe_load(patch)["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "230m"


def test_the_clock_of_the_metrics_server_is_the_one_that_counts(bed: Bed) -> None:
    async def asked(local: float) -> tuple[float, str]:
        async with Prometheus(prometheus_access(bed.prometheus_url)) as prometheus:
            return await server_time(prometheus, local)

    now = time.time()
    assert asyncio.run(asked(now)) == (now, "")
    at, said = asyncio.run(asked(now - 3600))
    assert at == pytest.approx(now, abs=30) and "ahead of this machine's" in said


# --- from a laptop ---------------------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_recommend_from_a_laptop(scene: Scene) -> None:
    pods = scene.deploy("shop", 8, cpu="2500m", team=scene.namespace)
    scene.remember({pod: office_hours(0.25, 1.0) for pod in pods})
    common = ("--set", "min-cpu-usage-threshold=1", "--set", "pod-min-ready-seconds=0", "--cpu-price", "0.1")
    listed = scene.recommend(*common, "-o", "json")
    assert listed.returncode == 0, listed.stderr
    (found,) = json.loads(listed.stdout)
    assert (found["name"], found["severity"]) == ("shop", "Saving")
    assert found["recommendation"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 40  # 1 of 2.5
    assert found["saved"]["perMonth"] == pytest.approx(found["saved"]["cores"] * 0.1 * 730, rel=1e-3)
    assert len(found["evidence"]["usage"]) == 168 and len(found["evidence"]["hourlyMedians"]) == 24

    everywhere = scene.recommend(*common, "-A", "-l", f"team={scene.namespace}", "-o", "json")
    assert [one["name"] for one in json.loads(everywhere.stdout)] == ["shop"]

    table = scene.recommend(*common)
    assert table.returncode == 0 and "RunsTooMuch" in table.stdout and "quietest hour" in table.stdout
    assert scene.recommend(*common, "--fail-over", "1").returncode == 1
    assert scene.recommend(*common, "--fail-over", "1000").returncode == 0
    page = scene.recommend(*common, "-o", "html").stdout
    assert 'id="report"' in page and "shop" in page and 'src="' not in page and '<link rel="style' not in page

    for shape in ("hpa", "ehpa", "autoscaler"):
        written = scene.recommend(*common, "--as", shape)
        scene.bed.kubectl("apply", "--dry-run=server", "-f", "-", input=written.stdout)
    patched = scene.recommend(*common, "--type", "replicas", "--as", "patch").stdout
    scene.bed.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-", input=patched)


def test_recommend_says_what_is_wrong(scene: Scene) -> None:
    """No traceback, exit code 2, and a sentence that names the remedy."""
    scene.deploy("web", 1)
    cases = {
        "http://127.0.0.1:9": "127.0.0.1:9",
        scene.bed.load_url: "is this the address of Prometheus?",
        "ftp://x": "write an address such as",
        scene.bed.prometheus_lane(scene.namespace): "an incomplete answer counts as none",
    }
    scene.bed.fault(scene.namespace, "warnings")
    for url, said in cases.items():
        scene.url = url
        done = scene.recommend()
        assert done.returncode == 2 and said in done.stderr, (url, done.stderr)
        assert "Traceback" not in done.stderr
    env = {**os.environ, "KUBECONFIG": str(scene.bed.kubeconfig)}
    command = [TRIMTAB, "recommend", "-n", scene.namespace]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 2 and "give --prometheus URL" in done.stderr
