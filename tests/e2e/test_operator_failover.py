"""Restarts and two operators: the right size in the end, one writer at a time, no cooldown lost."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.live.running import Running, autoscaler, install_crds, replicas

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
LEASE = ("--lease", "6s/4s/1s")
STEP_S = 5.0
# One pod every five seconds: a restart in the middle must neither lose a step nor take two at once.
SLOWLY = {
    "scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": int(STEP_S)}]},
    "scaleDown": {"stabilizationWindowSeconds": 0},
}


def queue(name: str) -> list[dict[str, Any]]:
    metric = {"name": "queue_length", "selector": {"matchLabels": {"app": name}}}
    return [
        {"type": "External", "external": {"metric": metric, "target": {"type": "AverageValue", "averageValue": "10"}}}
    ]


def writes(bed: Bed, namespace: str) -> list[tuple[float, int, str]]:
    """(at, replicas, user) of every successful write of a scale, in the API server's order."""
    found = []
    for event in bed.audit():
        about = event.get("objectRef", {})
        is_scale = about.get("namespace") == namespace and about.get("subresource") == "scale"
        if is_scale and event["verb"] == "patch" and event.get("responseStatus", {}).get("code") == 200:
            at = datetime.fromisoformat(event["stageTimestamp"]).timestamp()
            found.append((at, event["requestObject"]["spec"]["replicas"], event["user"]["username"]))
    return found


def account(bed: Bed, namespace: str, name: str) -> Path:
    """A service account that may do everything in its namespace, so that the audit log tells operators apart."""
    bed.kubectl("create", "serviceaccount", name, "-n", namespace)
    role = ("--clusterrole=cluster-admin", f"--serviceaccount={namespace}:{name}", "-n", namespace)
    bed.kubectl("create", "rolebinding", name, *role)
    return bed.kubeconfig_for(namespace, name)


def steps_are_whole(found: list[tuple[float, int, str]], last: int) -> None:
    counts = [count for _, count, _ in found]
    assert counts == list(range(counts[0], last + 1)), "one pod at a time, none twice, none undone"
    gaps = [later[0] - earlier[0] for earlier, later in pairwise(found)]
    assert min(gaps) >= STEP_S - 1.0, f"the rate holds across the restart: {gaps}"


def test_killed_in_the_middle_of_a_scale_up(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    bed.load(namespace, "web", queue=60)
    bed.apply(deployment(namespace, "web"), autoscaler(namespace, metrics=queue("web"), behavior=SLOWLY))
    with Running(bed, namespace, tmp_path, *LEASE) as running:
        eventually(lambda: replicas(bed, namespace) == 3, 40)
        running.kill()
        running.start()
        eventually(lambda: replicas(bed, namespace) == 6, 60)
    steps_are_whole(writes(bed, namespace), 6)


def test_one_writer_for_each_term_of_the_lease(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    first, second = (account(bed, namespace, name) for name in ("first", "second"))
    bed.load(namespace, "web", queue=20)
    bed.apply(deployment(namespace, "web"), autoscaler(namespace, metrics=queue("web"), behavior=SLOWLY))
    with Running(bed, namespace, tmp_path, *LEASE, kubeconfig=first) as one:
        eventually(lambda: replicas(bed, namespace) == 2, 40)
        (tmp_path / "two").mkdir()
        with Running(bed, namespace, tmp_path / "two", *LEASE, kubeconfig=second) as two:
            assert "standing by" in two.get("/readyz")
            one.kill()
            bed.load(namespace, "web", queue=30)
            eventually(lambda: replicas(bed, namespace) == 3, 20, "the other takes over within 20 s")
            assert two.process is not None
            two.process.send_signal(signal.SIGSTOP)  # frozen while it leads
            one.start()
            bed.load(namespace, "web", queue=60)
            eventually(lambda: replicas(bed, namespace) >= 4, 30, "the first is leader again")
            two.process.send_signal(signal.SIGCONT)
            eventually(lambda: replicas(bed, namespace) == 6, 60)
            eventually(lambda: "standing by" in two.get("/readyz"), 15)
    users = [user.rsplit(":", 1)[1] for _, _, user in writes(bed, namespace)]
    terms = [user for user, before in zip(users, ["", *users], strict=False) if user != before]
    assert terms == ["first", "second", "first"], users


def test_it_ends_within_five_seconds_and_gives_the_lease_back(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    with Running(bed, namespace, tmp_path) as running:
        eventually(lambda: "leading" in running.get("/readyz"), 20)
        assert "trimtab_leader 1" in running.get("/metrics") and running.get("/healthz") == "ok\n"
        assert running.stop(within_s=5) == 0
    assert bed.get("lease", "trimtab", "-n", namespace)["spec"]["holderIdentity"] == ""


@pytest.fixture
def own_bed() -> Iterator[Bed]:
    with Bed.start() as started:
        yield started


@pytest.mark.disruptive
def test_the_api_server_restarts_in_the_middle_of_a_scale_up(own_bed: Bed, tmp_path: Path) -> None:
    install_crds(own_bed)
    own_bed.kubectl("create", "namespace", "shop")
    own_bed.load("shop", "web", queue=60)
    own_bed.apply(deployment("shop", "web"), autoscaler("shop", metrics=queue("web"), behavior=SLOWLY))
    with Running(own_bed, "shop", tmp_path):
        eventually(lambda: replicas(own_bed, "shop") == 3, 40)
        own_bed.restart_apiserver()
        eventually(lambda: replicas(own_bed, "shop") == 6, 90)
    steps_are_whole(writes(own_bed, "shop"), 6)
