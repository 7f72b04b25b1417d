"""The cluster's own controllers and kubelets: replicas become pods, pods start, serve the load, are resized and go.

The pods, how they share the load and what is measured of them are the simulator's own (`trimtab.sim`), one step
after the other; here they also are objects of the API server.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from tests.virtual.apiserver import ApiServer
from tests.virtual.fields import Entry, Object
from trimtab.core.model import Missing, PodSamples, Samples, TotalSample
from trimtab.policy import Metric, MetricKind, PodAverage, Signal, TotalAverage, Utilization
from trimtab.quantity import format_cpu, parse_quantity
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.grid import STEP_S
from trimtab.sim.meter import NO_TROUBLE, Meter, Trouble
from trimtab.sim.score import serve
from trimtab.sim.simulated_pods import Pods, SimPod
from trimtab.wire.from_kubernetes import rfc3339
from trimtab.wire.resources import DEPLOYMENTS, HPAS, PODS, REPLICA_SETS, Resource

CONTROLLER, KUBELET, DEPLOYER = Entry("kube-controller-manager"), Entry("kubelet"), Entry("kubectl")
NEVER = 1 << 50
NO_NODE = "0/3 nodes are available: 1 node(s) had a taint, 2 Insufficient cpu. preemption: not helpful."
CPU = Utilization(metric=Metric(kind=MetricKind.RESOURCE, name="cpu"), percent=100)
MEMORY = Utilization(metric=Metric(kind=MetricKind.RESOURCE, name="memory"), percent=100)
Load = Callable[[float], float]  # cores (or bytes) wanted of all pods together, by seconds from the start


@dataclass(frozen=True)
class WorkloadSettings:
    """What a workload's pods are like, and what is asked of them."""

    load: Load = lambda seconds: 0.0
    memory: Load | None = None
    startup_s: float = 60.0
    burst: float = 2.0  # limit over request
    metric_delay_s: float = 0.0  # the newest scrape is there at a tick, so that tests can name the tick that acts
    resizable: bool = True


