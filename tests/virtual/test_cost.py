"""What a simulated hour costs, in what can be counted: the same on every machine, however busy it is.

`benchmarks/virtual.py` says how long that takes. A limit is a tenth above what was counted when it was written: who
needs more of something finds out here, and who needs less lowers it.
"""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType
from typing import Any

import pytest

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.machines import QUIET_LEASE_S

PRODUCTION_S = (15.0, 10.0, 2.0)
MINUTES = 20


@pytest.mark.parametrize(
    ("lease_s", "limits"),
    [
        (PRODUCTION_S, {"requests": 1_710, "turns": 13_400, "calls": 615_000}),
        (QUIET_LEASE_S, {"requests": 760, "turns": 10_600, "calls": 473_000}),
    ],
    ids=["production", "quiet"],
)
def test_an_hour_asks_turns_and_calls_no_more_than_it_did(
    lease_s: tuple[float, float, float], limits: dict[str, int]
) -> None:
    """Requests to the API server, turns of the event loop, calls of Python functions, per simulated hour."""
    with Cluster(seed=1, lease_s=lease_s) as cluster:
        cluster.deploy("shop/web", replicas=2, load=lambda seconds: 1.0 if seconds % 1200 < 600 else 6.0)
        cluster.apply(autoscaler("shop/web"))
        cluster.run(minutes=MINUTES)  # imports, first sights
        before = _counted(cluster)
        calls = _calls(cluster)
        spent = _counted(cluster) - before + calls
    per_hour = {what: round(count * 60 / MINUTES) for what, count in spent.items()}
    assert {what: count for what, count in per_hour.items() if count > limits[what]} == {}, per_hour


def _counted(cluster: Cluster) -> Counter[str]:
    return Counter(requests=len(cluster.server.audit), turns=cluster.loop.turns)


def _calls(cluster: Cluster) -> Counter[str]:
    found: Counter[str] = Counter()

    def noticed(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            found["calls"] += 1

    other = sys.getprofile()
    sys.setprofile(noticed)
    try:
        cluster.run(minutes=MINUTES)
    finally:
        sys.setprofile(other)
    return found
