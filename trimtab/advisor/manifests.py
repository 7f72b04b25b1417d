"""manifests: advice as what people apply (HPA, EffectiveHPA, Autoscaler, a patch), and as Crane prints it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import yaml

from trimtab.advisor.targets import AdvisedTarget
from trimtab.core.advise import WorkloadAdvice
from trimtab.errors import InvalidInput
from trimtab.policy import Advice
from trimtab.wire.from_kubernetes import amounts

Shape = Literal["hpa", "ehpa", "autoscaler", "patch"]
Manifest = dict[str, Any]

# A window of an hour, a sample a minute, the week that was looked at.
PREDICTION = {
    "predictionWindowSeconds": 3600,
    "predictionAlgorithm": {"algorithmType": "dsp", "dsp": {"sampleInterval": "1m", "historyLength": "168h"}},
}


def recommended_value(advice: Advice, found: WorkloadAdvice) -> str:
    """`status.recommendedValue` as Crane prints it: YAML with sorted keys."""
    text: str = yaml.safe_dump(value_of(advice, found), sort_keys=True, default_flow_style=False)
    return text


def value_of(advice: Advice, found: WorkloadAdvice) -> Manifest:
    if advice is Advice.RESOURCE:
        return _containers(found)
    if advice is Advice.BOTH:
        return (horizontal(found) if found.min_replicas else {}) | (_containers(found) if found.sizes else {})
    if advice is Advice.REPLICAS:
        return {"replicasRecommendation": {"replicas": found.replicas}}
    prediction = {"prediction": PREDICTION} if found.predictable else {}
    return horizontal(found) | prediction


def _containers(found: WorkloadAdvice) -> Manifest:
    return {"containers": [{"containerName": name, "target": amounts(size)} for name, size in found.sizes.items()]}


def horizontal(found: WorkloadAdvice) -> Manifest:
    """The fields that HPA, EffectiveHPA and Autoscaler share."""
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": found.target_percent}}
    spec: Manifest = {
        "minReplicas": found.min_replicas,
        "maxReplicas": found.max_replicas,
        "metrics": [{"type": "Resource", "resource": cpu}, *found.metrics],
    }
    return spec | ({"behavior": found.behavior} if found.behavior else {})


def fits(shape: Shape, advice: Advice, found: WorkloadAdvice) -> bool:
    """Whether this advice has anything to write in that shape; of both axes often only one is advised."""
    if advice is not Advice.BOTH:
        return True
    return bool(found.sizes) if shape == "patch" else found.min_replicas is not None


def manifest(shape: Shape, advice: Advice, target: AdvisedTarget, found: WorkloadAdvice) -> Manifest:
    """What to apply or commit for one target."""
    if shape == "patch":
        return patch(advice, target, found)
    if advice not in (Advice.HPA, Advice.BOTH):
        raise InvalidInput("--as", shape, f"advice of type {advice} is written with --as patch")
    ref = reference(target)
    if shape == "ehpa":
        return effective_hpa_of(ref, value_of(Advice.HPA, found))
    if shape == "hpa":
        made = _object("autoscaling/v2", "HorizontalPodAutoscaler", ref, horizontal(found))
        # Under another name it would be a second HPA of the same workload, and both would fight.
        made["metadata"]["name"] = target.hpa_name or target.name
        return made
    forecast = {"forecast": {"model": "dsp", "horizon": 3600}} if found.predictable else {}
    return _object("trimtab.dev/v1alpha1", "Autoscaler", ref, horizontal(found) | forecast)


def reference(target: AdvisedTarget) -> dict[str, str]:
    return {
        "apiVersion": target.api_version,
        "kind": target.kind,
        "name": target.name,
        "namespace": target.namespace,
    }


def effective_hpa_of(ref: Mapping[str, str], value: Manifest) -> Manifest:
    """In Preview: it decides and shows, and touches nothing until its owner says Auto."""
    spec = value | {"scaleStrategy": "Preview"}
    return _object("autoscaling.crane.io/v1alpha1", "EffectiveHorizontalPodAutoscaler", ref, spec)


def _object(api_version: str, kind: str, ref: Mapping[str, str], spec: Manifest) -> Manifest:
    target = {"apiVersion": ref.get("apiVersion") or "apps/v1", "kind": ref["kind"], "name": ref["name"]}
    metadata = {"name": ref["name"], "namespace": ref["namespace"]}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec | {"scaleTargetRef": target}}


def patch(advice: Advice, target: AdvisedTarget, found: WorkloadAdvice) -> Manifest:
    """Only what changes, with the names by which `kubectl apply --server-side` and kustomize find the rest."""
    if advice is Advice.HPA:
        raise InvalidInput("--as", "patch", "advice of type HPA is written with --as hpa, ehpa or autoscaler")
    if advice is Advice.REPLICAS:
        spec: Manifest = {"replicas": found.replicas}
    else:
        sizes = [{"name": name, "resources": {"requests": amounts(size)}} for name, size in found.sizes.items()]
        sidecars = [size for size in sizes if size["name"] in target.sidecars]
        pod = {"containers": [size for size in sizes if size not in sidecars], "initContainers": sidecars}
        spec = {"template": {"spec": {field: listed for field, listed in pod.items() if listed}}}
    metadata = {"name": target.name, "namespace": target.namespace}
    return {"apiVersion": target.api_version, "kind": target.kind, "metadata": metadata, "spec": spec}
