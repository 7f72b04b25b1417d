"""Small factories of API objects, for tests without a cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from trimtab.acts import Outcome
from trimtab.core.decide import decide
from trimtab.core.model import Observation
from trimtab.live.look.cluster import ScaleTarget
from trimtab.live.look.memory import ObjectMemory
from trimtab.live.look.subject import Compiler, Subject
from trimtab.live.object_tick import ObjectTick
from trimtab.wire.objects import ContainerUsage, Custom, PodMetrics, Usage
from trimtab.wire.resources import DEPLOYMENTS, HPAS, Resource

AUTOSCALERS = Resource("trimtab.dev", "v1alpha1", "autoscalers", "Autoscaler")
AT = 1_750_000_000.0


def spec(name: str = "web", **more: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 10} | more


def custom(name: str = "web", created: str = "2026-01-01T00:00:00Z", **more: Any) -> Custom:
    meta = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "generation": 1, "creationTimestamp": created}
    body = {"metadata": meta | more.pop("metadata", {}), "spec": more.pop("spec", spec()), "status": more}
    return msgspec.convert(body, Custom)


def subject(found: Custom, resource: Resource = AUTOSCALERS, compiler: Compiler | None = None) -> Subject:
    return (compiler or Compiler()).subject(resource, found, True, AT)


def object_tick(
    about: Subject, seen: Observation, memory: ObjectMemory | None = None, outcome: Outcome = (), **more: Any
) -> ObjectTick:
    """Decided by the core, with whatever else is given."""
    known = memory or ObjectMemory()
    target = ScaleTarget(DEPLOYMENTS, "shop", "web", "d", "7", seen.spec_replicas, seen.status_replicas)
    decision = decide(about.policy, seen, known.core)
    return ObjectTick(about, target, {}, known, known, seen, decision, outcome)._replace(**more)


def pod_metrics(cores: float, size: float, at: float) -> PodMetrics:
    """Of one container named app."""
    usage = Usage(cpu=f"{round(cores * 1e9)}n", memory=f"{size:.0f}")
    containers = (ContainerUsage(name="app", usage=usage),)
    return PodMetrics(timestamp=datetime.fromtimestamp(at, UTC), window="15s", containers=containers)


def hpa(minimum: int = 1, **annotations: str) -> Custom:
    names = {key.replace("_", "-"): value for key, value in annotations.items()}
    notes = {f"trimtab.dev/{key}" if key != "predictive" else key: value for key, value in names.items()}
    return custom(spec=spec(minReplicas=minimum), metadata={"annotations": notes, "resourceVersion": "7"})


__all__ = ["AT", "AUTOSCALERS", "HPAS", "custom", "hpa", "object_tick", "pod_metrics", "spec", "subject"]
