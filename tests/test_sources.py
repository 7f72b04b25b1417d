"""Every promise of the five sources as a row, with a second computation of its own beside what trimtab does.

Rows are named SOURCE-SECTION-NUMBER. docs/documents.md lists where we differ on purpose; a row may then test
both readings.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor, inf, isclose
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import yaml
from msgspec.structs import replace

from tests.core.build import NOW, busy, pod, total
from trimtab.core.advise import MeasuredWorkload, Objections, WorkloadAdvice, advise
from trimtab.core.advise.recommend import predict
from trimtab.core.blend import AxisWishes, blend, speaks_for
from trimtab.core.decide import decide
from trimtab.core.demand import demands
from trimtab.core.forecast import linear
from trimtab.core.forecast.demand_forecasts import DemandForecasts
from trimtab.core.model import ContainerSize, Decision, Forecast, Memory, Missing, Plan, PodSamples, Quantile
from trimtab.core.propose_ahead import propose_ahead
from trimtab.core.remember import remember
from trimtab.core.startup import StartupLog, mean_startup_s, watch
from trimtab.errors import InvalidInput
from trimtab.kinds import Analytics, CustomHpa, Hpa, Hvpa, read
from trimtab.policy import Advice, AdviceAlgorithm, Inspection, Policy, Size
from trimtab.series import Series

EXAMPLES = Path(__file__).parents[1] / "examples"
G, MIB = 10.0**9, 2.0**20


class Promise(NamedTuple):
    name: str
    holds: Callable[[], None]


PROMISES: list[Promise] = []


def promise(*names: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """One check may show several sentences that a source says in different words."""

    def note(holds: Callable[[], None]) -> Callable[[], None]:
        PROMISES.extend(Promise(name, holds) for name in names)
        return holds

    return note


def example(name: str) -> dict[str, Any]:
    manifest: dict[str, Any] = yaml.safe_load((EXAMPLES / name).read_text())
    return manifest


# --- Crane's HPA recommendation ---------------------------------------------------------------------------------------

DAY = 1440
MIDNIGHT = NOW - NOW % 86400


def analytics(of: str = "HPA", **config: str) -> Inspection:
    manifest = example("000-recommendation/analytics-hpa.yaml")
    manifest["spec"] |= {"type": of}
    manifest["spec"]["config"] |= {f"ehpa.{name.replace('_', '-')}": value for name, value in config.items()}
    kind = read(manifest)
    assert isinstance(kind, Analytics)
    return kind.to_inspection()


def workload(cores: np.ndarray, replicas: int = 4, request: float = 1.0, kind: str = "Deployment") -> MeasuredWorkload:
    return MeasuredWorkload(
        kind=kind,
        namespace="default",
        name="nginx-deployment",
        replicas=replicas,
        pods=tuple(pod(index) for index in range(replicas)),
        requests={"nginx": Size(cpu_cores=request, memory_bytes=2**30)},
        start=MIDNIGHT - 7 * 86400,
        step_s=60.0,
        cpu_cores=cores,
    )


def week(seed: int = 1, base: float = 4.0) -> np.ndarray:
    """Days that swing, with noise."""
    minutes, draw = np.arange(7 * DAY), np.random.default_rng(seed)
    return np.asarray(base * (1 + 0.5 * np.sin(2 * np.pi * minutes / DAY)) * np.exp(draw.normal(0, 0.1, 7 * DAY)))


def advised(rules: Inspection, found: MeasuredWorkload) -> WorkloadAdvice:
    answer = advise(rules, found, NOW)
    assert isinstance(answer, WorkloadAdvice), answer
    return answer


def refused(rules: Inspection, found: MeasuredWorkload) -> bool:
    return isinstance(advise(rules, found, NOW), Objections)


@promise("crane-analytics-1")
def the_tutorials_analytics_applies_as_printed() -> None:
    rules = analytics()
    assert rules.advice is Advice.HPA
    assert (rules.deployment_min_replicas, rules.fluctuation_threshold, rules.min_cpu_usage_cores) == (1, 0.0, 0.0)


@promise("crane-analytics-2")
def type_is_resource_or_hpa() -> None:
    assert analytics("Resource").advice is Advice.RESOURCE
    with pytest.raises(InvalidInput):
        analytics("Hpa")


@promise("crane-analytics-3")
def it_runs_once_or_every_period() -> None:
    manifest = example("000-recommendation/analytics-hpa.yaml")
    for strategy, period_s in (
        ({"completionStrategyType": "Periodical", "periodSeconds": 600}, 600.0),
        ({"completionStrategyType": "Once"}, None),
    ):
        kind = read({**manifest, "spec": manifest["spec"] | {"completionStrategy": strategy}})
        assert isinstance(kind, Analytics) and kind.spec.completion_strategy.period_s == period_s


@promise("crane-result-1")
def an_idle_nginx_gets_what_the_tutorial_prints_from_its_program() -> None:
    """Printed are 75, 2, 2; the tutorial's own formulas give the least target, 30."""
    idle = workload(np.full(7 * DAY, 0.0005), replicas=1, request=0.1)
    by_formulas = advised(analytics(), idle)
    assert (by_formulas.target_percent, by_formulas.min_replicas, by_formulas.max_replicas) == (30, 2, 2)
    upstream = advised(replace(analytics(), algorithm=AdviceAlgorithm.CRANE), idle)
    assert (upstream.target_percent, upstream.min_replicas, upstream.max_replicas) == (75, 2, 2)


