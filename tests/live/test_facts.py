"""Which pods belong to a workload, and what the core is told of them."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from trimtab.core.model import ContainerSize
from trimtab.live.look.members import Members
from trimtab.policy import Size
from trimtab.wire.from_kubernetes import has_sizes, killed_at, overloaded_at, owner_uid, pod_from_wire
from trimtab.wire.objects import WirePod, WireWorkload
from trimtab.wire.watch import Store

T0 = "2026-01-01T00:00:00Z"


def pod(name: str, owner: str, phase: str = "Running", **extra: Any) -> WirePod:
    requests = {"cpu": "250m", "memory": "64Mi"}
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "shop", "ownerReferences": [{"uid": owner, "controller": True}]}
            | extra.get("metadata", {}),
            "spec": {"containers": [{"name": "app", "resources": {"requests": requests}}]} | extra.get("spec", {}),
            "status": {"phase": phase} | extra.get("status", {}),
        },
        WirePod,
    )


def replica_set(name: str, uid: str, owner: str) -> WireWorkload:
    meta = {"name": name, "namespace": "shop", "uid": uid, "ownerReferences": [{"uid": owner, "controller": True}]}
    return msgspec.convert({"metadata": meta}, WireWorkload)


def stores() -> tuple[Store[WirePod], Store[WireWorkload], Members]:
    pods: Store[WirePod] = Store()
    sets: Store[WireWorkload] = Store()
    return pods, sets, Members(pods, sets)


def names(members: Members, uid: str) -> set[str]:
    return {one.name for one in members.facts("shop", uid)}


def test_pods_belong_through_their_replica_sets_old_and_new() -> None:
    pods, sets, members = stores()
    for name, owner in (("a", "rs1"), ("b", "rs2"), ("stranger", "rs3"), ("direct", "sts")):
        pods.put(pod(name, owner))
    sets.put(replica_set("web-1", "rs1", "deploy"))
    sets.put(replica_set("web-2", "rs2", "deploy"))
    assert names(members, "deploy") == {"a", "b"}
    assert names(members, "sts") == {"direct"}
    sets.drop(("shop", "web-1"))
    assert names(members, "deploy") == {"b"}


def test_a_pod_whose_name_only_looks_right_does_not_belong() -> None:
    pods, sets, members = stores()
    pods.put(msgspec.convert({"metadata": {"name": "web-1-abc", "namespace": "shop"}}, WirePod))
    sets.put(replica_set("web-1", "rs1", "deploy"))
    assert members.facts("shop", "deploy") == ()


def test_pods_and_replica_sets_of_another_namespace_do_not_belong() -> None:
    """Anybody may write any uid into an owner reference of his own objects."""
    pods, sets, members = stores()
    sets.put(replica_set("web-1", "rs1", "deploy"))
    pods.put(pod("a", "rs1"))
    own = [{"uid": "rs1", "controller": True}]
    pods.put(pod("evil", "", metadata={"name": "evil", "namespace": "tenant", "ownerReferences": own}))
    owner = [{"uid": "deploy", "controller": True}]
    claim = {"name": "rs", "namespace": "tenant", "uid": "rs9", "ownerReferences": owner}
    sets.put(msgspec.convert({"metadata": claim}, WireWorkload))
    pods.put(pod("more", "rs9"))
    assert names(members, "deploy") == {"a"}
    assert [one.metadata.name for one in members.pods("shop", "deploy")] == ["a"]


def test_finished_pods_never_count_and_deleted_ones_are_gone() -> None:
    pods, _, members = stores()
    for name, phase in (("done", "Succeeded"), ("broken", "Failed"), ("runs", "Running"), ("waits", "Pending")):
        pods.put(pod(name, "sts", phase))
    assert names(members, "sts") == {"runs", "waits"}
    pods.put(pod("runs", "sts", "Succeeded"))
    pods.drop(("shop", "waits"))
    assert names(members, "sts") == set()
    pods.put(
        pod(
            "leaves",
            "sts",
            metadata={
                "deletionTimestamp": T0,
                "ownerReferences": [{"uid": "sts", "controller": True}],
                "name": "leaves",
                "namespace": "shop",
            },
        )
    )
    assert [one.deleting for one in members.facts("shop", "sts")] == [True]


def test_a_pod_that_changes_its_owner_is_counted_once() -> None:
    pods, _, members = stores()
    pods.put(pod("a", "one"))
    pods.put(pod("a", "two"))
    assert names(members, "one") == set() and names(members, "two") == {"a"}


def test_the_facts_of_a_pod() -> None:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:30Z"}
    seen = pod_from_wire(
        pod("a", "x", status={"startTime": T0, "conditions": [ready]}, metadata={"name": "a", "creationTimestamp": T0})
    )
    assert seen.ready is True and seen.ready_since is not None and seen.created_at is not None
    assert seen.ready_since - seen.created_at == 30
    assert seen.requests == Size(cpu_cores=0.25, memory_bytes=64 * 2**20)
    assert pod_from_wire(pod("b", "x")).ready is None, "no condition yet is neither ready nor not"


def test_requests_count_sidecars_and_name_who_lacks_one() -> None:
    sidecar = {"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "50m"}}}
    once = {"name": "init", "resources": {"requests": {"cpu": "9"}}}
    seen = pod_from_wire(pod("a", "x", spec={"initContainers": [sidecar, once]}))
    assert seen.requests == Size(cpu_cores=0.3, memory_bytes=None)
    assert seen.no_request == "proxy"


def test_oom_kills_and_evictions_are_seen_once_they_are_new() -> None:
    ended = {"terminated": {"reason": "OOMKilled", "finishedAt": "2026-01-01T00:01:00Z"}}
    killed = pod("a", "x", status={"containerStatuses": [{"name": "app", "lastState": ended}]})
    at = killed_at(killed, "app")
    assert at is not None and killed_at(killed, "other") is None
    assert overloaded_at(killed, ["app"]) == at and overloaded_at(pod("c", "x"), ["app"]) is None
    assert overloaded_at(killed, ["other"]) is None
    meta = {"name": "b", "creationTimestamp": T0}
    evicted = pod("b", "x", "Failed", status={"reason": "Evicted"}, metadata=meta)
    assert overloaded_at(evicted, ["app"]) == at - 60
    ready = [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:01:00Z"}]
    later = pod("b", "x", "Failed", status={"reason": "Evicted", "conditions": ready}, metadata=meta)
    assert overloaded_at(later, ["app"]) == at, "when it ended, not when it began"


def test_a_pod_has_the_size_in_force_where_its_containers_have_it() -> None:
    in_force = {"app": ContainerSize(requests=Size(cpu_cores=0.25))}
    assert has_sizes(pod("a", "x"), in_force) and has_sizes(pod("a", "x"), {})
    assert not has_sizes(pod("a", "x"), {"app": ContainerSize(requests=Size(cpu_cores=0.5))})


def test_how_much_cpu_a_pod_may_use_is_known_only_where_every_container_has_a_limit() -> None:
    limited = {"name": "app", "resources": {"requests": {"cpu": "250m"}, "limits": {"cpu": "500m"}}}
    free = {"name": "proxy", "resources": {"requests": {"cpu": "100m"}}}
    one, two = (pod_from_wire(pod("a", "rs", spec={"containers": given})) for given in ([limited], [limited, free]))
    assert (one.cpu_limit(), one.cpu_limit("app"), one.cpu_limit("proxy")) == (0.5, 0.5, None)
    assert (two.cpu_limit(), two.cpu_limit("app")) == (None, 0.5)


def test_whatever_comes_and_goes_members_are_what_the_stores_say() -> None:
    draw = random.Random(7)
    pods, sets, members = stores()
    owners = {"rs1": "deploy", "rs2": "deploy", "rs3": "other"}
    for _ in range(2000):
        name, owner = f"p{draw.randrange(12)}", draw.choice((*owners, "deploy", "nobody"))
        if draw.random() < 0.3:
            pods.drop(("shop", name))
        elif draw.random() < 0.2:
            sets.drop(("shop", draw.choice((*owners,))))
        elif draw.random() < 0.3:
            chosen = draw.choice((*owners,))
            sets.put(replica_set(chosen, chosen, owners[chosen]))
        else:
            pods.put(pod(name, owner, draw.choice(("Running", "Pending", "Failed"))))
        for workload in ("deploy", "other"):
            theirs = {workload, *(found.metadata.uid for found in sets if owners[found.metadata.uid] == workload)}
            unfinished = [one for one in pods if one.status.phase != "Failed"]
            expected = {
                pod_from_wire(one).name: pod_from_wire(one) for one in unfinished if owner_uid(one.metadata) in theirs
            }
            found = members.facts("shop", workload)
            assert {one.name: one for one in found} == expected and len(found) == len(expected)


def test_pods_that_stay_are_one_tuple() -> None:
    pods, sets, members = stores()
    sets.put(replica_set("web-1", "rs1", "deploy"))
    pods.put(pod("a", "rs1"))
    pods.put(pod("b", "rs1"))
    known = members.facts("shop", "deploy")
    pods.put(pod("stranger", "rs9"))
    assert members.facts("shop", "deploy") is known
    pods.put(pod("b", "rs1", "Pending"))
    assert members.facts("shop", "deploy") is not known
