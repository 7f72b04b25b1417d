"""What is read also compiles, and what compiles decides: no value that passes is refused, or fails, later on."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.build import pod
from tests.kinds import generate
from trimtab.core.decide import decide
from trimtab.core.model import Memory, Observation, PodSamples, TotalSample
from trimtab.errors import InvalidInput
from trimtab.kinds import Analytics, Scaler, read
from trimtab.kinds.lint import lint
from trimtab.kinds.yaml import documents
from trimtab.policy import MetricKind, PodAverage, Policy, Utilization

NOW = 1_700_000_000.0
Manifest = dict[str, Any]
NUMBERS = [0, 1, 0.5, 1.0, 1e-9, 101, 3600, 2**31 - 1, 2**31, None]
QUANTITIES = ["0", "1n", "0.1n", "0.0000000000001", "9E", "16E", "100E", "1e99", "1e19", "1e-99", "9Ei", "1" + "0" * 30]
TEXTS = ["9" * 25 + "s", "99999999d", "0s", "1ns", "1e10", "0.99999999999999999999", "\u0663", "235959-2359"]
ODD = st.sampled_from([*NUMBERS, *QUANTITIES, *TEXTS])
KINDS = {
    "hpa": generate.HPAS,
    "ehpa": generate.EHPAS,
    "hvpa": generate.HVPAS,
    "vertical-hvpa": generate.VERTICAL_HVPAS,
    "autoscaler": generate.AUTOSCALERS,
    "wpa": generate.WATERMARKS,
    "phpa": generate.PREDICTIVE_HPAS,
    "analytics": generate.ANALYTICS,
}


@st.composite
def odd(draw: st.DrawFn, manifests: generate.Strategy) -> Manifest:
    """A right one with one to three values that somebody could write in its place."""
    manifest: Manifest = copy.deepcopy(draw(manifests))
    for _ in range(draw(st.integers(1, 3))):
        places = [(inside, key) for inside, key in generate.places(manifest["spec"]) if _is_value(inside[key])]
        inside, key = draw(st.sampled_from(places))
        inside[key] = draw(ODD)
    return manifest


def _is_value(value: object) -> bool:
    return not isinstance(value, dict | list)


def busy(policy: Policy, replicas: int = 3) -> Observation:
    pods = tuple(pod(index) for index in range(replicas))
    each = PodSamples(values={one.name: 0.7 for one in pods}, at=NOW)
    total = TotalSample(value=2.1, at=NOW)
    samples = tuple(
        each if isinstance(signal, Utilization | PodAverage) or signal.metric.kind is MetricKind.RESOURCE else total
        for signal in policy.signals
    )
    return Observation(at=NOW, spec_replicas=replicas, status_replicas=replicas, pods=pods, samples=samples)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_compiles_and_decides(kind: str) -> None:
    @settings(max_examples=120, deadline=None)
    @given(manifest=odd(KINDS[kind]))
    def holds(manifest: Manifest) -> None:
        try:
            obj = read(manifest)
        except InvalidInput:
            return
        if isinstance(obj, Analytics):
            obj.to_inspection()
            return
        assert isinstance(obj, Scaler)
        policy = obj.to_policy(NOW)
        decision = decide(policy, busy(policy), Memory())
        assert 0 <= decision.plan.replicas <= 2**31 - 1

    holds()


def hpa(name: str, most: int, target: str) -> str:
    return f"""
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: {name}}}
spec:
  maxReplicas: {most}
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {name}}}
  metrics: [{{type: Pods, pods: {{metric: {{name: rps}}, target: {{type: AverageValue, averageValue: {target}}}}}}}]
"""


@pytest.mark.parametrize("target", ["100E", "16E", "1e99"])
def test_one_number_out_of_range_has_a_path_and_stops_no_other_manifest(target: str) -> None:
    found = list(documents(f"{hpa('a', 9, target)}---{hpa('b', 0, '1')}"))
    assert [(finding.path, finding.rule) for finding in lint(found, NOW)] == [
        ("spec.metrics[0].pods.target.averageValue", "invalid"),
        ("spec.maxReplicas", "invalid"),
    ]


def test_a_target_finer_than_kubernetes_keeps_is_a_nano() -> None:
    (document,) = documents(hpa("a", 9, "0.1n"))
    obj = read(document.value)
    assert isinstance(obj, Scaler)
    policy = obj.to_policy(NOW)
    assert decide(policy, busy(policy), Memory()).plan.replicas == 6, "as much as one step allows"


@pytest.mark.parametrize("digits", ["\u0663", "\uff13"])
def test_digits_of_other_scripts_are_no_numbers(digits: str) -> None:
    (document,) = documents(hpa("a", 9, "1"))
    document.value["metadata"]["annotations"] = {"trimtab.dev/pin": digits}
    with pytest.raises(InvalidInput, match="write a whole number of replicas"):
        read(document.value)