@promise("crane-inspecting-1")
def too_few_replicas_are_refused() -> None:
    for kind, key in (("Deployment", "deployment"), ("StatefulSet", "statefulset"), ("Rollout", "workload")):
        rules = analytics(**{f"{key}_min_replicas": "3"})
        assert refused(rules, workload(week(), 2, kind=kind)) and not refused(rules, workload(week(), 3, kind=kind))


@promise("crane-inspecting-2")
def too_few_ready_pods_are_refused() -> None:
    for ready in range(5):
        found = workload(week())
        pods = tuple(pod(index, ready=index < ready) for index in range(4))
        given = MeasuredWorkload(**{name: getattr(found, name) for name in found.__dataclass_fields__} | {"pods": pods})
        assert refused(analytics(pod_available_ratio="0.5"), given) == (ready / 4 < 0.5)


@promise("crane-inspecting-3")
def little_usage_is_refused() -> None:
    peak = float(week().max())
    for threshold in (peak * 0.99, peak * 1.01):
        assert refused(analytics(min_cpu_usage_threshold=f"{threshold:.6f}"), workload(week())) == (threshold > peak)


@promise("crane-inspecting-4")
def little_fluctuation_is_refused() -> None:
    """The busiest hour over the quietest, by their medians."""
    cores = week()
    hours = [float(np.median(cores.reshape(7, 24, 60)[:, hour])) for hour in range(24)]
    rate = max(hours) / min(hours)
    for threshold in (rate * 0.99, rate * 1.01):
        assert refused(analytics(fluctuation_threshold=f"{threshold:.6f}"), workload(cores)) == (threshold > rate)


def by_the_formulas(cores: np.ndarray, future: np.ndarray, **given: float) -> tuple[int, int, int]:
    """target, minReplicas and maxReplicas as the tutorial writes them."""
    p99 = float(np.quantile(cores / given["replicas"], 0.99))
    target = min(given["most"], max(given["least"], ceil(100 * p99 / given["request"] - 1e-9)))
    lowest = min(float(np.median(cores.reshape(7, 24, 60)[:, hour])) for hour in range(24))
    least = max(given["default"], ceil(lowest / (given["request"] * given["most"] / 100) - 1e-9))
    p95 = float(np.quantile(np.concatenate([cores, future]), 0.95))
    return (
        int(target),
        int(least),
        max(int(least), ceil(p95 * given["factor"] / (given["request"] * target / 100) - 1e-9)),
    )


@promise(
    "crane-target-1", "crane-target-2", "crane-target-3", "crane-min-1", "crane-min-2", "crane-min-3",
    "crane-max-1", "crane-max-2", "crane-max-3",
)  # fmt: skip
def target_and_bounds_follow_the_formulas() -> None:
    draw = np.random.default_rng(5)
    for seed in range(12):
        least, default, factor = int(draw.integers(1, 60)), int(draw.integers(1, 6)), float(draw.choice([1, 1.5, 3]))
        most, replicas = int(draw.integers(least, 101)), int(draw.integers(1, 30))
        request, cores = float(draw.choice([0.1, 0.5, 1, 4])), week(seed, float(draw.uniform(0.1, 20)))
        rules = analytics(
            min_cpu_target_utilization=str(least), max_cpu_target_utilization=str(most),
            default_min_replicas=str(default), max_replicas_factor=str(factor),
        )  # fmt: skip
        found = workload(cores, replicas, request)
        future = predict(rules, found)
        coming = future.values if isinstance(future, Series) else np.empty(0)
        answer = advised(rules, found)
        assert (answer.target_percent, answer.min_replicas, answer.max_replicas) == by_the_formulas(
            cores, coming, replicas=replicas, request=request, least=least, most=most, default=default, factor=factor
        )


@promise("crane-metrics-1", "crane-behavior-1")
def other_metrics_and_behavior_are_inherited() -> None:
    metric = {
        "type": "Pods",
        "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": 5}},
    }
    fields = workload(week()).__dict__ | {"metrics": (metric,), "behavior": {"scaleDown": {"selectPolicy": "Min"}}}
    found = MeasuredWorkload(**{name: value for name, value in fields.items() if name != "medians"})
    kept, dropped = advised(analytics(), found), advised(analytics(reference_hpa="false"), found)
    assert (kept.metrics, kept.behavior) == ((metric,), {"scaleDown": {"selectPolicy": "Min"}})
    assert (dropped.metrics, dropped.behavior) == ((), None)


@promise("crane-prediction-1", "crane-prediction-2", "crane-prediction-3")
def a_forecast_is_added_where_the_load_repeats() -> None:
    noise = np.exp(np.random.default_rng(3).normal(0, 1, 7 * DAY)).cumsum() / 1e3 + 1
    assert advised(analytics(), workload(week())).predictable
    assert not advised(analytics(), workload(noise)).predictable


