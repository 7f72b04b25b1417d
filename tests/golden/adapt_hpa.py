"""Adapters for hpa.json: Kubernetes' replica calculator and horizontal controller."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from tests.golden.harness import Case, Excuse
from trimtab.core import explain, remember
from trimtab.core.bound import bound
from trimtab.core.bounds_in_force import BoundsInForce
from trimtab.core.decide import decide
from trimtab.core.model import (
    Change,
    Decision,
    Memory,
    Missing,
    Observation,
    Pod,
    PodSamples,
    Reason,
    Step,
    TotalSample,
)
from trimtab.core.propose import propose
from trimtab.core.replica_calculator import average_value, utilization_percent
from trimtab.core.requests import ContainerRequest, pod_request
from trimtab.core.settle import RULES, SettleContext, rate, stabilise
from trimtab.core.settle.context import wish_of
from trimtab.core.tally import Tally, tally
from trimtab.errors import InvalidInput
from trimtab.policy import (
    Axis,
    Bounds,
    Metric,
    MetricKind,
    PodAverage,
    PodRules,
    Policy,
    Rate,
    RatePolicy,
    Rates,
    Select,
    Signal,
    Size,
    Stabilise,
    StabiliseMax,
    Tolerance,
    Total,
    TotalAverage,
    UpLimit,
    Utilization,
)

NOW = 2_000_000_000.0
MAX_INT64 = 2**63 - 1


def _ago(seconds: float | None) -> float | None:
    return None if seconds is None else NOW - seconds


def _pod(data: dict[str, Any], resource: str = "cpu") -> Pod:
    requests = data.get("requestsMilli") or {}
    known = [milli for milli in requests.values() if milli is not None]
    total = sum(known) / 1000 if known and len(known) == len(requests) else None
    ready, since = data.get("ready"), data.get("readyTransitionSecondsAgo")
    if "readyCondition" in data:
        condition = data["readyCondition"]
        ready = None if condition is None else condition["status"] == "True"
        since = None if condition is None else condition["transitionSecondsAgo"]
    return Pod(
        name=data["name"],
        phase=data["phase"],
        ready=ready,
        started_at=_ago(data.get("startedSecondsAgo")),
        ready_since=_ago(since),
        deleting=data.get("deleted", False),
        requests=_size(total, resource),
        containers={name: _size(None if milli is None else milli / 1000, resource) for name, milli in requests.items()},
    )


def _size(amount: float | None, resource: str) -> Size:
    return Size(cpu_cores=amount) if resource == "cpu" else Size(memory_bytes=amount)


def _tolerance(data: dict[str, float]) -> Tolerance:
    return Tolerance(up=data["up"], down=data["down"])


def _pod_rules(given: dict[str, Any]) -> PodRules:
    return PodRules(
        cpu_init_s=given.get("cpuInitializationPeriodSeconds", 120),
        readiness_delay_s=given.get("initialReadinessDelaySeconds", 10),
    )


def _samples(metrics: list[dict[str, Any]], key: str, container: str = "") -> PodSamples:
    return PodSamples(
        values={one["pod"]: _usage(one[key], container) / 1000 for one in metrics if _speaks(one[key], container)},
        at=NOW,
        times={one["pod"]: NOW - (one.get("sampleSecondsAgo") or 0) for one in metrics},
        window_s=(metrics[0].get("windowSeconds") if metrics else None) or 0,
    )


def _speaks(given: float | dict[str, float], container: str) -> bool:
    return not isinstance(given, dict) or not container or container in given


def _usage(given: float | dict[str, float], container: str) -> float:
    if not isinstance(given, dict):
        return given
    return given[container] if container else sum(given.values())


def _propose(signal: Signal, sample: PodSamples | TotalSample, given: dict[str, Any], resource: str = "cpu") -> Any:
    current = given["currentReplicas"]
    seen = Observation(
        at=NOW,
        spec_replicas=current,
        status_replicas=current,
        pods=tuple(_pod(one, resource) for one in given.get("pods", [])),
        samples=(sample,),
    )
    policy = Policy(signals=(signal,), pods=_pod_rules(given))
    return propose(policy, seen)[0]


def _check(case: Case, proposal: Any, value_key: str = "", scale: float = 1000) -> None:
    expected = case["expected"]
    if "error" in expected:
        assert isinstance(proposal.replicas, Missing)
        return
    assert proposal.replicas == expected["replicas"]
    if value_key in expected:
        # Upstream reports an average rounded up for display; it decides on the total.
        assert math.ceil(round(proposal.value * scale, 6)) == pytest.approx(expected[value_key], rel=1e-15)


def utilization(case: Case) -> None:
    given = case["input"]
    container = given.get("container") or ""
    kind = MetricKind.CONTAINER if container else MetricKind.RESOURCE
    metric = Metric(kind=kind, name=given["resource"], container=container)
    signal = Utilization(
        metric=metric, percent=given["targetUtilizationPercent"], tolerance=_tolerance(given["tolerance"])
    )
    samples = _samples(given["metrics"], "usageMilli", container)
    _check(case, _propose(signal, samples, given, given["resource"]), "utilizationPercent", 1)


def pods_metric(case: Case) -> None:
    given = case["input"]
    metric = Metric(kind=MetricKind.PODS, name="qps")
    signal = PodAverage(metric=metric, target=given["targetMilli"] / 1000, tolerance=_tolerance(given["tolerance"]))
    _check(case, _propose(signal, _samples(given["metrics"], "valueMilli"), given), "usageMilli")


def _total(given: dict[str, Any]) -> TotalSample:
    milli = min(sum(given.get("valuesMilli", [given.get("valueMilli", 0)])), MAX_INT64)
    return TotalSample(value=milli / 1000, at=NOW)


def value(case: Case) -> None:
    given = case["input"]
    metric = Metric(kind=MetricKind.EXTERNAL, name="qps")
    signal = Total(metric=metric, target=given["targetMilli"] / 1000, tolerance=_tolerance(given["tolerance"]))
    _check(case, _propose(signal, _total(given), given), "usageMilli")


def average(case: Case) -> None:
    given = case["input"]
    metric = Metric(kind=MetricKind.EXTERNAL, name="qps")
    signal = TotalAverage(metric=metric, target=given["targetMilli"] / 1000, tolerance=_tolerance(given["tolerance"]))
    _check(case, _propose(signal, _total(given), given), "usageMilli")


def group_pods(case: Case) -> None:
    given = case["input"]
    metrics = given["metrics"]
    samples = PodSamples(
        values=dict.fromkeys(metrics, 1.0),
        at=NOW,
        times={name: NOW - one["sampleSecondsAgo"] for name, one in metrics.items()},
        window_s=next((one["windowSeconds"] for one in metrics.values()), 60),
    )
    pods = tuple(_pod(one) for one in given["pods"])
    metric = Metric(kind=MetricKind.RESOURCE, name=given["resource"])
    classes: dict[str, list[str]] = {"ready": [], "unready": [], "missing": [], "ignored": []}
    for pod in pods:
        alone = tally((pod,), samples, metric, _pod_rules(given), NOW, needs_request=False)
        assert isinstance(alone, Tally)
        found = [name for name in ("ready", "unready", "missing") if getattr(alone, name)]
        classes[found[0] if found else "ignored"].append(pod.name)
    expected = case["expected"]
    assert len(classes["ready"]) == expected["readyCount"]
    assert sorted(classes["unready"]) == sorted(expected["unready"])
    assert sorted(classes["missing"]) == sorted(expected["missing"])
    assert sorted(classes["ignored"]) == sorted(expected["ignored"])


def utilization_ratio(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    known = {name: milli for name, milli in given["metricsMilli"].items() if name in given["requestsMilli"]}
    usage = sum(known.values()) / 1000
    request = sum(given["requestsMilli"][name] for name in known) / 1000
    pods = tuple(
        Pod(name=name, started_at=0.0, ready_since=0.0, requests=Size(cpu_cores=milli / 1000))
        for name, milli in given["requestsMilli"].items()
    )
    samples = PodSamples(values={name: milli / 1000 for name, milli in given["metricsMilli"].items()}, at=NOW)
    totals = tally(pods, samples, Metric(kind=MetricKind.RESOURCE, name="cpu"), PodRules(), NOW, True)
    assert not isinstance(totals, Missing)
    if "error" in expected:
        assert totals.ready == 0
        return
    assert (totals.usage, totals.request) == (pytest.approx(usage), pytest.approx(request))
    percent = utilization_percent(totals.usage, totals.request)
    assert percent == expected["utilizationPercent"]
    assert percent / given["targetUtilizationPercent"] == pytest.approx(expected["ratio"], abs=expected["ratioEpsilon"])
    assert int(average_value(totals.usage, totals.ready) * 1000) == expected["rawAverageMilli"]


def usage_ratio(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    values = given["metricsMilli"].values()
    mean = average_value(sum(values) / 1000, len(values))
    assert round(mean * 1000) == expected["usageMilli"]
    assert mean / (given["targetMilli"] / 1000) == pytest.approx(expected["ratio"], abs=expected["ratioEpsilon"])


# --- normalisation ---------------------------------------------------------------------------------------------------


def _rates(data: dict[str, Any] | None, default: Rates) -> Rates:
    if data is None or "policies" not in data:
        return default
    policies = tuple(
        RatePolicy(percent=one["type"] == "Percent", value=one["value"], period_s=one["periodSeconds"])
        for one in data["policies"]
    )
    return Rates(select=Select(data.get("selectPolicy") or "Max"), policies=policies)


def _events(data: list[dict[str, Any]]) -> tuple[tuple[float, int], ...]:
    return tuple((NOW - one["secondsAgo"], one["change"]) for one in data)


def _settled(case: Case, rules: tuple[Any, ...], memory: Memory) -> None:
    """Through the rules and the bounds, as decide() does it; the reason through the conditions."""
    given, expected = case["input"], case["expected"]
    current = given["currentReplicas"]
    limits = BoundsInForce(given["minReplicas"], given["maxReplicas"])
    scene = SettleContext(NOW, current, current, limits.least, limits.most, memory)
    wish, steps = wish_of(given["desiredReplicas"], current), []
    for rule in rules:
        name, apply = RULES[type(rule)]
        settled, _ = apply(rule, wish, scene)
        if settled.replicas != wish.replicas:
            steps.append(Step(rule=name, axis=Axis.REPLICAS, before=wish.replicas, after=settled.replicas))
        wish = settled
    replicas = bound(int(wish.replicas), limits, steps)
    assert replicas == expected["replicas"]
    if "limitReason" in expected:
        policy = Policy(bounds=Bounds(min_replicas=limits.least, max_replicas=limits.most))
        assert explain.limited(tuple(steps), policy).reason == expected["limitReason"]


def clamp_no_behavior(case: Case) -> None:
    given = case["input"]
    rule = UpLimit(factor=given["scaleUpLimitFactor"], minimum=given["scaleUpLimitMinimum"])
    _settled(case, (rule,), Memory())


def behavior_rate(case: Case) -> None:
    given = case["input"]
    rule = Rate(up=_rates(given["scaleUp"], Rate().up), down=_rates(given["scaleDown"], Rate().down))
    _settled(case, (rule,), Memory(grown=_events(given["scaleUpEvents"]), shrunk=_events(given["scaleDownEvents"])))


def scale_up_limit(case: Case) -> None:
    given = case["input"]
    grown, shrunk = _events(given["scaleUpEvents"]), _events(given["scaleDownEvents"])
    found = rate.up_limit(_rates(given["rules"], Rate().up), given["currentReplicas"], grown, shrunk, NOW)
    assert found == case["expected"]["limit"]


def scale_down_limit(case: Case) -> None:
    given = case["input"]
    grown, shrunk = _events(given["scaleUpEvents"]), _events(given["scaleDownEvents"])
    found = rate.down_limit(_rates(given["rules"], Rate().down), given["currentReplicas"], grown, shrunk, NOW)
    assert found == case["expected"]["limit"]


def _wanted(data: list[dict[str, Any]]) -> tuple[tuple[float, int], ...]:
    return tuple((NOW - one["secondsAgo"], one["replicas"]) for one in data)


def stabilise_no_behavior(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    wanted, wish = _wanted(given["recommendations"]), given["desiredReplicas"]
    window = given["downscaleStabilizationSeconds"]
    scene = SettleContext(NOW, wish, wish, 0, 10**6, Memory(wanted=wanted))
    settled, _ = stabilise.highest(StabiliseMax(window_s=window), wish_of(wish, wish), scene)
    assert settled.replicas == expected["replicas"]
    assert len(stabilise.remember(wanted, NOW, wish, window)) == expected["storedCount"]


def stabilise_behavior(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    wanted, current = _wanted(given["recommendations"]), given["currentReplicas"]
    rule = Stabilise(up_s=given["upWindowSeconds"], down_s=given["downWindowSeconds"])
    scene = SettleContext(NOW, current, current, 0, 10**6, Memory(wanted=wanted))
    settled, _ = stabilise.between(rule, wish_of(given["desiredReplicas"], current), scene)
    assert settled.replicas == expected["replicas"]
    if "storedRecommendations" in expected:
        stored = stabilise.remember(wanted, NOW, given["desiredReplicas"], max(rule.up_s, rule.down_s))
        assert [replicas for _, replicas in stored] == expected["storedRecommendations"]


def store_scale_event(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    events, rates = _events(given["events"]), _rates(given["rules"], Rate().up)
    period = rate.longest_period(rates)
    assert rate.changed(events, NOW - 60) == expected["changeInLast60s"]
    policy = Policy(settle=(Rate(up=rates),) if given["rules"] else ())
    change = Change(was=1, replicas=1 + given["replicaChange"])
    stored = remember.remember(policy, Memory(grown=events), change, NOW).grown
    fresh = [change for at, change in stored if at >= NOW - period or not given["rules"]]
    assert fresh == [one["change"] for one in expected["storedEvents"] if not one["outdated"]]


# --- one whole pass --------------------------------------------------------------------------------------------------


def reconcile(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    policy, samples = _policy(given), _pass_samples(given)
    seen = Observation(
        at=NOW,
        spec_replicas=given["specReplicas"],
        status_replicas=given["statusReplicas"],
        pods=tuple(_pod(one, _resource(given)) for one in given["pods"]),
        samples=samples,
    )
    memory = _memory(given)
    decision = decide(policy, seen, memory)
    assert decision.plan.replicas == expected["desiredReplicas"]
    assert (decision.change is not None) == expected["scaleUpdated"]
    if "conditions" in expected:
        now = explain.conditions(policy, seen, memory, decision)
        if not given.get("featureScaleToZero"):
            now = tuple(one for one in now if one.type != "ScaledToZero")
        found = _merged(given["initialConditions"], now)
        assert found == [(one["type"], one["status"], one["reason"]) for one in expected["conditions"]]
    if "actionLabel" in expected:
        assert _action(decision) == expected["actionLabel"]
    if "errorLabel" in expected:
        assert _error(decision) == expected["errorLabel"]
    if "cpuUtilizationPercent" in expected:
        assert decision.proposals[0].value == expected["cpuUtilizationPercent"]


def _resource(given: dict[str, Any]) -> str:
    return next((one["name"] for one in given["metrics"] if one["type"] == "Resource"), "cpu")


def _action(decision: Decision) -> str:
    """The `action` label of HPA's own controller metrics."""
    change = decision.change
    if change is None or change.replicas is None or change.replicas == change.was:
        return "none"
    return "scale_up" if change.replicas > change.was else "scale_down"