class Workload:
    """One Deployment in being: its simulated pods, and what is measured of them."""

    def __init__(self, of: Workloads, found: Object, settings: WorkloadSettings) -> None:
        self.server, self.settings, self.start, self.step_s = of.server, settings, of.start, of.step_s
        self.namespace, self.name = found["metadata"]["namespace"], found["metadata"]["name"]
        cores, memory_bytes = _requests(found)
        self.spec = ClusterSpec(
            startup_s=settings.startup_s,
            pod_capacity=cores,
            pod_cores=cores,
            burst=settings.burst,
            metric_delay_s=settings.metric_delay_s,
            pod_memory_bytes=memory_bytes,
            base_memory_bytes=memory_bytes / 4,
        )
        self.meter = Meter(self.spec, self.start + of.step * self.step_s, self.step_s)
        self.step = self.first_step = of.step
        self.pods = Pods(0, cores, memory_bytes, lambda: ceil(self.settings.startup_s / self.step_s))
        self.backlog = 0.0
        self._older_steps = 0  # than the moment at which they are made
        self.template: Object = {}
        self._set_name = ""  # the ReplicaSet of the present template
        self._of_set: dict[str, str] = {}  # pod -> its ReplicaSet
        self._nodes_full = self._quota_used_up = False
        self._node_at: dict[str, int | None] = {}  # pods that had to wait for a node, and the step that gave it

    def begin(self, found: Object) -> None:
        """With pods that have been there before: as old as they are when they become ready."""
        usual, self.settings = self.settings, replace(self.settings, startup_s=0.0)
        self._older_steps = ceil(usual.startup_s / self.step_s)
        self.deploy(found)
        self.settings, self._older_steps = usual, 0
        self.open_step(self.step)

    # --- what the controllers do ---

    def deploy(self, found: Object) -> None:
        """Bring pods to what the Deployment says now."""
        template = found["spec"]["template"]
        if template != self.template:
            self._new_template(found, template)
        count = found["spec"].get("replicas", 1)
        if self._quota_used_up:
            count = min(count, len(self.pods.all))
        if count != len(self.pods.all):
            before = {pod.name for pod in self.pods.all}
            self.pods.scale(count, self._present_step())
            for pod in self.pods.all:
                if pod.name not in before:
                    pod.created -= self._older_steps
                    if self._nodes_full:
                        pod.ready_at, self._node_at[pod.name] = NEVER, None
                    self._of_set[pod.name] = self._set_name
                    self._show(pod)
            for name in before - {pod.name for pod in self.pods.all}:
                self._remove(name)
        self.report()

    def _new_template(self, found: Object, template: Object) -> None:
        """A rollout: new pods in a new ReplicaSet take the old ones' places at once, and start."""
        self.template = template
        self.pods.cores, self.pods.memory_bytes = _requests(found)
        self._set_name = f"{self.name}-{found['metadata']['generation']:05d}"
        owner = _owner("apps/v1", "Deployment", found)
        meta = {"name": self._set_name, "namespace": self.namespace, "ownerReferences": [owner]}
        spec = {"replicas": found["spec"].get("replicas", 1), "template": template}
        self.server.store.write(REPLICA_SETS, {"metadata": meta, "spec": spec}, CONTROLLER)
        old = [pod.name for pod in self.pods.all]
        self.pods.lose(1.0, self._present_step())
        for pod in self.pods.all:
            self._of_set[pod.name] = self._set_name
            self._show(pod)
        for name in old:
            self._remove(name)

    def make_room(self, full: bool, quota: bool) -> None:
        """The scheduler finds no node any more, or a quota is used up; or there is room again."""
        if quota:
            self._quota_used_up = full
            found = self.server.store.get(DEPLOYMENTS, self.namespace, self.name)
            assert found is not None
            self.deploy(found)
            return
        self._nodes_full = full
        waiting = {name for name, step in self._node_at.items() if step is None}
        for pod in self.pods.all if not full else ():
            if pod.name in waiting:
                step = self._node_at[pod.name] = self._present_step()
                pod.ready_at = step + ceil(self.settings.startup_s / self.step_s)
                self._show(pod)
        for pod in self.pods.all[:1]:
            self.pods.resize(pod, pod.cores, pod.memory_bytes)  # counts them again

    def _present_step(self) -> int:
        """The step that begins now, at its very beginning too: what is asked for at a tick is there from then on."""
        return int((self.server.now() - self.start) / self.step_s + 1e-6)

    def _remove(self, name: str) -> None:
        self._of_set.pop(name, None)
        self.server.store.delete(PODS, self.namespace, self.full(name))

    def full(self, name: str) -> str:
        return f"{self.name}-{name}"

    def report(self) -> None:
        """The Deployment's status."""
        found = self.server.store.get(DEPLOYMENTS, self.namespace, self.name)
        assert found is not None
        status = {
            "replicas": len(self.pods.all),
            "updatedReplicas": len(self.pods.all),
            "readyReplicas": self.pods.ready,
            "observedGeneration": found["metadata"]["generation"],
        }
        if self._quota_used_up:
            refused = f'pods "{self.name}-x" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=9'
            failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": refused}
            status["conditions"] = [failure]
        entry = CONTROLLER._replace(subresource="status")
        self.server.store.write(DEPLOYMENTS, found | {"status": status}, entry)

    def _show(self, pod: SimPod) -> None:
        """The pod as an object."""
        owner_set = self.server.store.get(REPLICA_SETS, self.namespace, self._of_set[pod.name])
        assert owner_set is not None
        name = self.full(pod.name)
        known = self.server.store.get(PODS, self.namespace, name) or {}
        created, started = (rfc3339(self.start + step * self.step_s) for step in (pod.created, pod.restarted))
        changed = rfc3339(self.start + (pod.ready_at if pod.ready else pod.restarted) * self.step_s)
        meta = {"name": name, "namespace": self.namespace, "creationTimestamp": created}
        ready = {"type": "Ready", "status": "True" if pod.ready else "False", "lastTransitionTime": changed}
        running: Object = {"phase": "Running", "startTime": started, "conditions": [ready]}
        if pod.name in self._node_at:
            at = self._node_at[pod.name]
            given = rfc3339(self.start + (pod.created if at is None else at) * self.step_s)
            scheduled = {"type": "PodScheduled", "status": "False" if at is None else "True"}
            scheduled["lastTransitionTime"] = given
            if at is None:
                scheduled |= {"reason": "Unschedulable", "message": NO_NODE}
                running = {"phase": "Pending"}
            running["conditions"] = [ready, scheduled]
        self.server.store.write(
            PODS,
            {
                "metadata": meta
                | {"labels": {"app": self.name}, "ownerReferences": [_owner("apps/v1", "ReplicaSet", owner_set)]},
                "spec": known.get("spec") or {"nodeName": "node-1", **self.template["spec"]},
                "status": running,
            },
            KUBELET,
        )

    def resized(self, found: Object) -> None:
        """The kubelet brings a pod to its new size."""
        name = found["metadata"]["name"].removeprefix(f"{self.name}-")
        pod = next((pod for pod in self.pods.all if pod.name == name), None)
        if pod is not None and self.settings.resizable:
            cores, memory_bytes = _sizes(found["spec"])
            if (cores, memory_bytes) != (pod.cores, pod.memory_bytes):
                self.pods.resize(pod, cores, memory_bytes)

    # --- what time does ---

    def close_step(self) -> None:
        """What was served in the step that ends now: as `trimtab.sim.cluster` counts it."""
        spec, pods = self.spec, self.pods
        seconds = self.step * self.step_s
        load = self.settings.load(seconds)
        arriving = load / spec.pod_capacity
        capacity = pods.ready_cores * spec.ceiling_share / spec.pod_cores
        served = min(arriving + self.backlog, capacity)
        self.backlog, _ = serve(arriving, self.backlog, capacity, capacity)
        cores = served * spec.pod_cores
        share = cores / pods.ready_cores if pods.ready_cores else 0.0
        kept = self.settings.memory(seconds) / max(1, len(pods.all)) if self.settings.memory else 0.0
        size = pods.ready_cores / max(1, pods.ready)
        self.meter.record(load, share, cores, spec.base_memory_bytes + kept, size)

    def open_step(self, step: int) -> None:
        self.step = step
        waiting = [pod for pod in self.pods.all if not pod.ready]
        self.pods.tick(step)
        became = [pod for pod in waiting if pod.ready]
        for pod in became:
            self._show(pod)
        if became:
            self.report()

    def sample(self, signal: Signal, trouble: Trouble = NO_TROUBLE) -> Samples | Missing:
        return self.meter.sample(signal, self.pods, trouble)

    def total(self, trouble: Trouble = NO_TROUBLE) -> TotalSample | Missing:
        """The whole load, as an external metric or a query would tell it."""
        found = self.sample(TotalAverage(metric=Metric(kind=MetricKind.EXTERNAL, name="load"), target=1.0), trouble)
        assert isinstance(found, TotalSample | Missing)
        return found

    def by_pod(self, trouble: Trouble = NO_TROUBLE) -> PodSamples | Missing:
        found = self.sample(PodAverage(metric=Metric(kind=MetricKind.PODS, name="load"), target=1.0), trouble)
        assert isinstance(found, PodSamples | Missing)
        return found


