"""Crane's three recommendations: an autoscaler, requests for each container, a number of replicas."""

from __future__ import annotations

from math import ceil

import numpy as np
from msgspec.structs import replace

from trimtab.core import requests, weighted_percentile
from trimtab.core.advise.formulas import after_oom, least_replicas, most_replicas, on_ladder, target_percent
from trimtab.core.advise.records import (
    NO_SAMPLES,
    Against,
    Evidence,
    MeasuredWorkload,
    Objection,
    Objections,
    WorkloadAdvice,
)
from trimtab.core.forecast import dsp
from trimtab.core.forecast.dsp import clean
from trimtab.core.model import Missing, Reason
from trimtab.errors import InvalidInput, NotEnoughData
from trimtab.policy import Inspection, Size
from trimtab.quantity import MIB
from trimtab.series import Floats, Frame, Series

HOUR_S = 3600.0
_NOISE = 1e-6  # of a millicore, of a MiB: 229.99999999999997m is 230m
# Upstream's histograms; its memory buckets are 100 MiB wide.
CRANE_CPU = weighted_percentile.PercentileOptions(bucket_size=0.1, max_value=100.0, exact=True)
CRANE_MEMORY = weighted_percentile.PercentileOptions(bucket_size=104857600.0, max_value=104857600000.0, exact=True)


def recommend_hpa(rules: Inspection, workload: MeasuredWorkload) -> WorkloadAdvice | Objections:
    """Target from the pods' percentile, floor from the quietest hour, ceiling from P95 of past and future."""
    request = pod_request(workload)
    if isinstance(request, Objection):
        return Objections(reasons=(request,))
    future = predict(rules, workload)
    if isinstance(future, Missing) and rules.must_be_predictable:
        return Objections(reasons=(Objection(reason=Against.NOT_PREDICTABLE, detail=future.detail),))
    known = future.values if isinstance(future, Series) else np.empty(0)
    usage, medians = pod_usage(rules, workload), workload.medians
    target = target_percent(usage, request, rules.min_cpu_target_percent, rules.max_cpu_target_percent)
    least = least_replicas(
        float(medians.min()), request, rules.max_cpu_target_percent / 100, rules.default_min_replicas
    )
    p95 = quantile(rules, np.concatenate([workload.cpu_cores, known]), rules.cpu_percentile)
    most = most_replicas(p95, request, target / 100, rules.max_replicas_factor, least)
    after = mean_replicas(workload.cpu_cores, request * target / 100, least, most)
    return WorkloadAdvice(
        min_replicas=least,
        max_replicas=most,
        target_percent=target,
        metrics=workload.metrics if rules.reference_hpa else (),
        behavior=workload.behavior if rules.reference_hpa else None,
        predictable=isinstance(future, Series),
        evidence=Evidence(
            coverage=min(1.0, int(np.isfinite(workload.cpu_cores).sum()) * workload.step_s / rules.history_s),
            pod_request_cores=request,
            pod_usage_cores=usage,
            hourly_medians=tuple(medians.tolist()),
            peak_cores=float(np.nanmax(workload.cpu_cores)),
            p95_cores=p95,
            prediction=future.detail if isinstance(future, Missing) else "the next days follow the past ones",
            forecast=hourly_means(known, workload.step_s),
            replicas_before=workload.replicas,
            replicas_after=after,
        ),
        saved_cores=(workload.replicas - after) * request,
    )


def recommend_resources(rules: Inspection, workload: MeasuredWorkload) -> WorkloadAdvice | Objections:
    """Requests of each container: a percentile with a margin, what survives an OOM kill, a ladder's step."""
    sizes: dict[str, Size] = {}
    for name in workload.requests:
        cpu, memory = workload.container_cpu.get(name), workload.container_memory.get(name)
        if cpu is None or memory is None or not np.any(np.isfinite(cpu)) or not np.any(np.isfinite(memory)):
            return Objections(reasons=(Objection(reason=Against.NO_HISTORY, detail=name),))
        sizes[name] = _container_size(rules, cpu, memory, workload.oom_bytes.get(name))
    pairs = [(old, sizes[name]) for name, old in workload.requests.items()]
    return WorkloadAdvice(
        sizes=sizes,
        saved_cores=_saved(workload, [(old.cpu_cores, new.cpu_cores) for old, new in pairs]),
        saved_bytes=_saved(workload, [(old.memory_bytes, new.memory_bytes) for old, new in pairs]),
    )


def _container_size(rules: Inspection, cpu: Floats, memory: Floats, oom_bytes: float | None) -> Size:
    cores = need(rules, cpu, CRANE_CPU)
    size_bytes = need(rules, memory, CRANE_MEMORY)
    if rules.oom_protection:
        size_bytes = after_oom(size_bytes, oom_bytes, rules.oom_bump_ratio)
    cores, size_bytes = on_ladder(cores, size_bytes, rules.size_ladder)
    if rules.crane:
        return Size(cpu_cores=int(cores * 1000) / 1000, memory_bytes=float(int(size_bytes)))
    return Size(cpu_cores=ceil(cores * 1000 - _NOISE) / 1000, memory_bytes=ceil(size_bytes / MIB - _NOISE) * float(MIB))