DEFAULTS = {
    "deployment_min_replicas": 1, "statefulset_min_replicas": 1, "workload_min_replicas": 1, "pod_min_ready_s": 30.0,
    "pod_available_ratio": 0.5, "default_min_replicas": 2, "max_replicas_factor": 3.0, "min_cpu_usage_cores": 10.0,
    "fluctuation_threshold": 1.5, "min_cpu_target_percent": 30, "max_cpu_target_percent": 75, "reference_hpa": True,
}  # fmt: skip


def _default(name: str, value: object) -> None:
    assert getattr(Inspection(), name) == value


PROMISES.extend(
    Promise(f"crane-configuration-{number}", lambda name=name, value=value: _default(name, value))  # type: ignore[misc]
    for number, (name, value) in enumerate(DEFAULTS.items(), 1)
)


# --- HVPA, weights ----------------------------------------------------------------------------------------------------

NAME = "resource-consumer"


def hvpa(name: str = "001-weights/example-1.yaml", **spec: Any) -> Policy:
    manifest = example(name)
    manifest["spec"] |= spec
    kind = read(manifest)
    assert isinstance(kind, Hvpa)
    return kind.to_policy(NOW)


def planned(policy: Policy, current: int, wanted: int, now: Size, target: Size, **more: Any) -> Plan:
    bounds = policy.bounds
    wishes = AxisWishes(
        current, wanted, {NAME: ContainerSize(now)}, {NAME: target}, bounds.min_replicas, bounds.max_replicas, False
    )._replace(**more)
    assert policy.vertical is not None
    return blend(policy.blend, policy.vertical, wishes, [])


def cpu(plan: Plan, name: str = NAME) -> float:
    found = plan.sizes[name].requests.cpu_cores
    assert found is not None
    return found


def memory(plan: Plan, name: str = NAME) -> float:
    found = plan.sizes[name].requests.memory_bytes
    assert found is not None
    return found


def staged(*stages: tuple[float, int, int], most: int = 10) -> Policy:
    intervals = [{"vpaWeight": weight, "startReplicaCount": x1, "lastReplicaCount": x2} for weight, x1, x2 in stages]
    template = example("001-weights/example-1.yaml")["spec"]["hpaTemplate"] | {"maxReplicas": most}
    return hvpa(weightBasedScalingIntervals=intervals, hpaTemplate=template, vpaTemplate={})


@promise("weights-formula-1", "weights-formula-2", "weights-formula-3", "weights-formula-4")
def requests_and_replicas_move_by_their_weights() -> None:
    draw = random.Random(11)
    for _ in range(500):
        weight = Fraction(draw.choice([0, 1, 2, 3, 4]), 5)  # a weight of 1 has rows of its own
        current, wanted = draw.randint(1, 9), draw.randint(1, 10)
        now, target = draw.randint(50, 4000), draw.randint(50, 4000)
        plan = planned(
            staged((float(weight), 1, 10)), current, wanted, Size(cpu_cores=now / 1000), Size(cpu_cores=target / 1000)
        )
        moved = current + (wanted - current) * (1 - weight)
        assert plan.replicas == (ceil(moved) if wanted > current else floor(moved))
        assert abs(1000 * cpu(plan) - float(now + (target - now) * weight)) <= 1


@promise("weights-formula-5")
def weight_1_is_purely_vertical() -> None:
    plan = planned(staged((1, 1, 10)), 3, 6, Size(cpu_cores=1.0), Size(cpu_cores=2.0))
    assert (plan.replicas, cpu(plan)) == (3, 2.0)


@promise("weights-formula-6")
def weight_0_is_purely_horizontal() -> None:
    plan = planned(staged((0, 1, 10)), 3, 6, Size(cpu_cores=1.0), Size(cpu_cores=2.0))
    assert (plan.replicas, cpu(plan)) == (6, 1.0)


@promise("weights-stages-1")
def a_stage_reaches_from_its_first_to_its_last_count() -> None:
    policy = staged((0, 1, 2), (0.4, 3, 5), (0, 6, 10))
    grown = [cpu(planned(policy, n, n, Size(cpu_cores=1.0), Size(cpu_cores=2.0))) for n in range(1, 10)]
    assert grown == pytest.approx([1.0, 1.0, 1.4, 1.4, 1.4, 1.0, 1.0, 1.0, 1.0])


@promise("weights-mitigation-1")
def open_ends_scale_vertically_up_to_max_allowed() -> None:
    policy = hvpa(weightBasedScalingIntervals=[{"vpaWeight": 0.6}], vpaTemplate=allowed(cpu=("200m", "2")))
    bounded = planned(policy, 3, 3, Size(cpu_cores=1.9), Size(cpu_cores=9.0))
    assert cpu(bounded) == 2.0


@promise("weights-mitigation-2")
def at_max_replicas_sizes_grow_unconditionally() -> None:
    assert cpu(planned(staged((0, 1, 10)), 10, 10, Size(cpu_cores=1.0), Size(cpu_cores=1.9), stuck=True)) == 1.9


