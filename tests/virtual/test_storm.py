"""A storm: many workloads need more pods in the same tick, and the API server has become slow."""

from __future__ import annotations

from itertools import groupby

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.faults import Slow

OBJECTS, TICK_S = 200, 15.0


def test_two_hundred_are_scaled_within_ten_seconds_though_each_write_takes_one() -> None:
    with Cluster(seed=1) as cluster:
        for number in range(OBJECTS):
            name = f"team-{number % 10}/web-{number}"
            cluster.deploy(name, replicas=2, load=lambda seconds: 1.0 if seconds < 300 else 2.0)
            cluster.apply(autoscaler(name))
        cluster.faults(Slow(290, plural="deployments", methods=("PATCH",), seconds=1.0))
        cluster.run(minutes=7)
        written = [asked.at - cluster.start for asked in cluster.server.audit if asked.path.endswith("/scale")]
    after_tick = [max(at % TICK_S for at in those) for _, those in groupby(written, key=lambda at: at // TICK_S)]
    assert len(written) >= OBJECTS
    assert max(after_tick) < 10.0, f"{len(after_tick)} ticks wrote"
    assert len(after_tick) == len(written) / OBJECTS, "all in the tick that saw it"


def test_nothing_is_told_while_others_are_scaled_but_not_for_ever() -> None:
    """Statuses of the tick before would take the time of a busy API server; one slow write may not keep all silent."""
    with Cluster(seed=1) as cluster:
        for number in range(OBJECTS):
            name = f"team-{number % 10}/web-{number}"
            cluster.deploy(name, replicas=2, load=lambda seconds: 1.0 if seconds < 300 else 2.0 + seconds / 300)
            cluster.apply(autoscaler(name))
        cluster.faults(Slow(290, plural="deployments", methods=("PATCH",), seconds=1.0))
        cluster.faults(Slow(290, plural="autoscalers", methods=("PATCH",), seconds=0.5))
        cluster.faults(Slow(290, about="/web-7/", plural="deployments", methods=("PATCH",), seconds=1e9))
        cluster.run(minutes=9)
        asked = [(asked.at - cluster.start, asked.path) for asked in cluster.server.audit if asked.verb == "patch"]
    scaled = [at for at, path in asked if path.endswith("/scale") and at > 300]
    told = [at for at, path in asked if path.endswith("/status") and at > 300]
    ticks = {at // TICK_S for at in scaled}
    assert len(ticks) > 1
    assert not [at for at in told if at // TICK_S in ticks and 1.0 < at % TICK_S < 3.0], "scalings first"
    assert len({at // TICK_S for at in told}) > len(ticks), "then everybody's word"
