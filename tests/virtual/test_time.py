"""Clocks that are set: no window is emptied, no workload frozen, and dates in the future are dropped."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from datetime import datetime
from email.utils import formatdate
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.faults import (
    BadMetrics,
    ClockStepped,
    Fault,
    Killed,
    Refusing,
    SpoiledMetrics,
    Spoiling,
    Unreachable,
)
from trimtab.live.object_tick import ObjectTick
from trimtab.sim.cluster_spec import FaultKind
from trimtab.wire.clock import http_date

NAME = "shop/web"
PRODUCTION_S = (15.0, 10.0, 2.0)


@pytest.mark.parametrize("by_s", [400.0, 3600.0, -400.0, -3600.0])
def test_a_step_does_not_empty_a_window(by_s: float) -> None:
    """The load falls at 900 s, all clocks step a minute later: the decrease still comes after the whole window."""
    with Cluster(seed=1, lease_s=PRODUCTION_S) as cluster:
        cluster.deploy(NAME, replicas=2)
        cluster.metrics.external["queue"] = lambda seconds: 20.0 if seconds < 900 else 2.0
        _step_all(cluster)
        cluster.apply(autoscaler(NAME, metrics=[QUEUE]))
        cluster.faults(ClockStepped(960.0, by_s=by_s))
        cluster.run(minutes=30)
        lowered = [at for at, replicas in cluster.writes(NAME) if replicas < 20 and at > 900]
        assert lowered and 900 + 285 <= lowered[0] <= 900 + 375
        assert cluster.replicas(NAME) == 2


def test_an_hour_ahead_and_back_freezes_nobody() -> None:
    with Cluster(seed=2, lease_s=PRODUCTION_S) as cluster:
        cluster.deploy(NAME, replicas=2)
        cluster.metrics.external["queue"] = lambda seconds: 8.0 if seconds < 1000 else 18.0
        _step_all(cluster)
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
        operator = cluster.processes["operator-0"].operator
        assert operator is not None
        now = operator.clock.now()  # as the API server corrects it
        apart.extend(abs(tick.seen.at - now) for tick in ticks)

    with Cluster(seed=5, lease_s=PRODUCTION_S) as cluster:
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
        _step_all(cluster)
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


def _step_all(cluster: Cluster) -> None:
    """The machines of the API server and of the metrics have the same clock as the operator's."""

    def now() -> float:
        operator = cluster.processes.get("operator-0")
        return operator.clock.now() if operator else cluster.now()

    cluster.metrics.now = cluster.server.clock = now


def test_a_schedule_in_the_hour_that_is_skipped_lowers_nothing_the_day_before() -> None:
    zone = "Europe/Berlin"
    night = {"name": "backup", "timezone": zone, "start": "0 2 * * *", "end": "0 3 * * *", "maxReplicas": 1}
    saturday = datetime(2026, 3, 28, 9, tzinfo=ZoneInfo(zone)).timestamp()
    with Cluster(seed=1, start=saturday) as cluster:
        cluster.deploy(NAME, replicas=12, load=6.0)
        cluster.apply(autoscaler(NAME, schedules=[night]))
        cluster.run(minutes=20)
        assert cluster.replicas(NAME) == 12


AHEAD_AND_BEHIND = pytest.mark.parametrize("by_s", [20.0, 600.0, 86_400.0, -20.0, -600.0, -86_400.0])


@AHEAD_AND_BEHIND
@pytest.mark.parametrize("from_s", [14.9, 300.0], ids=["before its first tick", "while it runs"])
def test_a_wrong_clock_of_the_node_changes_no_decision(by_s: float, from_s: float) -> None:
    """Compare with a twin whose clock is right: the same writes, up to the pause in which others may lead."""
    writes = []
    for wrong_s in (0.0, by_s):
        with Cluster(seed=6, lease_s=PRODUCTION_S) as cluster:
            cluster.deploy(NAME, replicas=2, load=lambda seconds: 0.8 if not 600 <= seconds < 1200 else 4.0)
            cluster.apply(autoscaler(NAME))
            cluster.faults(ClockStepped(from_s, by_s=wrong_s))
            cluster.run(minutes=60)
            writes.append(cluster.writes(NAME))
            if wrong_s:
                status, said = cluster.ready()
                way = "ahead of" if by_s > 0 else "behind"
                assert status == 200 and said.startswith("degraded") and way in said, said
                ready = cluster.get("Autoscaler", NAME)["status"]["conditions"]
                assert [each["reason"] for each in ready if each["type"] == "Ready"] == ["ClockWrong"]
                ahead = re.search(r'clock_ahead_seconds{of="operator"} (\S+)', cluster.metrics_page())
                assert ahead and abs(float(ahead[1]) - by_s) <= 1
    assert [replicas for _, replicas in writes[0]] == [replicas for _, replicas in writes[1]]
    assert all(abs(was - now) <= 60 for (was, _), (now, _) in zip(*writes, strict=True)), writes


