"""Clocks that are set: no window is emptied, no workload frozen, and dates in the future are dropped."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.faults import ClockStepped, Fault, Killed, Refusing, SpoiledMetrics, Spoiling, Unreachable
from trimtab.live.object_tick import ObjectTick

NAME = "shop/web"


@pytest.mark.parametrize("by_s", [400.0, 3600.0, -400.0, -3600.0])
def test_a_step_does_not_empty_a_window(by_s: float) -> None:
    """The load falls at 900 s, all clocks step a minute later: the decrease still comes after the whole window."""
    with Cluster(seed=1) as cluster:
        cluster.deploy(NAME, replicas=2)
        cluster.metrics.external["queue"] = lambda seconds: 20.0 if seconds < 900 else 2.0
        _step_metrics(cluster)
        cluster.apply(autoscaler(NAME, metrics=[QUEUE]))
        cluster.faults(ClockStepped(960.0, by_s=by_s))
        cluster.run(minutes=30)
        lowered = [at for at, replicas in cluster.writes(NAME) if replicas < 20 and at > 900]
        assert lowered and 900 + 285 <= lowered[0] <= 900 + 345
        assert cluster.replicas(NAME) == 2


def test_an_hour_ahead_and_back_freezes_nobody() -> None:
    with Cluster(seed=2) as cluster:
        cluster.deploy(NAME, replicas=2)
        cluster.metrics.external["queue"] = lambda seconds: 8.0 if seconds < 1000 else 18.0
        _step_metrics(cluster)
        slow = {"scaleUp": {"policies": [{"type": "Pods", "value": 20, "periodSeconds": 600}]}}
        cluster.apply(autoscaler(NAME, metrics=[QUEUE], behavior=slow))
        cluster.faults(ClockStepped(300.0, by_s=3600), ClockStepped(900.0, by_s=-3600))
        cluster.run(minutes=25)
        assert cluster.replicas(NAME) == 18


@pytest.mark.parametrize(
    "away",
    [
        pytest.param(Unreachable(200.0, 290.0), id="while it does not lead"),
        pytest.param(Refusing(0.0, 290.0, plural="pods", methods=("GET",), status=403), id="while it knows no pods"),
    ],
)
@pytest.mark.parametrize("by_s", [3600.0, -3600.0])
def test_no_tick_bears_another_time_than_its_clock(away: Fault, by_s: float) -> None:
    apart: list[float] = []

    def note(ticks: Sequence[ObjectTick]) -> None:
        now = cluster.processes["operator-0"].clock.now()
        apart.extend(abs(tick.seen.at - now) for tick in ticks)

    with Cluster(seed=5) as cluster:
        cluster.deploy(NAME, replicas=2, load=0.25)
        cluster.apply(autoscaler(NAME))
        cluster.on_tick.append(note)
        cluster.faults(
            away, *(ClockStepped(tenth / 10 + 0.05, by_s=by_s) for tenth in range(2900, 3200))
        )  # whenever it is back
        cluster.run(minutes=10)
    assert len(apart) > 10 and max(apart) <= 15.0


def test_a_memory_from_the_future_is_dropped_at_a_restart(caplog: pytest.LogCaptureFixture) -> None:
    """Killed while an hour ahead, back with the right time: its rate limit ends within its own period."""
    with Cluster(seed=3) as cluster:
        cluster.deploy(NAME, replicas=2)
        cluster.metrics.external["queue"] = lambda seconds: (
            8.0 if 400 < seconds < 1000 else 18.0 if seconds > 400 else 2.0
        )
        _step_metrics(cluster)
        slow = {"scaleUp": {"policies": [{"type": "Pods", "value": 6, "periodSeconds": 300}]}}
        cluster.apply(autoscaler(NAME, metrics=[QUEUE], behavior=slow))
        cluster.faults(
            ClockStepped(300.0, by_s=3600), Killed(600.0, back_after_s=10.0), ClockStepped(605.0, by_s=-3600)
        )
        with caplog.at_level(logging.WARNING):
            cluster.run(minutes=28)
        assert cluster.replicas(NAME) == 18
        assert "dates in the future, which are dropped" in caplog.text


def test_samples_from_the_future_are_stale() -> None:
    with Cluster(seed=4) as cluster:
        cluster.deploy(NAME, replicas=4, load=lambda seconds: 2.0 if seconds < 600 else 0.2)
        cluster.apply(autoscaler(NAME))
        cluster.faults(SpoiledMetrics(600.0, 2400.0, NAME, Spoiling.FUTURE))
        cluster.run(minutes=35)
        assert cluster.writes(NAME) == []
        assert cluster.conditions("Autoscaler", NAME)["ScalingActive"] == ("False", "FailedGetResourceMetric")


QUEUE = {
    "type": "External",
    "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "1"}},
}


def _step_metrics(cluster: Cluster) -> None:
    """The metrics' machine has the same clock as the operator's."""
    cluster.metrics.now = lambda: cluster.processes["operator-0"].clock.now()


def test_a_schedule_in_the_hour_that_is_skipped_lowers_nothing_the_day_before() -> None:
    zone = "Europe/Berlin"
    night = {"name": "backup", "timezone": zone, "start": "0 2 * * *", "end": "0 3 * * *", "maxReplicas": 1}
    saturday = datetime(2026, 3, 28, 9, tzinfo=ZoneInfo(zone)).timestamp()
    with Cluster(seed=1, start=saturday) as cluster:
        cluster.deploy(NAME, replicas=12, load=6.0)
        cluster.apply(autoscaler(NAME, schedules=[night]))
        cluster.run(minutes=20)
        assert cluster.replicas(NAME) == 12