def _error(decision: Decision) -> str:
    """The `error` label of HPA's own controller metrics: whose fault a missing signal is."""
    reasons = [
        proposal.replicas.reason
        for proposal in decision.proposals
        if isinstance(proposal.replicas, Missing) and not proposal.forecast
    ]
    if not reasons:
        return "none"
    return "spec" if Reason.UNSUPPORTED in reasons else "internal"


def _merged(before: list[dict[str, str]], now: tuple[explain.DecisionCondition, ...]) -> list[tuple[str, str, str]]:
    """As a status is written: a condition keeps its place, a new one goes to the end."""
    merged = {one["type"]: (one["type"], one["status"], one["reason"]) for one in before}
    for one in now:
        merged[one.type] = (one.type, str(one.status), one.reason)
    return list(merged.values())


def _memory(given: dict[str, Any]) -> Memory:
    zeroed = any(one["type"] == "ScaledToZero" and one["status"] == "True" for one in given["initialConditions"])
    if given["recommendations"] is None:
        memory = remember.first_sight(NOW, given["specReplicas"])
    else:
        memory = Memory(wanted=_wanted(given["recommendations"]))
    return replace(memory, zeroed=zeroed and given.get("featureScaleToZero", False))


def _policy(given: dict[str, Any]) -> Policy:
    up, down = given["scaleUp"], given["scaleDown"]
    settle: tuple[Any, ...] = (
        StabiliseMax(window_s=given["downscaleStabilizationSeconds"]),
        UpLimit(factor=given["scaleUpLimitFactor"], minimum=given["scaleUpLimitMinimum"]),
    )
    if up is not None or down is not None:
        windows = Stabilise(
            up_s=(up or {}).get("stabilizationWindowSeconds") or 0,
            down_s=_window(down, given["downscaleStabilizationSeconds"]),
        )
        settle = (windows, Rate(up=_rates(up, Rate().up), down=_rates(down, Rate().down)))
    configurable = given.get("featureConfigurableTolerance", False)
    tolerance = Tolerance(
        up=_own_tolerance(up, given["tolerance"], configurable),
        down=_own_tolerance(down, given["tolerance"], configurable),
    )
    return Policy(
        signals=tuple(_signal(one, tolerance) for one in given["metrics"]),
        pods=_pod_rules(given),
        settle=settle,
        bounds=Bounds(min_replicas=given["minReplicas"], max_replicas=given["maxReplicas"]),
    )


