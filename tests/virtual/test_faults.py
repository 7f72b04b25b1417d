"""The faults that tests can ask for do what they say, and the operator lives through each of them."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys

import pytest

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.faults import (
    ClockStepped,
    Compacted,
    CutWatches,
    DamagedJournal,
    DefinitionAway,
    DiskFull,
    Fault,
    Flood,
    ForeignPods,
    Killed,
    LostEvents,
    NamespaceAway,
    ObjectAway,
    Refusing,
    RepeatedEvents,
    Slow,
    StalledWatches,
    Suspended,
    Unanswered,
    Unreachable,
)

WORD = "shop/web"


def busy(cluster: Cluster) -> None:
    """Four cores from the tenth minute on, which need eight pods."""
    cluster.deploy(WORD, replicas=2, load=lambda seconds: 4.0 if seconds >= 600 else 1.0)
    cluster.apply(autoscaler(WORD))


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param([Refusing(595, 720, status=500, share=0.5)], id="half of all requests fail"),
        pytest.param([Refusing(595, 720, status=429, retry_after_s=2, share=0.5)], id="asked to wait"),
        pytest.param([Refusing(600, 720, status=409, plural="deployments", methods=("PATCH",))], id="conflicts"),
        pytest.param([Slow(595, 720, seconds=2.0)], id="slow answers"),
        pytest.param([Unreachable(595, 720)], id="no connection"),
        pytest.param([Unanswered(595, 720, plural="deployments", methods=("PATCH",))], id="lost answers"),
        pytest.param([CutWatches(601)], id="cut watches"),
        pytest.param([Compacted(600), CutWatches(601)], id="cut watches whose version is gone"),
        pytest.param([StalledWatches(590, 900, plural="deployments")], id="a stalled watch"),
        pytest.param([RepeatedEvents(590, 720)], id="repeated events"),
        pytest.param([LostEvents(590, 640, plural="deployments"), CutWatches(640)], id="lost events"),
        pytest.param([Killed(610, requests=2, back_after_s=20)], id="killed before a request"),
        pytest.param(
            [Killed(610, requests=1, methods=("PATCH",), done=True, back_after_s=20)], id="killed after a write"
        ),
        pytest.param([Killed(610, awaits=7, back_after_s=20)], id="killed between two awaits"),
        pytest.param([Suspended(590, 650)], id="standing still"),
        pytest.param([DamagedJournal(590, 620)], id="a damaged journal"),
        pytest.param([ObjectAway(590, 700, WORD)], id="its object away"),
        pytest.param([ObjectAway(590, 700, WORD, alias="renamed")], id="its object under another name"),
        pytest.param([ObjectAway(590, 700, WORD, "Deployment")], id="its workload away"),
        pytest.param([NamespaceAway(590, 700, "shop")], id="its namespace away"),
        pytest.param([DefinitionAway(590, 700, "Autoscaler")], id="the definition of its kind away"),
        pytest.param([Flood(590, 1200)], id="a flood of invalid objects"),
        pytest.param([ForeignPods(590, 3000, workload=WORD)], id="a tenant's pods with its owner"),
        pytest.param([ClockStepped(605, by_s=3600), ClockStepped(700, by_s=-3600)], id="the clock set and set back"),
    ],
)
def test_after_a_fault_the_workload_gets_what_it_needs(faults: list[Fault]) -> None:
    with Cluster(seed=1) as cluster:
        busy(cluster)
        cluster.faults(*faults)
        cluster.run(minutes=40)
        assert cluster.replicas(WORD) == 8
        assert all(1 <= replicas <= 20 for _, replicas in cluster.writes(WORD))


def test_a_stalled_watch_is_dropped_and_opened_again() -> None:
    with Cluster(seed=2) as cluster:
        busy(cluster)
        cluster.faults(StalledWatches(300, 900, plural="pods"))
        cluster.run(minutes=20)
        opened = [each.at - cluster.start for each in cluster.audit("operator-0", "watch", "/v1/pods")]
        assert any(390 <= at <= 480 for at in opened)


def test_killed_at_a_request_nothing_more_leaves() -> None:
    with Cluster(seed=3) as cluster:
        busy(cluster)
        cluster.faults(Killed(300.0, requests=3))
        cluster.run(minutes=30)
        last = max(each.at for each in cluster.audit("operator-0")) - cluster.start
        assert 300 <= last < 310
        assert len([each for each in cluster.audit("operator-0") if each.at >= cluster.start + 300]) == 2


def test_who_stands_still_asks_nothing_and_goes_on_where_it_was() -> None:
    with Cluster(seed=3, operators=2) as cluster:
        busy(cluster)
        cluster.run(minutes=9)
        first = cluster.get("Lease", "trimtab-system/trimtab")["spec"]["holderIdentity"]
        cluster.faults(Suspended(601.0, 700.0, who=first))
        cluster.run(minutes=30)
        asked = [each.at - cluster.start for each in cluster.audit(first)]
        assert not [at for at in asked if 601.5 < at < 700]
        assert [at for at in asked if 700 <= at < 730]
        assert cluster.get("Lease", "trimtab-system/trimtab")["spec"]["holderIdentity"] != first
        assert cluster.writes(WORD, who=first) == [] and cluster.replicas(WORD) == 8


def test_what_comes_back_is_another_object() -> None:
    with Cluster(seed=3) as cluster:
        busy(cluster)
        before = {kind: cluster.get(kind, WORD)["metadata"]["uid"] for kind in ("Autoscaler", "Deployment")}
        cluster.faults(NamespaceAway(100, 200, "shop"))
        cluster.run(seconds=150)
        assert WORD not in cluster.workloads.all
        cluster.run(seconds=150)
        after = {kind: cluster.get(kind, WORD)["metadata"]["uid"] for kind in ("Autoscaler", "Deployment")}
        assert all(before[kind] != after[kind] for kind in before)
        assert len(cluster.pods(WORD)) == 2


def test_of_two_operators_only_the_holder_of_the_lease_writes() -> None:
    with Cluster(seed=4, operators=2) as cluster:
        busy(cluster)
        cluster.faults(Unreachable(605, 700, who="operator-0"), Unreachable(1200, 1300, who="operator-1"))
        cluster.load(WORD, lambda seconds: 2.0 + seconds % 900 / 300)
        cluster.run(hours=1)
        holder, writers = "", set()
        for each in cluster.audit():
            if "/leases" in each.path:
                written = each.status in (200, 201) and each.body
                holder = each.body["spec"]["holderIdentity"] if written else holder
            elif each.verb in ("patch", "create") and each.who.startswith("operator"):
                assert each.who == holder
                writers.add(each.who)
        assert writers == {"operator-0", "operator-1"}


def test_a_full_disk_refuses_what_the_journal_writes() -> None:
    with Cluster(seed=5) as cluster:
        busy(cluster)
        cluster.run(minutes=1)
        cluster.fill_disk("operator-0", True)
        db = cluster.journal_db("operator-0")
        with pytest.raises(sqlite3.OperationalError, match="full"), db:
            db.execute("CREATE TABLE filler AS SELECT randomblob(1000000) AS filling")
        cluster.fill_disk("operator-0", False)


def test_a_disk_is_full_for_as_long_as_it_is_said() -> None:
    with Cluster(seed=6) as cluster:
        busy(cluster)
        cluster.faults(DiskFull(620.0, 700.0))
        cluster.run(minutes=30)
        assert max(tick.at for tick in cluster.journal().ticks()) == cluster.start + 1800


def trace() -> str:
    """What everybody asked and was answered, in an hour of trouble, as one number."""
    with Cluster(seed=7, operators=2) as cluster:
        busy(cluster)
        cluster.deploy("shop/api", replicas=3, load=2.0)
        cluster.apply(autoscaler("shop/api", 40))
        cluster.faults(Refusing(300, 900, share=0.3), Killed(1000, requests=5, back_after_s=60), CutWatches(1500))
        cluster.run(hours=1)
        return hashlib.sha256(repr(list(cluster.server.audit)).encode()).hexdigest()


def test_a_seed_is_the_same_run_in_every_process() -> None:
    command = [sys.executable, "-c", "from tests.virtual.test_faults import trace; print(trace())"]
    other = subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONHASHSEED": "12345"}
    )
    assert other.stdout.strip() == trace()


def test_two_faults_that_end_apart_bring_one_operator_back_not_two() -> None:
    ticks: list[float] = []
    with Cluster(seed=4) as cluster:
        cluster.on_tick.append(lambda _: ticks.append(cluster.now() - cluster.start))
        busy(cluster)
        cluster.faults(DamagedJournal(300, 320), DamagedJournal(310, 340))
        cluster.run(minutes=20)
    assert 45 <= sum(at > 500 for at in ticks) <= 49, "one every 15 s"


def test_who_stood_still_and_gets_its_lease_back_in_one_try_has_taken_over() -> None:
    """What it knew ends long ago: nothing goes before one full window was seen."""
    with Cluster(seed=1, lease_s=(15.0, 10.0, 2.0)) as cluster:
        cluster.deploy("shop/web", replicas=12, load=lambda seconds: 6.0 if seconds < 1750 else 1.0)
        cluster.apply(autoscaler("shop/web"))
        cluster.faults(Suspended(1200.0, 1800.0))
        cluster.run(minutes=45)
        assert cluster.writes("shop/web")[0][0] >= 1800 + 300
