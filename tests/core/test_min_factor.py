"""Nanit custom-hpa as an Autoscaler: the same numbers as its program at every replica count and for every factor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.build import CPU, NOW
from trimtab.core.decide import decide
from trimtab.core.model import Memory, Observation, Pod, PodSamples, RuleName, TotalSample
from trimtab.kinds import CustomHpa, Scaler, read
from trimtab.kinds.convert import convert
from trimtab.policy import Bounds, Metric, MetricKind, MinFactor, PodAverage, Policy, Size, TotalAverage, Utilization

EXAMPLE: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parents[2] / "examples/002-custom-hpa/values.yaml").read_text(encoding="utf-8")
)
NARROW = {"scaleUpMinFactor": 0.2, "scaleDownMinFactor": 0.2, "scaleUpMaxFactor": 0.5, "scaleDownMaxFactor": 0.5}
CALM = dict.fromkeys(("scaleUpMinFactor", "scaleDownMinFactor"), 0.0)
PODS = tuple(
    Pod(
        name=f"p{i}",
        created_at=NOW - 7200,
        started_at=NOW - 7100,
        ready_since=NOW - 7000,
        requests=Size(cpu_cores=1.0),
    )
    for i in range(50)
)


def both(values: dict[str, Any]) -> tuple[Policy, Policy]:
    """The program, and the Autoscaler that it is converted to."""
    manifest, _ = convert(values, "autoscaler")
    converted = read(manifest)
    assert isinstance(converted, Scaler)
    return CustomHpa.from_values(values).to_policy(NOW), converted.to_policy(NOW)


def replicas(policy: Policy, current: int, factor: float, memory: Memory = Memory()) -> int:  # noqa: B008
    seen = Observation(
        at=NOW,
        spec_replicas=current,
        status_replicas=current,
        pods=PODS[:current],
        samples=(TotalSample(value=100 * factor, at=NOW),),
    )
    return decide(policy, seen, memory).plan.replicas


VALUES = {
    "002, the install line": EXAMPLE,
    "002, its defaults from 1 replica": EXAMPLE | {"minReplicas": 1, "maxReplicas": 200},
    "002, the factors of its examples": EXAMPLE | {"minReplicas": 1, "maxReplicas": 200, "behavior": NARROW},
    "002, three times as many at once": EXAMPLE
    | {"minReplicas": 1, "maxReplicas": 200, "behavior": {"scaleUpMaxFactor": 2.0, "scaleUpCooldown": 5}},
    "002, every step is worth it": EXAMPLE | {"minReplicas": 1, "maxReplicas": 200, "behavior": CALM},
}


@pytest.mark.parametrize("values", [pytest.param(values, id=name) for name, values in VALUES.items()])
def test_the_autoscaler_of_custom_hpa_behaves_as_its_program(values: dict[str, Any]) -> None:
    """Every replica count from 1 to 50, every factor from 0 to 3 in hundredths."""
    program, converted = both(values)
    different = [
        (current, hundredths / 100)
        for current in range(1, 51)
        for hundredths in range(301)
        if replicas(program, current, hundredths / 100) != replicas(converted, current, hundredths / 100)
    ]
    assert different == []


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 50), st.floats(0.0, 3.0), st.sampled_from([0.0, 0.1, 0.2]), st.sampled_from([None, 14, 15]))
def test_for_any_factor_and_at_rest(current: int, factor: float, least: float, acted_s_ago: float | None) -> None:
    behavior = {"scaleUpMinFactor": least, "scaleDownMinFactor": least}
    at = None if acted_s_ago is None else NOW - acted_s_ago
    memory = Memory(up_at=at, down_at=at)
    program, converted = both(VALUES["002, its defaults from 1 replica"] | {"behavior": behavior})
    value = round(factor, 6)  # metrics have thousandths of a thousandth, targets no more
    assert replicas(program, current, value, memory) == replicas(converted, current, value, memory)


@pytest.mark.parametrize(
    "current, factor, expected",
    [
        pytest.param(1, 1.3, 2, id="002 permit scale, example 1: 1.3 will permit"),
        pytest.param(1, 1.1, 1, id="002 permit scale, example 2: 1.1 will not permit, at 1 replica"),
        pytest.param(4, 1.1, 4, id="002 permit scale, example 2: 1.1 will not permit, at 4 replicas"),
        pytest.param(5, 0.6, 3, id="002 permit scale, example 3: 0.6 will permit"),
        pytest.param(2, 0.9, 2, id="002 permit scale, example 4: 0.9 will not permit"),
        pytest.param(3, 1.2, 3, id="002 permit scale: just the minimum is not more"),
    ],
)
def test_the_document_s_examples_at_few_replicas(current: int, factor: float, expected: int) -> None:
    for policy in both(VALUES["002, the factors of its examples"]):
        assert replicas(policy, current, factor) == expected


QUEUE = Metric(kind=MetricKind.EXTERNAL, name="queue")


@pytest.mark.parametrize(
    "signal, sample",
    [
        pytest.param(Utilization(metric=CPU, percent=50), lambda f: _each(0.5 * f), id="utilisation"),
        pytest.param(PodAverage(metric=CPU, target=0.5), lambda f: _each(0.5 * f), id="average of pods"),
        pytest.param(
            TotalAverage(metric=QUEUE, target=10.0), lambda f: TotalSample(value=20 * f, at=NOW), id="share of a total"
        ),
    ],
)
def test_the_unrounded_wish_of_every_metric_is_compared(signal: Any, sample: Any) -> None:
    """1.3 times two pods is three after rounding: not worth it with a minimum of 0.4, worth it with one of 0.2."""
    for least, expected in ((0.4, 2), (0.2, 3)):
        policy = Policy(signals=(signal,), settle=(MinFactor(up=least, down=least),), bounds=Bounds(max_replicas=9))
        seen = Observation(at=NOW, spec_replicas=2, status_replicas=2, pods=PODS[:2], samples=(sample(1.3),))
        decision = decide(policy, seen, Memory())
        assert decision.plan.replicas == expected
        assert (RuleName.MIN_FACTOR in [step.rule for step in decision.steps]) == (expected == 2)


def _each(cores: float) -> PodSamples:
    return PodSamples(values={pod.name: cores for pod in PODS[:2]}, at=NOW)
