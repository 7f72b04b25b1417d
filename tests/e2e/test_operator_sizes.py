"""Requests on a real control plane: in place with constant pods, the template where that is asked for."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.bed import Bed, always, eventually
from tests.bed.manifests import deployment, node
from tests.e2e.test_bed import ready_pods
from tests.e2e.test_charts_operator import install_foreign_kinds
from tests.history.filled import Filled, fill, serve
from tests.live.running import Running, autoscaler, conditions, install_crds, replicas
from trimtab.quantity import parse_quantity

pytestmark = pytest.mark.e2e
QUICK = ("--usage-every", "2s", "--grow-after", "5s", "--shrink-after", "20s", "--memory-window", "20s")
SIZED_WITHIN_S = 90
BLANK = json.dumps({"status": {"sizes": None, "memory": None}})


def vertical_only(namespace: str, **vertical: Any) -> dict[str, Any]:
    made = autoscaler(namespace, vertical=vertical)
    for field in ("maxReplicas", "metrics"):
        del made["spec"][field]
    return made


def cpus(bed: Bed, namespace: str) -> dict[str, str]:
    """The CPU request of each pod, by uid."""
    pods = bed.get("pods", "-n", namespace)["items"]
    return {one["metadata"]["uid"]: one["spec"]["containers"][0]["resources"]["requests"]["cpu"] for one in pods}


def milli(text: str) -> int:
    return int(text[:-1]) if text.endswith("m") else int(float(text) * 1000)


def template_cpu(bed: Bed, namespace: str) -> str:
    spec = bed.get("deployment", "web", "-n", namespace)["spec"]["template"]["spec"]
    cpu: str = spec["containers"][0]["resources"]["requests"]["cpu"]
    return cpu


def test_pods_grow_in_place_and_later_ones_too(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    bed.load(namespace, "web", cores=0.8, memory_bytes=2 * 200 * 2**20)
    bed.apply(deployment(namespace, "web", replicas=2, cpu="100m"), vertical_only(namespace))
    before = {one["metadata"]["uid"] for one in ready_pods(bed, namespace, 2)}
    with Running(bed, namespace, tmp_path, *QUICK):
        grown = eventually(lambda: {milli(cpu) for cpu in cpus(bed, namespace).values()} - {100}, SIZED_WITHIN_S)
        eventually(lambda: all(milli(cpu) > 400 for cpu in cpus(bed, namespace).values()), SIZED_WITHIN_S)
        assert set(cpus(bed, namespace)) == before, "the pods are the same ones"
        assert all(400 < size < 700 for size in grown), "400m used, 15 % above, in the histogram's buckets"
        assert template_cpu(bed, namespace) == "100m"
        bed.kubectl("scale", "deployment", "web", "-n", namespace, "--replicas=3")
        eventually(lambda: len(cpus(bed, namespace)) == 3, 20)
        eventually(lambda: all(milli(cpu) > 400 for cpu in cpus(bed, namespace).values()), 20, "the new pod as well")
        sizes = bed.get("autoscaler", "web", "-n", namespace)["status"]["sizes"]
        assert sizes[0]["container"] == "app" and milli(sizes[0]["cpu"]) > 400
        assert replicas(bed, namespace) == 3


@pytest.mark.parametrize(
    ("apply", "reason", "falls_back"),
    [
        pytest.param("InPlace", "Infeasible", False, id="InPlace waits"),
        pytest.param("InPlaceOrRecreate", "Infeasible", True, id="InPlaceOrRecreate rolls out what is infeasible"),
        pytest.param("InPlaceOrRecreate", "Deferred", False, id="InPlaceOrRecreate gives a deferred one time"),
    ],
)
def test_a_resize_that_the_node_refuses(
    bed: Bed, namespace: str, tmp_path: Path, apply: str, reason: str, falls_back: bool
) -> None:
    install_crds(bed)
    bed.load(namespace, "web", cores=0.4)
    fate = {"resize": reason}
    bed.apply(deployment(namespace, "web", cpu="100m", annotations=fate), vertical_only(namespace, apply=apply))
    ready_pods(bed, namespace, 1)
    with Running(bed, namespace, tmp_path, *QUICK):
        if falls_back:
            eventually(lambda: milli(template_cpu(bed, namespace)) > 400, SIZED_WITHIN_S, "the template was patched")
            return
        said = lambda: conditions(bed, namespace)["ResizePending"]  # noqa: E731
        eventually(lambda: (said()["status"], said()["reason"]) == ("True", reason), SIZED_WITHIN_S)
        always(lambda: template_cpu(bed, namespace) == "100m", 5)


def test_recreate_patches_the_template_of_what_is_in_it(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    bed.load(namespace, "web", cores=0.4)
    bed.apply(deployment(namespace, "web", cpu="100m"), vertical_only(namespace, apply="Recreate"))
    ready_pods(bed, namespace, 1)
    with Running(bed, namespace, tmp_path, *QUICK):
        eventually(lambda: milli(template_cpu(bed, namespace)) > 400, SIZED_WITHIN_S)
        eventually(lambda: all(milli(cpu) > 400 for cpu in cpus(bed, namespace).values()), 30, "rolled out")


def hvpa(namespace: str, **spec: Any) -> dict[str, Any]:
    """HVPA weights, flat: first horizontally up to two replicas, then only vertically."""
    cpu = {"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 70}}
    return {
        "apiVersion": "autoscaling.k8s.io/v1alpha1",
        "kind": "Hvpa",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "scaleUpStabilizationWindow": "1s",
            "scaleDownStabilizationWindow": "1s",
            "minCpuChange": {"value": "10m", "percentage": 5},
            "minMemChange": {"value": "10M", "percentage": 5},
            "hpaTemplate": {"minReplicas": 1, "maxReplicas": 3, "metrics": [cpu]},
            "vpaTemplate": {
                "resourcePolicy": {"containerPolicies": [{"containerName": "*", "maxAllowed": {"cpu": "600m"}}]}
            },
            "weightBasedScalingIntervals": [
                {"vpaWeight": 0, "startReplicaCount": 1, "lastReplicaCount": 2},
                {"vpaWeight": 1, "startReplicaCount": 3, "lastReplicaCount": 3},
            ],
        }
        | spec,
    }


def test_hvpa_weights_walks_both_axes(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    bed.load(namespace, "web", cores=0.3)
    bed.apply(deployment(namespace, "web", cpu="200m"), hvpa(namespace))
    first = {one["metadata"]["uid"] for one in ready_pods(bed, namespace, 1)}
    with Running(bed, namespace, tmp_path, *QUICK):
        eventually(lambda: replicas(bed, namespace) == 3, SIZED_WITHIN_S, "first it scales out")
        before = set(cpus(bed, namespace))
        assert first <= before
        bed.load(namespace, "web", cores=1.2)
        eventually(
            lambda: all(milli(cpu) > 400 for cpu in cpus(bed, namespace).values()), SIZED_WITHIN_S, "then it grows"
        )
        assert set(cpus(bed, namespace)) == before, "in place"
        assert all(milli(cpu) <= 600 for cpu in cpus(bed, namespace).values()), "maxAllowed"
        assert replicas(bed, namespace) == 3
        status = bed.get("hvpa", "web", "-n", namespace)["status"]
        assert status["lastScaling"]["vpaStatus"]["containerResources"][0]["container"] == "app"


def buckets(namespace: str) -> dict[str, Any]:
    """HVPA buckets: one or two replicas up to 300m each, then up to four of 600m each."""
    made = hvpa(namespace)
    del made["spec"]["weightBasedScalingIntervals"]
    made["spec"]["hpaTemplate"]["maxReplicas"] = 4
    made["spec"]["buckets"] = [
        {
            "replicas": {"min": 1, "max": 2},
            "cpu": {"min": "100m", "max": "300m"},
            "memory": {"min": "64Mi", "max": "1Gi"},
        },
        {
            "replicas": {"min": 3, "max": 4},
            "cpu": {"min": "300m", "max": "600m"},
            "memory": {"min": "64Mi", "max": "1Gi"},
        },
    ]
    return made


def test_hvpa_buckets_climbs_its_buckets(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    bed.load(namespace, "web", cores=0.1)
    bed.apply(deployment(namespace, "web", cpu="150m"), buckets(namespace))
    ready_pods(bed, namespace, 1)
    with Running(bed, namespace, tmp_path, *QUICK):
        eventually(lambda: conditions(bed, namespace, kind="hvpa")["Ready"]["status"] == "True", 30)
        bed.load(namespace, "web", cores=1.6)
        eventually(lambda: replicas(bed, namespace) >= 3, SIZED_WITHIN_S, "the second bucket")
        eventually(
            lambda: all(milli(cpu) > 300 for cpu in cpus(bed, namespace).values()), SIZED_WITHIN_S, "each larger"
        )
        assert all(milli(cpu) <= 600 for cpu in cpus(bed, namespace).values())
        assert replicas(bed, namespace) <= 4


def test_an_oom_kill_grows_memory_at_once(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    bed.load(namespace, "web", cores=0.05, memory_bytes=100 * 2**20)
    made = deployment(namespace, "web", cpu="100m", memory="128Mi")
    bed.apply(made, vertical_only(namespace))
    pod = ready_pods(bed, namespace, 1)[0]["metadata"]["name"]
    with Running(bed, namespace, tmp_path, "--usage-every", "2s"):  # ten minutes of patience otherwise
        eventually(lambda: conditions(bed, namespace)["Ready"]["status"] == "True", 30)
        bed.kubectl("annotate", "pod", pod, "-n", namespace, "bed.trimtab.dev/fate=OOMKilled")
        eventually(lambda: memory_mib(bed, namespace, pod) > 128, SIZED_WITHIN_S, "more memory")
        assert replicas(bed, namespace) == 1


def memory_mib(bed: Bed, namespace: str, pod: str) -> float:
    found = bed.get("pod", pod, "-n", namespace)["spec"]["containers"][0]["resources"]["requests"]["memory"]
    return parse_quantity(found) / 2**20


def test_usage_seen_outlives_the_operator(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    bed.load(namespace, "web", cores=0.4)
    bed.apply(deployment(namespace, "web", cpu="100m"), vertical_only(namespace))
    ready_pods(bed, namespace, 1)
    patient = ("--usage-every", "2s", "--usage-checkpoint", "2s", "--grow-after", "40s", "--prometheus", "")
    saved = ("configmap", f"trimtab-usage.autoscaler.{namespace}.web", "-n", namespace)
    with Running(bed, namespace, tmp_path, *patient):
        first = eventually(lambda: json.loads(bed.get(*saved)["data"]["app"])["firstSampleStart"], SIZED_WITHIN_S)
        assert bed.get(*saved)["metadata"]["labels"]["trimtab.dev/object-namespace"] == namespace
    with Running(bed, namespace, tmp_path, *patient):
        eventually(lambda: all(milli(cpu) > 400 for cpu in cpus(bed, namespace).values()), SIZED_WITHIN_S)
        assert json.loads(bed.get(*saved)["data"]["app"])["firstSampleStart"] == first, "not a new history"


def used(namespace: str, pod: str, cores: float, times: NDArray[np.int64]) -> Iterator[Filled]:
    labels = f'{{namespace="{namespace}",pod="{pod}",container="app"}}'
    yield Filled(f"container_cpu_usage_seconds_total{labels}", times, cores * (times - times[0]).astype(float))
    yield Filled(f"container_memory_working_set_bytes{labels}", times, np.full(len(times), 300.0 * 2**20))


def test_usage_of_before_comes_from_prometheus_or_else_from_the_checkpoint(
    bed: Bed, namespace: str, tmp_path: Path
) -> None:
    """An hour of a pod that is gone, at a whole core, and an hour of the one that is here."""
    install_crds(bed)
    bed.load(namespace, "web", cores=0.4, memory_bytes=200 * 2**20)
    bed.apply(deployment(namespace, "web", cpu="100m"), vertical_only(namespace, apply="Never"))
    pod = ready_pods(bed, namespace, 1)[0]["metadata"]["name"]
    hour, gone = np.arange(int(time.time()) - 3600, int(time.time()), 15), pod.rpartition("-")[0] + "-gone1"
    fill(tmp_path, [*used(namespace, gone, 1.0, hour - 3600), *used(namespace, pod, 0.4, hour)])
    patient = ("--usage-every", "5s", "--usage-checkpoint", "2s", "--memory-window", "15m", "--grow-after", "30m")
    saved = ("configmap", f"trimtab-usage.autoscaler.{namespace}.web", "-n", namespace)
    advice = lambda: bed.get("autoscaler", "web", "-n", namespace)["status"]["sizes"][0]  # noqa: E731
    with serve(tmp_path) as (url, _):
        with Running(bed, namespace, tmp_path, *patient, "--prometheus", url):
            eventually(lambda: 1000 < milli(advice()["cpu"]) < 1300, 40, "what has not been seen live for a second")
            eventually(lambda: json.loads(bed.get(*saved)["data"]["app"])["totalSamplesCount"] > 1000, 20)
        before = advice()
        bed.kubectl("delete", *saved)
        bed.kubectl("patch", "autoscaler", "web", "-n", namespace, "--subresource=status", "--type=merge", "-p", BLANK)
        with Running(bed, namespace, tmp_path, *patient, "--prometheus", url):
            eventually(lambda: advice() == before, 40, "the same again without the checkpoint")
            eventually(lambda: bed.get(*saved)["data"]["app"], 20)
    bed.kubectl("patch", "autoscaler", "web", "-n", namespace, "--subresource=status", "--type=merge", "-p", BLANK)
    with Running(bed, namespace, tmp_path, *patient, "--prometheus", url) as running:
        eventually(lambda: advice() == before, 40, "and from the checkpoint without Prometheus")
        eventually(lambda: "usage before now cannot be read back" in running.log.read_text(), 20)


def blocked(bed: Bed, namespace: str, reason: str) -> str:
    """What the condition says, once it names this reason."""
    found = lambda: conditions(bed, namespace)["ResizeBlocked"]  # noqa: E731
    eventually(lambda: (found()["status"], found()["reason"]) == ("True", reason), SIZED_WITHIN_S, reason)
    message: str = found()["message"]
    return message


def sizes_written(bed: Bed, namespace: str) -> int:
    """How often somebody tried to resize a pod of this namespace, allowed or not."""
    paths = [
        (one["verb"], one["requestURI"]) for one in bed.audit() if f"/namespaces/{namespace}/" in one["requestURI"]
    ]
    return sum(1 for verb, path in paths if verb == "patch" and "/resize" in path)


def test_a_quota_in_the_way_is_named_and_not_run_into(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", "namespace": namespace}}
    bed.apply(quota | {"spec": {"hard": {"requests.cpu": "150m"}}})
    bed.load(namespace, "web", cores=0.4)
    bed.apply(deployment(namespace, "web", cpu="100m"), vertical_only(namespace))
    ready_pods(bed, namespace, 1)
    with Running(bed, namespace, tmp_path, *QUICK):
        said = blocked(bed, namespace, "ExceedsQuota")
        assert f"ResourceQuota {namespace}/team has 50m of requests.cpu left of 150m" in said
        assert set(cpus(bed, namespace).values()) == {"100m"} and sizes_written(bed, namespace) == 0
        assert conditions(bed, namespace)["AbleToScale"]["reason"] == "ExceedsQuota"
        memory = bed.get("autoscaler", "web", "-n", namespace)["status"]["memory"]
        assert memory["core"].get("resized_at") is None, "what was held starts no rest"
        assert "ExceedsQuota" in bed.kubectl("get", "events", "-n", namespace)
        bed.apply(quota | {"spec": {"hard": {"requests.cpu": "2"}}})
        eventually(lambda: all(milli(cpu) > 400 for cpu in cpus(bed, namespace).values()), 30, "room was made")
        eventually(lambda: conditions(bed, namespace)["ResizeBlocked"]["status"] == "False", 10)


def both_axes(namespace: str) -> dict[str, Any]:
    """Replicas by the queue, sizes by usage."""
    metric = {"name": "queue_length", "selector": {"matchLabels": {"app": "web"}}}
    queue = {"metric": metric, "target": {"type": "AverageValue", "averageValue": "10"}}
    return autoscaler(namespace, metrics=[{"type": "External", "external": queue}], vertical={})


def test_a_limit_range_holds_the_size_and_not_the_replicas(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    bounds = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "bounds", "namespace": namespace}}
    bed.apply(bounds | {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "300m"}}]}})
    bed.load(namespace, "web", cores=0.8, queue=10)
    made = deployment(namespace, "web", replicas=2, cpu="100m")
    made["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "250m"}
    bed.apply(made, both_axes(namespace))
    ready_pods(bed, namespace, 2)
    with Running(bed, namespace, tmp_path, *QUICK):
        said = blocked(bed, namespace, "ExceedsLimitRange")
        assert f"LimitRange {namespace}/bounds gives the pod at most 300m of cpu" in said
        assert set(cpus(bed, namespace).values()) == {"100m"}
        bed.load(namespace, "web", cores=0.8, queue=40)
        eventually(lambda: replicas(bed, namespace) == 4, 40, "the horizontal axis goes on")
        assert set(cpus(bed, namespace).values()) == {"100m"}


@pytest.fixture
def small_node(bed: Bed, namespace: str) -> Iterator[str]:
    """A node of half a core for this test alone, on which a DaemonSet takes 200m."""
    name, only = f"small-{namespace}", {"key": "only", "value": namespace, "effect": "NoSchedule"}
    made = node(name, bed.site.ports["load-tls"])
    made["metadata"]["labels"]["only"] = namespace
    made["spec"] = {"taints": [only]}
    made["status"]["allocatable"] = made["status"]["capacity"] = {"cpu": "500m", "memory": "4Gi", "pods": "10"}
    agent = deployment(namespace, "agent", cpu="200m")
    agent["kind"] = "DaemonSet"
    del agent["spec"]["replicas"]
    agent["spec"]["template"]["spec"] |= on_node(namespace)
    bed.apply(made, agent)
    yield name
    bed.kubectl("delete", "node", name)


def on_node(namespace: str) -> dict[str, Any]:
    only = {"key": "only", "operator": "Equal", "value": namespace, "effect": "NoSchedule"}
    return {"nodeSelector": {"only": namespace}, "tolerations": [only]}


def test_the_largest_node_holds_what_no_node_could_run(
    bed: Bed, namespace: str, tmp_path: Path, small_node: str
) -> None:
    install_crds(bed)
    bed.load(namespace, "web", cores=0.4)
    made = deployment(namespace, "web", cpu="100m")
    made["spec"]["template"]["spec"] |= on_node(namespace)
    bed.apply(made, vertical_only(namespace))
    ready_pods(bed, namespace, 2)
    with Running(bed, namespace, tmp_path, *QUICK):
        said = blocked(bed, namespace, "ExceedsNode")
        assert f"Node {small_node}, the largest it may run on, has 300m for it beside its DaemonSets" in said
        assert sizes_written(bed, namespace) == 0


def test_a_budget_that_forbids_disruption_holds_the_template(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    budget: dict[str, Any] = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    budget |= {"metadata": {"name": "steady", "namespace": namespace}}
    budget |= {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}
    bed.load(namespace, "web", cores=0.4)
    bed.apply(deployment(namespace, "web", cpu="100m"), budget, vertical_only(namespace, apply="Recreate"))
    ready_pods(bed, namespace, 1)
    with Running(bed, namespace, tmp_path, *QUICK):
        said = blocked(bed, namespace, "DisruptionForbidden")
        assert f"PodDisruptionBudget {namespace}/steady allows no disruption of Deployment {namespace}/web" in said
        always(lambda: template_cpu(bed, namespace) == "100m", 5)
        bed.kubectl("delete", "poddisruptionbudget", "steady", "-n", namespace)
        eventually(lambda: milli(template_cpu(bed, namespace)) > 400, 30, "then it rolls out")


def vpa(namespace: str, mode: str) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    made: dict[str, Any] = {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler"}
    made |= {"metadata": {"name": "theirs", "namespace": namespace}}
    return made | {"spec": {"targetRef": target, "updatePolicy": {"updateMode": mode}}}


def test_a_vpa_holds_the_sizes_until_it_is_off_and_never_the_replicas(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    install_foreign_kinds(bed)
    bed.load(namespace, "web", cores=1.2, queue=10)
    bed.apply(deployment(namespace, "web", cpu="100m"), vpa(namespace, "Recreate"), both_axes(namespace))
    ready_pods(bed, namespace, 1)
    with Running(bed, namespace, tmp_path, *QUICK):
        eventually(lambda: conditions(bed, namespace)["Conflict"]["status"] == "True", 30)
        said = conditions(bed, namespace)["Conflict"]["message"]
        assert f"VerticalPodAutoscaler {namespace}/theirs moves the requests" in said and "kubectl patch vpa" in said
        bed.load(namespace, "web", cores=1.2, queue=30)
        eventually(lambda: replicas(bed, namespace) == 3, 40, "the horizontal axis goes on")
        wants = lambda: conditions(bed, namespace)["AbleToScale"]["reason"] == "Conflict"  # noqa: E731
        eventually(wants, SIZED_WITHIN_S, "enough was seen to want other sizes")
        always(lambda: set(cpus(bed, namespace).values()) == {"100m"}, 5)
        bed.apply(vpa(namespace, "Off"))
        eventually(lambda: all(milli(cpu) > 300 for cpu in cpus(bed, namespace).values()), 30, "sized when it is off")
        assert conditions(bed, namespace)["Conflict"]["status"] == "False"


def test_never_is_only_advice(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    bed.load(namespace, "web", cores=0.4)
    bed.apply(deployment(namespace, "web", cpu="100m"), vertical_only(namespace, apply="Never"))
    ready_pods(bed, namespace, 1)
    with Running(bed, namespace, tmp_path, *QUICK) as running:
        advice = lambda: bed.get("autoscaler", "web", "-n", namespace)["status"]["sizes"][0]["cpu"]  # noqa: E731
        eventually(lambda: milli(advice()) > 400, SIZED_WITHIN_S)
        always(lambda: set(cpus(bed, namespace).values()) == {"100m"}, 5)
        assert template_cpu(bed, namespace) == "100m"
        assert 'outcome="written"' not in running.get("/metrics")
