"""Baselines: none looks ahead, all stay within their bounds and serve; weights overshoot, capacity does not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from trimtab.bench.baselines import BASELINES
from trimtab.bench.protocol import Load
from trimtab.policy import (
    Blend,
    Bounds,
    Capacity,
    ContainerRule,
    Metric,
    MetricKind,
    Policy,
    Rate,
    Size,
    Stabilise,
    Stage,
    Utilization,
    Vertical,
    Weights,
)
from trimtab.series import Floats
from trimtab.sim.cluster import run
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.grid import DAY_STEPS
from trimtab.sim.sliding_windows import trailing_mean

DAY_S = 86400


class Span(NamedTuple):
    """How long and how finely a policy is tried: long enough for it to look ahead, coarse enough to be quick."""

    step_s: float = 600.0
    days: float = 5.0
    known_days: float = 4.0

    @property
    def day(self) -> int:
        return round(DAY_S / self.step_s)


SPANS = dict.fromkeys(["predictive-hpa", "predictive-hpa-exact"], Span(30.0, 0.5, 0.3))


def waves(span: Span) -> Floats:
    steps = np.arange(round(span.days * span.day))
    noise = np.random.default_rng(2).standard_normal(len(steps))
    return np.maximum(0.1, (12 + 9 * np.sin(steps * 2 * np.pi / span.day)) * (1 + 0.05 * noise))


def policy_of(name: str, values: Floats, span: Span) -> Policy:
    """Made for this load; its finer grid is what a schedule's days are counted in."""
    fine = np.repeat(values, DAY_STEPS // span.day)
    return BASELINES[name](Load(name, fine, trailing_mean(fine, 4)))


@pytest.mark.parametrize("name", BASELINES)
def test_no_policy_looks_ahead(name: str) -> None:
    span = SPANS.get(name, Span())
    values, known = waves(span), round(span.known_days * span.day)
    changed = values.copy()
    changed[known:] = np.random.default_rng(8).uniform(0.1, 60, len(values) - known)
    cluster = ClusterSpec(startup_s=240)
    before, after = (
        run(policy_of(name, load, span), load, cluster, first_pods=18, step_s=span.step_s) for load in (values, changed)
    )
    assert (before.replicas[: known + 1] == after.replicas[: known + 1]).all()
    assert (before.billed[: known + 1] == after.billed[: known + 1]).all()
    if name != "schedule":
        assert (before.replicas != after.replicas).any() or (before.billed != after.billed).any()


@pytest.mark.parametrize("name", BASELINES)
def test_every_policy_serves_a_daily_wave(name: str) -> None:
    span = SPANS.get(name, Span(known_days=2.0))
    values = waves(span)
    policy = policy_of(name, values, span)
    found = run(policy, values, ClusterSpec(startup_s=60), first_pods=18, step_s=span.step_s)
    found = found.since(round(span.known_days * span.day))
    assert found.replicas.min() >= policy.bounds.min_replicas and found.replicas.max() <= policy.bounds.max_replicas
    assert found.violating.sum() / found.load.sum() < 0.5
    assert found.replicas.max() > found.replicas.min() or found.billed.max() > found.billed.min()


WAIT_S = 1800.0


def both(blend: Blend) -> Policy:
    """One pod of one core that needs five; it waits half an hour, so that both axes have learned the whole need."""
    cpu = Utilization(metric=Metric(kind=MetricKind.RESOURCE, name="cpu"), percent=100)
    sizes = ContainerRule(memory=False, most=Size(cpu_cores=8.0))
    return Policy(
        signals=(cpu,),
        settle=(Stabilise(up_s=WAIT_S), Rate()),
        bounds=Bounds(min_replicas=1, max_replicas=20),
        vertical=Vertical(containers=(sizes,), up_after_s=WAIT_S + 500),
        blend=blend,
    )


@pytest.mark.parametrize("blend", [Weights(stages=(Stage(vertical_share=0.5, first=1, last=20),)), Capacity()])
def test_recent_usage_answers_one_need_once(blend: Blend) -> None:
    """Sizes follow what is used, soon; three pods of three cores came where each axis waited and answered all of it."""
    load = np.concatenate((np.full(41, 1.0), np.full(160, 5.0)))
    found = run(both(blend), load, ClusterSpec(startup_s=15, burst=10.0, mean_s=15.0, metric_delay_s=0.0), first_pods=1)
    cores = found.replicas * (2 * found.billed / found.replicas - 1)  # half of the bill is memory, which stays
    assert cores[-1] >= 5.0 and cores.max() < 7.0, "five cores, and the margin"