def allowed(**resources: tuple[str, str]) -> dict[str, Any]:
    least, most = ({name: pair[side] for name, pair in resources.items()} for side in (0, 1))
    policy = {"containerName": NAME, "minAllowed": least, "maxAllowed": most}
    return {"resourcePolicy": {"containerPolicies": [policy]}}


@promise("weights-example1-1", "weights-example1-2", "weights-example1-3")
def example_1_means_what_it_prints() -> None:
    policy = hvpa()
    assert (policy.bounds.min_replicas, policy.bounds.max_replicas) == (1, 10)
    assert [signal.metric.name for signal in policy.signals] == ["cpu", "memory"]
    small = planned(policy, 5, 5, Size(memory_bytes=500 * MIB), Size(memory_bytes=100 * MIB))
    large = planned(policy, 5, 5, Size(memory_bytes=2900 * MIB), Size(memory_bytes=9000 * MIB))
    assert (memory(small), memory(large)) == pytest.approx((400 * MIB, 3000 * MIB), abs=1000)


@promise("weights-example1-4")
def seven_replicas_belong_to_the_first_stage_that_names_them() -> None:
    weights = {n: cpu(planned(hvpa(), n, n, Size(cpu_cores=1.0), Size(cpu_cores=2.0))) for n in (2, 3, 7, 8)}
    assert weights == {2: 1.0, 3: 1.6, 7: 1.6, 8: 1.0}


@promise("weights-example1-5")
def smallest_changes_are_either_the_value_or_the_percentage() -> None:
    gates = [gate for gate in hvpa().gates if type(gate).__name__ == "MinChange"]
    assert {(gate.axis.value, gate.direction.value) for gate in gates} == {
        (axis, way) for axis in ("cpu", "memory") for way in ("up", "down")
    }
    for gate in gates:
        value = 0.2 if gate.axis.value == "cpu" else 2e8
        assert (gate.value, gate.percent) == (value, 70 if gate.axis.value == "cpu" else 80)  # type: ignore[union-attr]


@promise("weights-example1-6")
def windows_of_two_and_three_minutes() -> None:
    rests = {gate.direction.value: gate.window_s for gate in hvpa().gates if type(gate).__name__ == "Rest"}  # type: ignore[union-attr]
    assert rests == {"up": 120.0, "down": 180.0}


@promise("weights-example2-1", "weights-example3-1")
def elided_examples_are_read_with_their_elisions_filled_in() -> None:
    for name in ("2", "3"):
        kind = read(example(f"001-weights/example-{name}.yaml"))
        assert isinstance(kind, Hvpa) and not list(kind.problems())


@promise("weights-example3-2")
def after_max_replicas_there_is_only_vertical_scaling() -> None:
    policy = hvpa("001-weights/example-3.yaml")
    plan = planned(policy, 10, 10, Size(cpu_cores=1.0), Size(cpu_cores=1.9), stuck=True)
    assert (plan.replicas, cpu(plan)) == (10, 1.9)


# --- nanit custom-hpa -------------------------------------------------------------------------------------------------


def custom(exact: bool = True, **values: Any) -> Policy:
    given = yaml.safe_load((EXAMPLES / "002-custom-hpa/values.yaml").read_text())
    behavior = given.get("behavior", {}) | values.pop("behavior", {})
    return CustomHpa.from_values(given | {"exact": exact, "behavior": behavior} | values).to_policy(NOW)


def scaled(factor: float, current: int = 20, behavior: dict[str, float] | None = None) -> int:
    decision = decide(custom(behavior=behavior or {}), total(current, 100.0 * factor), Memory())
    return decision.plan.replicas


@promise("custom-usage-1")
def the_readmes_install_line_is_read() -> None:
    policy = custom()
    assert (policy.bounds.min_replicas, policy.bounds.max_replicas) == (10, 50)
    assert policy.signals[0].metric.query == "up"


CUSTOM_DEFAULTS = {
    "control_loop_period": 15, "scale_up_cooldown": 15, "scale_down_cooldown": 15, "scale_up_min_factor": 0.1,
    "scale_up_max_factor": 1.0, "scale_down_min_factor": 0.1, "scale_down_max_factor": 1.0,
}  # fmt: skip


def _custom_default(name: str, value: float) -> None:
    given = {"target": {"deployment": "d", "namespace": "n", "value": 1}, "minReplicas": 1, "maxReplicas": 2}
    found = CustomHpa.from_values(given | {"prometheus": {"url": "http://p", "port": 80, "query": "up"}})
    assert getattr(found if name == "control_loop_period" else found.behavior, name) == value


PROMISES.extend(
    Promise(f"custom-configuration-{number}", lambda name=name, value=value: _custom_default(name, value))  # type: ignore[misc]
    for number, (name, value) in enumerate(CUSTOM_DEFAULTS.items(), 1)
)


