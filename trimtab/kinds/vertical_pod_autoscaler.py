"""VerticalPodAutoscaler (autoscaling.k8s.io): linted, replayed and converted; its own controller serves it."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from trimtab.errors import InvalidInput
from trimtab.kinds.annotations import VPA_INTEGER_CPU
from trimtab.kinds.foreign import ForeignKind, Manifest, unannotate
from trimtab.kinds.ledger import Ledger
from trimtab.kinds.source_fields import SourceFields

VPA_VERSIONS = ("v1", "v1beta2", "v1beta1")
_DEFAULT = "Recreate"  # what VPA does where no updateMode is written
_PLACES = {
    "spec.scaleTargetRef": "spec.targetRef",
    "spec.vertical.apply": "spec.updatePolicy.updateMode",
    "spec.vertical.resourcePolicy": "spec.resourcePolicy",
    "spec.vertical": "spec",
    "spec.maxReplicas": "spec",
}
# Fields of VPA up to 1.7 that mean nothing here, each with what happens instead.
_OF_UPDATES = {
    "minReplicas": "disruption budgets are respected instead",
    "evictionRequirements": "sizes follow usage in both directions; spec.vertical has no such condition",
    "evictAfterOOMSeconds": "an OOM kill is answered at once, however soon it came",
}
_OF_USAGE = {
    "oomBumpUpRatio": "memory grows to 1.2 times what was in use at an OOM kill",
    "oomMinBumpUp": "memory grows by 100Mi at least after an OOM kill",
    "memoryAggregationIntervalSeconds": "is the operator's setting (--memory-window)",
    "memoryAggregationIntervalCount": "eight windows are kept",
    "pruningGracePeriod": "a container that is gone is forgotten after eight memory windows",
    "startupBoost": "nothing here sizes pods for their start; spec.bridge grows ready pods while others start",
}
UPDATE_MODES = {
    "Auto": "InPlaceOrRecreate",
    "InPlaceOrRecreate": "InPlaceOrRecreate",
    "InPlace": "InPlace",
    "Recreate": "Recreate",
    "Off": "Never",
    "Initial": "InPlace",
}


class VerticalPodAutoscaler(ForeignKind):
    """Vertical only: whoever sets the number of pods now keeps setting it."""

    api_version: str
    kind: Literal["VerticalPodAutoscaler"]
    spec: dict[str, Any]

    crd: ClassVar[bool] = False
    served_elsewhere: ClassVar[bool] = True

    def as_autoscaler(self, metadata: Manifest, ledger: Ledger) -> Manifest:
        spec = SourceFields(self.spec, "spec", ledger)
        ledger.places(_PLACES)
        update = spec.part("updatePolicy")
        mode = update.take("updateMode", str) or _DEFAULT
        if mode not in UPDATE_MODES:
            raise InvalidInput(update.at("updateMode"), mode, f"write one of: {', '.join(UPDATE_MODES)}")
        if mode == "Initial":
            update.note("Initial has no equivalent; pods are resized in place instead", "updateMode")
        for name, why in _OF_UPDATES.items():
            update.lose(name, why)
        update.close()
        policy = spec.part("resourcePolicy")
        containers = [_container_policy(container) for container in policy.items("containerPolicies")]
        policies = _whole_cores(containers, metadata)
        policy.close()
        vertical: dict[str, Any] = {"apply": UPDATE_MODES[mode]}
        if policies:
            vertical["resourcePolicy"] = {"containerPolicies": policies}
        made = {"scaleTargetRef": spec.take("targetRef", dict) or {}, "vertical": vertical}
        for name, why in _OF_USAGE.items():
            spec.lose(name, why)
        spec.lose("recommenders", "the recommendation is computed here")
        spec.close()
        return made


def _container_policy(policy: SourceFields) -> dict[str, Any]:
    names = ("containerName", "mode", "minAllowed", "maxAllowed", "controlledResources", "controlledValues")
    taken = {name: policy.take(name, object) for name in names}
    for name, why in _OF_USAGE.items():
        policy.lose(name, why)
    policy.close()
    return {name: value for name, value in taken.items() if value is not None}


def _whole_cores(policies: list[dict[str, Any]], metadata: dict[str, Any]) -> list[dict[str, Any]]:
    """VPA says it in an annotation for each container."""
    named = {str(policy.get("containerName", "*")): policy for policy in policies}
    before, after = VPA_INTEGER_CPU
    for key in list(metadata.get("annotations", {})):
        container = key.removeprefix(before).removesuffix(after)
        if key == f"{before}{container}{after}" and unannotate(metadata, key) == "true":
            named.setdefault(container, {"containerName": container})["wholeCores"] = True
    return list(named.values())
