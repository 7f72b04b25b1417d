"""Checks that need one object and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.kinds import Autoscaler, EffectiveHpa, Hpa, Kind
from trimtab.kinds.hpa import AnyHpa
from trimtab.kinds.ignored import warnings
from trimtab.kinds.lint.finding import Diagnostic, LintSeverity
from trimtab.kinds.lint.manifest_set import LintedManifest, ManifestSet
from trimtab.kinds.manifest_part import ABSENT
from trimtab.policy import SLO, MaxFactor, MinFactor, Rate, Select, Utilization, is_cpu

_REMOVED = {"autoscaling/v2beta1": "1.25", "autoscaling/v2beta2": "1.26"}


def refused(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    for problem in linted.problems:
        why = "it is missing" if problem.value is ABSENT else f"{problem.value!r} cannot be meant"
        yield Diagnostic(LintSeverity.ERROR, "invalid", problem.path, why, problem.fix)


def ignored_fields(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    if isinstance(linted.obj, Kind):
        for path, why in warnings(linted.obj):
            if isinstance(linted.obj, AnyHpa) and path.startswith("spec."):
                why = f"Kubernetes may act on it, trimtab does not: {why}"
                fix = "keep it for Kubernetes; backtest, convert and forecasts leave it out"
                yield Diagnostic(LintSeverity.WARNING, "upstream-field", path, why, fix)
                continue
            yield Diagnostic(LintSeverity.INFO, "ignored-field", path, f"changes nothing: {why}", "leave it out")


def removed_version(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    version = str(linted.manifest.get("apiVersion"))
    if version in _REMOVED:
        why = f"{version} is gone from Kubernetes {_REMOVED[version]} on"
        yield Diagnostic(
            LintSeverity.WARNING,
            "removed-version",
            "apiVersion",
            why,
            "trimtab convert FILE --to hpa writes autoscaling/v2",
        )


def no_room(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    policy = linted.policy
    if policy and policy.signals and policy.bounds.min_replicas == policy.bounds.max_replicas:
        why = f"minReplicas and maxReplicas are both {policy.bounds.min_replicas}: nothing can ever scale"
        yield Diagnostic(
            LintSeverity.WARNING,
            "min-equals-max",
            linted.path("minReplicas"),
            why,
            "lower minReplicas or raise maxReplicas",
        )


def daemon_set(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    if linted.target and linted.target.kind == "DaemonSet" and linted.moves_pods:
        why = "a DaemonSet has one pod per node; there is no number of replicas to change"
        yield Diagnostic(
            LintSeverity.ERROR,
            "daemonset-target",
            linted.path("scaleTargetRef"),
            why,
            "scale a Deployment, or only its size",
        )


def stored_service_level(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    """The default of before, which the API server wrote into every stored object."""
    objective = linted.obj.spec.objective if isinstance(linted.obj, Autoscaler) else None
    if objective is not None and objective.service_level is not None and float(objective.service_level) == SLO:
        why = "it was the default of earlier versions, and it holds: pods are overloaded above 80 % of their request"
        fix = "leave it out: then pods are overloaded above their request, or above 80 % of their limit if that is less"
        yield Diagnostic(LintSeverity.INFO, "stored-service-level", "spec.objective.serviceLevel", why, fix)


def never_down(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    for rule in linted.policy.settle if linted.policy else ():
        if isinstance(rule, Rate) and rule.down.select is Select.DISABLED:
            path = linted.path("behavior.scaleDown.selectPolicy")
            yield Diagnostic(
                LintSeverity.INFO,
                "never-down",
                path,
                "the workload only ever grows",
                "leave it out once that is not wanted",
            )


def dead_direction(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    rules = linted.policy.settle if linted.policy else ()
    most = next((rule for rule in rules if isinstance(rule, MaxFactor)), None)
    least = next((rule for rule in rules if isinstance(rule, MinFactor)), None)
    if most is None or least is None:
        return
    for way, high, low in (("Up", most.up, least.up), ("Down", most.down, least.down)):
        if high <= low:
            path = linted.path(f"behavior.scale{way}.maxFactor")
            why = f"steps are capped at {high:g} and only worth it above {low:g}: it never scales {way.lower()}"
            yield Diagnostic(
                LintSeverity.WARNING, "dead-direction", path, why, "raise the max factor above the min factor"
            )


def fallback_lowers(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    if isinstance(linted.obj, Autoscaler) and linted.policy and linted.policy.absence.allow_decrease:
        why = "missing metrics may shrink the workload: an outage of the metrics becomes one of the service"
        path = "spec.onMetricFailure.then.allowDecrease"
        yield Diagnostic(LintSeverity.WARNING, "fallback-lowers", path, why, "leave it out; replicas is then a floor")


def mismatched_type(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    """Kubernetes goes by the value that is set; `type` only misleads the reader."""
    if not isinstance(linted.obj, Hpa | Autoscaler | EffectiveHpa):
        return
    for index, metric in enumerate(linted.obj.spec.metrics or []):
        for member, inner in metric.manifest().items():
            target = inner.get("target", {}) if isinstance(inner, dict) else {}
            field = next((name for name in ("averageUtilization", "averageValue", "value") if name in target), "")
            meant = {"averageUtilization": "Utilization", "averageValue": "AverageValue", "value": "Value"}.get(field)
            if meant and target.get("type") != meant:
                path = f"spec.metrics[{index}].{member}.target.type"
                why = f"says {target.get('type')}, but {field} is what is set and what counts"
                yield Diagnostic(LintSeverity.INFO, "type-mismatch", path, why, f"write {meant}")


def exact_without_cpu(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    policy = linted.policy
    if policy is None or policy.forecast is None or not policy.forecast.exact or policy.forecast.model != "linear":
        return
    if not any(isinstance(signal, Utilization) and is_cpu(signal.metric) for signal in policy.signals):
        why = "the program of the thesis predicts CPU utilization only, and no metric here is that: nothing is forecast"
        path = linted.path("forecast.exact") if isinstance(linted.obj, Autoscaler) else "metadata.annotations"
        fix = "leave exact out: the default line forecasts every metric"
        yield Diagnostic(LintSeverity.WARNING, "exact-without-cpu", path, why, fix)


CHECKS = (
    refused,
    ignored_fields,
    removed_version,
    no_room,
    daemon_set,
    stored_service_level,
    never_down,
    dead_direction,
    fallback_lowers,
    mismatched_type,
    exact_without_cpu,
)