def _window(rules: dict[str, Any] | None, default: float) -> float:
    window = (rules or {}).get("stabilizationWindowSeconds")
    return default if window is None else float(window)


def _own_tolerance(rules: dict[str, Any] | None, default: float, configurable: bool) -> float:
    own = (rules or {}).get("tolerance") if configurable else None
    return default if own is None else float(own)


_KINDS = {"Resource": MetricKind.RESOURCE, "ContainerResource": MetricKind.CONTAINER, "Pods": MetricKind.PODS,
          "Object": MetricKind.OBJECT}  # fmt: skip


def _signal(one: dict[str, Any], tolerance: Tolerance) -> Signal:
    kind = _KINDS.get(one["type"], MetricKind.EXTERNAL)
    metric = Metric(kind=kind, name=one.get("name") or one.get("metric", ""), container=one.get("container", ""))
    target = one.get("target", {"type": "Value", "valueMilli": 1})
    if target["type"] == "Utilization":
        return Utilization(metric=metric, percent=target["averageUtilization"], tolerance=tolerance)
    if target["type"] == "Value":
        return Total(metric=metric, target=target["valueMilli"] / 1000, tolerance=tolerance)
    amount = target["averageValueMilli"] / 1000
    if kind in (MetricKind.OBJECT, MetricKind.EXTERNAL):
        return TotalAverage(metric=metric, target=amount, tolerance=tolerance)
    return PodAverage(metric=metric, target=amount, tolerance=tolerance)


