"""The fleet: Deployments over many namespaces with an Autoscaler each, most by CPU, some by queries or sized."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.live.running import autoscaler

HOME = "trimtab-system"  # of the operator's lease and account
CORES, QUEUE = 0.125, 10.0  # per pod: exactly its target of 50 % of 0.25 cores, and of 10 messages
KINDS = ("cpu", "cpu", "cpu", "cpu", "cpu", "cpu", "query", "query", "forecast", "vertical")  # of every ten


class Member(NamedTuple):
    namespace: str
    name: str
    kind: str

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name


class Fleet(NamedTuple):
    """`mixed` or all by CPU."""

    members: tuple[Member, ...]
    pods_each: int

    @classmethod
    def of(cls, objects: int, namespaces: int, pods_each: int, mixed: bool) -> Fleet:
        kinds = KINDS if mixed else ("cpu",)
        numbers = range(objects)
        members = (
            Member(f"fleet-{number % namespaces:03}", f"web-{number:05}", kinds[number // namespaces % len(kinds)])
            for number in numbers
        )
        return cls(tuple(members), pods_each)

    @property
    def namespaces(self) -> list[str]:
        return sorted({member.namespace for member in self.members})

    @property
    def pods(self) -> int:
        return self.pods_each * len(self.members)

    def by_cpu(self, every: int) -> list[Member]:
        """One of so many, of those that follow CPU alone."""
        return [member for member in self.members if member.kind == "cpu"][::every]


def scaler(member: Member) -> dict[str, Any]:
    if member.kind == "query":
        query = f'sum(queue_length{{namespace="{member.namespace}",app="{member.name}"}})'
        target = {"type": "AverageValue", "averageValue": f"{QUEUE:g}"}
        metrics = [{"type": "Prometheus", "prometheus": {"query": query, "target": target}}]
        return autoscaler(*member.key, metrics=metrics)
    if member.kind == "forecast":
        return autoscaler(*member.key, forecast={"model": "seasonal"})
    return autoscaler(*member.key, **({"vertical": {"apply": "Never"}} if member.kind == "vertical" else {}))


def create(bed: Bed, objects: Sequence[dict[str, Any]]) -> None:
    """Two at a time, in lists of 100: kubectl limits its own rate."""
    lists = [objects[first : first + 100] for first in range(0, len(objects), 100)]
    texts = [json.dumps({"apiVersion": "v1", "kind": "List", "items": some}) for some in lists]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda text: bed.kubectl("create", "--validate=false", "-f", "-", input=text), texts))


def controller_manager(bed: Bed, *flags: str) -> int:
    """Started anew with these flags; its process id."""
    command = [word for word in bed.site.command("controller-manager") if "sync-period" not in word]
    bed.stop_part("controller-manager")
    bed.processes.start("controller-manager", [*command, *flags])
    bed.await_ready("controller-manager")
    pid = bed.processes.pid("controller-manager")
    assert pid is not None
    return pid


def build(bed: Bed, fleet: Fleet) -> None:
    """All pods ready and measured."""
    controller_manager(bed, "--kube-api-qps=500", "--kube-api-burst=1000", "--concurrent-deployment-syncs=20")
    spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in fleet.namespaces]
    create(bed, [*spaces, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}])
    load = json.dumps({"cores": CORES * fleet.pods_each, "queue": QUEUE * fleet.pods_each})
    annotations = {"load": load}
    create(bed, [deployment(*each.key, replicas=fleet.pods_each, annotations=annotations) for each in fleet.members])
    limit_s = 600 + fleet.pods / 10
    eventually(lambda: ready(bed) == fleet.pods, limit_s, f"{fleet.pods} pods ready", every_s=3)
    eventually(lambda: measured(bed) == fleet.pods, limit_s, f"{fleet.pods} pods measured", every_s=3)


def ready(bed: Bed) -> int:
    template = "{{range .items}}{{with .status.readyReplicas}}{{.}} {{end}}{{end}}"
    return sum(map(int, bed.kubectl("get", "deploy", "-A", "-o", f"go-template={template}").split()))


def measured(bed: Bed) -> int:
    return bed.kubectl("get", "--raw", "/apis/metrics.k8s.io/v1beta1/pods").count('"window"')


def in_namespaces(bed: Bed, members: Sequence[Member], *words: str) -> None:
    """kubectl WORDS deployment/NAME ..., once per namespace."""
    for namespace in sorted({member.namespace for member in members}):
        names = [f"deployment/{member.name}" for member in members if member.namespace == namespace]
        bed.kubectl(*words, *names, "-n", namespace)


def set_load(bed: Bed, members: Sequence[Member], cores: float) -> None:
    """Of all pods of each together."""
    for member in members:
        bed.load(*member.key, cores=cores)
