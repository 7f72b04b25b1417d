"""Who begins to lead ticks at once, and while a tick is under way nobody looks for garbage."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from itertools import pairwise

import pytest

from tests.virtual.cluster import Cluster, autoscaler
from trimtab.live.object_tick import ObjectTick
from trimtab.live.operator import uncollected

LEASE_S, RETRY_S, RENEW_S = 15.0, 2.4, 3.4  # as others see it; the longest pauses between two tries, two renewals
KILLED_S = 91.0  # right after a tick of both


def test_the_next_leader_does_not_wait_for_its_own_time() -> None:
    ticked: list[float] = []

    def note(ticks: Sequence[ObjectTick]) -> None:
        if ticks:
            ticked.append(cluster.loop.time())

    with Cluster(seed=1, operators=2) as cluster:
        cluster.on_tick.append(note)
        cluster.deploy("shop/web", replicas=2, load=0.25)
        cluster.apply(autoscaler("shop/web"))
        cluster.run(seconds=KILLED_S - 1)
        leads = [who for who, process in cluster.processes.items() if "leading" in cluster.ready(who)[1]]
        cluster.kill(leads[0])
        cluster.run(seconds=60)
    after = [at for at in ticked if at > KILLED_S]
    assert LEASE_S - RENEW_S < after[0] - KILLED_S < LEASE_S + RETRY_S
    assert [round(later - earlier, 3) for earlier, later in pairwise(after)][:2] == 2 * [15.0]


def test_nobody_looks_for_garbage_during_a_tick() -> None:
    looks: list[bool] = []
    with Cluster(seed=1) as cluster:
        cluster.on_tick.append(lambda ticks: looks.append(gc.isenabled()))
        cluster.run(seconds=60)
        assert gc.isenabled() and looks and not any(looks)


def test_garbage_is_looked_for_again_after_a_tick_that_failed() -> None:
    with pytest.raises(ZeroDivisionError), uncollected():
        1 / 0  # noqa: B018
    assert gc.isenabled()