@promise("custom-algorithm-1", "custom-algorithm-2", "custom-factor-1")
def replicas_are_multiplied_with_sample_over_target() -> None:
    """The text multiplies; its examples and its program divide, and so do we."""
    for factor in (0.6, 0.85, 1.2, 1.5, 2.0):
        assert scaled(factor) == ceil(factor * 20 - 1e-9)


SCALE_EXAMPLES = [("Up", 1.3, 1.3), ("Up", 1.6, 1.5), ("Down", 0.7, 0.7), ("Down", 0.4, 0.5)]
PERMIT_EXAMPLES = [("Up", 1.3, True), ("Up", 1.1, False), ("Down", 0.6, True), ("Down", 0.9, False)]


def _scale_example(way: str, factor: float, wanted: float) -> None:
    assert scaled(factor, 30, {f"scale{way}MaxFactor": 0.5}) == ceil(30 * wanted - 1e-9)


def _permit_example(way: str, factor: float, permitted: bool) -> None:
    assert (scaled(factor, 20, {f"scale{way}MinFactor": 0.2}) != 20) is permitted


PROMISES.extend(
    Promise(f"custom-factor-example-{number}", lambda row=row: _scale_example(*row))  # type: ignore[misc]
    for number, row in enumerate(SCALE_EXAMPLES, 1)
)
PROMISES.extend(
    Promise(f"custom-permit-example-{number}", lambda row=row: _permit_example(*row))  # type: ignore[misc]
    for number, row in enumerate(PERMIT_EXAMPLES, 1)
)


class NanitLoop:
    """The program's loop, written a second time."""

    def __init__(self, behavior: dict[str, float], least: int, most: int) -> None:
        self.behavior, self.least, self.most, self.last = behavior, least, most, dict[str, float]()

    def step(self, replicas: int, factor: float, at: float) -> int:
        way, sign = ("Up", 1) if factor > 1 else ("Down", -1)
        cap, floor_ = (1 + sign * self.behavior[f"scale{way}{end}Factor"] for end in ("Max", "Min"))
        factor = min(factor, cap) if sign > 0 else max(factor, cap)
        if at < self.last.get(way, -inf) + self.behavior[f"scale{way}Cooldown"]:
            return replicas
        if (factor <= floor_) if sign > 0 else (factor >= floor_):
            return replicas
        self.last[way] = at
        return ceil(max(min(replicas * factor, self.most), self.least))


@promise("custom-permit-1", "custom-permit-2", "custom-permit-3", "custom-permit-4", "custom-factor-2")
def sequences_of_samples_are_the_programs() -> None:
    """Each direction has its own cooldown, which a scaling that changes nothing starts too."""
    for seed in range(150):
        draw = random.Random(seed)
        behavior = {
            f"scale{way}{name}": draw.choice(choices)
            for way in ("Up", "Down")
            for name, choices in (
                ("Cooldown", [0, 15, 30, 90]),
                ("MinFactor", [0, 0.1, 0.33]),
                ("MaxFactor", [0.1, 1.0]),
            )
        }
        least, most = draw.randint(1, 5), draw.randint(6, 40)
        policy = custom(minReplicas=least, maxReplicas=most, behavior=behavior)
        loop, known, ours, theirs = NanitLoop(behavior, least, most), Memory(), most, most
        for tick in range(40):
            at, sample = NOW + 15.0 * tick, 100 * draw.choice([draw.uniform(0, 4), draw.uniform(0.8, 1.2), 1.0, 1.1])
            theirs = loop.step(theirs, sample / 100, at)
            decision = decide(policy, total(ours, sample, at), known)
            known = decision.memory
            if decision.change is not None and decision.change.replicas is not None:
                ours, known = decision.change.replicas, remember(policy, known, decision.change, at)
            assert ours == theirs, (seed, tick)


@promise("custom-permit-5")
def a_scale_up_that_changes_nothing_rests_upwards_alone() -> None:
    policy = custom(maxReplicas=10, minReplicas=1, behavior={"scaleUpCooldown": 15, "scaleDownCooldown": 300})
    up = decide(policy, total(10, 200.0), Memory())
    assert up.change is not None and up.change.replicas == 10
    known = remember(policy, up.memory, up.change, NOW)
    assert (known.up_at, known.down_at) == (NOW, None)
    assert decide(policy, total(10, 30.0, NOW + 15), known).plan.replicas == 3


# --- predictive HPA ---------------------------------------------------------------------------------------------------


def annotated(exact: bool = False, **notes: str) -> Policy:
    manifest = example("003-predictive/hpa.yaml")
    more = {"trimtab.dev/exact": "true"} if exact else {}
    manifest["metadata"]["annotations"] = manifest["metadata"].get("annotations", {}) | more | notes
    kind = read(manifest)
    assert isinstance(kind, Hpa)
    return kind.to_policy(NOW)


@promise("predictive-overview-1")
def the_target_number_is_consumption_over_target() -> None:
    policy = replace(annotated(), forecast=None, settle=())
    percent = policy.signals[0].percent  # type: ignore[union-attr]
    for use in (0.2, 0.9, 1.4):
        wanted = ceil(6 * round(100 * use) / percent - 1e-9)
        bounds = policy.bounds
        wanted = min(max(wanted, bounds.min_replicas), bounds.max_replicas)
        assert decide(policy, busy(6, use), Memory()).plan.replicas == wanted