@pytest.mark.parametrize("by_s", [600.0, -600.0])
def test_the_lease_goes_to_the_operator_whose_clock_is_right(by_s: float) -> None:
    with Cluster(seed=7, operators=2) as cluster:
        cluster.deploy(NAME, replicas=2, load=0.8)
        cluster.apply(autoscaler(NAME))
        cluster.run(minutes=4)
        leader = cluster.get("Lease", "trimtab-system/trimtab")["spec"]["holderIdentity"]
        (other,) = set(cluster.processes) - {leader}
        cluster.faults(ClockStepped(250.0, by_s=by_s, who=leader))
        cluster.run(minutes=4)
        assert cluster.get("Lease", "trimtab-system/trimtab")["spec"]["holderIdentity"] == other
        cluster.kill(other)
        cluster.load(NAME, 4.0)
        cluster.run(minutes=4)
        assert cluster.replicas(NAME) == 8, "a wrong clock is better than nobody"


@pytest.mark.parametrize("by_s", [600.0, -600.0])
def test_an_api_server_with_a_wrong_clock_is_not_followed(by_s: float) -> None:
    with Cluster(seed=8) as cluster:
        cluster.deploy(NAME, replicas=2, load=lambda seconds: 0.8 if seconds < 600 else 4.0)
        cluster.apply(autoscaler(NAME))
        cluster.server.clock = lambda: cluster.now() + by_s
        cluster.run(minutes=15)
        assert cluster.replicas(NAME) == 8
        assert "the API server's clock is 600 s" in cluster.ready()[1]
        cluster.server.clock = cluster.now
        cluster.run(minutes=2)
        assert cluster.ready()[1].startswith("ok")


def test_samples_that_stop_do_not_make_the_api_server_wrong() -> None:
    """A metrics server that repeats its last answer for ten minutes says nothing about clocks."""
    with Cluster(seed=9) as cluster:
        cluster.deploy(NAME, replicas=4, load=lambda seconds: 2.0 if seconds < 900 else 0.2)
        cluster.apply(autoscaler(NAME))
        cluster.faults(ClockStepped(14.9, by_s=-600.0), BadMetrics(300.0, 2400.0, NAME, FaultKind.STALE))
        cluster.run(minutes=35)
        assert cluster.writes(NAME) == []
        assert "the clock of the operator's node" in cluster.ready()[1]


def test_samples_from_the_future_name_the_clock_of_the_metrics() -> None:
    with Cluster(seed=10) as cluster:
        cluster.deploy(NAME, replicas=4, load=2.0)
        cluster.apply(autoscaler(NAME))
        cluster.faults(SpoiledMetrics(60.0, 2400.0, NAME, Spoiling.FUTURE))
        cluster.run(minutes=5)
        assert "samples are dated 3500 s in the future" in cluster.ready()[1].replace("3600", "3500")


@pytest.mark.parametrize("text", [None, "", "soon", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 31 Feb 1994 08:49:37 GMT"])
def test_what_is_no_date_is_none(text: str | None) -> None:
    assert http_date(text) is None


@given(st.integers(0, 4_000_000_000))
def test_dates_are_read_as_servers_write_them(at: int) -> None:
    assert http_date(formatdate(at, usegmt=True)) == at


def test_dates_in_tenants_metrics_move_no_clock() -> None:
    """Dates of external and custom metrics come from adapters that tenants may feed: only metrics.k8s.io counts."""
    with Cluster(seed=11, lease_s=PRODUCTION_S) as cluster:
        cluster.deploy(NAME, replicas=2, load=1.0)
        cluster.apply(autoscaler(NAME))
        cluster.deploy("evil/bad", replicas=2, load=1.0)
        cluster.metrics.external["queue"] = lambda seconds: 2.0
        cluster.metrics.now = lambda: cluster.now() + 600.0  # of the external metric alone
        cluster.apply(autoscaler("evil/bad", metrics=[QUEUE]))
        cluster.faults(ClockStepped(60.0, by_s=600.0))
        cluster.run(minutes=10)
        assert "the clock of the operator's node is 600 s ahead" in cluster.ready()[1]


@pytest.mark.parametrize("by_s", [600.0, -600.0])
def test_where_only_prometheus_is_asked_its_clock_is_the_witness(by_s: float) -> None:
    with Cluster(seed=12) as cluster:
        cluster.deploy(NAME, replicas=2, load=lambda seconds: 2.0 if seconds < 600 else 8.0)
        target = {"type": "AverageValue", "averageValue": "1"}
        cluster.apply(
            autoscaler(NAME, metrics=[{"type": "Prometheus", "prometheus": {"query": NAME, "target": target}}])
        )
        cluster.run(minutes=5)
        cluster.server.clock = lambda: cluster.now() + by_s
        cluster.run(minutes=15)
        assert cluster.replicas(NAME) == 8 and "the API server's clock" in cluster.ready()[1]
