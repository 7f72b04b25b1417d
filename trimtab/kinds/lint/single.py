"""Checks that need one object and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.kinds import Autoscaler, CustomHpa, EffectiveHpa, Hpa, Hvpa, Kind
from trimtab.kinds.ignored import warnings
from trimtab.kinds.lint.finding import Found, Severity
from trimtab.kinds.lint.world import Entry, World
from trimtab.kinds.part import ABSENT
from trimtab.policy import MaxFactor, MinFactor, Rate, Select, Utilization

_REMOVED = {"autoscaling/v2beta1": "1.25", "autoscaling/v2beta2": "1.26"}
_HIGH_PERCENT = 90


def refused(entry: Entry, world: World) -> Iterator[Found]:
    for problem in entry.problems:
        why = "it is missing" if problem.value is ABSENT else f"{problem.value!r} cannot be meant"
        yield Found(Severity.ERROR, "invalid", problem.path, why, problem.fix)


def ignored_fields(entry: Entry, world: World) -> Iterator[Found]:
    if isinstance(entry.obj, Kind):
        for path, why in warnings(entry.obj):
            yield Found(Severity.INFO, "ignored-field", path, f"changes nothing: {why}", "leave it out")


def removed_version(entry: Entry, world: World) -> Iterator[Found]:
    version = str(entry.manifest.get("apiVersion"))
    if version in _REMOVED:
        why = f"{version} is gone from Kubernetes {_REMOVED[version]} on"
        yield Found(
            Severity.WARNING, "removed-version", "apiVersion", why, "write autoscaling/v2; the fields are the same"
        )


def no_room(entry: Entry, world: World) -> Iterator[Found]:
    policy = entry.policy
    if policy and policy.signals and policy.bounds.min_replicas == policy.bounds.max_replicas:
        why = f"minReplicas and maxReplicas are both {policy.bounds.min_replicas}: nothing can ever scale"
        yield Found(
            Severity.WARNING,
            "min-equals-max",
            entry.path("minReplicas"),
            why,
            "lower minReplicas or raise maxReplicas",
        )


def daemon_set(entry: Entry, world: World) -> Iterator[Found]:
    if entry.target and entry.target.kind == "DaemonSet" and entry.moves_pods:
        why = "a DaemonSet has one pod a node; there is no number of replicas to change"
        yield Found(
            Severity.ERROR,
            "daemonset-target",
            entry.path("scaleTargetRef"),
            why,
            "scale a Deployment, or only its size",
        )


def little_headroom(entry: Entry, world: World) -> Iterator[Found]:
    if isinstance(entry.obj, Hvpa) or entry.policy is None:
        return  # targets above 100 % are document 004's own remedy there
    for index, signal in enumerate(entry.policy.signals):
        if isinstance(signal, Utilization) and signal.percent > _HIGH_PERCENT:
            path = entry.path(f"metrics[{index}]")
            why = f"{signal.percent} % of the request leaves no room while new pods start"
            yield Found(
                Severity.WARNING, "high-target", path, why, "use 50 to 80 % unless pods burst well above their request"
            )


def never_down(entry: Entry, world: World) -> Iterator[Found]:
    for rule in entry.policy.settle if entry.policy else ():
        if isinstance(rule, Rate) and rule.down.select is Select.DISABLED:
            path = entry.path("behavior.scaleDown.selectPolicy")
            yield Found(
                Severity.INFO,
                "never-down",
                path,
                "the workload only ever grows",
                "leave it out once that is not wanted",
            )


def dead_direction(entry: Entry, world: World) -> Iterator[Found]:
    rules = entry.policy.settle if entry.policy else ()
    most = next((rule for rule in rules if isinstance(rule, MaxFactor)), None)
    least = next((rule for rule in rules if isinstance(rule, MinFactor)), None)
    if most is None or least is None:
        return
    for way, high, low in (("Up", most.up, least.up), ("Down", most.down, least.down)):
        if high <= low:
            path = _factor_path(entry, way)
            why = f"steps are capped at {high:g} and only worth it above {low:g}: it never scales {way.lower()}"
            yield Found(Severity.WARNING, "dead-direction", path, why, "raise the max factor above the min factor")


def fallback_lowers(entry: Entry, world: World) -> Iterator[Found]:
    if entry.policy and entry.policy.absence.allow_decrease:
        why = "missing metrics may shrink the workload: an outage of the metrics becomes one of the service"
        path = "spec.onMetricFailure.then.allowDecrease"
        yield Found(Severity.WARNING, "fallback-lowers", path, why, "leave it out; replicas is then a floor")


def _factor_path(entry: Entry, way: str) -> str:
    custom = isinstance(entry.obj, CustomHpa)
    return f"behavior.scale{way}MaxFactor" if custom else f"spec.behavior.scale{way}.maxFactor"


def mismatched_type(entry: Entry, world: World) -> Iterator[Found]:
    """Kubernetes goes by the value that is set; `type` only misleads the reader."""
    if not isinstance(entry.obj, Hpa | Autoscaler | EffectiveHpa):
        return
    for index, metric in enumerate(entry.obj.spec.metrics or []):
        for member, inner in metric.manifest().items():
            target = inner.get("target", {}) if isinstance(inner, dict) else {}
            field = next((name for name in ("averageUtilization", "averageValue", "value") if name in target), "")
            meant = {"averageUtilization": "Utilization", "averageValue": "AverageValue", "value": "Value"}.get(field)
            if meant and target.get("type") != meant:
                path = f"spec.metrics[{index}].{member}.target.type"
                why = f"says {target.get('type')}, but {field} is what is set and what counts"
                yield Found(Severity.INFO, "type-mismatch", path, why, f"write {meant}")


CHECKS = (
    refused,
    ignored_fields,
    removed_version,
    no_room,
    daemon_set,
    little_headroom,
    never_down,
    dead_direction,
    fallback_lowers,
    mismatched_type,
)