@promise("predictive-algorithm-1", "predictive-algorithm-2", "predictive-algorithm-3")
def the_future_is_the_line_of_best_fit_at_now_plus_start_up() -> None:
    draw = np.random.default_rng(3)
    for _ in range(100):
        times = NOW - 15.0 * np.arange(11, -1, -1, dtype=np.float64)
        values, ahead_s = draw.uniform(0, 100, 12), float(draw.uniform(5, 165))
        slope, intercept = np.polyfit(times - NOW, values, 1)
        (default,) = linear.forecast_recent([Series(times, values)], ahead_s, NOW)
        assert isinstance(default, Forecast)
        assert isclose(default.at_quantile(0.5), max(intercept + slope * ahead_s, values[-1]), rel_tol=1e-6)


@promise("predictive-algorithm-4", "predictive-fit-3")
def only_a_rising_line_counts() -> None:
    times = NOW - 15.0 * np.arange(5, -1, -1, dtype=np.float64)
    for options in (linear.LinearOptions(), linear.LinearOptions(exact=True)):
        assert linear.predict(times - NOW, np.linspace(90, 40, 6), 60.0, options) == 40.0


@promise("predictive-switch-1")
def the_annotation_turns_prediction_on_in_any_quotes() -> None:
    manifest = example("003-predictive/hpa.yaml")
    for word, on in (("true", True), ("’true’", True), ("false", False)):
        manifest["metadata"]["annotations"] = {"predictive": word}
        kind = read(manifest)
        assert isinstance(kind, Hpa) and (kind.to_policy(NOW).forecast is not None) is on


@promise("predictive-startup-1", "predictive-startup-2", "predictive-startup-4")
def start_up_is_from_creation_to_ready_in_the_mean_of_ready_pods() -> None:
    pods = [
        pod(0, created_at=NOW - 500, ready_since=NOW - 400),
        pod(1, created_at=NOW - 500, ready_since=NOW - 300),
        pod(2, created_at=NOW - 500, ready_since=NOW - 499, ready=False),
    ]
    assert mean_startup_s(pods) == (100 + 200) / 2
    assert mean_startup_s(pods, exact=True) == (100 + 200 + 1) / 3, "its program counts every Ready condition"


@promise("predictive-startup-3")
def a_start_up_is_recorded_once() -> None:
    waiting = pod(0, ready=False, created_at=NOW - 100, started_at=NOW - 100, ready_since=NOW - 100)
    log = watch(watch(StartupLog(), [waiting]), [replace(waiting, ready=True, ready_since=NOW - 40)])
    flapped = watch(log, [replace(waiting, ready=True, ready_since=NOW - 1)])
    assert log.witnessed == flapped.witnessed == (60.0,)


@promise("predictive-fit-1", "predictive-fit-2")
def observations_bear_times_and_are_limited_by_the_start_up() -> None:
    for startup_s in (2.0, 5.0, 135.0):
        times = NOW - 5.0 * np.arange(60, -1, -1, dtype=np.float64)
        options = linear.LinearOptions(exact=True)
        counted = linear.recent_of(Series(times, times * 0), NOW, startup_s, options)
        assert len(counted) == sum(age < min(20 * startup_s, 180) for age in NOW - times)


@promise("predictive-exact-1")
def exact_mode_puts_the_predicted_utilization_into_the_formula() -> None:
    policy = annotated(exact=True)
    percent = policy.signals[0].percent  # type: ignore[union-attr]
    for predicted in (90.0, 140.0, 30.0):
        line = Forecast(
            made_at=NOW, expires_at=NOW + 60, demand=(Quantile(0.5, predicted),), model="linear", per_pod=True
        )
        (proposal,) = propose_ahead(policy, replace(busy(7, 0.5), forecasts=(line,)))
        assert proposal.replicas == ceil(7 * predicted / percent)


@promise("predictive-exact-2")
def exact_mode_takes_the_mean_of_all_running_pods() -> None:
    seen = busy(4, 0.8)
    starting = tuple(replace(one, ready=False) if index > 1 else one for index, one in enumerate(seen.pods))
    usage = PodSamples(values={one.name: 0.8 if one.ready else 0.1 for one in starting}, at=NOW)
    assert demands(annotated(exact=True), replace(seen, pods=starting, samples=(usage,))) == [45.0]


