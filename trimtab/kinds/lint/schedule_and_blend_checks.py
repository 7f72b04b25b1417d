"""Checks of schedules, stages and buckets: what overlaps, what leaves a gap, what is never reached."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from trimtab.kinds import Hvpa
from trimtab.kinds.lint.finding import Diagnostic, LintSeverity
from trimtab.kinds.lint.manifest_set import LintedManifest, ManifestSet
from trimtab.policy import Buckets, Policy, Weights
from trimtab.quantity import format_cpu, format_memory, is_whole


def schedule_above_max(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    policy = linted.policy
    if policy is None:
        return
    bounds = policy.bounds
    high = {s.name: s.min_replicas for s in bounds.schedules if (s.min_replicas or 0) > bounds.max_replicas}
    for name, replicas in high.items():
        why = f"{name!r} asks for {replicas} replicas; maxReplicas is {bounds.max_replicas} and wins"
        yield Diagnostic(
            LintSeverity.WARNING,
            "schedule-above-max",
            linted.path("schedules"),
            why,
            "raise maxReplicas or lower the schedule",
        )


def schedule_order(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    schedules = linted.policy.bounds.schedules if linted.policy else ()
    for index, (start, end) in enumerate((schedule.start, schedule.end) for schedule in schedules):
        path = f"{linted.path('schedules')}[{index}].end"
        if start == end:
            why = "it starts and ends at the same moment, so it is either always on or never"
            yield Diagnostic(LintSeverity.WARNING, "cron-order", path, why, "give it an end of its own")
        elif _earlier_same_day(end, start):
            why = "it ends earlier in the day than it starts, so it runs over midnight"
            yield Diagnostic(LintSeverity.INFO, "cron-order", path, why, "swap start and end if the day was meant")


def stage_overlap(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    blend = linted.policy.blend if linted.policy else None
    if not isinstance(blend, Weights) or linted.policy is None:
        return
    path = linted.path("blend.weights.intervals")
    for index, stage in enumerate(blend.stages):
        for earlier in blend.stages[:index]:
            low, high = max(stage.first, earlier.first), min(stage.last, earlier.last)
            ends = earlier.until_least or earlier.until_most  # at its bound, where this one is reached
            if low <= high and stage.vertical_share != earlier.vertical_share and not ends:
                why = f"stages share {_span(low, high)}; the one written first counts there"
                yield Diagnostic(
                    LintSeverity.WARNING, "stage-overlap", f"{path}[{index}]", why, f"start this stage at {high + 1}"
                )
    yield from _stage_gaps(linted.policy, blend, path)


def _stage_gaps(policy: Policy, blend: Weights, path: str) -> Iterator[Diagnostic]:
    if not blend.stages:
        yield Diagnostic(
            LintSeverity.WARNING, "stage-gap", path, "without stages nothing is ever scaled vertically", "add one"
        )
        return
    most = min(policy.bounds.max_replicas, max(stage.last for stage in blend.stages) + 1)
    counts = range(policy.bounds.min_replicas, most + 1)
    open_at = [n for n in counts if not any(stage.first <= n <= stage.last for stage in blend.stages)]
    if open_at:
        why = f"{_span(open_at[0], open_at[-1])} in no stage: scaled horizontally only"
        yield Diagnostic(
            LintSeverity.INFO,
            "stage-gap",
            path,
            why,
            "add a stage, or leave startReplicaCount and lastReplicaCount open",
        )


def stage_trap(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    """HVPA weights' own list of drawbacks: below the stage that grows sizes nothing shrinks them again."""
    blend = linted.policy.blend if linted.policy else None
    if not isinstance(blend, Weights) or blend.exact:
        return
    path = linted.path("blend.weights.intervals")
    for index, stage in enumerate(blend.stages):
        grows_above = any(other.vertical_share > 0 and other.last > stage.last for other in blend.stages)
        before = [other for other in blend.stages[:index] if other.first <= stage.first <= other.last]
        if stage.vertical_share > 0 or not grows_above or before:
            continue
        span = _span(stage.first, stage.last)
        why = f"sizes that grew above {stage.last} replicas never shrink at {span}: the weight is 0"
        fix = "write the stage above it first and without startReplicaCount: then sizes shrink to minAllowed"
        yield Diagnostic(LintSeverity.WARNING, "stage-trap", f"{path}[{index}]", why, fix)


def percent_of_one(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    if isinstance(linted.obj, Hvpa) and linted.obj.spec.nested:
        for index, stage in enumerate(linted.obj.spec.weight_based_scaling_intervals or []):
            if stage.vpa_weight == 1:
                path = f"spec.weightBasedScalingIntervals[{index}].vpaWeight"
                yield Diagnostic(
                    LintSeverity.WARNING,
                    "weight-of-one",
                    path,
                    "beside hpa and vpa this is one percent",
                    "write 100 for all of it",
                )


def bucket_gaps(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    blend = linted.policy.blend if linted.policy else None
    if not isinstance(blend, Buckets):
        return
    path = linted.path("blend.buckets.buckets")
    for index, (low, high) in enumerate(pairwise(blend.buckets), start=1):
        for name, top, bottom, show in (
            ("cpu", low.most.cpu_cores, high.least.cpu_cores, format_cpu),
            ("memory", low.most.memory_bytes, high.least.memory_bytes, format_memory),
        ):
            if top is not None and bottom is not None and top * low.replicas_max < bottom * high.replicas_min:
                ends, begins = show(top * low.replicas_max), show(bottom * high.replicas_min)
                why = f"{name} totals from {ends} to {begins} are in no bucket; the upper one is stretched to meet them"
                fix = f"lower {name}.min to {show(top * low.replicas_max / high.replicas_min)}"
                yield Diagnostic(LintSeverity.WARNING, "bucket-gap", f"{path}[{index}].{name}.min", why, fix)


def _earlier_same_day(cron: str, other: str) -> bool:
    """Whether two crons that differ in nothing but their time stand in this order."""
    first, second = cron.split(), other.split()
    plain = len(first) == len(second) == 5 and first[2:] == second[2:]
    times = first[:2] + second[:2] if plain else ["*"]
    if not all(is_whole(field) for field in times):
        return False
    return (int(first[1]), int(first[0])) < (int(second[1]), int(second[0]))


def _span(low: int, high: int) -> str:
    return f"replica count {low}" if low == high else f"replica counts {low} to {high}"


CHECKS = (schedule_above_max, schedule_order, stage_overlap, stage_trap, percent_of_one, bucket_gaps)