class Workloads:
    """Every Deployment of the server, followed as its controllers would."""

    def __init__(self, server: ApiServer, start: float, step_s: float = STEP_S) -> None:
        self.server, self.start, self.step_s, self.step = server, start, step_s, 0
        self.all: dict[str, Workload] = {}
        self.settings: dict[str, WorkloadSettings] = {}
        server.store.listeners.append(self._happened)

    def set(self, name: str, **changes: Any) -> None:
        self.settings[name] = replace(self.settings.get(name, WorkloadSettings()), **changes)
        if name in self.all:
            self.all[name].settings = self.settings[name]

    def _happened(self, resource: Resource, kind: str, after: Object, before: Object) -> None:
        if resource is DEPLOYMENTS:
            self._deployed(kind, after, before)
        elif resource is PODS and kind == "MODIFIED" and after["spec"] is not before["spec"]:
            owner = next((each for each in self.all.values() if _is_pod_of(after, each)), None)
            if owner is not None:
                owner.resized(after)
        elif resource is HPAS and kind != "DELETED":
            self._floor(after)

    def _deployed(self, kind: str, after: Object, before: Object) -> None:
        name = f"{after['metadata']['namespace']}/{after['metadata']['name']}"
        if kind == "DELETED":
            self._gone(name)
        elif name not in self.all:
            settings = self.settings.setdefault(name, WorkloadSettings())
            self.all[name] = Workload(self, after, settings)
            self.all[name].begin(after)
        elif after["spec"] is not before.get("spec"):
            self.all[name].deploy(after)

    def _gone(self, name: str) -> None:
        workload = self.all.pop(name)
        for pod in workload.pods.all:
            self.server.store.delete(PODS, workload.namespace, workload.full(pod.name))
        replica_sets = self.server.store.of(REPLICA_SETS).items
        for namespace, each in [key for key in replica_sets if key[0] == workload.namespace]:
            if each.rpartition("-")[0] == workload.name:
                self.server.store.delete(REPLICA_SETS, namespace, each)

    def _floor(self, hpa: Object) -> None:
        """The built-in HPA never has fewer pods than its minimum; more than that is not simulated."""
        ref, namespace = hpa["spec"]["scaleTargetRef"], hpa["metadata"]["namespace"]
        found = self.server.store.get(DEPLOYMENTS, namespace, ref["name"])
        least = hpa["spec"].get("minReplicas", 1)
        if found is not None and found["spec"].get("replicas", 1) < least:
            entry = CONTROLLER._replace(subresource="scale")
            self.server.store.write(DEPLOYMENTS, found | {"spec": found["spec"] | {"replicas": least}}, entry)

    def close_step(self) -> None:
        for workload in self.all.values():
            workload.close_step()

    def open_step(self) -> None:
        self.step += 1
        for workload in list(self.all.values()):
            workload.open_step(self.step)