@promise("predictive-exact-3")
def exact_mode_comes_to_rest_under_constant_load() -> None:
    """Twelve cores on pods of one core that take four ticks to start: by hand, without the simulator."""
    policy, found, known, ages = annotated(exact=True), DemandForecasts(), Memory(), [100] * 4
    history = []
    for tick in range(400):
        at, serving = NOW + 15.0 * tick, sum(age >= 4 for age in ages)
        each = min(12.0 / max(1, serving), 1.0)
        pods = tuple(
            pod(index, ready=age >= 4, created_at=at - 15.0 * age, started_at=at - 15.0 * age,
                ready_since=at - 15.0 * (age - 4 if age >= 4 else age))
            for index, age in enumerate(ages)
        )  # fmt: skip
        usage = PodSamples(values={one.name: each if one.ready else 0.0 for one in pods}, at=at)
        seen = replace(busy(len(ages), 0.0, at), pods=pods, samples=(usage,))
        found.note("o", policy, seen)
        decision: Decision = decide(policy, replace(seen, forecasts=found.of("o", policy, seen)), known)
        known = decision.memory
        ages = sorted((age + 1 for age in ages), reverse=True)[: decision.plan.replicas]
        ages += [0] * (decision.plan.replicas - len(ages))
        history.append(decision.plan.replicas)
    need = 12.0 / (policy.signals[0].percent / 100)  # type: ignore[union-attr]
    assert len(set(history[-200:])) == 1
    assert need / 1.12 <= history[-1] <= min(need * 1.13 + 1, policy.bounds.max_replicas)


# --- HVPA, buckets ----------------------------------------------------------------------------------------------------


def buckets(name: str = "story-1", **spec: Any) -> Policy:
    return hvpa(f"004-buckets/{name}.yaml", **spec)


STORY_1 = {"cpu": (Fraction(0), Fraction(24)), "memory": (Fraction(1, 2), Fraction(25))}


def column(total: Fraction, resource: str) -> int:
    """Story 1: count r carries at most r times the r-th of eight equal parts."""
    least, most = STORY_1[resource]
    return next((r for r in range(1, 9) if total <= r * (least + r * (most - least) / 8)), 8)


@promise("buckets-proposal-1")
def a_buckets_totals_are_its_bounds_times_its_replicas() -> None:
    """The proposal's own bucket: 3 to 6 cores and 2.5 to 7 GB each, 2 to 5 replicas: 6 to 30 cores, 5 to 35 GB."""
    one = {"replicas": {"min": 2, "max": 5}, "cpu": {"min": 3, "max": 6}, "memory": {"min": "2500M", "max": "7G"}}
    policy = buckets(buckets=[one], sizing="Share", overlapPercent=0)
    for replicas, size, target in ((2, 3.0, 0.1), (5, 6.0, 99.0)):
        plan = planned(policy, 3, 3, Size(4.0, 3 * G), Size(target, target * G), speaks_for=frozenset())
        assert (plan.replicas, cpu(plan)) == (replicas, size)


@promise("buckets-proposal-2", "buckets-proposal-3", "buckets-story1-1", "buckets-story1-2", "buckets-story1-3")
def totals_choose_the_column_and_are_divided_among_its_replicas() -> None:
    policy, draw = buckets(sizing="Share", overlapPercent=0), random.Random(4)
    for _ in range(300):
        current, wanted = draw.randint(1, 8), draw.randint(1, 8)
        now, target = (
            (draw.randint(100, 24000), draw.randint(500, 25000)),
            (draw.randint(100, 24000), draw.randint(500, 25000)),
        )
        plan = planned(
            policy, current, wanted, Size(now[0] / 1000, now[1] * 1e6), Size(target[0] / 1000, target[1] * 1e6)
        )
        totals = [Fraction(max(target[i] * current, now[i] * wanted), 1000) for i in (0, 1)]
        replicas = max(column(totals[0], "cpu"), column(totals[1], "memory"))
        assert plan.replicas == replicas
        assert cpu(plan) == pytest.approx(min(float(totals[0]) / replicas, 3.0 * replicas), abs=0.0011)


@promise("buckets-story1-4")
def two_replicas_of_six_cores_become_three_of_eight() -> None:
    plan = planned(buckets(), 2, 4, Size(6.0, 1 * G), Size(12.0, 1 * G))
    assert (plan.replicas, cpu(plan)) == (3, 8.0)


@promise("buckets-story2-1")
def one_replica_up_to_a_core_and_two_gigabytes() -> None:
    policy = buckets("story-2")
    for cores, gigabytes, one in ((1.0, 2.0, True), (0.5, 2.1, False), (1.1, 1.0, False)):
        plan = planned(policy, 1, 1, Size(0.5, G), Size(cores, gigabytes * G), speaks_for=frozenset())
        assert (plan.replicas == 1) is one


@promise("buckets-story2-2")
def then_more_and_larger_replicas_up_to_eight() -> None:
    policy = buckets("story-2", sizing="Share", overlapPercent=0)
    plan = planned(policy, 8, 8, Size(8.0, 19 * G), Size(30.0, 90 * G), speaks_for=frozenset())
    assert (plan.replicas, cpu(plan), memory(plan)) == (8, 9.0, 20 * G)


@promise("buckets-notes-1")
def the_higher_recommendation_decides() -> None:
    policy = buckets(sizing="Share", overlapPercent=0)
    by_vpa = planned(policy, 2, 2, Size(6.0, G), Size(12.0, G))
    by_hpa = planned(policy, 2, 4, Size(6.0, G), Size(1.0, G))
    assert by_vpa.replicas == by_hpa.replicas == column(Fraction(24), "cpu")


