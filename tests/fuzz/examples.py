"""Right ones of everything that is read: they are bent, and a fuzzer begins with them."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from trimtab.acts import Act, AxisOutcome, Fate
from trimtab.core.decide import decide
from trimtab.core.demand import checkpoint as demand_checkpoint
from trimtab.core.demand.log import DemandLog
from trimtab.core.model import Memory, Observation, Pod, PodSamples, TotalSample
from trimtab.core.usage import histogram_checkpoint
from trimtab.core.usage.histograms import ContainerSample, UsageHistograms
from trimtab.journal import Journal
from trimtab.kinds import KINDS, Scaler, read, yaml
from trimtab.live.look.memory import ObjectMemory, Quarrel, ReplicasWritten, written
from trimtab.policy import Policy, Signal, Size, Total, TotalAverage
from trimtab.ticks import ObjectName

NOW = 1_750_000_500.0
EXAMPLES = Path(__file__).parents[2] / "examples"


@cache
def manifests() -> list[dict[str, Any]]:
    """Every object of ours in examples/."""
    found = [document.value for file in sorted(EXAMPLES.rglob("*.yaml")) for document in yaml.load(str(file))]
    return [each for each in found if isinstance(each, dict) and (each.get("apiVersion"), each.get("kind")) in KINDS]


@cache
def policy() -> Policy:
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    found = read(
        {
            "apiVersion": "trimtab.dev/v1alpha1",
            "kind": "Autoscaler",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"scaleTargetRef": ref, "minReplicas": 2, "maxReplicas": 20, "metrics": [cpu]},
        }
    )
    assert isinstance(found, Scaler)
    return found.to_policy(NOW)


def observation(signals: tuple[Signal, ...], replicas: int = 4) -> Observation:
    pods = tuple(
        Pod(name=f"p{number}", requests=Size(cpu_cores=1.0, memory_bytes=2.0**30), created_at=0.0)
        for number in range(replicas)
    )
    by_pod, total = PodSamples(values={pod.name: 0.7 for pod in pods}, at=NOW), TotalSample(value=2.8, at=NOW)
    samples = tuple(total if isinstance(signal, Total | TotalAverage) else by_pod for signal in signals)
    return Observation(at=NOW, spec_replicas=replicas, status_replicas=replicas, pods=pods, samples=samples)


@cache
def act() -> Act:
    seen = observation(policy().signals)
    name, outcome = ObjectName("Autoscaler", "shop", "web"), (AxisOutcome(axis="replicas", fate=Fate.WRITTEN),)
    return Act(name, policy(), seen, Memory(), decide(policy(), seen, Memory()), outcome)


@cache
def journal() -> bytes:
    """The file of one decision."""
    with tempfile.TemporaryDirectory() as folder:
        kept = Journal(Path(folder, "journal.db"))
        kept.write([act()])
        kept.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        kept.close()
        return Path(folder, "journal.db").read_bytes()


@cache
def status() -> dict[str, Any]:
    core = Memory(wanted=((NOW - 60, 7),), grown=((NOW - 30, 3),), shrunk=((NOW - 90, 1),), up_at=NOW - 30)
    core = msgspec.structs.replace(core, down_at=NOW - 90, failing_since=NOW - 9, bridge=1.2, bridge_moves=(NOW,))
    quarrel = {"replicas": Quarrel(by="argo", generation=2, moments=(NOW - 50, NOW - 20), until=NOW + 600)}
    wrote = ReplicasWritten(was=4, replicas=7, at=NOW - 30)
    remembered = written(ObjectMemory(core=core, wrote=wrote, quarrels=quarrel))
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2025-06-15T15:00:00Z"}
    return {"memory": remembered, "conditions": [ready], "lastScaleTime": "2025-06-15T15:10:00Z", "desiredReplicas": 7}


@cache
def usage_checkpoint() -> dict[str, Any]:
    book = UsageHistograms()
    book.observe([ContainerSample("uid", "pod", "main", NOW - 60 * step, 0.5, 1e8) for step in range(30, 0, -1)])
    return histogram_checkpoint.save(book, "uid", "main", NOW)


@cache
def demand() -> dict[str, Any]:
    log = DemandLog()
    for step in range(200, 0, -1):
        log.note(NOW - 15 * step, "x", 3.0 + step % 7)
    found: dict[str, Any] = msgspec.json.decode(demand_checkpoint.save(log, {"cpu": "x"}, NOW))
    return found


@cache
def pod() -> dict[str, Any]:
    at, amounts = "2025-06-15T15:00:00Z", {"cpu": "250m", "memory": "1Gi"}
    resources = {"requests": amounts, "limits": amounts}
    policy = [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]
    container = {"name": "app", "image": "web:1", "resources": resources, "resizePolicy": policy}
    killed = {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": at}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "1", "controller": True}
    managers = [{"manager": "kubelet"}, {"manager": "trimtab-bridge-1.5"}]
    return {
        "metadata": {"name": "a", "namespace": "shop", "ownerReferences": [owner], "managedFields": managers}
        | {"creationTimestamp": at, "deletionTimestamp": at},
        "spec": {"containers": [container], "initContainers": [container | {"restartPolicy": "Always"}]}
        | {"resources": resources},
        "status": {
            "phase": "Running",
            "startTime": at,
            "conditions": [
                {"type": name, "status": "True", "reason": "Deferred", "lastTransitionTime": at}
                for name in ("Ready", "PodResizePending")
            ],
            "containerStatuses": [{"name": "app", "lastState": killed, "resources": resources}],
        },
    }


@cache
def predictive_hpa() -> dict[str, Any]:
    floor = {"trimtab.dev/min-replicas": "2", "trimtab.dev/floor": "6", "trimtab.dev/floor-until": "1750000600"}
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop", "annotations": {"predictive": "true"} | floor},
        "spec": {"scaleTargetRef": ref, "minReplicas": 6, "maxReplicas": 20, "metrics": [cpu]},
    }


VECTOR = (
    b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":"b"},"value":[1750000500,"1.5"]}]}}'
)
SCALAR = b'{"status":"success","data":{"resultType":"scalar","result":[1750000500,"1"]}}'
BEGIN: dict[str, list[bytes]] = {
    "quantities": [b"250m", b"1.5Gi", b"2E", b"1e3", b"0x1", b"+.5", b"12e-3Ki"],
    "durations": [b"1h30m", b"500ms", b"2us", b"1.5h", b"90"],
    "crons": [b"0 8 * * 1-5|0 18 * * 1-5", b"@daily|15 10 ? * FRI-MON/2", b"*/7 2-5 L * *|0 0 29 2 *"],
    "yamls": [file.read_bytes() for file in sorted(EXAMPLES.rglob("*.yaml"))]
    + [b"a: &x [*x]\n<<: {b: !!int 1}\n--- |\n x"],
    "adopted": [b"maxReplicas: 5\nminReplicas: 2\nmetrics: []\n", b"{a: &x 1, b: *x}"],
    "prometheus_json": [VECTOR, SCALAR, b'{"status":"error","errorType":"bad_data","error":"x"}'],
    "range_rows": [b'[[1750000500,"1"],[1750000515,"NaN"],[1750000530,"+Inf"]]'],
}
