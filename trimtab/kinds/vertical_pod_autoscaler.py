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
        update.lose("minReplicas", "disruption budgets are respected instead")
        update.close()
        policy = spec.part("resourcePolicy")
        containers = [_container_policy(container) for container in policy.items("containerPolicies")]
        policies = _whole_cores(containers, metadata)
        policy.close()
        vertical: dict[str, Any] = {"apply": UPDATE_MODES[mode]}
        if policies:
            vertical["resourcePolicy"] = {"containerPolicies": policies}
        made = {"scaleTargetRef": spec.take("targetRef", dict) or {}, "vertical": vertical}
        spec.lose("recommenders", "the recommendation is computed here")
        spec.close()
        return made


def _container_policy(policy: SourceFields) -> dict[str, Any]:
    names = ("containerName", "mode", "minAllowed", "maxAllowed", "controlledResources", "controlledValues")
    taken = {name: policy.take(name, object) for name in names}
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