def recommend_replicas(rules: Inspection, workload: MeasuredWorkload) -> WorkloadAdvice | Objections:
    """As many replicas as P95 of CPU needs, or P95 of memory where that is more."""
    request = pod_request(workload)
    if isinstance(request, Objection):
        return Objections(reasons=(request,))
    if not np.any(np.isfinite(workload.cpu_cores)):
        return Objections(reasons=(Objection(reason=Against.NO_HISTORY),))
    p95 = quantile(rules, workload.cpu_cores, rules.cpu_percentile)
    replicas = least_replicas(p95, request, rules.cpu_target_ratio, rules.default_min_replicas)
    memory = sum(size.memory_bytes or 0.0 for size in workload.requests.values())
    if workload.memory_bytes is not None and memory and np.any(np.isfinite(workload.memory_bytes)):
        top = quantile(rules, workload.memory_bytes, rules.cpu_percentile)
        replicas = max(replicas, least_replicas(top, memory, rules.memory_target_ratio, rules.default_min_replicas))
    evidence = Evidence(pod_request_cores=request, p95_cores=p95, replicas_before=workload.replicas)
    return WorkloadAdvice(replicas=replicas, evidence=evidence, saved_cores=(workload.replicas - replicas) * request)


def pod_request(workload: MeasuredWorkload) -> float | Objection:
    """CPU of the whole pod; a container without a request is named instead of failing everything."""
    containers = [requests.ContainerRequest(name, size) for name, size in workload.requests.items()]
    total = requests.pod_request(containers, workload.pod_level).cpu_cores
    lacking = (container.name for container in containers if not container.request.cpu_cores)
    return total or Objection(reason=Against.NO_REQUEST, detail=next(lacking, "?"))


def pod_usage(rules: Inspection, workload: MeasuredWorkload) -> float:
    """The percentile of what a pod uses, all its containers together; else the total shared by the replicas.

    Upstream adds up the percentiles of the containers, which is more where their peaks do not coincide.
    """
    pooled = [values for values in workload.container_cpu.values() if np.any(np.isfinite(values))]
    if rules.crane and pooled:
        return sum(need(rules, values, CRANE_CPU) for values in pooled)
    pods = np.sum(pooled, axis=0) if pooled else NO_SAMPLES
    if not np.any(np.isfinite(pods)):
        pods = workload.cpu_cores / max(1, workload.replicas)
    return need(rules, pods, CRANE_CPU) if rules.crane else quantile(rules, pods, rules.request_percentile)


def need(rules: Inspection, values: Floats, buckets: weighted_percentile.PercentileOptions) -> float:
    """A percentile of the samples with the margin on top; upstream's from its histogram."""
    margin = 1 + rules.request_margin
    if not rules.crane:
        return quantile(rules, values, rules.request_percentile) * margin
    frame = Frame(("",), 0.0, 60.0, values[np.newaxis, :])
    options = replace(buckets, percentile=rules.request_percentile)
    return float(weighted_percentile.weighted_percentiles(frame, options)[0]) * margin


def quantile(rules: Inspection, values: Floats, probability: float) -> float:
    """Of the samples that are there: interpolated, or by upstream's rank rule."""
    present = values[np.isfinite(values)]
    if rules.crane:
        return weighted_percentile.rank_percentile(np.sort(present), probability * 100)
    return float(np.quantile(present, probability))


def predict(rules: Inspection, workload: MeasuredWorkload) -> Series | Missing:
    """As long a time as the formulas look back at, or why it cannot be known; from two weeks where they are there."""
    cores = np.concatenate([workload.earlier_cores, workload.cpu_cores])
    present, steps = np.isfinite(cores), np.arange(len(cores), dtype=np.float64) - len(workload.earlier_cores)
    times: Floats = workload.start + workload.step_s * steps
    try:
        history = clean(Series(times[present], cores[present]), workload.step_s, HOUR_S)
        options = dsp.DspOptions(history_s=rules.forecast_history_s, exact=rules.crane)
        future = dsp.predict(history, workload.step_s, options)
    except (NotEnoughData, InvalidInput) as error:
        return Missing(reason=Reason.NOT_PREDICTABLE, detail=str(error))
    wanted = len(workload.cpu_cores)
    return future if isinstance(future, Missing) else Series(future.times[:wanted], future.values[:wanted])


def hourly_means(values: Floats, step_s: float) -> tuple[float, ...]:
    """Of each whole hour from the first value on, for charts."""
    width = max(1, round(HOUR_S / step_s))
    whole = values[: len(values) // width * width].reshape(-1, width)
    return tuple(whole.mean(axis=1).tolist())


def mean_replicas(usage: Floats, capacity_cores: float, least: int, most: int) -> float:
    """What the settings would have run on average over the history, without delays."""
    present = usage[np.isfinite(usage)]
    return float(np.mean(np.clip(np.ceil(present / capacity_cores), least, most)))


def _saved(workload: MeasuredWorkload, pairs: list[tuple[float | None, float | None]]) -> float:
    return workload.replicas * sum((old or 0.0) - (new or 0.0) for old, new in pairs if old is not None)
