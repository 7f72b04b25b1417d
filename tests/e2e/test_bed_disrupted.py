"""The shared control plane survives what the disruptive tests do to it."""

from __future__ import annotations

import signal

import pytest

from tests.bed import Bed, eventually
from tests.bed.manifests import deployment

pytestmark = [pytest.mark.e2e, pytest.mark.disruptive]


def ready(bed: Bed, namespace: str) -> int:
    count: int = bed.get("deployment", "web", "-n", namespace)["status"].get("readyReplicas", 0)
    return count


def rate_of_a_pod(bed: Bed, namespace: str) -> float:
    return float(bed.query(f'max(requests_per_second{{namespace="{namespace}"}})')[0]["value"][1])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "asked to end"])
def test_the_loop_goes_on_after_the_api_server_restarts(bed: Bed, namespace: str, number: signal.Signals) -> None:
    bed.apply(deployment(namespace, "web", replicas=2))
    bed.load(namespace, "web", rate=100)
    eventually(lambda: ready(bed, namespace) == 2 and rate_of_a_pod(bed, namespace) == 50, 30)
    bed.restart_apiserver(number)
    bed.kubectl("scale", "deployment", "web", "-n", namespace, "--replicas=4")
    eventually(lambda: ready(bed, namespace) == 4, 60, "4 pods after the restart")
    eventually(lambda: rate_of_a_pod(bed, namespace) == 25, 30, "the load shared by 4")


def test_a_part_can_be_frozen_and_thawed(bed: Bed, namespace: str) -> None:
    bed.signal_part("controller-manager", signal.SIGSTOP)
    try:
        bed.apply(deployment(namespace, "web"))
        assert bed.get("pods", "-n", namespace)["items"] == []
    finally:
        bed.signal_part("controller-manager", signal.SIGCONT)
    eventually(lambda: ready(bed, namespace) == 1, 30)
