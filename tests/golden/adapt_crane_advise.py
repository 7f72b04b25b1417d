"""Adapters for the advice in crane.json: formulas, inspectors, configuration, the conversion to an average value."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import trunc
from typing import Any

import numpy as np
import pytest

from tests.golden.harness import Case, Excuse
from trimtab.core.advise import MeasuredWorkload, WorkloadAdvice, advise
from trimtab.core.advise.formulas import (
    after_oom,
    available,
    hourly_medians,
    hours_utc,
    least_replicas,
    most_replicas,
    on_ladder,
    target_percent,
)
from trimtab.core.advise.inspect import availability, inspect_pods, low_fluctuation, low_usage
from trimtab.core.model import Forecast, Observation, Pod, Quantile
from trimtab.core.propose_ahead import capacity_of_one, propose_ahead
from trimtab.core.requests import ContainerRequest, pod_request
from trimtab.errors import InvalidInput
from trimtab.kinds.config_keys import DEFAULT_LADDER, known_keys, settings_of
from trimtab.kinds.selector import Selector
from trimtab.policy import (
    Advice,
    AdviceAlgorithm,
    ForecastChoice,
    Inspection,
    Metric,
    MetricKind,
    Policy,
    Size,
    TotalAverage,
)
from trimtab.policy import Utilization as UtilizationSignal
from trimtab.quantity import GIB, format_cpu, format_memory, parse_duration, parse_quantity

NOW = 1_000_000_000.0


def fluctuation(case: Case) -> None:
    """ "1..1439", one per minute: from the first minute of a day, so that the hours are whole."""
    given, expected = case["input"], case["expected"]
    first, last = (float(end) for end in re.findall(r"\d+", given["samples"])[:2])
    values = np.arange(first, last + 1)
    medians = hourly_medians(values, hours_utc(0.0, 60.0, len(values)))
    if "median_min" in expected:
        assert (medians.min(), medians.max()) == (expected["median_min"], expected["median_max"])
        assert medians.max() / medians.min() == pytest.approx(expected["fluctuation"])
        return
    found = low_fluctuation(float(medians.min()), float(medians.max()), given["fluctuation_threshold"])
    assert (found is not None) == expected["error"]


def max_replicas(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    p95 = given.get("p95_cores", 19.0)  # the random ones lie below 20 cores and are only bounded from below
    found = most_replicas(
        p95,
        given["pod_request_milli"] / 1000,
        given["target_utilization_pct"] / 100,
        given["max_replicas_factor"],
        given["min_replicas"],
    )
    if "max_replicas" in expected:
        assert found == expected["max_replicas"]
    else:
        assert found >= expected.get("max_replicas_at_least", 0)


def min_replicas_of_trough(case: Case) -> None:
    given = case["input"]
    ratio = given["max_cpu_target_utilization_pct"] / 100
    found = least_replicas(
        given["median_min_cores"], given["pod_request_milli"] / 1000, ratio, given["default_min_replicas"]
    )
    assert found == case["expected"]["min_replicas"]


def min_replicas_of_peak(case: Case) -> None:
    given = case["input"]
    ratio = given["cpu_target_utilization_ratio"]
    found = least_replicas(given["p95_cores"], given["pod_request_milli"] / 1000, ratio, given["default_min_replicas"])
    assert found == case["expected"]["min_replicas"]


def documented_replicas(case: Case) -> None:
    given = case["input"]
    found = least_replicas(
        given["workload_usage_cores"], given["pod_request_cores"], given["target_peak_utilization"], 1
    )
    assert found == case["expected"]["replicas"]


def target(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    usage = given.get(
        "pod_cpu_usage_cores", given.get("p99_bucket_end_cores", 0) * (1 + given.get("margin_fraction", 0))
    )
    request = given["pod_request_milli"] / 1000
    least, most = given.get("min_pct", 30), given.get("max_pct", 75)
    assert target_percent(usage, request, least, most) == expected["target_utilization_pct"]


def nginx(case: Case) -> None:
    """The sample of Crane's HPA recommendation, through the program's numbers."""
    given, expected = case["input"], case["expected"]
    rules = Inspection(algorithm=AdviceAlgorithm.CRANE, **settings_of(given["config"], Advice.HPA))
    idle = MeasuredWorkload(
        kind="Deployment",
        namespace="default",
        name="nginx-deployment",
        replicas=given["replicas"],
        pods=tuple(_available() for _ in range(given["replicas"])),
        requests={"nginx": Size(cpu_cores=given["pod_request_milli"] / 1000)},
        start=0.0,
        step_s=60.0,
        cpu_cores=np.full(7 * 1440, 0.001),
    )
    found = advise(rules, idle, NOW)
    assert isinstance(found, WorkloadAdvice)
    assert (found.min_replicas, found.max_replicas) == (expected["minReplicas"], expected["maxReplicas"])
    assert found.target_percent == expected["averageUtilization"]
    assert found.predictable == (expected["prediction"] is not None)


def _available() -> Pod:
    return Pod(name="pod", ready_since=0.0)


def replicas_inspector(case: Case) -> None:
    given = case["input"]
    rules = Inspection(workload_min_replicas=given["workload_min_replicas"], deployment_min_replicas=0)
    one = MeasuredWorkload(
        kind="Deployment",
        namespace="",
        name="",
        replicas=given["replicas"],
        pods=(_available(),),
        requests={},
        start=0.0,
        step_s=60.0,
        cpu_cores=np.empty(0),
    )
    assert bool(inspect_pods(rules, one, NOW)) == (case["expected"]["error"] is not None)


def pods_inspector(case: Case) -> None:
    given = case["input"]
    found = availability(given["pods"], given["available"], given["pod_available_ratio"])
    assert (found is not None) == (case["expected"]["error"] is not None)


def pod_available(case: Case) -> None:
    given = case["input"]
    pod = Pod(
        name="pod",
        phase=given["phase"],
        ready=given["ready"],
        ready_since=NOW - given["seconds_since_ready_transition"],
        deleting=given.get("deleting", False),
    )
    assert available(pod, given["min_ready_seconds"], NOW) == case["expected"]["available"]


def usage_threshold(case: Case) -> None:
    given = case["input"]
    assert (low_usage(given["cpu_max_cores"], given["threshold"]) is not None) == case["expected"]["error"]


def fluctuation_threshold(case: Case) -> None:
    given = case["input"]
    found = low_fluctuation(given["median_min"], given["median_max"], given["threshold"])
    assert (found is not None) == case["expected"]["error"]


def _container(index: int, one: dict[str, Any]) -> ContainerRequest:
    def amount(name: str) -> float | None:
        return parse_quantity(one[name]) if name in one else None

    size = Size(cpu_cores=amount("cpu"), memory_bytes=amount("memory"))
    return ContainerRequest(name=one.get("name", f"container-{index}"), request=size)


def template_requests(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    total = pod_request([_container(index, one) for index, one in enumerate(given["containers"])])
    amount = total.cpu_cores if given["resource"] == "cpu" else total.memory_bytes
    assert amount is None if "error" in expected else amount is not None and amount * 1000 == expected["milli"]


def pods_requests(case: Case) -> None:
    given, milli = case["input"], 0.0
    for pod in given["pods"]:
        size = pod_request([_container(i, one) for i, one in enumerate(pod)], None, given["container"])
        milli += 1000 * ((size.cpu_cores if given["resource"] == "cpu" else size.memory_bytes) or 0.0)
    assert milli == case["expected"]["milli"]


def selector(case: Case) -> None:
    given = case["input"]
    data: dict[str, Any] = {"matchLabels": given["selector"].get("matchLabels")}
    if "expr" in given["selector"]:
        key, operator, values = given["selector"]["expr"]
        data["matchExpressions"] = [{"key": key, "operator": operator} | ({"values": values} if values else {})]
        if operator in ("In", "NotIn") and not values:
            # Kubernetes refuses a set operator without a set; so do we, and nothing matches.
            with pytest.raises(ValueError):
                Selector.model_validate(data)
            return
    assert Selector.model_validate(data).matches(given["labels"]) == case["expected"]["match"]


def ladder(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    read = known_keys(Advice.RESOURCE)["specification-config"].read
    if "error" in expected:
        with pytest.raises((ValueError, InvalidInput)):
            read(given["specs"])
        return
    assert sorted(read(given["specs"])) == [(cores, gib * GIB) for cores, gib in expected["sorted"]]


def on_default_ladder(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    cores, memory = on_ladder(parse_quantity(given["cpu"]), parse_quantity(given["memory"]), DEFAULT_LADDER)
    assert cores == parse_quantity(expected["cpu"]), format_cpu(cores)
    assert memory == parse_quantity(expected["memory"]), format_memory(memory)


def oom(case: Case) -> None:
    given = case["input"]
    assert int(after_oom(0.0, given["oom_bytes"], given["ratio"])) == case["expected"]["bytes"]


def average_value(case: Case) -> None:
    """What one replica carries at its target is the average value that a prediction is compared with."""
    given, expected = case["input"], case["expected"]
    requests = given.get("available_pod_request_milli", [given.get("pod_request_milli")])
    metric = Metric(kind=MetricKind.RESOURCE, name="cpu")
    signal = UtilizationSignal(metric=metric, percent=given["average_utilization"])
    pods = tuple(Pod(name=str(i), requests=Size(cpu_cores=milli / 1000)) for i, milli in enumerate(requests))
    seen = Observation(at=NOW, spec_replicas=len(pods), status_replicas=len(pods), pods=pods)
    found = capacity_of_one(Policy(signals=(signal,)), signal, seen)
    assert isinstance(found, float)
    wanted = expected.get("average_value_milli") or parse_quantity(expected["average_value"]) * 1000
    assert trunc(found * 1000 + 1e-6) == round(wanted)


def predicted_value(case: Case) -> None:
    """Upstream serves a prediction truncated to a whole number, or rounded to milli; ours loses nothing."""
    value = case["input"]["max_predicted"]
    metric = Metric(kind=MetricKind.EXTERNAL, name="cores")
    policy = Policy(signals=(TotalAverage(metric=metric, target=0.001),), forecast=ForecastChoice())
    forecast = Forecast(made_at=NOW, expires_at=NOW + 60, demand=(Quantile(0.5, value),), model="dsp")
    seen = Observation(at=NOW, spec_replicas=1, status_replicas=1, forecasts=(forecast,))
    proposal = propose_ahead(policy, seen)[0]
    assert proposal.value == value and proposal.replicas == round(value * 1000)


def duration(case: Case) -> None:
    if case["expected"]["seconds"] == "error":
        with pytest.raises(InvalidInput):
            parse_duration(case["input"]["s"])
    else:
        assert parse_duration(case["input"]["s"]) == case["expected"]["seconds"]


PLACES: dict[str, Callable[[Case], None]] = {
    "TestCheckFluctuation": fluctuation,
    "TestProposeMaxReplicas": max_replicas,
    "replicas.go:proposeMaxReplicas": max_replicas,
    "ehpa.go:proposeMinReplicas": min_replicas_of_trough,
    "recommend.go:ProposeMinReplicas": min_replicas_of_peak,
    "replicas-recommendation.md": documented_replicas,
    "proposeTargetUtilization": target,
    "hpa-recommendation.md": target,
    "nginx sample": nginx,
    "workload.go:Inspect": replicas_inspector,
    "workload_pods.go:Inspect": pods_inspector,
    "IsPodAvailable": pod_available,
    "checkMinCpuUsageThreshold": usage_threshold,
    "checkFluctuation": fluctuation_threshold,
    "CalculatePodTemplateRequests": template_requests,
    "TestCalculatePodRequests": pods_requests,
    "analytics_controller_test.go:TestMatch": selector,
    "TestGetResourceSpecifications": ladder,
    "TestGetNormalizedResource": on_default_ladder,
    "MemoryOOMProtection": oom,
    "GetHPAMetrics": average_value,
    "using-effective-hpa-to-scaling": average_value,
    "TestParseDuration": duration,
}
RESOLVED: dict[str, Callable[[Case], None]] = {
    "external_metric_provider.go:GetExternalMetric": predicted_value,
    "custom_metric_provider.go": predicted_value,
}
INTERNALS: dict[str, Excuse] = dict.fromkeys(
    (
        "TestRecommendationInd",  # an index over its own objects
        "TestAggregateSignals",
        "TestMetricSelector",
        "validating.go:ValidateCreate",  # TimeSeriesPrediction: no such kind here
        "container_policy_test.go",  # EffectiveVPA's estimators: no such kind here
        "TestLoadConfigSetFromFile",  # defaults in a file of its server: a config belongs to each Analytics here
        "config.go:GetProperties",
        "config.go:targetsMatchLevel",
        "expression_prom_de",  # workloads are found by owner, not by a pattern of pod names
        "GetPodNameReg",
        "expression_test.go",  # rules of a metrics adapter
        "ctx_test.go",  # its query splitter
        "TestParseFloat",
        "TestParsePercentage",
        "TestDetectTimestampCompletion",
    ),
    Excuse.INTERNALS,
)
