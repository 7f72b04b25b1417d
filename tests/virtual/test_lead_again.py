"""A process that leads again goes on from what the leader between saw: nothing is written over, or counted twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.faults import Unreachable
from trimtab.live.operator import Operator

FIRST_S, OTHER_S, AGAIN_S = 1800.0, 3600.0, 120.0
UNKEPT_S = 600.0 + 60.0  # what was seen since the last checkpoint, and while nobody led
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "new"}
LINE = {"model": "linear", "horizon": "10m"}


@contextmanager
def led_again(**edit: Any) -> Iterator[tuple[Cluster, Operator]]:
    """One leads for half an hour, another for an hour (when a user edits), then the first one, in the same process."""
    with Cluster(seed=1, operators=2) as cluster:
        cluster.prometheus = None
        cluster.deploy("shop/web", replicas=2, load=1.0)
        cluster.deploy("shop/new", replicas=2, load=4.0)
        cluster.apply(autoscaler("shop/web", vertical={"apply": "InPlace"}, forecast=LINE, mode="Shadow"))
        cluster.run(seconds=FIRST_S)
        first, other = leader(cluster), next(who for who in cluster.processes if who != leader(cluster))
        cluster.faults(
            Unreachable(FIRST_S, FIRST_S + OTHER_S, who=first, plural="leases"),
            Unreachable(FIRST_S + OTHER_S, who=other, plural="leases"),
        )
        cluster.run(seconds=OTHER_S / 2)
        assert leader(cluster) == other
        if edit:
            cluster.patch("Autoscaler", "shop/web", {"spec": edit})
        cluster.run(seconds=OTHER_S / 2 + AGAIN_S)
        assert leader(cluster) == first
        yield cluster, operator_of(cluster, first)


def leader(cluster: Cluster) -> str:
    return str(cluster.get("Lease", "trimtab-system/trimtab")["spec"]["holderIdentity"])


def operator_of(cluster: Cluster, who: str) -> Operator:
    found = cluster.processes[who].operator
    assert found is not None
    return found


def minutes_of(operator: Operator, cluster: Cluster) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The demand of each minute that is known."""
    (uid,) = {found.metadata.uid for found in operator.cluster.ours["Autoscaler"].store}
    log = operator.forecasts.demand.log
    minutes = log.frame(operator.forecasts.demand._keys[uid], cluster.now(), 60.0).values[0]
    return minutes[np.isfinite(minutes)]


def samples_of(operator: Operator) -> int:
    """Of usage, one for each pod and minute."""
    return int(operator.ticker.usage.book.rows["count"].sum())


def test_what_the_other_leader_saw_is_known_and_stays_kept() -> None:
    lived_s = FIRST_S + OTHER_S + AGAIN_S
    with led_again() as (cluster, first):
        assert len(minutes_of(first, cluster)) >= (lived_s - UNKEPT_S) / 60
        assert 2 * (lived_s - 2 * UNKEPT_S) / 60 <= samples_of(first) <= 2 * lived_s / 60, "none twice"
        (key,) = first.forecasts.demand.log._rows
        recent = first.forecasts.demand.log.recent(key, cluster.now(), 3000.0).times
        assert recent[0] < cluster.now() - 2900.0 and np.diff(recent).max() <= UNKEPT_S, "lines see the last hour"
        cluster.run(minutes=11)  # it has written its own
        cluster.start_operator("a new one")
        cluster.kill(leader(cluster))
        cluster.run(minutes=3)
        new = operator_of(cluster, "a new one")
        assert leader(cluster) == "a new one"
        assert len(minutes_of(new, cluster)) >= (lived_s - UNKEPT_S) / 60
        assert samples_of(new) >= 2 * (lived_s - 2 * UNKEPT_S) / 60


def test_demand_of_a_workload_that_it_no_longer_asks_for_is_not_mixed_in() -> None:
    with led_again(scaleTargetRef=TARGET) as (cluster, first):
        assert minutes_of(first, cluster).min() > 3.0, "the new one has four cores of work, the old one had one"


def test_a_lease_that_nobody_else_took_meanwhile_costs_nothing() -> None:
    with Cluster(seed=1, lease_s=(15.0, 10.0, 2.0)) as cluster:
        cluster.prometheus = None
        cluster.deploy("shop/web", replicas=2, load=1.0)
        cluster.apply(autoscaler("shop/web", vertical={"apply": "InPlace"}, forecast=LINE, mode="Shadow"))
        cluster.faults(Unreachable(1500.0, 1560.0, plural="leases"))
        cluster.run(seconds=1700)
        assert samples_of(operator_of(cluster, "operator-0")) >= 2 * 1600 / 60
