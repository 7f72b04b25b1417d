"""The documents' own YAML against their formulas, written down here a second time, for inputs that nobody chose."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.build import NOW, pod, total
from trimtab.core.advise import MeasuredWorkload, WorkloadAdvice, advise
from trimtab.core.blend import AxisWishes, blend
from trimtab.core.decide import decide
from trimtab.core.forecast.linear import LinearOptions, forecast_recent
from trimtab.core.model import ContainerSize, Forecast, Memory, Plan
from trimtab.kinds import Analytics, CustomHpa, Hvpa, read
from trimtab.policy import Policy, Size
from trimtab.series import Series

EXAMPLES = Path(__file__).parents[2] / "examples"
MIB, GB = 2**20, 10**9


def document(name: str, **spec: Any) -> dict[str, Any]:
    manifest: dict[str, Any] = yaml.safe_load((EXAMPLES / name).read_text())
    manifest["spec"] |= spec
    return manifest


def hvpa(name: str, **spec: Any) -> Policy:
    obj = read(document(name, **spec))
    assert isinstance(obj, Hvpa)
    return obj.to_policy(NOW)


def planned(policy: Policy, current: int, wanted: int, now: Size, target: Size, **more: Any) -> Plan:
    """What the policy makes of both recommendations."""
    bounds, name = policy.bounds, "resource-consumer"
    wishes = AxisWishes(
        current, wanted, {name: ContainerSize(now)}, {name: target}, bounds.min_replicas, bounds.max_replicas, False
    )._replace(**more)
    assert policy.vertical is not None
    return blend(policy.blend, policy.vertical, wishes, [])


# 001. A stage is the first that names the count; x1 and x2 are written, so no stage is open, and none has weight 1.
EXAMPLE_1 = [(1, 2, Fraction(0)), (3, 7, Fraction(6, 10)), (7, 10, Fraction(0))]
EXAMPLE_3 = [(1, 3, Fraction(0)), (4, 10, Fraction(6, 10))]


def by_weights(
    stages: list[tuple[int, int, Fraction]], current: int, wanted: int, now: int, target: int
) -> tuple[int, float]:
    """currentReplicas + (desiredReplicas - currentReplicas) * (1 - vpaWeight), and the like for requests."""
    weight = next(weight for first, last, weight in stages if first <= current <= last)
    moved = current + (wanted - current) * (1 - weight)
    replicas = ceil(moved) if wanted > current else floor(moved)
    vertical = Fraction(1) if current == 10 and target > now else weight  # at maxReplicas "unconditionally"
    return replicas, float(now + (target - now) * vertical)


@pytest.mark.parametrize("example, stages", [("1", EXAMPLE_1), ("3", EXAMPLE_3)])
@given(st.integers(1, 10), st.integers(1, 10), st.integers(10, 9000), st.integers(10, 9000))
def test_001_the_weighted_formulas(
    example: str, stages: list[tuple[int, int, Fraction]], current: int, wanted: int, now: int, target: int
) -> None:
    """Requests in millicores, on CPU, for which example 1 writes no bounds."""
    policy = hvpa(f"001-weights/example-{example}.yaml")
    plan = planned(policy, current, wanted, Size(cpu_cores=now / 1000), Size(cpu_cores=target / 1000))
    replicas, request = by_weights(stages, current, wanted, now, target)
    assert plan.replicas == replicas
    found = plan.sizes["resource-consumer"].requests.cpu_cores
    assert found is not None and abs(1000 * found - request) <= 1, "whole millicores, towards what is there"


@given(st.integers(3, 7), st.integers(401, 2999), st.integers(1, 9000))
def test_001_example_1_memory_stays_within_its_bounds(current: int, now: int, target: int) -> None:
    policy = hvpa("001-weights/example-1.yaml")
    plan = planned(policy, current, current, Size(memory_bytes=now * MIB), Size(memory_bytes=target * MIB))
    wanted = min(max(now + (target - now) * 0.6, 400), 3000)
    found = plan.sizes["resource-consumer"].requests.memory_bytes
    assert found is not None and abs(found / MIB - wanted) < 0.001


# 002. factor = metric / target, limited by the largest step, permitted above the smallest one.
@settings(max_examples=300)
@given(
    st.integers(10, 50),
    st.integers(0, 400),
    st.tuples(*[st.sampled_from([Fraction(n, 20) for n in range(21)])] * 4),
)
def test_002_the_factor_and_its_limits(current: int, sample: int, limits: tuple[Fraction, ...]) -> None:
    up_least, up_most, down_least, down_most = limits
    values = yaml.safe_load((EXAMPLES / "002-custom-hpa/values.yaml").read_text())
    words = ("scaleUpMinFactor", "scaleUpMaxFactor", "scaleDownMinFactor", "scaleDownMaxFactor")
    values["behavior"] |= {word: float(limit) for word, limit in zip(words, limits, strict=True)}
    factor = Fraction(sample, 100)
    limited = min(factor, 1 + up_most) if factor > 1 else max(factor, 1 - down_most)
    permitted = limited - 1 > up_least if factor > 1 else 1 - limited > down_least
    wanted = min(max(ceil(limited * current), 10), 50) if permitted else current
    decision = decide(CustomHpa.from_values(values).to_policy(NOW), total(current, float(sample)), Memory())
    assert decision.plan.replicas == wanted


# 003. LineOfBestFit over (time, utilisation), read at now + PodInitializationTime, which may only raise.
@given(st.lists(st.floats(0.0, 200.0), min_size=3, max_size=12), st.floats(5.0, 600.0))
def test_003_the_line_of_best_fit(values: list[float], startup_s: float) -> None:
    times = NOW - 15.0 * np.arange(len(values) - 1, -1, -1, dtype=np.float64)
    slope, intercept = np.polyfit(times - NOW, values, 1)
    observed = Series(times=times, values=np.array(values))
    options = LinearOptions()
    (found,) = forecast_recent([observed], startup_s, NOW, options)
    if not isinstance(found, Forecast):
        assert startup_s > 15.0 * (len(values) - 1), "silent only where it has seen less than it looks ahead"
        return
    assert found.demand[-1].value == pytest.approx(max(intercept + slope * startup_s, values[-1]), abs=1e-6)


# 004. Each count's part of a bucket is equal; the larger recommendation and the larger count decide.
def story_1_count(total: Fraction, least: Fraction, most: Fraction) -> int:
    """The first column whose total holds it: r replicas of at most least + r * (most - least) / 8."""
    return next((r for r in range(1, 9) if total <= r * (least + r * (most - least) / 8)), 8)


@settings(max_examples=300)
@given(
    st.integers(1, 8), st.integers(1, 8), st.integers(100, 24000), st.integers(100, 30000),
    st.integers(500, 25000), st.integers(500, 30000),
)  # fmt: skip
def test_004_story_1_for_any_recommendation(
    current: int, wanted: int, cpu: int, cpu_target: int, memory: int, memory_target: int
) -> None:
    """The totals are kept (`Share`) and nothing is remembered (`overlapPercent: 0`): the rule as the text has it."""
    policy = hvpa("004-buckets/story-1.yaml", sizing="Share", overlapPercent=0)
    now, target = Size(cpu / 1000, memory * 10**6), Size(cpu_target / 1000, memory_target * 10**6)
    plan = planned(policy, current, wanted, now, target)
    cores = Fraction(max(cpu_target * current, cpu * wanted), 1000)
    gigabytes = Fraction(max(memory_target * current, memory * wanted), 1000)
    replicas = max(
        story_1_count(cores, Fraction(0), Fraction(24)), story_1_count(gigabytes, Fraction(1, 2), Fraction(25))
    )
    assert plan.replicas == replicas
    requests = plan.sizes["resource-consumer"].requests
    assert requests.cpu_cores == pytest.approx(min(float(cores) / replicas, 3.0 * replicas), abs=0.0011)
    most = Fraction(1, 2) + replicas * Fraction(49, 16)
    share = min(max(gigabytes / replicas, Fraction(1, 2)), most)
    assert requests.memory_bytes == pytest.approx(float(share) * GB, abs=1001)


def story_2_most(replicas: int, least: int, most: int) -> Fraction:
    """One replica up to the second bucket's minimum; seven equal parts from there."""
    return least + (replicas - 1) * Fraction(most - least, 7)


