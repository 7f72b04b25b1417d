"""Document 001's example 2 on a real control plane, up and down: the shape of its figure, from what was written.

A vertical line at one replica, both axes between two and four, replicas alone from five to ten, and back to where it
began. A load that falls slowly leaves nothing of the line for the way down, for sizes shrink with two replicas already;
`test_operator_curves.py` walks down it. Each stretch waits for the workload itself, so that a slow machine walks it
later, not otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import exp
from pathlib import Path

import pytest

from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.e2e.test_operator_curves import QUICK, Step, steps_until_now
from tests.live.running import Running, install_crds, replicas
from tests.virtual.test_examples_001 import example_2

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(2400)]
FIRST_CORES, FIRST_SIZE, WITHIN_S = 0.05, 0.06, 600
STAIR = 1.25  # the recommendation is 15 % above usage and the tolerance 10 %: sizes alone follow such a step
PER_S, RAMP_S = 0.01, 900  # usage of half a minute ago still says much: both axes have their turn


class Load:
    """Of all pods together, in cores."""

    def __init__(self, bed: Bed, namespace: str) -> None:
        self.bed, self.namespace, self.cores = bed, namespace, FIRST_CORES

    def set(self, cores: float) -> None:
        self.cores = cores
        self._post([[0, cores]])

    def ramp_until(self, there: Callable[[], object], way: int, what: str) -> None:
        """The same growth in every second until something holds, and then no more."""
        began = time.monotonic()
        self._post([[second, self.cores * exp(way * PER_S * second)] for second in range(0, RAMP_S, 5)])
        eventually(there, WITHIN_S, what)
        self.set(self.cores * exp(way * PER_S * (time.monotonic() - began)))

    def _post(self, points: list[list[float]]) -> None:
        self.bed.load(self.namespace, "web", cores=points, memory_bytes=100e6)


def walk(bed: Bed, namespace: str, journal: Path) -> None:
    load = Load(bed, namespace)

    def count() -> int:
        return replicas(bed, namespace)

    def size() -> float:
        steps = steps_until_now(journal, namespace, "web")
        return steps[-1].new_cpu if steps else FIRST_SIZE

    while size() < 3 * FIRST_SIZE:
        before = size()
        load.set(load.cores * STAIR)
        eventually(lambda: size() > before, WITHIN_S, f"more than {before:g} cores")  # noqa: B023
        assert count() == 1, "up the vertical line"
    load.set(2 * load.cores)  # more than the recommendation knows of yet
    eventually(lambda: count() >= 2, WITHIN_S, "off the line")
    load.ramp_until(lambda: count() >= 5, 1, "five replicas")
    load.set(11 * size())
    eventually(lambda: count() == 10, WITHIN_S, "ten replicas")
    load.set(4.9 * size())
    eventually(lambda: count() <= 5, WITHIN_S, "five replicas again")
    load.ramp_until(lambda: count() == 1 and size() < 2 * FIRST_SIZE, -1, "back to where it began")


def test_example_2_up_and_down(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    hvpa = example_2()
    hvpa["metadata"]["namespace"] = namespace
    bed.load(namespace, "web", cores=FIRST_CORES, memory_bytes=100e6)
    bed.apply(deployment(namespace, "web", cpu="60m", memory="500M"), hvpa)
    with Running(bed, namespace, tmp_path, *QUICK) as running:
        walk(bed, namespace, running.journal)
    steps = steps_until_now(running.journal, namespace, "web")
    top = next(index for index, step in enumerate(steps) if step.now == 10)
    line = [step for step in steps[:top] if step.was == step.now == 1 and step.new_cpu != step.cpu]
    assert line[-1].new_cpu >= 3 * line[0].cpu, f"a vertical line: {steps}"
    has_the_shape(steps[: top + 1], 1)
    has_the_shape(steps[top + 1 :], -1)


def has_the_shape(steps: list[Step], way: int) -> None:
    """Of one way through the figure, from two replicas on."""
    between = [step for step in steps if 2 <= step.was <= 4]
    assert any(way * (step.new_cpu - step.cpu) > 0 for step in between), f"sizes between 2 and 4: {steps}"
    assert any(way * (step.now - step.was) > 0 for step in between), f"replicas between 2 and 4: {steps}"
    level = [step for step in steps if step.was >= 5 and step.now != step.was]
    assert level and all(step.new_cpu == step.cpu for step in level), f"replicas alone from 5 on: {steps}"
