"""Kinds -> CustomResourceDefinitions: names, columns, subresources, and a schema that says what the kinds say.

What the API server cannot check (CEL has no cron, no time zones, no keys of our own) is accepted by it and answered
with Ready=False and the path.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from trimtab.kinds import status
from trimtab.kinds.analytics import AnalyticsSpec, RecommendationSpec
from trimtab.kinds.autoscaler import AutoscalerSpec
from trimtab.kinds.effective_hpa import EffectiveHpaSpec
from trimtab.kinds.hvpa import HvpaSpec
from trimtab.kinds.manifest_part import ManifestPart
from trimtab.kinds.schema import structural

Schema = dict[str, Any]


class Column(NamedTuple):
    name: str
    path: str
    type: str = "string"
    wide: bool = False  # only with -o wide


AGE = Column("Age", ".metadata.creationTimestamp", "date")
READY = Column("Ready", '.status.conditions[?(@.type=="Ready")].status')
WHY_NOT = Column("Reason", '.status.conditions[?(@.type=="Ready")].reason', wide=True)
SIZED = Column("Sized", ".status.sized")


class Crd(NamedTuple):
    group: str
    kind: str
    plural: str
    singular: str
    short: tuple[str, ...]
    about: str
    spec: type[ManifestPart]
    status: type[ManifestPart]
    columns: tuple[Column, ...]
    scale: tuple[str, str, str] | None = None
    version: str = "v1alpha1"

    @property
    def name(self) -> str:
        return f"{self.plural}.{self.group}"


CRDS = (
    Crd(
        "trimtab.dev",
        "Autoscaler",
        "autoscalers",
        "autoscaler",
        ("asc",),
        "Keeps a workload at the right number of pods, of the right size. A superset of autoscaling/v2.",
        AutoscalerSpec,
        status.AutoscalerStatus,
        (
            Column("Reference", ".spec.scaleTargetRef.name"),
            Column("Targets", ".status.targets"),
            Column("MinPods", ".spec.minReplicas", "integer"),
            Column("MaxPods", ".spec.maxReplicas", "integer"),
            Column("Replicas", ".status.currentReplicas", "integer"),
            READY,
            SIZED,
            Column("Mode", ".status.mode"),
            Column("Tuning", ".status.tuning.inForce"),
            Column("Desired", ".status.desiredReplicas", "integer", wide=True),
            Column("LastScale", ".status.lastScaleTime", "date", wide=True),
            Column("Decision", ".status.lastDecision", wide=True),
            Column("LastNight", ".status.tuning.verdict", wide=True),
            WHY_NOT,
            AGE,
        ),
    ),
    Crd(
        "autoscaling.crane.io",
        "EffectiveHorizontalPodAutoscaler",
        "effectivehorizontalpodautoscalers",
        "effectivehorizontalpodautoscaler",
        ("ehpa",),
        "Crane's HPA with crons, prediction and a preview.",
        EffectiveHpaSpec,
        status.EffectiveHpaStatus,
        (
            Column("Strategy", ".spec.scaleStrategy"),
            Column("MinPods", ".spec.minReplicas", "integer"),
            Column("MaxPods", ".spec.maxReplicas", "integer"),
            Column("SpecificPods", ".spec.specificReplicas", "integer"),
            Column("Replicas", ".status.expectReplicas", "integer"),
            AGE,
            READY,
            Column("Mode", ".status.mode"),
            WHY_NOT,
        ),
    ),
    Crd(
        "autoscaling.k8s.io",
        "Hvpa",
        "hvpas",
        "hvpa",
        (),
        "Both axes of one workload, blended by HVPA weights or HVPA buckets.",
        HvpaSpec,
        status.HvpaStatus,
        (
            Column("Target", ".spec.targetRef.name"),
            Column("Replicas", ".status.replicas", "integer"),
            Column("HpaWeight", ".status.hpaWeight", "integer"),
            Column("VpaWeight", ".status.vpaWeight", "integer"),
            AGE,
            READY,
            SIZED,
            Column("Mode", ".status.mode"),
            WHY_NOT,
        ),
        scale=(".spec.replicas", ".status.replicas", ".status.targetSelector"),
    ),
    Crd(
        "analysis.crane.io",
        "Analytics",
        "analytics",
        "analytics",
        (),
        "Crane's question which workloads should be autoscaled, with which settings.",
        AnalyticsSpec,
        status.AnalyticsStatus,
        (
            Column("Type", ".spec.type", wide=True),
            Column("Strategy", ".spec.completionStrategy.completionStrategyType", wide=True),
            Column("PeriodSeconds", ".spec.completionStrategy.periodSeconds", "integer", wide=True),
            AGE,
            READY,
            WHY_NOT,
        ),
    ),
    Crd(
        "analysis.crane.io",
        "Recommendation",
        "recommendations",
        "recommendation",
        ("recommend",),
        "Crane's answer: what one workload should become.",
        RecommendationSpec,
        status.RecommendationStatus,
        (
            Column("Type", ".spec.type"),
            Column("TargetKind", ".spec.targetRef.kind"),
            Column("TargetNamespace", ".spec.targetRef.namespace"),
            Column("TargetName", ".spec.targetRef.name"),
            Column("Strategy", ".spec.completionStrategy.completionStrategyType"),
            Column("PeriodSeconds", ".spec.completionStrategy.periodSeconds", "integer"),
            Column("AdoptionType", ".spec.adoptionType"),
            AGE,
            READY,
            WHY_NOT,
        ),
    ),
)

# Groups under k8s.io belong to the Kubernetes project; the API server wants to know that we know.
_UNAPPROVED = {"api-approved.kubernetes.io": "unapproved, as upstream's; served for its users' manifests"}


def definition(crd: Crd) -> Schema:
    """The CustomResourceDefinition of one kind."""
    metadata: Schema = {"name": crd.name}
    if crd.group.endswith(".k8s.io"):
        metadata["annotations"] = _UNAPPROVED
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": crd.group,
            "scope": "Namespaced",
            "names": _names(crd),
            "versions": [_version(crd)],
        },
    }


def definitions() -> list[Schema]:
    return [definition(crd) for crd in CRDS]


def _names(crd: Crd) -> Schema:
    names: Schema = {"kind": crd.kind, "listKind": f"{crd.kind}List", "plural": crd.plural, "singular": crd.singular}
    if crd.short:
        names["shortNames"] = list(crd.short)
    return names | {"categories": ["trimtab"]}


def _version(crd: Crd) -> Schema:
    version: Schema = {"name": crd.version, "served": True, "storage": True}
    version["schema"] = {"openAPIV3Schema": _root(crd)}
    subresources: Schema = {"status": {}}  # written by whoever has the right to, not by whoever may edit the object
    if crd.scale:
        paths = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
        subresources["scale"] = dict(zip(paths, crd.scale, strict=True))
    version["subresources"] = subresources
    version["additionalPrinterColumns"] = [_column(column) for column in crd.columns]
    return version


def _root(crd: Crd) -> Schema:
    return {
        "type": "object",
        "description": crd.about,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": structural(crd.spec),
            "status": structural(crd.status),
        },
    }


def _column(column: Column) -> Schema:
    made: Schema = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return made | {"priority": 1} if column.wide else made
