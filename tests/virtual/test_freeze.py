"""The brake of one installation: the operator decides and says so, writes nothing else, and a later one goes on."""

from __future__ import annotations

import logging

import pytest

from tests.virtual.apiserver import ACCOUNT
from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.machines import OWN_NAMESPACE
from trimtab.acts import Fate
from trimtab.kinds.annotations import FROZEN, INSTALLATION_UID

LATER = "22222222-2222-4222-8222-222222222222"


def home(cluster: Cluster, **notes: str) -> None:
    meta = {"name": OWN_NAMESPACE, "annotations": {FROZEN: notes["frozen"]} if notes else {}}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})


def rush(seconds: float) -> float:
    return 6.0 if seconds >= 300 else 1.0


def busy(cluster: Cluster) -> None:
    cluster.deploy("shop/web", replicas=2, load=rush)
    cluster.apply(autoscaler("shop/web"))


def told(cluster: Cluster) -> str:
    return str(cluster.get("Autoscaler", "shop/web")["status"]["mode"])


def annotation(cluster: Cluster) -> str | None:
    found = cluster.get("Namespace", f"/{OWN_NAMESPACE}")["metadata"].get("annotations") or {}
    return found.get(FROZEN)


@pytest.mark.parametrize("value", ["true", ACCOUNT, "yes"])
def test_a_frozen_installation_says_so_and_writes_nothing_but_status(
    value: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with Cluster(seed=1) as cluster:
        home(cluster, frozen=value)
        busy(cluster)
        cluster.run(minutes=10)
        paths = {each.path for each in cluster.audit("operator-0") if each.verb in ("create", "patch", "delete")}
        other = {path for path in paths if "/leases" not in path and OWN_NAMESPACE not in path}
        own = {"/apis/trimtab.dev/v1alpha1/namespaces/shop/autoscalers/web/status"}
        assert other == own
        assert told(cluster) == "Frozen" and annotation(cluster) == value
        assert cluster.conditions("Autoscaler", "shop/web")["AbleToScale"] == ("False", "Frozen")
        assert cluster.ready()[0] == 200 and "FROZEN" in cluster.ready()[1]
        assert "trimtab_frozen 1" in cluster.metrics_page()
        assert {part.fate for act in cluster.journal().acts() for part in act.outcome} == {Fate.SHADOW}
        assert "FROZEN" in caplog.text
        cluster.patch("Namespace", f"/{OWN_NAMESPACE}", {"metadata": {"annotations": {FROZEN: None}}})
        cluster.run(minutes=2)
        assert cluster.replicas("shop/web") > 2 and told(cluster) == "Auto"


def test_the_next_installation_goes_on_and_clears_what_the_last_one_left() -> None:
    with Cluster(seed=1) as cluster:
        home(cluster)
        busy(cluster)
        cluster.run(minutes=4)
        lease = cluster.get("Lease", f"{OWN_NAMESPACE}/trimtab")
        assert lease["metadata"]["annotations"][INSTALLATION_UID] == ACCOUNT
        cluster.patch("Namespace", f"/{OWN_NAMESPACE}", {"metadata": {"annotations": {FROZEN: ACCOUNT}}})
        cluster.run(minutes=4)
        assert cluster.replicas("shop/web") == 2, "what uninstall does first"
        cluster.stop_operator("operator-0")
        cluster.run(minutes=1)
        cluster.server.accounts["operator-0"] = LATER
        cluster.start_operator("operator-0")
        cluster.run(minutes=2)
        assert cluster.replicas("shop/web") > 2 and told(cluster) == "Auto"
        assert annotation(cluster) is None and cluster.ready()[1] == "ok, leading\n"


def test_who_is_not_known_yet_is_frozen_by_any_name() -> None:
    with Cluster(seed=1) as cluster:
        home(cluster, frozen=LATER)
        busy(cluster)
        cluster.server.accounts["operator-0"] = ""
        cluster.run(minutes=10)
        assert cluster.replicas("shop/web") == 2 and annotation(cluster) == LATER
