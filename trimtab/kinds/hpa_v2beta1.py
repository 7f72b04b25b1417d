"""HorizontalPodAutoscaler of autoscaling/v2beta1, which clusters have dropped and repositories still hold.

Its metrics spell their targets another way; they are read as those of autoscaling/v2.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator

from trimtab.kinds.hpa import HpaWithMetrics

_TARGETS = {
    "targetAverageUtilization": ("Utilization", "averageUtilization"),
    "targetAverageValue": ("AverageValue", "averageValue"),
    "averageValue": ("AverageValue", "averageValue"),
    "targetValue": ("Value", "value"),
}


def v2_metric(metric: Any) -> Any:
    """A metric of v2beta1 in the words of v2; one that is written in them stays as it is."""
    if not isinstance(metric, dict):
        return metric
    return {name: _v2_member(inner) if isinstance(inner, dict) else inner for name, inner in metric.items()}


def _v2_member(member: dict[str, Any]) -> dict[str, Any]:
    made = dict(member)
    if isinstance(made.get("target"), dict) and "kind" in made["target"]:
        made["describedObject"] = made.pop("target")
    if "metricName" in made:
        selector = made.pop("selector", None) or made.pop("metricSelector", None)
        made["metric"] = {"name": made.pop("metricName")} | ({"selector": selector} if selector else {})
    for name, (kind, field) in _TARGETS.items():
        if (value := made.pop(name, None)) is not None:
            made["target"] = {"type": kind, field: value}
    return made


class HpaV2beta1(HpaWithMetrics):
    api_version: Literal["autoscaling/v2beta1"]

    @model_validator(mode="before")
    @classmethod
    def _as_v2(cls, manifest: Any) -> Any:
        spec = manifest.get("spec") if isinstance(manifest, dict) else None
        if not isinstance(spec, dict) or not isinstance(spec.get("metrics"), list):
            return manifest
        return {**manifest, "spec": {**spec, "metrics": [v2_metric(metric) for metric in spec["metrics"]]}}
