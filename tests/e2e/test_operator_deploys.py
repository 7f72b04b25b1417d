"""Deploys that carry `replicas`, beside the built-in HPA: in the middle of a climb, twice, then again every 5 s.

Both begin with the same workload and the same queue; whatever somebody writes over their replicas, we are never more
than two ticks behind HPA upward.
"""

from __future__ import annotations

import json
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.e2e.conftest import namespaces
from tests.live.running import Running, autoscaler, conditions, install_crds, replicas

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
TICK_S, LATE_S = 15.0, 5.0  # the default; and what a busy machine may add
CLIMB_S, DEPLOYS_S, HEALS_S, ENDS_S = 120, (40, 80), (130, 190), 230
LEAST, MOST = 2, 12
QUEUE = [[0, 20], [CLIMB_S, 100]]
Step = tuple[float, int]  # seconds since the climb began, replicas from then on


def queue_metric() -> dict[str, Any]:
    name = {"name": "queue_length", "selector": {"matchLabels": {"app": "web"}}}
    return {"type": "External", "external": {"metric": name, "target": {"type": "AverageValue", "averageValue": "10"}}}


def manifest(namespace: str, version: int) -> dict[str, Any]:
    """As it lies in Git, with its replicas."""
    return deployment(namespace, "web", replicas=LEAST, annotations={"ready-after": f"{version}s"})


def deploy(bed: Bed, namespace: str, version: int) -> None:
    words = ("--server-side", "--force-conflicts", "--field-manager=argocd-controller")
    bed.kubectl("apply", *words, "-f", "-", input=json.dumps(manifest(namespace, version)))


def hpa(namespace: str) -> dict[str, Any]:
    twin = autoscaler(namespace, minReplicas=LEAST, maxReplicas=MOST, metrics=[queue_metric()])
    return twin | {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}


def steps(bed: Bed, namespace: str, began: float, scales_alone: bool) -> list[Step]:
    """What was written of the replicas: scalings, and what deploys say."""
    found = []
    for event in bed.audit():
        about = event.get("objectRef", {})
        of_ours = (about.get("namespace"), about.get("resource"), about.get("name")) == (
            namespace,
            "deployments",
            "web",
        )
        if not of_ours or event["verb"] not in ("update", "patch") or event["responseStatus"]["code"] != 200:
            continue
        if about.get("subresource", "") not in (("scale",) if scales_alone else ("scale", "")):
            continue
        at = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp() - began
        count = (event.get("requestObject") or {}).get("spec", {}).get("replicas")
        if at > 0 and count is not None:
            found.append((at, count))
    return sorted(found)


def behind(theirs: list[Step], ours: list[Step]) -> list[Step]:
    """What HPA wrote upward, and we had not within two ticks."""
    limit_s, late = 2 * TICK_S + LATE_S, []
    for at, count in theirs:
        before = [size for moment, size in ours if moment <= at][-1:] or [LEAST]
        after = [size for moment, size in ours if at < moment <= at + limit_s]
        if max(before + after) < count:
            late.append((at, count))
    return late


def test_never_two_ticks_behind_hpa_whoever_writes_replicas(bed: Bed, tmp_path: Path) -> None:
    install_crds(bed)
    with namespaces(bed, "deploys-hpa", "deploys-ours") as (theirs, ours):
        for namespace in (theirs, ours):
            bed.load(namespace, "web", queue=20)
            deploy(bed, namespace, 1)
        bed.apply(hpa(theirs))
        bed.apply(autoscaler(ours, minReplicas=LEAST, maxReplicas=MOST, metrics=[queue_metric()]))
        with Running(bed, ours, tmp_path, "--tick", f"{TICK_S:g}s"):
            eventually(lambda: conditions(bed, ours)["ScalingActive"]["status"] == "True", 60)
            eventually(lambda: conditions(bed, theirs, kind="hpa")["ScalingActive"]["status"] == "True", 60)
            began = time.time()
            for namespace in (theirs, ours):
                bed.load(namespace, "web", queue=QUEUE)
            heals = range(HEALS_S[0], HEALS_S[1], 5)
            for at in sorted((*DEPLOYS_S, *heals, ENDS_S)):
                time.sleep(max(0.0, began + at - time.time()))
                for namespace in (theirs, ours):
                    if at != ENDS_S:
                        deploy(bed, namespace, 2 + DEPLOYS_S.index(at) if at in DEPLOYS_S else 3)
            eventually(lambda: replicas(bed, ours) == replicas(bed, theirs) == 10, 60, "both have what is needed")
        them, us = steps(bed, theirs, began, True), steps(bed, ours, began, False)
        said = f"HPA {them}\nours {us}"
        print(said)
        assert max(count for _, count in them) >= 10, said
        assert behind(them, us) == [], said
