"""Missing data never lowers a workload: load falls by 80 % at the moment Prometheus fails, in each way it can."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.bed import Bed, always, eventually
from tests.bed.manifests import deployment
from tests.live.running import Running, autoscaler, conditions, install_crds, replicas
from trimtab.journal_replay import replay

pytestmark = pytest.mark.e2e
SOON_S = 30
QUICK_DOWN = {"scaleDown": {"stabilizationWindowSeconds": 0}}


class Lane:
    """An operator whose Prometheus can fail, in a namespace of its own."""

    def __init__(self, bed: Bed, namespace: str, running: Running) -> None:
        self.bed, self.namespace, self.running = bed, namespace, running

    def open(self, name: str, **spec: Any) -> None:
        query = f'sum(requests_per_second{{namespace="{self.namespace}",app="{name}"}})'
        target = {"type": "AverageValue", "averageValue": "20"}
        metrics = [{"type": "Prometheus", "prometheus": {"query": query, "target": target}}]
        self.bed.load(self.namespace, name, rate=100)
        self.bed.apply(deployment(self.namespace, name, replicas=1))
        self.bed.apply(autoscaler(self.namespace, name, **({"metrics": metrics, "behavior": QUICK_DOWN} | spec)))
        eventually(lambda: self.replicas(name) == 5, SOON_S, "5 replicas for 100 requests a second")

    def replicas(self, name: str) -> int:
        return replicas(self.bed, self.namespace, name)

    def active(self, name: str) -> tuple[str, str, str]:
        one = conditions(self.bed, self.namespace, name)["ScalingActive"]
        return one["status"], one["reason"], one["message"]


@pytest.fixture(scope="module")
def lane(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lane]:
    install_crds(bed)
    name = f"faults-{uuid.uuid4().hex[:8]}"
    bed.kubectl("create", "namespace", name)
    options = ("--prometheus", bed.prometheus_lane(name))
    with Running(bed, name, tmp_path_factory.mktemp("operator"), *options) as running:
        yield Lane(bed, name, running)
    assert replay(running.journal).differences == ()
    bed.kubectl("delete", "namespace", name, "--wait=false")


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("die", "does not answer"),
        ("error", "does not answer"),
        ("late", "does not answer"),
        ("nan", "not a number"),
        ("warnings", "incomplete"),
        ("empty", "no value"),
    ],
)
def test_no_decrease_while_prometheus_fails_and_one_after(lane: Lane, kind: str, says: str) -> None:
    name = f"web-{kind}"
    lane.open(name)
    lane.bed.fault(lane.namespace, kind, seconds=60)
    lane.bed.load(lane.namespace, name, rate=20)
    try:
        eventually(lambda: lane.active(name)[:2] == ("False", "FailedGetPrometheusMetric"), SOON_S)
        assert says in lane.active(name)[2]
        always(lambda: lane.replicas(name) == 5, 5, "no decrease")
    finally:
        lane.bed.fault(lane.namespace, None)
    eventually(lambda: lane.replicas(name) == 1, SOON_S, "after recovery it scales down")
    eventually(lambda: lane.active(name)[:2] == ("True", "ValidMetricFound"), SOON_S)


def test_two_series_are_ambiguous_and_hold(lane: Lane) -> None:
    lane.open("ambiguous")
    query = f'requests_per_second{{namespace="{lane.namespace}",app="ambiguous"}}'
    target = {"type": "AverageValue", "averageValue": "20"}
    metrics = [{"type": "Prometheus", "prometheus": {"query": query, "target": target}}]
    lane.bed.load(lane.namespace, "ambiguous", rate=20)
    lane.bed.apply(autoscaler(lane.namespace, "ambiguous", metrics=metrics, behavior=QUICK_DOWN))
    eventually(lambda: "more than one series" in lane.active("ambiguous")[2], SOON_S)
    assert lane.active("ambiguous")[:2] == ("False", "AmbiguousQuery")


def test_the_fallback_is_a_floor_after_its_hold(lane: Lane) -> None:
    lane.open("floor", onMetricFailure={"holdSeconds": 4, "then": {"replicas": 7}})
    lane.open("lower", onMetricFailure={"holdSeconds": 4, "then": {"replicas": 2}})
    lane.open("down", onMetricFailure={"holdSeconds": 4, "then": {"replicas": 2, "allowDecrease": True}})
    lane.bed.fault(lane.namespace, "empty")
    try:
        eventually(lambda: lane.replicas("floor") == 7, SOON_S, "7 replicas")
        eventually(lambda: lane.replicas("down") == 2, SOON_S, "2 where a decrease is allowed")
        assert lane.replicas("lower") == 5, "max(5, 2)"
    finally:
        lane.bed.fault(lane.namespace, None)
