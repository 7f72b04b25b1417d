"""Checks of other projects' kinds, as far as they are read here."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from trimtab.kinds import RecommendationRule
from trimtab.kinds.lint.finding import Diagnostic, LintSeverity
from trimtab.kinds.lint.manifest_set import WORKLOADS, LintedManifest, ManifestSet, get


def no_trigger(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    if linted.kind == "ScaledObject" and not linted.skipped and not get(linted.manifest, "spec", "triggers"):
        why = "nothing says when to scale"
        yield Diagnostic(LintSeverity.ERROR, "no-trigger", "spec.triggers", why, "add at least one trigger")


def missing_target(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    """Only where workloads of its namespace lie beside it: else the target is somewhere else."""
    target = linted.target
    if target is None or target.kind not in WORKLOADS or among.workload(target) is not None:
        return
    names = [key.name for key in among.workloads_beside(linted) if key.namespace == target.namespace]
    if names:
        near = get_close_matches(target.name, names, 1)
        why = f"no manifest here is {target.kind}/{target.name} in namespace {target.namespace}"
        fix = f"did you mean {near[0]}?" if near else "hand its workload in too, or mend kind, name or namespace"
        yield Diagnostic(LintSeverity.WARNING, "missing-target", linted.path("scaleTargetRef"), why, fix)


_NOT_READ = {
    ("keda.sh", "ScaledJob"): "keep it with KEDA: nothing here starts Jobs",
    ("http.keda.sh", "HTTPScaledObject"): "keep it with KEDA for scaling to zero, or write an Autoscaler on the rate of"
    " requests with minReplicas: 1",
    (
        "prediction.crane.io",
        "TimeSeriesPrediction",
    ): "write the forecast into the workload's own object: prediction of an EHPA, or spec.forecast of an Autoscaler",
    (
        "autoscaling.crane.io",
        "EffectiveVerticalPodAutoscaler",
    ): "write an Autoscaler with spec.vertical, or keep Crane for it",
    (
        "prediction.crane.io",
        "ClusterNodePrediction",
    ): "nothing here forecasts nodes: keep Crane for it, or leave it out",
}


def not_read(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    """Kinds of Crane and KEDA that nothing here acts on."""
    instead = _NOT_READ.get((str(linted.manifest.get("apiVersion")).partition("/")[0], linted.kind))
    if instead is not None:
        why = f"{linted.kind} is not read: no operator of trimtab acts on it"
        yield Diagnostic(LintSeverity.WARNING, "not-read", "kind", why, instead)


def rule_of_crane(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    if isinstance(linted.obj, RecommendationRule):
        why = "the operator serves Analytics, not rules: applied as it is, it recommends nothing"
        fix = "trimtab convert FILE --to analytics"
        yield Diagnostic(LintSeverity.WARNING, "recommendation-rule", "kind", why, fix)


CHECKS = (not_read, rule_of_crane, no_trigger, missing_target)
