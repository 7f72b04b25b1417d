"""New settings written back into the manifest they came from; everything else stays as its owner wrote it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from trimtab.errors import InvalidInput
from trimtab.quantity import format_number
from trimtab.tune.candidates import Setting

AVERAGES = ("averageUtilization", "averageValue")


def with_new_settings(manifest: dict[str, Any], setting: Setting, pod_capacity: float) -> dict[str, Any]:
    """An Autoscaler or an autoscaling/v2 HPA with another target, tolerance and stabilisation."""
    new = deepcopy(manifest)
    target = _target(new)
    if "averageUtilization" in target:
        target["averageUtilization"] = round(setting.target * 100)
    else:
        target["averageValue"] = format_number(setting.target * pod_capacity)
    behavior = new["spec"].setdefault("behavior", {})
    for direction in ("scaleUp", "scaleDown"):
        behavior.setdefault(direction, {})["tolerance"] = format_number(setting.tolerance)
    behavior["scaleDown"]["stabilizationWindowSeconds"] = int(setting.stabilise_s)
    return new


def _target(manifest: dict[str, Any]) -> dict[str, Any]:
    """The target of the only metric."""
    try:
        (metric,) = manifest["spec"]["metrics"]
        name = metric["type"][0].lower() + metric["type"][1:]
        target: dict[str, Any] = metric[name]["target"]
    except (KeyError, ValueError, TypeError):
        fix = "tuning rewrites an Autoscaler or an autoscaling/v2 HPA with exactly one metric; convert it first"
        raise InvalidInput("spec.metrics", manifest.get("kind"), fix) from None
    if not any(key in target for key in AVERAGES):
        raise InvalidInput("spec.metrics[0]", target, "tuning needs a target of type Utilization or AverageValue")
    return target
