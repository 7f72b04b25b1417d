"""Membership by owner, and the queries that follow from it; names that are prefixes of each other do not mix."""

from __future__ import annotations

import re

from trimtab.history.pod_owners import Member, OwnerLink, OwnerLinks, _owner_links, gather
from trimtab.history.source import Selection
from trimtab.history.workload_history import plan
from trimtab.promql import parse_matchers


def by_key(members: list[Member]) -> dict[str, tuple[set[str], set[str]]]:
    return {one.key: (one.stems, one.pods if not one.stems else set()) for one in members}


def test_pods_belong_to_the_controller_of_their_replica_set() -> None:
    pods = [
        OwnerLink("a", "web-5d4-abcde", "ReplicaSet", "web-5d4"),
        OwnerLink("a", "web-77f-fghij", "ReplicaSet", "web-77f"),
        OwnerLink("a", "web-api-1a2-klmno", "ReplicaSet", "web-api-1a2"),
        OwnerLink("a", "db-0", "StatefulSet", "db"),
        OwnerLink("b", "solo-xxxxx", "ReplicaSet", "solo"),
        OwnerLink("b", "canary-9z-qqqqq", "ReplicaSet", "canary-9z"),
    ]
    replica_sets = [
        OwnerLink("a", "web-5d4", "Deployment", "web"),
        OwnerLink("a", "web-77f", "Deployment", "web"),
        OwnerLink("a", "web-api-1a2", "Deployment", "web-api"),
        OwnerLink("b", "solo", "", ""),
        OwnerLink("b", "canary-9z", "Rollout", "canary"),
    ]
    assert by_key(gather(pods, replica_sets)) == {
        "a/Deployment/web": ({"web-5d4", "web-77f"}, set()),
        "a/Deployment/web-api": ({"web-api-1a2"}, set()),
        "a/StatefulSet/db": ({"db"}, set()),
        "b/ReplicaSet/solo": ({"solo"}, set()),
        "b/Rollout/canary": ({"canary-9z"}, set()),
    }


def test_a_stem_that_others_have_too_is_not_trusted() -> None:
    pods = [
        OwnerLink("a", "db-0", "StatefulSet", "db"),
        OwnerLink("a", "db-backup", "", ""),  # a bare pod
        OwnerLink("a", "cache-1", "StatefulSet", "cache"),
        OwnerLink("a", "cache-zzzzz", "Job", "cache"),
        OwnerLink("b", "db-0", "StatefulSet", "db"),
    ]
    assert by_key(gather(pods, [])) == {
        "a/StatefulSet/db": (set(), {"db-0"}),
        "a/StatefulSet/cache": (set(), {"cache-1"}),
        "b/StatefulSet/db": ({"db"}, set()),
    }


def test_pods_with_names_of_their_own_are_listed() -> None:
    pods = [OwnerLink("a", "broker-kafka-0", "StrimziPodSet", "broker"), OwnerLink("a", "plain", "Custom", "thing")]
    assert by_key(gather(pods, [])) == {
        "a/StrimziPodSet/broker": (set(), {"broker-kafka-0"}),
        "a/Custom/thing": (set(), {"plain"}),
    }


def test_jobs_and_mirror_pods_are_no_workloads() -> None:
    pods = [OwnerLink("a", "backup-1-abcde", "Job", "backup-1"), OwnerLink("a", "etcd-node1", "Node", "node1")]
    assert gather(pods, []) == []


def test_owners_known_without_pods() -> None:
    stems = [OwnerLink("a", "web-5d4", "ReplicaSet", "web-5d4")]
    assert by_key(gather([], [OwnerLink("a", "web-5d4", "Deployment", "web")], stems)) == {
        "a/Deployment/web": ({"web-5d4"}, set())
    }


def members(namespaces: int, each: int) -> list[Member]:
    return [Member(f"ns{n}", "Deployment", f"w{i}", {f"w{i}-abc"}) for n in range(namespaces) for i in range(each)]


def test_queries_grow_with_pages_not_with_workloads_or_namespaces() -> None:
    assert len(list(plan(members(1, 50), Selection("cpu"), (), 60))) == 1
    assert len(list(plan(members(50, 2), Selection("cpu"), (), 60))) == 1
    assert len(list(plan(members(1, 1000), Selection("cpu"), (), 60))) == 10
    many_pods = [Member("a", "Deployment", f"w{i}", {f"w{i}"}, {f"w{i}-{p}" for p in range(50)}) for i in range(10)]
    assert len(list(plan(many_pods, Selection("cpu", "workload"), (), 60))) == 1
    assert len(list(plan(many_pods, Selection("cpu", "pod"), (), 60))) == 5


