"""Failovers on a real control plane, by SIGTERM, SIGKILL and SIGSTOP: nothing moves under steady load, a ramp goes on.

What a new leader does with history of days is tried under a virtual clock (tests/virtual/test_failover.py).
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.e2e.test_operator_ahead import annotated_hpa
from tests.e2e.test_operator_leaders import leads
from tests.e2e.test_operator_restart import queue
from tests.live.accounts import chart_account
from tests.live.running import Running, autoscaler, install_crds, replicas

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
TICK_S, WINDOW_S = 2.0, 10
QUICK = ("--tick", "2s", "--lease", "4s/3s/1s")
ENDS = (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP)
CALM = {"scaleDown": {"stabilizationWindowSeconds": WINDOW_S}}
LINE = {"model": "linear", "horizon": "30s"}


@contextmanager
def two(bed: Bed, namespace: str, folder: Path) -> Iterator[tuple[Running, Running]]:
    """Two operators, of which the first leads."""
    made = []
    for name in ("north", "south"):
        (folder / name).mkdir()
        account = chart_account(bed, namespace, name)
        made.append(Running(bed, namespace, folder / name, *QUICK, kubeconfig=account))
    first, second = made
    with first:
        eventually(lambda: leads(first), 20)
        with second:
            yield first, second


def end(leader: Running, how: signal.Signals) -> None:
    assert leader.process is not None
    leader.process.send_signal(how)


def come_back(bed: Bed, former: Running, how: signal.Signals) -> None:
    if how is signal.SIGSTOP:
        end(former, signal.SIGCONT)
    else:
        assert former.process is not None
        former.process.wait(20)
        former.start()
    eventually(lambda: "standing by" in former.get("/readyz"), 40)


def writes(bed: Bed, namespace: str, since: float = 0.0) -> list[tuple[float, str, Any]]:
    """What operators wrote: when, whose scale (or minReplicas, or Lease), and what."""
    found = []
    for event in bed.audit():
        about, user = event.get("objectRef", {}), event["user"]["username"]
        ours = about.get("namespace") == namespace and user.startswith(f"system:serviceaccount:{namespace}:")
        if not ours or event["verb"] not in ("patch", "update") or event["responseStatus"]["code"] != 200:
            continue
        at = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
        spec = event.get("requestObject", {}).get("spec", {})
        if about.get("subresource") == "scale":
            found.append((at, f"scale of {about['name']}", spec["replicas"]))
        elif about["resource"] == "leases":
            found.append((at, "lease", spec.get("holderIdentity")))
        elif "minReplicas" in spec:
            found.append((at, "minReplicas", spec["minReplicas"]))
    return [each for each in found if each[0] > since]


def scales(bed: Bed, namespace: str, since: float = 0.0) -> list[tuple[float, int]]:
    return [(at, count) for at, what, count in writes(bed, namespace, since) if what == "scale of web"]


def led_since(bed: Bed, namespace: str, after: float) -> float:
    """When somebody else took the Lease."""
    holders = [(at, who) for at, what, who in writes(bed, namespace) if what == "lease" and who]
    before = [who for at, who in holders if at <= after][-1]
    return next(at for at, who in holders if at > after and who != before)


def test_under_steady_load_nothing_is_written(bed: Bed, namespace: str, tmp_path: Path) -> None:
    """A target and a line, both without a window."""
    install_crds(bed)
    for name in ("web", "line"):
        bed.load(namespace, name, queue=60)
    at_once = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    line: dict[str, Any] = {"metrics": queue("line"), "forecast": LINE, "behavior": at_once}
    bed.apply(deployment(namespace, "web"), deployment(namespace, "line"))
    bed.apply(autoscaler(namespace, metrics=queue(), behavior=at_once), autoscaler(namespace, "line", **line))
    with two(bed, namespace, tmp_path) as (leader, other):
        for name in ("web", "line"):
            eventually(lambda: replicas(bed, namespace, name) == 6, 60)  # noqa: B023
        for how in ENDS:
            began = time.time()
            end(leader, how)
            eventually(lambda: leads(other), 30)  # noqa: B023
            eventually(lambda: time.time() > led_since(bed, namespace, began) + 6 * TICK_S, 60)  # noqa: B023
            moved = [each for each in writes(bed, namespace, began) if each[1] != "lease"]
            assert moved == [], f"{how.name}: {moved}"
            come_back(bed, leader, how)
            leader, other = other, leader


def test_a_ramp_goes_on_within_two_ticks(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    bed.load(namespace, "web", queue=[[0, 10], [20, 10], [320, 3010]])
    spec: dict[str, Any] = {"metrics": queue(), "maxReplicas": 400, "forecast": LINE, "behavior": CALM}
    bed.apply(deployment(namespace, "web"), autoscaler(namespace, **spec))
    with two(bed, namespace, tmp_path) as (leader, other):
        eventually(lambda: replicas(bed, namespace) > 5, 90)
        for how in ENDS:
            began = time.time()
            end(leader, how)
            eventually(lambda: leads(other), 30)  # noqa: B023
            led_at = led_since(bed, namespace, began)
            eventually(lambda: len(scales(bed, namespace, led_at)) >= 3, 30)  # noqa: B023
            late_s = scales(bed, namespace, led_at)[0][0] - led_at
            assert late_s <= 2 * TICK_S + 1.0, f"{how.name}: {late_s:.1f} s"
            come_back(bed, leader, how)
            leader, other = other, leader
    counts = [count for _, count in scales(bed, namespace)]
    assert counts == sorted(counts), "never down on a way up"


def test_the_floor_of_an_annotated_hpa_stays_while_a_new_leader_reads(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    bed.apply(deployment(namespace, "web", annotations={"ready-after": "10s"}), annotated_hpa(namespace))
    bed.load(namespace, "web", rate=[[0, 20], [20, 20], [320, 420]])
    with two(bed, namespace, tmp_path) as (leader, other):
        floor = lambda: bed.get("hpa", "web", "-n", namespace)["spec"]["minReplicas"]  # noqa: E731
        eventually(lambda: floor() > 2, 120, "the floor rises")
        began = time.time()
        leader.kill()
        eventually(lambda: leads(other), 30)
        led_at = led_since(bed, namespace, began)
        eventually(lambda: time.time() > led_at + 4 * TICK_S, 30)
        moved = [count for _, what, count in writes(bed, namespace, began) if what == "minReplicas"]
        assert all(count > 2 for count in moved), f"the load rises, the floor does not fall: {moved}"
        leader.start()
