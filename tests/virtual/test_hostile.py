"""Whatever one tenant writes into its fields, another's object is scaled, told of and recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.fields import Object
from tests.virtual.test_tuning import here
from trimtab.kinds.annotations import (
    ORIGINAL_FLOOR,
    PAUSED_UNTIL,
    PIN,
    PIN_UNTIL,
    PREDICTIVE,
    RAISED_FLOOR,
    RAISED_FLOOR_UNTIL,
)

ZONES = ("Local", "UTC", "localtime", "Factory", "Etc/GMT+12", "Pacific/Kiritimati", "right/UTC", "Europe", "../etc")
DATES = (
    "9999-12-31T23:59:59-12:00",
    "9999-12-31T23:59:59.999999Z",
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00+14:00",
    "0001-01-01T00:00:00Z",
    "1969-12-31T23:59:59Z",
    "99999-01-01T00:00:00Z",
    "NaN",
    "",
)
NUMBERS = ("0", "1", "2147483647", "2147483648", "1e308", "-1", "0.000001", "9" * 400)
CRONS = (("0 0 29 2 *", "0 0 1 3 *"), ("0 0 31 12 *", "0 0 1 1 *"), ("0 0 30 2 *", "0 1 30 2 *"))
TINY, HUGE = "0.000000001", "99999999999999999999E"


def _specs() -> Iterator[dict[str, Any]]:
    """Fields of an Autoscaler that are dates, zones, times or numbers."""
    for zone in ZONES:
        yield {"tuning": {"mode": "Advise", "timezone": zone}}
        for start, end in CRONS:
            yield {"schedules": [{"name": "s", "timezone": zone, "start": start, "end": end, "minReplicas": 2}]}
    for seconds in (0, 1, 3600, 86400, 2**31 - 1):
        direction = {"stabilizationWindowSeconds": seconds, "cooldownSeconds": seconds}
        yield {"behavior": {"scaleUp": direction, "scaleDown": direction}}
        yield {"forecast": {"model": "linear", "horizon": seconds}}
        yield {"onMetricFailure": {"holdSeconds": seconds}}
    for horizon in ("999999999999999999999999d", "1ns", "0s"):
        yield {"forecast": {"model": "linear", "horizon": horizon}}
    yield {"minReplicas": 1, "maxReplicas": 2**31 - 1}
    for amount in (TINY, HUGE):
        size = {"containerName": "*", "minAllowed": {"cpu": amount, "memory": amount}}
        yield {"vertical": {"apply": "InPlace", "resourcePolicy": {"containerPolicies": [size]}}}
        target = {"type": "AverageValue", "averageValue": amount}
        yield {"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]}


def _notes() -> Iterator[dict[str, str]]:
    for date in DATES:
        yield {PAUSED_UNTIL: date}
        yield {PIN: "3", PIN_UNTIL: date}
    for number in NUMBERS:
        yield {PIN: number if number != "2147483647" else "2"}  # it would be given so many pods
        yield {ORIGINAL_FLOOR: number, RAISED_FLOOR: "2", RAISED_FLOOR_UNTIL: number}


def _annotated(number: int, notes: dict[str, str], kind: str) -> Object:
    made = autoscaler(f"evil/e{number}")
    if kind == "HorizontalPodAutoscaler":
        made |= {"apiVersion": "autoscaling/v2", "kind": kind}
        made["spec"] |= {"minReplicas": 2}
        notes = {PREDICTIVE: "true"} | notes
    made["metadata"]["annotations"] = notes
    return made


HOSTILE = {
    "specs": [autoscaler(f"evil/e{number}", **spec) for number, spec in enumerate(_specs())],
    "Autoscalers": [_annotated(number, notes, "Autoscaler") for number, notes in enumerate(_notes())],
    "HPAs": [_annotated(number, notes, "HorizontalPodAutoscaler") for number, notes in enumerate(_notes())],
}


def _try(cluster: Cluster, manifest: Object) -> bool:
    """Whether the API server takes it."""
    try:
        cluster.apply(manifest)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("which", HOSTILE)
def test_hostile_values_are_their_own_objects_trouble(which: str) -> None:
    with Cluster(seed=1) as cluster:
        cluster.tuner = here
        cluster.deploy("shop/web", replicas=2, load=6.0)
        cluster.apply(autoscaler("shop/web"))
        for number, manifest in enumerate(HOSTILE[which]):
            if _try(cluster, manifest):
                cluster.deploy(f"evil/e{number}", replicas=1, load=0.1)
        cluster.run(minutes=4)
        assert len(cluster.writes("shop/web")) >= 3, "scaled"
        assert "SuccessfulRescale" in cluster.events("shop/web")
        status = cluster.get("Autoscaler", "shop/web")["status"]
        assert status["desiredReplicas"] == cluster.replicas("shop/web") and status["lastScaleTime"]
        acts = [act for act in cluster.journal().acts() if act.name.name == "web"]
        looks = [row for row in cluster.journal().ticks() if row.name.name == "web"]
        assert len(acts) >= 3 and len(looks) >= 12
