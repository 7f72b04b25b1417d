"""New settings written back into the manifest they came from; everything else stays as its owner wrote it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple

from trimtab.core.tuned import moves_behavior
from trimtab.errors import InvalidInput
from trimtab.kinds import without_nulls
from trimtab.kinds.annotations import BRIDGE
from trimtab.kinds.bridge import sees_cpu
from trimtab.kinds.convert import convert
from trimtab.policy import Bridge, Policy, TunedSettings
from trimtab.quantity import format_number
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.tune.search import CEILINGS, Space, space_of

AVERAGES = ("averageUtilization", "averageValue")
DIRECTIONS = ("scaleUp", "scaleDown")
OLD_VERSIONS = ("autoscaling/v1", "autoscaling/v2beta1", "autoscaling/v2beta2")  # none has a field for a tolerance
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
NEEDS: dict[str, str] = {
    "HorizontalPodAutoscaler": "behavior.*.tolerance needs the feature HPAConfigurableTolerance of Kubernetes (1.33 or"
    " newer): an API server without it drops the field, and 0.1 holds; trimtab reads it",
    "EffectiveHorizontalPodAutoscaler": "behavior.*.tolerance is read by trimtab; Crane's controller does not know it",
}


class TunableManifest(NamedTuple):
    """A manifest that new settings can be written into, and what was done to it first."""

    manifest: dict[str, Any]
    notes: tuple[str, ...] = ()


def tunable_manifest(manifest: dict[str, Any]) -> TunableManifest:
    """An Autoscaler, an EffectiveHPA or an HPA with one metric; old versions of HPA become autoscaling/v2."""
    manifest = without_nulls(manifest)
    notes, version = [], manifest.get("apiVersion")
    if version in OLD_VERSIONS:
        manifest = convert(manifest, "hpa").manifest
        notes.append(f"written as autoscaling/v2: {version} has no field for a tolerance")
    if "spec" in manifest and manifest.get("kind") in ("Autoscaler", *NEEDS) and not manifest["spec"].get("metrics"):
        manifest = {**manifest, "spec": {**manifest["spec"], "metrics": [deepcopy(CPU)]}}
        notes.append("without metrics the policy goes by CPU at 80 % of the request; that metric is written out")
    _target(manifest)
    return TunableManifest(manifest, tuple(notes))


def writable_space(kind: str, policy: Policy, pods: ClusterSpec) -> Space:
    """The settings that its kind has a place for: an HPA's target, tolerance and window; with an Autoscaler on CPU the
    bridge at every ceiling, with an EffectiveHPA on CPU the bridge."""
    ours, crane = kind == "Autoscaler", kind == "EffectiveHorizontalPodAutoscaler"
    if not sees_cpu(policy.signals) or not (ours or crane):
        return space_of(policy, pods)._replace(may_lose_tolerance=kind == "HorizontalPodAutoscaler")
    bridge = policy.bridge or Bridge()
    return space_of(policy, pods, bridge, CEILINGS if ours else (bridge.ceiling,))


def with_new_settings(tunable: TunableManifest, was: TunedSettings, now: TunedSettings) -> TunableManifest:
    """The settings that moved: target, tolerance, window and bridge; a note where not every reader knows a field.

    Where the objective steers, nothing but the bridge is written: a window beside it would bind it.
    """
    new = deepcopy(tunable.manifest)
    _set_bridge(new, now.ceiling)
    if not now.priced:
        new["spec"].pop("objective", None)
    if now.priced:
        return TunableManifest(new, tunable.notes)
    if was.target != now.target:
        _set_target(_target(new), now.target)
    if not moves_behavior(was, now):
        return TunableManifest(new, tunable.notes)
    behavior = new["spec"].setdefault("behavior", {})
    behavior.setdefault("scaleDown", {})["stabilizationWindowSeconds"] = int(now.window_s)
    if was.tolerance == now.tolerance:
        return TunableManifest(new, tunable.notes)
    for direction in DIRECTIONS:
        behavior.setdefault(direction, {})["tolerance"] = format_number(now.tolerance)
    needs = NEEDS.get(str(new.get("kind")))
    return TunableManifest(new, (*tunable.notes, needs) if needs else tunable.notes)


def _set_bridge(manifest: dict[str, Any], ceiling: float | None) -> None:
    """A field of the Autoscaler, an annotation of another kind; one that is there stays as it is written."""
    ours = manifest.get("kind") == "Autoscaler"
    holder, name = (manifest, "spec") if ours else (manifest.setdefault("metadata", {}), "annotations")
    key: str = "bridge" if ours else BRIDGE
    place: dict[str, Any] = holder.get(name) or {}
    if ceiling is None:
        place.pop(key, None)
    elif ours:
        written = {"ceiling": f"{ceiling:g}"} if ceiling in CEILINGS else {}
        holder[name] = place | {key: {"maxFactor": "1.5"} | (place.get(key) or {}) | written}
    else:
        holder[name] = {key: "1.5"} | place


def _set_target(target: dict[str, Any], value: float) -> None:
    if "arrivals" in target:
        target["targetUtilization"] = round(value)
    elif "averageUtilization" in target:
        target["averageUtilization"] = round(value)
    else:
        target["averageValue"] = format_number(value)


def _target(manifest: dict[str, Any]) -> dict[str, Any]:
    """The target of the only metric."""
    try:
        (metric,) = manifest["spec"]["metrics"]
        name = metric["type"][0].lower() + metric["type"][1:]
        target: dict[str, Any] = metric[name] if name == "backlog" else metric[name]["target"]
    except (KeyError, ValueError, TypeError):
        fix = "tuning rewrites an Autoscaler, EffectiveHPA or HPA with exactly one metric; convert another kind first"
        raise InvalidInput("spec.metrics", manifest.get("kind"), fix) from None
    if not any(key in target for key in (*AVERAGES, "arrivals")):
        raise InvalidInput("spec.metrics[0]", target, "tuning needs a target of type Utilization or AverageValue")
    return target
