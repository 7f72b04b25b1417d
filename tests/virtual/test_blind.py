"""A deploy whose pods start slowly: nothing is measured for longer than a window, then pods that have served nobody."""

from __future__ import annotations

import pytest

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.faults import BadMetrics
from trimtab.sim.cluster_spec import FaultKind


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


@pytest.mark.parametrize("model", ["linear", "seasonal"])
def test_a_dated_forecast_adds_pods_while_metrics_are_lost_in_a_ramp(model: str) -> None:
    """The load rises by a pod every minute or so; metrics are lost in the middle: nothing goes, and pods are added."""

    def load(seconds: float) -> float:
        return 1.0 + 5.0 * max(0.0, (seconds % 3600) - 1800) / 1800

    loss_s = 3 * 3600 + 2700.0
    with Cluster(seed=2) as cluster:
        cluster.deploy("shop/web", replicas=2, load=load, startup_s=120.0)
        cluster.apply(autoscaler("shop/web", forecast={"model": model, "horizon": "5m"}, maxReplicas=30))
        cluster.faults(BadMetrics(loss_s, loss_s + 600.0, "shop/web", FaultKind.MISSING))
        cluster.run(seconds=loss_s)
        before, known = cluster.replicas("shop/web"), len(cluster.writes("shop/web"))
        cluster.run(seconds=600.0)
        during = [replicas for at, replicas in cluster.writes("shop/web")[known:] if at < loss_s + 590]
        assert min(during, default=before) >= before, "nothing is scaled down"
        if model == "linear":  # it needs no history of days
            assert cluster.replicas("shop/web") > before, "the line goes on for its time"
        cluster.run(seconds=1200.0)