@settings(max_examples=300)
@given(st.integers(1, 8), st.integers(1, 12000), st.integers(1, 25000))
def test_004_story_2_for_any_recommendation(current: int, cpu_target: int, memory_target: int) -> None:
    """`hpa.deploy: false`: vertical totals alone. What falls between the buckets belongs to the upper one."""
    policy = hvpa("004-buckets/story-2.yaml", sizing="Share", overlapPercent=0)
    now, target = Size(1.0, 10**9), Size(cpu_target / 1000, memory_target * 10**6)
    plan = planned(policy, current, current, now, target, speaks_for=frozenset())
    parts = [(Fraction(cpu_target * current, 1000), 1, 9), (Fraction(memory_target * current, 1000), 2, 20)]
    fits = [[r for r in range(1, 9) if need <= r * story_2_most(r, least, most)] or [8] for need, least, most in parts]
    replicas = max(min(counts) for counts in fits)
    assert plan.replicas == replicas
    shares = [min(need / replicas, story_2_most(replicas, least, most)) for need, least, most in parts]
    cores, gigabytes = (
        max(float(share), float(least) * (replicas > 1)) for share, (_, least, _) in zip(shares, parts, strict=True)
    )
    requests = plan.sizes["resource-consumer"].requests
    assert requests.cpu_cores == pytest.approx(max(cores, 0.01), abs=0.0011)
    assert requests.memory_bytes == pytest.approx(max(gigabytes * GB, 32 * MIB), abs=1001)


