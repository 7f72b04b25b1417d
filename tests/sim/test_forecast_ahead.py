"""Slow pods and a ramp at the default tick: an annotated HPA is ahead of the load, and is again after a restart."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from trimtab.core.model import Decision, Forecast, Memory, Observation, Reason
from trimtab.kinds import Hpa, read
from trimtab.policy import ForecastChoice, Policy
from trimtab.series import Floats
from trimtab.sim.cluster import run
from trimtab.sim.cluster_spec import ClusterSpec, Fault, FaultKind

STEP_S, TARGET = 15.0, 0.5


def annotated() -> Policy:
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": round(100 * TARGET)}}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1,
        "maxReplicas": 200,
        "metrics": [{"type": "Resource", "resource": cpu}],
    }
    meta = {"name": "web", "namespace": "shop", "annotations": {"predictive": "true"}}
    found = read({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": meta, "spec": spec})
    assert isinstance(found, Hpa)
    return found.to_policy(0.0)


def ramp(startup_s: float) -> Floats:
    """Level for as long as the line needs, then four times the load within 40 minutes; in pods at 100 %."""
    level = np.full(int((startup_s + 600.0) / STEP_S), 5.0)
    return np.concatenate([level, np.linspace(5.0, 20.0, int(2400 / STEP_S))])


def utilization(policy: Policy, startup_s: float, **more: object) -> Floats:
    load = ramp(startup_s)
    cluster = ClusterSpec(startup_s=startup_s, burst=4.0, **more)  # type: ignore[arg-type]
    found = run(policy, load, cluster, first_pods=10, step_s=STEP_S)
    busy: Floats = load / np.maximum(1, found.ready)
    return busy[load > load[0]]


@pytest.mark.parametrize("startup_s", [240.0, 600.0])
def test_a_ramp_is_met_by_pods_that_take_minutes_to_start(startup_s: float) -> None:
    ahead = utilization(annotated(), startup_s).mean()
    reacting = utilization(replace(annotated(), forecast=None), startup_s).mean()
    assert ahead <= 1.3 * TARGET
    assert ahead < reacting


def speaking(policy: Policy, load: Floats, startup_s: float, step_s: float, down_s: float) -> list[tuple[float, bool]]:
    """When forecasts spoke, or saw no trend, around two minutes without an operator."""
    said: list[tuple[float, bool]] = []

    def watch(seen: Observation, memory: Memory, decision: Decision) -> None:
        found = seen.forecasts[0]
        said.append((seen.at, isinstance(found, Forecast) or found.reason is Reason.NOT_PREDICTABLE))

    cluster = ClusterSpec(startup_s=startup_s, faults=(Fault(FaultKind.OPERATOR_DOWN, down_s, down_s + 120.0),))
    run(policy, load, cluster, first_pods=10, step_s=step_s, watch=watch)
    return said


@pytest.mark.parametrize("startup_s", [240.0, 600.0])
def test_a_line_is_drawn_again_as_soon_as_it_has_seen_enough(startup_s: float) -> None:
    said = speaking(annotated(), ramp(startup_s), startup_s, STEP_S, 3000.0)
    assert all(speaks for at, speaks in said if startup_s + STEP_S <= at <= 3000.0)
    assert all(speaks for at, speaks in said if at >= 3120.0 + STEP_S + startup_s)


def test_days_survive_an_operator_in_its_checkpoint() -> None:
    policy = replace(annotated(), forecast=ForecastChoice(model="seasonal", horizon_s=7200.0))
    clock, down_s = np.arange(0.0, 74 * 3600.0, 60.0), 73.5 * 3600.0
    load = 5.0 + 3.0 * np.sin(2 * np.pi * clock / 86400.0)
    said = speaking(policy, load, 120.0, 60.0, down_s)
    assert all(speaks for at, speaks in said if down_s - 600.0 <= at <= down_s)
    assert all(speaks for at, speaks in said if at > down_s + 120.0 + 2 * 60.0), "from the second tick on"
