"""Two installations of the whole cluster, in namespaces of their own: one serves, the other stands by and says so."""

from __future__ import annotations

from functools import partial

import pytest

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.faults import CutWatches, Fault, Killed, Refusing, StalledWatches, Unreachable
from tests.virtual.machines import OWN_NAMESPACE

OTHER = "team-trimtab"
FIRST, SECOND = "operator-0", "operator-1"


def rush(seconds: float) -> float:
    return 6.0 if seconds >= 300 else 1.0


def twice(cluster: Cluster, second_after_s: float = 0.0) -> None:
    for namespace in (OWN_NAMESPACE, OTHER):
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    start = partial(cluster.start_operator, SECOND, lease_namespace=OTHER)
    cluster.loop.call_at(20.0 + second_after_s, start)
    cluster.deploy("shop/web", replicas=2, load=rush)
    cluster.apply(autoscaler("shop/web"))


def test_the_younger_one_stands_by_and_says_so() -> None:
    with Cluster(seed=1) as cluster:
        twice(cluster)
        cluster.run(minutes=10)
        assert cluster.writes("shop/web", FIRST) and not cluster.writes("shop/web", SECOND)
        assert cluster.writes("shop/web", FIRST)[0][0] < 330, "who serves goes on when another comes"
        told = [call for call in cluster.audit(SECOND, "patch") if "/leases/" not in call.path]
        assert [call.path for call in told] == [f"/api/v1/namespaces/{OTHER}"], "not even a status"
        status, said = cluster.ready(SECOND)
        assert status == 200
        assert said.startswith(f"ok, standing by: the installation in namespace {OWN_NAMESPACE} serves this cluster")
        assert cluster.ready(FIRST)[1].endswith(f"stand by for us in: {OTHER}\n")
        assert "trimtab_standing_by 1" in cluster.metrics_page(SECOND)
        assert "trimtab_other_installations 1" in cluster.metrics_page(FIRST)


def test_of_leases_only_those_of_others_are_watched() -> None:
    with Cluster(seed=1) as cluster:
        twice(cluster)
        cluster.run(minutes=10)
        watched = {
            who: process.operator.cluster.leases.store for who, process in cluster.processes.items() if process.operator
        }
        homes = {who: [namespace for namespace, _ in store.items] for who, store in watched.items()}
        assert homes == {FIRST: [OTHER], SECOND: [OWN_NAMESPACE]}, "our own would tell us what we wrote every 2 s"


def test_it_takes_over_when_the_first_is_gone_and_gives_back_when_it_returns() -> None:
    with Cluster(seed=1, lease_s=(15.0, 10.0, 2.0)) as cluster:
        twice(cluster)
        cluster.faults(Killed(200.0, who=FIRST, back_after_s=1000.0))
        cluster.run(minutes=15)
        (at, _), *_ = cluster.writes("shop/web", SECOND)
        assert 300 < at < 330
        assert cluster.ready(SECOND)[1] == "ok, leading\n"
        cluster.run(minutes=15)
        assert cluster.ready(SECOND)[1].startswith("ok, standing by: the installation in namespace")
        cluster.load("shop/web", 9.0)
        cluster.run(minutes=5)
        assert {who for at, who in scalings(cluster) if at > 1300} == {FIRST}


@pytest.mark.parametrize("later_s", [0.0, 0.1, 15.0])
def test_of_two_that_begin_together_one_writes(later_s: float) -> None:
    with Cluster(seed=1) as cluster:
        twice(cluster, second_after_s=later_s - 5.2)
        cluster.run(minutes=10)
        assert len({who for _, who in scalings(cluster)}) == 1


def scalings(cluster: Cluster) -> list[tuple[float, str]]:
    found = cluster.audit("", "patch", "/deployments/web/scale")
    return [(call.at - cluster.start, call.who) for call in found]


def test_who_may_not_note_itself_serves_all_the_same() -> None:
    with Cluster(seed=1) as cluster:
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OWN_NAMESPACE}})
        cluster.faults(Refusing(0.0, plural="namespaces", methods=("PATCH",), status=403))
        cluster.deploy("shop/web", replicas=2, load=rush)
        cluster.apply(autoscaler("shop/web"))
        cluster.run(minutes=6)
        assert cluster.writes("shop/web")


