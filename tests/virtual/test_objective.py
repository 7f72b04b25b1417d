"""An objective over a whole operator: after a restart it meets a morning that it remembers before the load is there."""

from __future__ import annotations

from math import sin
from typing import Any

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.faults import Killed
from trimtab.journal_replay import replay

WEB, DAY_S = "shop/web", 86400.0
MORNING_S, RAMP_S, STARTUP_S = 1500.0, 600.0, 240.0
RATE = {
    "type": "Prometheus",
    "prometheus": {"query": WEB, "target": {"type": "AverageValue", "averageValue": "700m"}},
}


def every_day(seconds: float) -> float:
    """Ten cores at night; from a certain minute on twice as many, within ten minutes; for half a day."""
    since_s = (seconds - MORNING_S) % DAY_S
    level = 10.0 + 10.0 * min(1.0, since_s / RAMP_S) if since_s < DAY_S / 2 else 10.0
    return level * (1.0 + 0.03 * sin(12.9898 * seconds))


def morning(**spec: Any) -> tuple[int, float, str, Cluster]:
    """Steps over the service level, when pods were first added before the morning, and what was said then."""
    with Cluster(seed=1) as cluster:
        assert cluster.prometheus is not None
        cluster.prometheus.past[WEB] = every_day
        cluster.deploy(WEB, replicas=14, load=every_day, startup_s=STARTUP_S)
        cluster.apply(autoscaler(WEB, metrics=[RATE], maxReplicas=60, **spec))
        cluster.run(minutes=3)
        cluster.patch("Deployment", WEB, {"spec": {"replicas": 16}}, by="somebody")  # pods whose start-up is seen
        cluster.run(minutes=6)
        cluster.faults(Killed(600.0, back_after_s=30.0))
        cluster.run(minutes=5)
        said, over = "", 0
        for _ in range(4 * 28):
            cluster.run(seconds=15)
            load = every_day(cluster.now() - cluster.start)
            over += load > 0.8 * cluster.workload(WEB).pods.ready_cores
            told = cluster.get("Autoscaler", WEB)["status"].get("lastDecision", "")
            said = said or (told if "start" in told else "")
        first = min((at for at, replicas in cluster.writes(WEB) if at > 700.0 and replicas > 18), default=float("inf"))
        checked = replay(cluster.journal().path)
        assert checked.checked > 0 and not checked.differences
        return over, first, said, cluster


def test_after_a_restart_pods_are_there_before_the_morning_that_is_remembered() -> None:
    late, _, _, _ = morning()
    over, first, said, cluster = morning(objective={"priority": "reliability"})
    assert late > 0 and over <= late / 3
    assert first < MORNING_S + 120.0
    assert "pods of load" in said and "is usual at this hour" in said
    assert cluster.conditions("Autoscaler", WEB)["PredictionReady"] == ("True", "PredictSucceed")