@promise("buckets-notes-2", "buckets-notes-3")
def the_higher_count_decides_and_both_totals_are_divided_by_it() -> None:
    policy = buckets(sizing="Share", overlapPercent=0)
    plan = planned(policy, 4, 4, Size(2.0, G), Size(2.0, 20 * G), speaks_for=frozenset())
    replicas = max(column(Fraction(8), "cpu"), column(Fraction(80), "memory"))
    assert plan.replicas == replicas == 6
    assert cpu(plan) == pytest.approx(8 / replicas, abs=0.001)
    assert memory(plan) == pytest.approx(80 * G / replicas, rel=1e-5)


@promise("buckets-notes-4", "buckets-notes-5")
def containers_share_a_replica_in_the_proportion_of_their_recommendations() -> None:
    sizes = {name: ContainerSize(Size(3.0, G)) for name in ("app", "car")}
    targets = {"app": Size(9.0, G), "car": Size(3.0, G)}
    policy = buckets(sizing="Share", overlapPercent=0)
    plan = planned(policy, 2, 2, Size(), Size(), sizes=sizes, targets=targets, speaks_for=frozenset())
    replicas = column(Fraction(24), "cpu")
    shares = [24 / replicas * part for part in (0.75, 0.25)]
    assert [cpu(plan, "app"), cpu(plan, "car")] == pytest.approx(shares, abs=0.001)


@promise("buckets-risks-1", "buckets-risks-2")
def base_usage_keeps_the_recommended_size_when_replicas_are_added() -> None:
    """Two replicas of 5 GB, 6 recommended: three of 6 GB, not three of 4."""
    one = {"replicas": {"min": 1, "max": 8}, "cpu": {"min": 0, "max": 24}, "memory": {"min": 0, "max": "20G"}}
    plan = planned(buckets(buckets=[one]), 2, 2, Size(1.0, 5 * G), Size(1.0, 6 * G), speaks_for=frozenset())
    assert plan.replicas == 3 and memory(plan) == pytest.approx(6 * G)


@promise("buckets-proposal-4")
def an_overload_of_cpu_tells_nothing_about_memory() -> None:
    """HPA's replicas multiply the resource that they were recommended for."""
    policy = buckets(sizing="Share", overlapPercent=0)
    now = Size(6.0, 4 * G)
    plan = planned(policy, 2, 4, now, Size(1.0, 4 * G), speaks_for=speaks_for(policy.signals))
    assert plan.replicas == column(Fraction(6 * 4), "cpu")
    assert plan.replicas * memory(plan) == pytest.approx(2 * 4 * G, rel=1e-5)


@promise("buckets-proposal-5")
def a_recommendation_above_max_replicas_counts_as_max_replicas() -> None:
    policy = buckets(sizing="Share", overlapPercent=0)
    plans = [planned(policy, 2, wanted, Size(6.0, G), Size(1.0, G)) for wanted in (8, 9, 50)]
    assert [plan.replicas for plan in plans] == [column(Fraction(6 * 8), "cpu")] * 3
    assert {cpu(plan) for plan in plans} == {12.0}


@promise("buckets-risks-3")
def the_rule_of_thumb_takes_the_larger_of_recommendation_and_share() -> None:
    plan = planned(buckets(sizing="MaxOfVpaAndShare", overlapPercent=0), 2, 4, Size(6.0, G), Size(12.0, G))
    assert (plan.replicas, cpu(plan)) == (3, min(max(12.0, 24.0 / 3), 9.0)), "within the third column"


@promise("buckets-risks-4")
def without_hpa_the_vertical_totals_alone_decide() -> None:
    policy = buckets("story-2")
    assert policy.signals == ()


@promise("buckets-risks-5")
def hpa_thresholds_may_be_above_100_percent() -> None:
    template = example("004-buckets/story-1.yaml")["spec"]["hpa"]
    template["template"]["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] = 150
    assert buckets(hpa=template).signals[0].percent == 150  # type: ignore[union-attr]


@promise("buckets-notes-6")
def a_bucket_of_one_size_scales_horizontally_alone() -> None:
    fixed = {"replicas": {"min": 1, "max": 6}, "cpu": {"min": 8, "max": 8}, "memory": {"min": "20G", "max": "20G"}}
    for cores in (9.0, 12.0):
        plan = planned(
            buckets(buckets=[fixed], overlapPercent=0), 3, 3, Size(8.0, 20 * G), Size(cores, G), speaks_for=frozenset()
        )
        assert (plan.replicas, cpu(plan)) == (ceil(3 * cores / 8), 8.0)


@pytest.mark.parametrize("row", PROMISES, ids=lambda row: row.name)
def test_the_sources_to_the_letter(row: Promise) -> None:
    row.holds()


def test_every_row_has_a_name_of_its_own() -> None:
    assert len({row.name for row in PROMISES}) == len(PROMISES) >= 85


def test_a_missing_forecast_is_no_promise() -> None:
    (line,) = linear.forecast_recent([Series(np.empty(0), np.empty(0))], 60.0, NOW)
    assert isinstance(line, Missing)