@pytest.mark.parametrize("owner", ["team-trimtab", "evil"])
def test_a_lease_alone_makes_nobody_stand_by(owner: str) -> None:
    """A tenant may write Leases; Namespaces he may not."""
    with Cluster(seed=1) as cluster:
        lease = {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}, "spec": {"holderIdentity": "evil"}}
        cluster.server.put(f"/apis/coordination.k8s.io/v1/namespaces/{owner}/leases/trimtab", lease)
        cluster.deploy("shop/web", replicas=2, load=rush)
        cluster.apply(autoscaler("shop/web"))
        cluster.run(minutes=6)
        assert cluster.writes("shop/web") and cluster.ready()[1] == "ok, leading\n"


def beside(cluster: Cluster) -> None:
    """The first serves everything, the second its own namespace alone."""
    cluster.loop.call_at(100.0, partial(cluster.start_operator, SECOND, namespace="shop", lease_s=(15.0, 10.0, 2.0)))
    for name in ("shop/web", "bank/core"):
        cluster.deploy(name, replicas=2, load=rush)
        cluster.apply(autoscaler(name))


def test_a_namespace_with_an_operator_of_its_own_is_left_to_it_as_long_as_that_lives() -> None:
    with Cluster(seed=1) as cluster:
        beside(cluster)
        cluster.run(minutes=10)
        assert {who for _, who in scalings(cluster)} == {SECOND} and cluster.writes("bank/core", FIRST)
        told = {
            call.who
            for call in cluster.audit("", "patch", "/shop/autoscalers/web/status")
            if call.at > cluster.start + 130
        }
        assert told == {SECOND}, "not even a status"
        assert cluster.ready(FIRST)[1].endswith("left to operators of their own: shop\n")
        cluster.kill(SECOND)
        cluster.load("shop/web", 9.0)
        cluster.run(minutes=5)
        assert cluster.writes("shop/web", FIRST) and cluster.ready(FIRST)[1] == "ok, leading\n"


@pytest.mark.parametrize(
    "fault",
    [
        StalledWatches(380.0, 460.0, plural="leases", who=FIRST),
        Unreachable(380.0, 460.0, path="/apis/coordination.k8s.io/v1/leases", who=FIRST),
    ],
    ids=["silent", "in trouble"],
)
def test_a_namespace_stays_left_while_leases_are_not_heard_of(fault: Fault) -> None:
    with Cluster(seed=1) as cluster:
        beside(cluster)
        cluster.load("shop/web", lambda seconds: 1.0 if seconds < 400 else 6.0)
        cluster.faults(fault, *([CutWatches(381.0)] if isinstance(fault, Unreachable) else []))
        cluster.run(minutes=12)
        assert cluster.writes("shop/web", SECOND) and not cluster.writes("shop/web", FIRST)


@pytest.mark.parametrize("serves", ["shop", ""])
def test_a_tenants_lease_leaves_nobody_elses_namespace_to_him(serves: str) -> None:
    with Cluster(seed=1) as cluster:
        meta = {"annotations": {"trimtab.dev/serves": serves}}
        lease = {"metadata": meta, "spec": {"holderIdentity": "evil", "leaseDurationSeconds": 10**9}}
        cluster.server.put("/apis/coordination.k8s.io/v1/namespaces/evil/leases/trimtab", lease)
        cluster.deploy("shop/web", replicas=2, load=rush)
        cluster.apply(autoscaler("shop/web"))
        cluster.run(minutes=6)
        assert cluster.writes("shop/web") and cluster.ready()[1] == "ok, leading\n"


def test_who_may_not_see_leases_serves_all_the_same() -> None:
    with Cluster(seed=1) as cluster:
        cluster.faults(Refusing(0.0, path="/apis/coordination.k8s.io/v1/leases", methods=("GET",), status=403))
        cluster.deploy("shop/web", replicas=2, load=rush)
        cluster.apply(autoscaler("shop/web"))
        cluster.run(minutes=6)
        assert cluster.writes("shop/web") and cluster.ready()[1] == "ok, leading\n"
