"""Why advice is what it is: one sentence for each number, with the threshold that shaped it."""

from __future__ import annotations

from trimtab.core.advise.records import Evidence, WorkloadAdvice
from trimtab.core.explain.tuning import settings_text
from trimtab.core.figures import Figures
from trimtab.policy import Inspection

FULL = 0.95  # of the history; less is worth a word


def because(rules: Inspection, found: WorkloadAdvice) -> list[str]:
    """The numbers of a recommendation, each with its reason; of advice on sizes only the percentile."""
    if found.evidence.present is not None:
        return _proven(found, found.evidence, found.evidence.present)
    if found.sizes:
        share = f"P{rules.request_percentile * 100:g} of each container's usage in single pods"
        return [f"requests are {share} with {rules.request_margin:.0%} on top"]
    if found.replicas is not None:
        p95 = _cores(found.evidence.p95_cores)
        percentile = f"P{rules.cpu_percentile * 100:g}"
        return [
            f"{percentile} of the load is {p95}: {found.replicas} replicas at {rules.cpu_target_ratio:.0%} of requests"
        ]
    evidence = found.evidence
    said = [_target(rules, found, evidence), _least(rules, found, evidence), _most(rules, found, evidence)]
    said.append(f"prediction: {evidence.prediction}" if found.predictable else f"no prediction: {evidence.prediction}")
    if found.metrics or found.behavior:
        parts = [f"{len(found.metrics)} more metrics"] * bool(found.metrics) + ["the behavior"] * bool(found.behavior)
        said.append(f"{' and '.join(parts)} are inherited from the workload's HPA (reference-hpa)")
    if evidence.coverage is not None and evidence.coverage < FULL:
        days = rules.history_s / 86400
        said.append(f"only {evidence.coverage:.0%} of {days:g} days have samples: advice will change as history grows")
    if evidence.replicas_after is not None and evidence.replicas_before is not None:
        before, after = evidence.replicas_before, evidence.replicas_after
        said.append(f"on average {after:.1f} replicas would have run instead of {before:g}")
    return said


def _proven(found: WorkloadAdvice, evidence: Evidence, now: Figures) -> list[str]:
    days = f"{evidence.days or 0.0:.1f} days of its own load"
    if evidence.then is None:
        said = [f"replicas and CPU stay: on {days} nothing else was 2 % better (J {now.j:.2f})"]
    else:
        said = [f"on {days}: {_now_and_then(now, evidence.then)} (1 is the optimum at the present size)"]
    said += [f"a pod is {evidence.level}"] if evidence.level else []
    if refused := evidence.refused:
        more = f"{refused.figures.violations:.2f} % of the load would be overloaded instead of {now.violations:.2f} %"
        said = [f"`trimtab tune` finds {settings_text(refused.settings, percent=True)}, but {more}: it stays"]
    if plain := evidence.without_tolerance:
        how = f"{settings_text(plain.settings, percent=True)} (J {plain.figures.j:.2f})"
        said.append(f"where the API server drops `tolerance`, the best is {how}")
    if found.min_replicas is not None:
        before, after = evidence.replicas_before or 0.0, evidence.replicas_after or 0.0
        said.append(f"on average {after:.1f} replicas would have run instead of {before:.1f}")
        said.append("the CPU request stays, for the target is a share of it")
    elif any(size.cpu_cores is not None for size in found.sizes.values()):
        said.append(f"the number of pods stays; each uses up to {_cores(evidence.pod_usage_cores)}")
    if any(size.memory_bytes is not None for size in found.sizes.values()):
        said.append("memory is the most that a pod used with a margin, and with what more work for each pod may need")
    return said


def _now_and_then(now: Figures, then: Figures) -> str:
    violations = f"violations {now.violations:.2f} % now, {then.violations:.2f} % then"
    return f"{violations}; cost {now.cost:.2f} now, {then.cost:.2f} then; J {now.j:.2f} now, {then.j:.2f} then"


def _target(rules: Inspection, found: WorkloadAdvice, evidence: Evidence) -> str:
    usage, request = evidence.pod_usage_cores or 0.0, evidence.pod_request_cores or 1.0
    percent = 100 * usage / request
    said = f"target {found.target_percent} %: P{rules.request_percentile * 100:g} of a pod is {_cores(usage)} of"
    said += f" {_cores(request)} requested, {percent:.0f} %"
    if percent > rules.max_cpu_target_percent:
        return f"{said}, lowered to max-cpu-target-utilization"
    return f"{said}, raised to min-cpu-target-utilization" if percent < rules.min_cpu_target_percent else said


def _least(rules: Inspection, found: WorkloadAdvice, evidence: Evidence) -> str:
    trough = min(evidence.hourly_medians, default=0.0)
    said = f"min {found.min_replicas}: the quietest hour needs {_cores(trough)}"
    return f"{said}, raised to default-min-replicas" if found.min_replicas == rules.default_min_replicas else said


def _most(rules: Inspection, found: WorkloadAdvice, evidence: Evidence) -> str:
    span = "the past and the coming week" if found.predictable else "the past week"
    percentile = f"P{rules.cpu_percentile * 100:g}"
    said = f"max {found.max_replicas}: {percentile} of {span} is {_cores(evidence.p95_cores)},"
    said += f" times {rules.max_replicas_factor:g} (max-replicas-factor)"
    return f"{said}, raised to min" if found.max_replicas == found.min_replicas else said


def _cores(value: float | None) -> str:
    return f"{value or 0.0:.3g} cores"
