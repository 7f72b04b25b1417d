"""A deploy whose pods start slowly: nothing is measured for longer than a window, then pods that have served nobody."""

from __future__ import annotations

import pytest

from tests.virtual.cluster import Cluster, autoscaler


@pytest.mark.parametrize("startup_s", [120.0, 480.0, 1200.0])
def test_the_first_samples_of_a_slow_deploy_take_no_pod_away(startup_s: float) -> None:
    with Cluster(seed=1) as cluster:
        cluster.deploy("shop/web", replicas=9, load=4.5, startup_s=10.0)
        cluster.apply(autoscaler("shop/web"))
        cluster.run(minutes=30)
        assert cluster.replicas("shop/web") == 9
        cluster.deploy("shop/web", replicas=9, image="web:2", startup_s=startup_s)
        cluster.run(seconds=startup_s + 1800)
        assert min((replicas for _, replicas in cluster.writes("shop/web")), default=9) >= 9