def _is_pod_of(pod: Object, workload: Workload) -> bool:
    meta = pod["metadata"]
    return meta["namespace"] == workload.namespace and meta.get("labels", {}).get("app") == workload.name


def _owner(api_version: str, kind: str, found: Object) -> Object:
    meta = found["metadata"]
    return {"apiVersion": api_version, "kind": kind, "name": meta["name"], "uid": meta["uid"], "controller": True}


def _requests(found: Object) -> tuple[float, float]:
    return _sizes(found["spec"]["template"]["spec"])


def _sizes(spec: Object) -> tuple[float, float]:
    """Cores and bytes that a pod asks for; one core and a gibibyte where it asks for none."""
    requests = [(each.get("resources") or {}).get("requests") or {} for each in spec["containers"]]
    cores = sum(parse_quantity(each.get("cpu", 0)) for each in requests)
    memory_bytes = sum(parse_quantity(each.get("memory", 0)) for each in requests)
    return cores or 1.0, memory_bytes or 2.0**30


def deployment(
    name: str, replicas: int | None = 2, cpu: str = "1", memory: str = "1Gi", image: str = "web:1", limits: bool = False
) -> Object:
    """A Deployment of one container; `replicas` None: its manifest does not say."""
    namespace, _, short = name.partition("/")
    size = {"cpu": cpu, "memory": memory}
    resources = {"requests": size} | ({"limits": size} if limits else {})
    container = {"name": "main", "image": image, "resources": resources}
    template = {"metadata": {"labels": {"app": short}}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": {"app": short}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": short, "namespace": namespace},
        "spec": spec | ({} if replicas is None else {"replicas": replicas}),
    }


__all__ = ["Load", "Workload", "Workloads", "WorkloadSettings", "deployment", "format_cpu"]
