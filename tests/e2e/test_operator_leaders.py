"""Two operators under accounts of their own: whoever holds the lease writes, and nobody else, as the audit log tells.

The leader is killed, then its successor is frozen in the middle of its work and thawed after it was replaced.
"""

from __future__ import annotations

import signal
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.live.accounts import chart_account
from tests.live.running import Running, autoscaler, install_crds

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
FAILOVER_S = 20
WRITES = ("create", "update", "patch", "delete")
# Up and down every six seconds, so that whoever may write always has something to write.
ZIGZAG = [[at, 20 + 80 * (at // 6 % 2)] for at in range(0, 300, 6)]
AT_ONCE = {
    way: {"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 10, "periodSeconds": 1}]}
    for way in ("scaleUp", "scaleDown")
}


class Write(NamedTuple):
    """A request of an operator that changed something; of a lease, `holder` is who has it from then on."""

    at: float
    user: str
    resource: str
    holder: str | None
    transitions: int | None


def writes(bed: Bed, namespace: str, refused: bool = False) -> list[Write]:
    found = []
    for event in bed.audit():
        about, user = event.get("objectRef", {}), event["user"]["username"]
        mine = about.get("namespace") == namespace and user.startswith(f"system:serviceaccount:{namespace}:")
        if mine and event["verb"] in WRITES and (refused or event["responseStatus"]["code"] < 300):
            found.append(_write(event, user.rsplit(":", 1)[1]))
    return sorted(found)


def _write(event: dict[str, Any], user: str) -> Write:
    at = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
    about = event["objectRef"]
    resource = "/".join(part for part in (about["resource"], about.get("subresource")) if part)
    spec = event.get("requestObject", {}).get("spec", {}) if resource == "leases" else {}
    return Write(at, user, resource, spec.get("holderIdentity"), spec.get("leaseTransitions"))


def terms(found: list[Write]) -> list[tuple[str, set[str], int]]:
    """(who took the lease, who wrote in that term, how many scales were written) for each change of the holder."""
    made: list[tuple[str, set[str], int]] = []
    holder = None
    for one in found:
        if one.resource == "leases":
            if one.holder and one.holder != holder:
                made.append((one.user, set(), 0))
            holder = one.holder or holder
            continue
        assert made, "nobody writes before somebody leads"
        leader, writers, scales = made[-1]
        made[-1] = (leader, writers | {one.user}, scales + (one.resource == "deployments/scale"))
    return made


def leads(running: Running) -> bool:
    return "leading" in running.get("/readyz")


def test_one_writer_for_each_term_of_the_lease(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    metric = {"name": "queue_length", "selector": {"matchLabels": {"app": "web"}}}
    target = {"type": "AverageValue", "averageValue": "10"}
    metrics = [{"type": "External", "external": {"metric": metric, "target": target}}]
    bed.load(namespace, "web", queue=ZIGZAG)
    bed.apply(deployment(namespace, "web"), autoscaler(namespace, metrics=metrics, behavior=AT_ONCE))
    folders = {name: tmp_path / name for name in ("north", "south")}
    for folder in folders.values():
        folder.mkdir()
    north, south = (
        Running(bed, namespace, folder, "--tick", "2s", kubeconfig=chart_account(bed, namespace, name))
        for name, folder in folders.items()
    )

    def scales(release: str, since: int = 0) -> int:
        of = [one for one in writes(bed, namespace)[since:] if one.resource == "deployments/scale"]
        return sum(1 for one in of if one.user == f"{release}-trimtab")

    with north:
        eventually(lambda: scales("north") >= 2, 40, "the first leads and writes")
        with south:
            assert "standing by" in south.get("/readyz")
            north.kill()
            eventually(lambda: leads(south), FAILOVER_S, "the second leads within 20 s of the first's death")
            eventually(lambda: scales("south") >= 2, 40)
            north.start()
            eventually(lambda: "standing by" in north.get("/readyz"), 40)
            assert south.process is not None
            south.process.send_signal(signal.SIGSTOP)
            eventually(lambda: leads(north), FAILOVER_S, "the first leads again within 20 s of the freeze")
            before = len(writes(bed, namespace))
            eventually(lambda: scales("north", before) >= 2, 40)
            south.process.send_signal(signal.SIGCONT)
            eventually(lambda: "standing by" in south.get("/readyz"), 20)
            before = len(writes(bed, namespace))
            eventually(lambda: scales("north", before) >= 3, 60, "the first goes on; the thawed one only watches")
    found = terms(writes(bed, namespace))
    users = ["north-trimtab", "south-trimtab", "north-trimtab"]
    assert [leader for leader, _, _ in found][:3] == users
    assert all(writers <= {leader} for leader, writers, _ in found), found
    assert all(scaled >= 2 for _, _, scaled in found[:3]), found
