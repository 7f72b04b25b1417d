"""scalers: which of our own kinds scales a workload already; an HPA beside one would fight with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any, NamedTuple

from trimtab.advisor.targets import AdvisedTarget
from trimtab.errors import Refused
from trimtab.kinds.crd import CRDS
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Custom
from trimtab.wire.resources import Resource

SCALING = ("Autoscaler", "EffectiveHorizontalPodAutoscaler", "Hvpa")
OURS = tuple(Resource(crd.group, crd.version, crd.plural, crd.kind) for crd in CRDS if crd.kind in SCALING)


class OwnScaler(NamedTuple):
    """An object of ours and what it says it scales."""

    kind: str
    namespace: str
    name: str
    spec: Mapping[str, Any]

    @property
    def only_watches(self) -> bool:
        return self.spec.get("mode") == "Shadow" or self.spec.get("scaleStrategy") == "Preview"

    def scales(self, target: AdvisedTarget) -> bool:
        ref = self.spec.get("scaleTargetRef") or self.spec.get("targetRef")
        named = (ref.get("kind"), ref.get("name")) if isinstance(ref, Mapping) else None
        return not self.only_watches and (self.namespace, named) == (target.namespace, (target.kind, target.name))


async def read_scalers(kube: Kube, namespaces: Sequence[str]) -> list[OwnScaler]:
    """All of our kinds that the cluster has and the asker may see."""
    return [
        OwnScaler(resource.kind, item.metadata.namespace, item.metadata.name, item.spec)
        for namespace in namespaces
        for resource in OURS
        for item in await _listed(kube, resource, namespace)
    ]


async def _listed(kube: Kube, resource: Resource, namespace: str) -> list[Custom]:
    try:
        return (await kube.list(Custom, resource, namespace)).items
    except Refused as refusal:
        if refusal.status in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):  # who advises needs none of our kinds
            return []
        raise


def with_scalers(targets: Iterable[AdvisedTarget], scalers: Sequence[OwnScaler]) -> list[AdvisedTarget]:
    """Each with the name of the one that scales it."""
    return [replace(target, scaled_by=_scaler(target, scalers)) for target in targets]


def _scaler(target: AdvisedTarget, scalers: Sequence[OwnScaler]) -> str:
    return next((f"{scaler.kind}/{scaler.name}" for scaler in scalers if scaler.scales(target)), "")
