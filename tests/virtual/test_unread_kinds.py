"""A kind that is no part of Kubernetes and cannot be read at the start holds up nobody, and lowers nothing unseen."""

from __future__ import annotations

from typing import Any

import pytest

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.faults import Refusing
from trimtab.live.look.cluster import OURS, PHPA, SCALED_OBJECT, VPA, WPA
from trimtab.live.look.subject import ChangeRules

WEB = "shop/web"
END_S = 3600.0
OURS_TOO = [kind for kind in OURS if kind[1] != "Autoscaler"]


def unread(cluster: Cluster, kind: tuple[str, str], status: int, part: str) -> str:
    """Its list and its watch, or even its discovery; the plural of what cannot be read."""
    resource = cluster.resource(*kind)
    where: dict[str, Any] = {"plural": resource.plural} if part == "list" else {"path": f"/apis/{resource.api_version}"}
    cluster.faults(Refusing(0.0, END_S, **where, methods=("GET",), status=status))
    return kind[1]


def rush(seconds: float) -> float:
    return 6.0 if 300 <= seconds < 900 else 1.0


@pytest.mark.parametrize(
    ("status", "part"), [(403, "list"), (500, "list"), (503, "discovery")], ids=["forbidden", "broken", "undiscovered"]
)
@pytest.mark.parametrize("kind", [*OURS_TOO, SCALED_OBJECT, WPA, PHPA, VPA], ids=lambda kind: kind[1])
def test_others_are_served(kind: tuple[str, str], status: int, part: str) -> None:
    with Cluster(seed=1) as cluster:
        cluster.deploy(WEB, replicas=2, load=rush)
        cluster.apply(autoscaler(WEB))
        name = unread(cluster, kind, status, part)
        cluster.run(minutes=15)
        (at_s, replicas), *_ = cluster.writes(WEB)
        assert 300 < at_s < 320 and replicas == 4, "a tick after it was seen, as ever"
        assert cluster.replicas(WEB) == 11
        ready, said = cluster.ready()
        assert ready == 200 and said.startswith("degraded, leading\n") and f"not followed: {name}: " in said
        assert f'trimtab_feed_up{{feed="{name}"}} 0' in cluster.metrics_page()
        cluster.run(minutes=44)
        scales = kind in (SCALED_OBJECT, WPA, PHPA)
        assert cluster.replicas(WEB) == (11 if scales else 2), "who scales it may be among those that nobody sees"
        if scales:
            assert cluster.conditions("Autoscaler", WEB)["AbleToScale"] == ("False", "StaleView")
        cluster.run(minutes=20)
        assert cluster.replicas(WEB) == 2 and cluster.ready() == (200, "ok, leading\n")


def test_sizes_stay_while_nobody_can_see_who_else_moves_them() -> None:
    def cpu() -> Any:
        (container,) = cluster.pods(WEB)[0]["spec"]["containers"]
        return container["resources"]["requests"]["cpu"]

    with Cluster(seed=9, change_rules=ChangeRules(up_after_s=300.0, down_after_s=300.0)) as cluster:
        cluster.deploy(WEB, replicas=2, load=3.0)
        cluster.apply(autoscaler(WEB, metrics=[], minReplicas=2, maxReplicas=2, vertical={"apply": "InPlace"}))
        unread(cluster, VPA, 403, "list")
        cluster.run(minutes=59)
        assert cpu() == "1"
        cluster.run(minutes=20)
        assert cpu() != "1"
