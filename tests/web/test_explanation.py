"""What `trimtab explain` says it saw: pods and samples as a person would count them."""

from __future__ import annotations

import pytest

from trimtab.core.model import Observation, Pod, PodSamples
from trimtab.web.workload import _pods, _sample

TWO = (Pod(name="a"), Pod(name="b", ready=False))


@pytest.mark.parametrize(
    "pods, status, said",
    [
        pytest.param(TWO, 2, ", 2 pods, 1 ready", id="some"),
        pytest.param(TWO[:1], 1, ", 1 pod, 1 ready", id="one"),
        pytest.param((), 2, "", id="none were looked at"),
        pytest.param((), 0, ", no pods", id="none are there"),
    ],
)
def test_pods(pods: tuple[Pod, ...], status: int, said: str) -> None:
    assert _pods(Observation(at=0.0, spec_replicas=2, status_replicas=status, pods=pods)) == said


def test_a_metric_of_pods_without_any_value_is_no_division_by_zero() -> None:
    assert _sample(PodSamples(values={}, at=0.0)) == "no pod has a value"