def _pass_samples(given: dict[str, Any]) -> tuple[PodSamples | TotalSample | Missing, ...]:
    return tuple(_sample(one, given) for one in given["metrics"])


def _sample(one: dict[str, Any], given: dict[str, Any]) -> PodSamples | TotalSample | Missing:
    levels, kind = given["reportedLevelsMilli"], one["type"]
    if kind not in ("Resource", "ContainerResource", "Pods", "Object", "External"):
        return Missing(reason=Reason.UNSUPPORTED)
    if kind in (given.get("failingMetricTypes") or ()):
        return Missing(reason=Reason.UNREACHABLE)
    if kind in ("Object", "External"):
        return TotalSample(value=levels[0] / 1000, at=NOW) if levels else Missing(reason=Reason.ABSENT)
    share = 2 if kind == "ContainerResource" else 1
    names = [pod["name"] for pod in given["pods"]]
    return PodSamples(
        values={name: level / 1000 / share for name, level in zip(names, levels, strict=False)},
        at=NOW - given["metricSampleSecondsAgo"],
        window_s=given["metricWindowSeconds"],
    )


def pod_requests(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    for pod in given["pods"]:
        containers = [_container(one, given["resource"]) for one in pod["containers"]]
        containers += [_container(one, given["resource"], init=True) for one in pod["initContainers"]]
        level = (
            _size(_cores(pod.get("podLevelRequestMilli")), given["resource"]) if given["podLevelResources"] else None
        )
        if given["container"] and given["container"] not in [one.name for one in containers]:
            with pytest.raises(InvalidInput, match=given["container"]):
                pod_request(containers, level, given["container"])
            continue
        found = pod_request(containers, level, given["container"])
        amount = found.cpu_cores if given["resource"] == "cpu" else found.memory_bytes
        if "error" in expected:
            assert amount is None
        else:
            assert amount is not None and round(amount * 1000) == expected["requestsMilli"][pod["name"]]


def _container(one: dict[str, Any], resource: str, init: bool = False) -> ContainerRequest:
    return ContainerRequest(
        name=one["name"],
        request=_size(_cores(one["requestMilli"]), resource),
        init=init,
        restartable=one.get("restartPolicy") == "Always" or one.get("restartable", False),
    )


def _cores(milli: int | None) -> float | None:
    return None if milli is None else milli / 1000


ADAPTERS: dict[str, Callable[[Case], None]] = {
    "resourceUtilizationReplicas": utilization,
    "podsMetricReplicas": pods_metric,
    "objectValueReplicas": value,
    "externalValueReplicas": value,
    "objectAverageValueReplicas": average,
    "externalAverageValueReplicas": average,
    "groupPods": group_pods,
    "resourceUtilizationRatio": utilization_ratio,
    "metricUsageRatio": usage_ratio,
    "clampNoBehavior": clamp_no_behavior,
    "behaviorRate": behavior_rate,
    "scaleUpLimit": scale_up_limit,
    "scaleDownLimit": scale_down_limit,
    "stabilizeNoBehavior": stabilise_no_behavior,
    "stabilizeBehavior": stabilise_behavior,
    "storeScaleEvent": store_scale_event,
    "reconcile": reconcile,
    "podRequests": pod_requests,
}
EXCUSED: dict[str, Excuse] = {}