def test_a_query_is_narrow_and_its_answer_is_checked() -> None:
    chosen = [Member("a.b", "Deployment", "web", {"web-5d4"}), Member("c", "Deployment", "api", {"api-1"})]
    (page,) = plan(chosen, Selection("cpu"), parse_matchers('cluster="x"'), 60)
    assert page.expression == (
        'sum by (namespace,stem)(label_replace(rate(container_cpu_usage_seconds_total{container!="",container!="POD",'
        'cluster="x",namespace=~"a\\\\.b|c",pod=~"(?:api-1|web-5d4)-[^-]+"}[180s]),"stem","$1","pod","(.+)-[^-]+"))'
    )
    assert page.name({"namespace": "a.b", "stem": "web-5d4"}) == "a.b/Deployment/web"
    assert page.name({"namespace": "c", "stem": "web-5d4"}) is None  # the same name elsewhere is somebody else's


def test_a_prefix_of_another_name_is_not_matched() -> None:
    (page,) = plan([Member("a", "Deployment", "web", {"web-5d4"})], Selection("memory", "container"), (), 60)
    assert page.expression.startswith(
        "max by (namespace,stem,container)(label_replace(container_memory_working_set_bytes{"
    )
    pattern = re.search(r'pod=~"([^"]+)"', page.expression)
    assert pattern is not None
    matched = [
        pod
        for pod in ("web-5d4-abcde", "web-5d4-api-abcde", "web-5d44-abcde", "my-web-5d4-abcde")
        if re.fullmatch(pattern[1], pod)
    ]
    assert matched == ["web-5d4-abcde"]


def test_a_coarse_grid_widens_the_rate_window() -> None:
    (page,) = plan(members(1, 1), Selection("cpu"), (), 900)
    assert "[900s]" in page.expression


def test_listed_pods_get_a_page_of_their_own() -> None:
    chosen = [Member("a", "Deployment", "web", {"web-1"}), Member("a", "Custom", "thing", set(), {"plain", "odd-name"})]
    first, second = plan(chosen, Selection("cpu", "pod"), (), 60)
    assert 'pod=~"odd-name|plain"' in second.expression
    labels = {"namespace": "a", "stem": "plain", "pod": "plain", "container": "main"}
    assert second.name(labels) == "a/Custom/thing/main/plain"
    assert first.name(labels) is None


def test_labels_as_kube_state_metrics_has_them() -> None:
    owner = {"owner_kind": "ReplicaSet", "owner_name": "web-1"}
    moved = {"namespace": "monitoring", "pod": "ksm-0", "exported_namespace": "a", "exported_pod": "web-1-x", **owner}
    twice = [{"namespace": "a", "pod": "web-1-x", "instance": one, **owner} for one in ("ksm-0", "ksm-1")]
    bare = {"namespace": "a", "pod": "solo", "owner_kind": "<none>", "owner_name": "<none>"}
    expected = {OwnerLink("a", "web-1-x", "ReplicaSet", "web-1"), OwnerLink("a", "solo", "", "")}
    assert _owner_links([moved, *twice, bare], "pod") == expected


TRUE_PODS = [
    {"namespace": "victim", "pod": f"web-abc-{end}", "owner_kind": "ReplicaSet", "owner_name": "web-abc", "job": "ksm"}
    for end in "xyz"
]
TRUE_SETS = [
    {"namespace": "victim", "replicaset": "web-abc", "owner_kind": "Deployment", "owner_name": "web", "job": "ksm"}
]


def moved(labels: dict[str, str], namespace: str, job: str) -> dict[str, str]:
    """As a scrape without honor_labels stores it."""
    exported = {f"exported_{key}": labels[key] for key in ("namespace", "pod", "replicaset") if key in labels}
    return labels | exported | {"namespace": namespace, "pod": f"{job}-0", "job": job}


def test_a_scraped_pod_cannot_take_pods_from_their_owner() -> None:
    ghost = {"owner_kind": "Deployment", "owner_name": "ghost"}
    forged_pods = [moved(labels | ghost, "tenant", "evil") for labels in TRUE_PODS]
    forged_sets = [moved(labels | ghost, "tenant", "evil") for labels in TRUE_SETS]
    told = gather(_owner_links(TRUE_PODS + forged_pods, "pod"), _owner_links(forged_sets + TRUE_SETS, "replicaset"))
    assert by_key(told) == {"victim/Deployment/web": ({"web-abc"}, set())}


def test_where_all_is_moved_one_source_is_believed_and_two_are_not() -> None:
    sets = [moved(labels, "monitoring", "ksm") for labels in TRUE_SETS]
    assert _owner_links(sets, "replicaset") == _owner_links(TRUE_SETS, "replicaset")
    assert _owner_links([*sets, moved(TRUE_SETS[0], "tenant", "evil")], "replicaset") == set()


def test_the_api_server_overrules_what_was_scraped() -> None:
    told = OwnerLinks((OwnerLink("a", "web-1-x", "StatefulSet", "ghost"), OwnerLink("a", "gone", "Custom", "c")))
    seen = OwnerLinks((OwnerLink("a", "web-1-x", "ReplicaSet", "web-1"),))
    assert set(told.overruled_by(seen).pods) == {seen.pods[0], told.pods[1]}
