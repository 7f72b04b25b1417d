"""Operators that divide the namespaces among them: each object has one writer, also while the division changes.

The witness is the API server's list of requests: at every scaling, no Lease of another division may have been renewed
within the time for which its holder may write, unless it was given back since.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby

import pytest

from tests.virtual.cluster import Cluster, autoscaler
from trimtab.errors import InvalidInput
from trimtab.kinds.annotations import SHARDS
from trimtab.wire.objects import Lease, ReadAnnotations, ReadMeta
from trimtab.wire.shards import Shard, divided_into

TEAMS = tuple(f"team-{number}" for number in range(5))
RENEW_DEADLINE_S = 10.0  # for so long after a renewal its holder may write
TAKE_OVER_S = 20.0


def busy(cluster: Cluster) -> None:
    """Each workload asks for another number of pods every two minutes, and may have it at once."""
    at_once = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    for number, team in enumerate(TEAMS):
        shift = 7 * number
        load = lambda seconds, shift=shift: 1.0 if (seconds + shift) // 120 % 2 else 3.0  # noqa: E731
        cluster.deploy(f"{team}/web", replicas=2, load=load)
        cluster.apply(autoscaler(f"{team}/web", behavior=at_once))


def divide(cluster: Cluster, of: int, prefix: str) -> list[str]:
    names = [f"{prefix}-{number}" for number in range(of)]
    for number, name in enumerate(names):
        cluster.start_operator(name, shard=Shard(number, of))
    return names


def scalings(cluster: Cluster) -> list[tuple[float, str, str]]:
    """(at, namespace, who) of each write of a scale that succeeded."""
    found = [each for each in cluster.audit(verb="patch", path="/scale") if each.status == 200]
    return [(each.at - cluster.start, each.path.split("/namespaces/")[1].split("/")[0], each.who) for each in found]


def check_one_division_writes(cluster: Cluster) -> None:
    """Walk through all requests in their order."""
    leases: dict[str, tuple[int, str, float]] = {}  # division, holder, when it was written
    division = {who: process.settings.shard for who, process in cluster.processes.items()}
    for request in cluster.server.audit:
        if request.status not in (200, 201) or request.verb not in ("patch", "create"):
            continue
        if "/leases" in request.path:
            name = request.path.rpartition("/leases")[2].strip("/") or request.body["metadata"]["name"]
            leases[name] = (division[request.who].of, request.body["spec"]["holderIdentity"], request.at)
        elif request.path.endswith("/scale"):
            namespace = request.path.split("/namespaces/")[1].split("/")[0]
            mine = division[request.who]
            assert mine.owns(namespace), f"{request.who} wrote in {namespace}"
            held = {
                name: lease for name, lease in leases.items() if lease[1] and request.at - lease[2] <= RENEW_DEADLINE_S
            }
            assert {lease[0] for lease in held.values()} == {mine.of}, f"{request.who} wrote while {held} were held"
            assert held[mine.lease][1] == request.who


def writers(cluster: Cluster) -> dict[str, list[str]]:
    """Of each namespace, one after the other."""
    found: dict[str, list[str]] = defaultdict(list)
    for _, namespace, who in scalings(cluster):
        found[namespace].append(who)
    return {namespace: [who for who, _ in groupby(names)] for namespace, names in found.items()}


def test_each_namespace_belongs_to_one_shard() -> None:
    spaces = [f"namespace-{number}" for number in range(3000)]
    owned = [[space for space in spaces if Shard(number, 3).owns(space)] for number in range(3)]
    assert sorted(space for some in owned for space in some) == sorted(spaces)
    assert all(900 < len(some) < 1100 for some in owned)
    assert [Shard(number, 3).owns("shop") for number in range(3)] == [True, False, False], "for ever"
    assert Shard().owns("shop") and Shard().lease == "trimtab"


@pytest.mark.parametrize("text", ["3/3", "0/0", "-1/3", "1", "a/b", "0/101", ""])
def test_a_shard_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="first of three"):
        Shard.parse(text)


@pytest.mark.parametrize(
    ("text", "shards"), [("3", 3), ("100", 100), ("999", 100), ("9" * 5000, 1), ("-3", 1), ("³", 1), ("", 1)]
)
def test_however_a_division_is_written_it_is_a_number(text: str, shards: int) -> None:
    assert divided_into(Lease(metadata=ReadMeta(annotations=ReadAnnotations({SHARDS: text})))) == shards


def test_three_divide_the_work_and_keep_only_what_is_theirs() -> None:
    with Cluster(seed=1, operators=0) as cluster:
        busy(cluster)
        names = divide(cluster, 3, "operator")
        cluster.run(minutes=10)
        check_one_division_writes(cluster)
        assert set(writers(cluster)) == set(TEAMS)
        for number, name in enumerate(names):
            operator = cluster.processes[name].operator
            assert operator is not None
            kept = {pod.metadata.namespace for pod in operator.cluster.pods.store}
            assert kept == {team for team in TEAMS if Shard(number, 3).owns(team)}
            assert f"leading as shard {number}/3" in operator.ready()[1]


def test_a_dead_shard_is_taken_over_by_its_stand_by() -> None:
    with Cluster(seed=2, operators=0) as cluster:
        busy(cluster)
        divide(cluster, 2, "first")
        cluster.run(minutes=2)
        divide(cluster, 2, "second")
        cluster.run(minutes=2)
        cluster.kill("first-0")
        cluster.run(minutes=6)
        check_one_division_writes(cluster)
        took = [each.at - cluster.start for each in cluster.audit("second-0", "patch", "/leases/trimtab-0")]
        assert took[0] - 240 <= TAKE_OVER_S
        for team, names in writers(cluster).items():
            assert names == (["first-0", "second-0"] if Shard(0, 2).owns(team) else ["first-1"])


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2), (1, 3), (3, 1)])
def test_nobody_of_a_new_division_writes_before_the_last_of_the_old_has_ended(before: int, after: int) -> None:
    with Cluster(seed=3, operators=0) as cluster:
        busy(cluster)
        old = divide(cluster, before, "old")
        cluster.run(minutes=4)
        new = divide(cluster, after, "new")
        cluster.run(minutes=2)
        waiting = cluster.processes[new[0]].operator
        assert waiting is not None and "of another division" in waiting.ready()[1]
        for number, name in enumerate(old):  # one is killed, the others are told to end, half a minute apart
            cluster.kill(name) if number == 0 else cluster.stop_operator(name)
            cluster.run(seconds=30)
        cluster.run(minutes=6)
        check_one_division_writes(cluster)
        assert all(names[-1].startswith("new") for names in writers(cluster).values())
        assert set(writers(cluster)) == set(TEAMS)


@pytest.mark.parametrize("seed", range(3))
def test_divisions_that_come_at_the_same_moment_do_not_write_together(seed: int) -> None:
    with Cluster(seed=seed, operators=0) as cluster:
        busy(cluster)
        divide(cluster, 2, "two")
        divide(cluster, 3, "three")
        cluster.run(minutes=8)
        check_one_division_writes(cluster)
        wrote = {who.partition("-")[0] for _, _, who in scalings(cluster)}
        assert len(wrote) == 1, "one of them leads, the other waits"
