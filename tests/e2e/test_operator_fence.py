"""H8: a leader that cannot renew its Lease, or stands still, in the middle of a long queue of writes.

Thirty objects want another number of replicas every six seconds, and the leader may send five requests a second, so
that it always has more to write than it may. The audit log tells who sent what, whether or not it was accepted.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.e2e.test_operator_leaders import AT_ONCE, Write, leads, writes
from tests.live.accounts import chart_account
from tests.live.running import Running, autoscaler, install_crds

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
APPS = [f"web-{number}" for number in range(30)]
ZIGZAG = [[at, 20 + 80 * (at // 6 % 2)] for at in range(0, 1200, 6)]
SLOWLY = ("--tick", "2s", "--api-qps", "5", "--api-burst", "5")
LEASE_S = 15.0  # others take over then; who held it stops five seconds earlier
NORTH, SOUTH = "north-trimtab", "south-trimtab"
NOTICED = ("standing by", "its Lease: ")  # who may not look at the Lease says so, and not who leads


def queue(namespace: str, app: str) -> dict[str, object]:
    """Each object has a queue of its own."""
    metric = {"name": "queue_length", "selector": {"matchLabels": {"app": app}}}
    target = {"type": "AverageValue", "averageValue": "10"}
    metrics = [{"type": "External", "external": {"metric": metric, "target": target}}]
    return autoscaler(namespace, app, metrics=metrics, behavior=AT_ONCE)


def about_objects(bed: Bed, namespace: str, user: str, since: float = 0.0) -> list[Write]:
    """Scales and statuses that it sent, refused ones included."""
    found = writes(bed, namespace, refused=True)
    return [one for one in found if one.user == user and one.resource != "leases" and one.at > since]


def last_renewal(bed: Bed, namespace: str, user: str) -> float:
    return max(one.at for one in writes(bed, namespace) if one.user == user and one.resource == "leases")


def cut_off(bed: Bed, namespace: str, leader: Running) -> None:
    """It may still write everything but its Lease."""
    bed.kubectl("delete", "rolebinding", f"{NORTH}-lease", "-n", namespace)


def stand_still(bed: Bed, namespace: str, leader: Running) -> None:
    assert leader.process is not None
    leader.process.send_signal(signal.SIGSTOP)


def wake_up(leader: Running) -> None:
    assert leader.process is not None
    leader.process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("trouble", [cut_off, stand_still])
def test_nothing_leaves_after_the_lease_and_nothing_over_the_new_leaders_word(
    bed: Bed, namespace: str, tmp_path: Path, trouble: Callable[[Bed, str, Running], None]
) -> None:
    install_crds(bed)
    for app in APPS:
        bed.load(namespace, app, queue=ZIGZAG)
    bed.apply(*(deployment(namespace, app) for app in APPS), *(queue(namespace, app) for app in APPS))
    (tmp_path / "north").mkdir()
    (tmp_path / "south").mkdir()
    north, south = (
        Running(bed, namespace, tmp_path / name, *SLOWLY, kubeconfig=chart_account(bed, namespace, name))
        for name in ("north", "south")
    )
    with north:
        eventually(lambda: len(about_objects(bed, namespace, NORTH)) >= 20, 60, "the first leads and writes")
        with south:
            trouble(bed, namespace, north)
            eventually(lambda: leads(south), 60, "the second leads")
            eventually(lambda: len(about_objects(bed, namespace, SOUTH)) >= 20, 60, "and writes")
            wake_up(north)
            eventually(lambda: any(word in north.get("/readyz") for word in NOTICED), 60, "the first has noticed")
            before = len(about_objects(bed, namespace, SOUTH))
            eventually(lambda: len(about_objects(bed, namespace, SOUTH)) >= before + 20, 60, "the second goes on")
            renewed = last_renewal(bed, namespace, NORTH)
            taken = min(one.at for one in writes(bed, namespace) if one.user == SOUTH and one.resource == "leases")
            late = about_objects(bed, namespace, NORTH, since=min(taken, renewed + LEASE_S))
    assert renewed < taken and late == [], "nothing that the first still had to write"
    assert trouble is stand_still or about_objects(bed, namespace, NORTH, since=renewed), "which it had"