# 000. The percentile of pods, the lowest median of an hour, the percentile of the workload, each by its formula.
def analytics(**config: str) -> Any:
    manifest = document("000-recommendation/analytics-hpa.yaml")
    manifest["spec"]["config"] |= config
    obj = read(manifest)
    assert isinstance(obj, Analytics)
    return obj.to_inspection()


@settings(max_examples=50)
@given(
    st.lists(st.integers(10, 400), min_size=24, max_size=24), st.integers(2, 12), st.sampled_from([0.25, 0.5, 1.0, 2.0])
)
def test_000_min_max_and_target_by_their_formulas(hours: list[int], replicas: int, request: float) -> None:
    """A week of equal days, each hour at one level, all pods alike; usage in hundredths of a core."""
    cores = np.tile(np.repeat(np.array(hours) / 100, 60), 7)
    midnight = NOW - NOW % 86400
    workload = MeasuredWorkload(
        kind="Deployment",
        namespace="default",
        name="nginx-deployment",
        replicas=replicas,
        pods=tuple(pod(index) for index in range(replicas)),
        requests={"nginx": Size(cpu_cores=request, memory_bytes=2**30)},
        start=midnight - 7 * 86400,
        step_s=60.0,
        cpu_cores=cores,
    )
    found = advise(analytics(), workload, NOW)
    assert isinstance(found, WorkloadAdvice)
    p99 = float(np.quantile(cores / replicas, 0.99, method="higher"))
    target = min(max(100 * p99 / request, 30), 75)
    assert found.target_percent is not None and abs(found.target_percent - target) <= 1
    least = max(2, ceil(min(hours) / 100 / (request * 0.75) - 1e-9))
    assert found.min_replicas == least
    per_pod = request * found.target_percent / 100
    past, peak = (float(np.quantile(cores, share, method="higher")) for share in (0.95, 1.0))
    assert found.max_replicas is not None and found.max_replicas >= max(least, floor(3 * past / per_pod))
    coming = 1.1 * peak if found.predictable else past  # a week that repeats itself, with the forecast's margin
    assert found.max_replicas <= max(least, ceil(3 * coming / per_pod) + 1)
