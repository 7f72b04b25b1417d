"""What stands in the way of new sizes, and that it is named: quotas, LimitRanges, nodes, rollouts, budgets."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.live.build import custom, spec, subject
from trimtab.core.model import Change, ContainerSize, Veto
from trimtab.live.headroom import Headroom, rollout_blocker, surges
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.policy import Axis, Direction, Size
from trimtab.wire.access import Access
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Custom, Node, WirePod, WireWorkload
from trimtab.wire.resources import DEPLOYMENTS, STATEFUL_SETS, Resource

GIB = 2**30
Held = dict[tuple[str, Axis], str]  # (reason, axis) -> the sentence


def resources(cpu: str, memory: str, limits: dict[str, str] | None = None) -> dict[str, Any]:
    return {"requests": {"cpu": cpu, "memory": memory}} | ({"limits": limits} if limits else {})


def pod(name: str, cpu: str = "250m", memory: str = "512Mi", **more: Any) -> WirePod:
    """A pod of the Deployment; `limits`, `owner` (kind), `node`, `labels` and other containers where given."""
    container = {"name": "app", "resources": resources(cpu, memory, more.get("limits"))}
    kind = more.get("owner", "ReplicaSet")
    owner = {"kind": kind, "uid": "d" if kind == "ReplicaSet" else kind, "controller": True}
    meta = {"name": name, "namespace": "shop", "labels": {"app": "web"}, "ownerReferences": [owner]}
    containers = [container, *more.get("others", [])]
    found = {"containers": containers, "nodeName": more.get("node", ""), "initContainers": more.get("first", [])}
    return msgspec.convert({"metadata": meta, "spec": found, "status": {"phase": "Running"}}, WirePod)


def node(name: str, cpu: str, memory: str, **more: Any) -> Node:
    meta = {"name": name, "labels": more.pop("labels", {})}
    return msgspec.convert(
        {"metadata": meta, "spec": more, "status": {"allocatable": {"cpu": cpu, "memory": memory}}}, Node
    )


def named(name: str, kind_spec: dict[str, Any], **status: Any) -> Custom:
    return custom(name, spec=kind_spec, **status)


def quota(hard: dict[str, str], used: dict[str, str], **more: Any) -> Custom:
    return named("team", {"hard": hard} | more, hard=hard, used=used)


def limit_range(kind: str = "Container", **rule: Any) -> Custom:
    return named("bounds", {"limits": [{"type": kind} | rule]})


def target(resource: Resource = DEPLOYMENTS, replicas: int = 1, **template: Any) -> ScaleTarget:
    container = {"name": "app", "resources": resources("250m", "512Mi")}
    made = {
        "metadata": {"uid": "d", "generation": 2},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [container]} | template}},
        "status": {"observedGeneration": 2, "replicas": replicas, "updatedReplicas": replicas},
    }
    return ScaleTarget(resource, "shop", "web", "d", "7", replicas, replicas, msgspec.convert(made, WireWorkload))


def size(cpu: float | None = None, memory: float | None = None, **limits: float) -> ContainerSize:
    return ContainerSize(requests=Size(cpu_cores=cpu, memory_bytes=memory), limits=Size(**limits))


def held(
    wanted: ContainerSize, *seen: Custom | Node | WirePod, of: ScaleTarget | None = None, apply: str = "InPlace"
) -> Held:
    """The vetoes against this size of container "app", in a cluster of these objects."""
    cluster = WatchedCluster(Kube(Access("http://127.0.0.1:1")))
    for one in seen:
        if isinstance(one, Node):
            cluster.nodes.store.put(one)
        elif isinstance(one, WirePod):
            cluster.pods.store.put(one)
        else:
            feeds = {"team": cluster.quotas, "bounds": cluster.limit_ranges, "budget": cluster.disruption_budgets}
            feeds[one.metadata.name].store.put(one)
    about = subject(custom(spec=spec(vertical={"apply": apply})))
    now = {"app": size(0.25, GIB / 2)}
    vetoes = Headroom(cluster).vetoes(about, of or target(), now, Change(was=1, sizes={"app": wanted}))
    return {(one.reason, one.axis): one.detail for one in vetoes}


# --- quotas ----------------------------------------------------------------------------------------------------------

FULL = quota({"requests.cpu": "1", "limits.memory": "4Gi"}, {"requests.cpu": "800m", "limits.memory": "1Gi"})


def test_a_quota_holds_the_growth_of_all_pods_together() -> None:
    assert held(size(0.35), FULL, pod("a"), pod("b")) == {}, "two times 100m are the 200m that are left"
    found = held(size(0.36), FULL, pod("a"), pod("b"))
    assert found == {
        ("ExceedsQuota", Axis.CPU): (
            "ResourceQuota shop/team has 200m of requests.cpu left of 1, and the pods would need 220m more: "
            "raise the quota, or set a smaller maxAllowed"
        )
    }
    assert held(size(0.36), FULL, pod("a"), pod("b", cpu="360m")) == {}, "one has its size already"


def test_limits_have_quotas_of_their_own() -> None:
    bounded = pod("a", limits={"memory": "1Gi"})
    assert held(size(memory=GIB, memory_bytes=4.0 * GIB), FULL, bounded) == {}
    assert set(held(size(memory=GIB, memory_bytes=4.5 * GIB), FULL, bounded)) == {("ExceedsQuota", Axis.MEMORY)}


def test_shrinking_needs_no_quota_even_where_it_is_used_up() -> None:
    over = quota({"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "2Gi"})
    assert held(size(0.1, GIB / 4), over, pod("a")) == {}
    assert set(held(size(0.3, GIB / 4), over, pod("a"))) == {("ExceedsQuota", Axis.CPU)}


@pytest.mark.parametrize(
    ("scope", "counts"),
    [
        ({"scopes": ["NotTerminating", "NotBestEffort"]}, True),
        ({"scopes": ["BestEffort"]}, False),
        ({"scopes": ["Terminating"]}, False),
        ({"scopeSelector": {"matchExpressions": []}}, False),
    ],
)
def test_only_quotas_that_surely_speak_of_these_pods_count(scope: dict[str, Any], counts: bool) -> None:
    found = held(size(2.0), quota({"cpu": "1"}, {"cpu": "1"}, **scope), pod("a"))
    assert bool(found) is counts


def test_a_quota_that_nobody_has_counted_yet_is_left_to_the_server() -> None:
    assert held(size(2.0), named("team", {"hard": {"cpu": "1"}}), pod("a")) == {}


def test_a_rollout_that_misses_no_pod_needs_room_for_one_more() -> None:
    left = quota({"cpu": "1"}, {"cpu": "600m"})
    assert held(size(0.5), left, pod("a")) == {}, "in place 250m more"
    assert set(held(size(0.5), left, pod("a"), apply="Recreate")) == {("ExceedsQuota", Axis.CPU)}, "old beside new"
    assert held(size(0.5), left, pod("a"), apply="Recreate", of=target(STATEFUL_SETS)) == {}, "the old one goes first"


# --- LimitRanges -----------------------------------------------------------------------------------------------------


def test_what_a_container_may_have_at_most() -> None:
    most = limit_range(max={"cpu": "500m"})
    assert held(size(0.5), most, pod("a")) == {}
    assert held(size(0.6), most, pod("a")) == {
        ("ExceedsLimitRange", Axis.CPU): (
            "LimitRange shop/bounds gives container app at most 500m of cpu, not 600m: change it, "
            "or set maxAllowed to fit"
        )
    }
    assert set(held(size(0.4, cpu_cores=0.6), most, pod("a"))) == {("ExceedsLimitRange", Axis.CPU)}, "its limit counts"


def test_what_a_container_must_have_at_least_holds_shrinking() -> None:
    least = limit_range(min={"memory": "256Mi"})
    assert held(size(memory=GIB / 4), least, pod("a")) == {}
    found = held(size(memory=GIB / 8), least, pod("a"))
    assert "at least 256Mi of memory, not 128Mi" in found["ExceedsLimitRange", Axis.MEMORY]
    assert "minAllowed" in found["ExceedsLimitRange", Axis.MEMORY]


def test_how_far_limits_may_be_from_requests() -> None:
    ratio = limit_range(maxLimitRequestRatio={"cpu": "2"})
    assert held(size(0.5, cpu_cores=1.0), ratio, pod("a")) == {}
    found = held(size(0.4, cpu_cores=1.0), ratio, pod("a"))
    assert "2 times the requests of cpu at most, not 2.5 times" in found["ExceedsLimitRange", Axis.CPU]


def test_a_limit_that_it_gave_to_a_container_without_one() -> None:
    default = limit_range(default={"cpu": "500m"})
    given = pod("a", limits={"cpu": "500m"})
    assert held(size(0.5), default, given) == {}
    assert "a limit of 500m of cpu, and requests 600m" in held(size(0.6), default, given)["ExceedsLimitRange", Axis.CPU]


def test_what_a_whole_pod_may_have() -> None:
    most = limit_range("Pod", max={"cpu": "1"})
    sidecar = {"name": "proxy", "resources": resources("500m", "64Mi")}
    assert held(size(0.5), most, pod("a", others=[sidecar])) == {}
    found = held(size(0.6), most, pod("a", others=[sidecar]))
    assert "gives the pod at most 1 of cpu, not 1100m" in found["ExceedsLimitRange", Axis.CPU]


def test_a_resource_that_does_not_move_is_not_judged() -> None:
    assert held(size(0.3, GIB / 2), limit_range("Pod", max={"memory": "1Mi"}), pod("a")) == {}


# --- nodes -----------------------------------------------------------------------------------------------------------


def test_a_pod_must_fit_the_largest_node_beside_its_daemons() -> None:
    daemon = pod("agent", cpu="500m", owner="DaemonSet", node="large")
    nodes = (node("small", "1", "8Gi"), node("large", "2", "8Gi"))
    assert held(size(1.5), *nodes, daemon, pod("a")) == {}
    assert held(size(1.6), *nodes, daemon, pod("a")) == {
        ("ExceedsNode", Axis.CPU): (
            "a pod would need 1600m of cpu, and Node large, the largest it may run on, has 1500m for it beside its "
            "DaemonSets: add a larger node, or set a smaller maxAllowed"
        )
    }


def test_both_resources_must_fit_the_same_node() -> None:
    nodes = (node("wide", "8", "2Gi"), node("deep", "2", "64Gi"))
    assert held(size(6.0, GIB), *nodes, pod("a")) == {}
    assert held(size(1.0, 32.0 * GIB), *nodes, pod("a")) == {}
    both = held(size(6.0, 32.0 * GIB), *nodes, pod("a"))
    assert set(both) == {("ExceedsNode", Axis.CPU), ("ExceedsNode", Axis.MEMORY)}


@pytest.mark.parametrize(
    ("large", "template", "fits"),
    [
        pytest.param({}, {}, True, id="open to all"),
        pytest.param({"unschedulable": True}, {}, False, id="cordoned"),
        pytest.param({}, {"nodeSelector": {"disk": "ssd"}}, False, id="not selected"),
        pytest.param({"labels": {"disk": "ssd"}}, {"nodeSelector": {"disk": "ssd"}}, True, id="selected"),
        pytest.param({"taints": [{"key": "gpu", "effect": "NoSchedule"}]}, {}, False, id="tainted"),
        pytest.param({"taints": [{"key": "gpu", "effect": "PreferNoSchedule"}]}, {}, True, id="only preferred"),
        pytest.param(
            {"taints": [{"key": "gpu", "value": "a", "effect": "NoSchedule"}]},
            {"tolerations": [{"key": "gpu", "operator": "Equal", "value": "a", "effect": "NoSchedule"}]},
            True,
            id="tolerated",
        ),
        pytest.param(
            {"taints": [{"key": "gpu", "value": "a", "effect": "NoSchedule"}]},
            {"tolerations": [{"key": "gpu", "operator": "Equal", "value": "b"}]},
            False,
            id="another value tolerated",
        ),
        pytest.param(
            {"taints": [{"key": "gpu", "effect": "NoExecute"}]},
            {"tolerations": [{"operator": "Exists"}]},
            True,
            id="everything tolerated",
        ),
    ],
)
def test_which_nodes_count(large: dict[str, Any], template: dict[str, Any], fits: bool) -> None:
    selected = {"labels": template["nodeSelector"]} if "nodeSelector" in template else {}
    nodes = (node("small", "1", "8Gi", **selected), node("large", "8", "8Gi", **large))
    assert (held(size(4.0), *nodes, pod("a"), of=target(**template)) == {}) is fits


def test_where_no_node_is_seen_nothing_is_said() -> None:
    assert held(size(400.0), pod("a")) == {}
    assert held(size(400.0), node("a", "1", "1Gi"), pod("a"), of=target(nodeSelector={"pool": "empty"})) == {}


def test_what_is_too_large_already_may_shrink() -> None:
    assert held(size(0.2, GIB / 2), node("tiny", "100m", "1Mi"), pod("a")) == {}


def test_containers_that_run_first_count_where_they_are_larger() -> None:
    first = {"name": "migrate", "resources": resources("3", "64Mi")}
    assert held(size(1.0), node("a", "2", "8Gi"), pod("a", first=[first])) == {}, "the pod's need does not grow"
    assert held(size(3.5), node("a", "4", "8Gi"), pod("a", first=[first])) == {}
    sidecar = first | {"restartPolicy": "Always"}
    assert set(held(size(1.5), node("a", "4", "8Gi"), pod("a", first=[sidecar]))) == {("ExceedsNode", Axis.CPU)}


# --- rollouts and budgets --------------------------------------------------------------------------------------------

SELECTOR = {"matchLabels": {"app": "web"}}


def budget(selector: dict[str, Any] | None = SELECTOR, allowed: int = 0, seen: int = 1) -> Custom:
    given = {} if selector is None else {"selector": selector}
    return named("budget", given, disruptionsAllowed=allowed, observedGeneration=seen)


def test_a_budget_that_forbids_disruption_holds_both_directions_of_a_rollout_and_nothing_else() -> None:
    found = held(size(0.3), budget(), pod("a"), apply="Recreate")
    assert set(found) == {("DisruptionForbidden", Axis.CPU), ("DisruptionForbidden", Axis.MEMORY)}
    assert "PodDisruptionBudget shop/budget allows no disruption" in found["DisruptionForbidden", Axis.CPU]
    assert set(held(size(0.1), budget(), pod("a"), apply="Recreate")) == set(found)
    assert held(size(0.3), budget(), pod("a"), apply="InPlace") == {}
    assert held(size(0.3), budget(), pod("a"), apply="Never") == {}


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(budget(allowed=1), id="it allows one"),
        pytest.param(budget(seen=0), id="its controller has not seen it yet"),
        pytest.param(budget({"matchLabels": {"app": "db"}}), id="others' pods"),
        pytest.param(budget(None), id="nobody's pods"),
        pytest.param(budget({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}), id="expression"),
    ],
)
def test_budgets_that_do_not_matter(one: Custom) -> None:
    assert held(size(0.3), one, pod("a"), apply="Recreate") == {}


def test_an_empty_selector_means_everybody() -> None:
    assert held(size(0.3), budget({}), pod("a"), apply="Recreate")


def rolling(**status: Any) -> ScaleTarget:
    body = {"metadata": {"uid": "d", "generation": 2}, "spec": {"replicas": 3}}
    full = {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3} | status
    made = msgspec.convert(body | {"status": full}, WireWorkload)
    return ScaleTarget(DEPLOYMENTS, "shop", "web", "d", "7", 3, 3, made)


STUCK = [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        pytest.param(rolling(), None, id="at rest"),
        pytest.param(rolling(observedGeneration=1), "RolloutUnderWay", id="not noticed yet"),
        pytest.param(rolling(updatedReplicas=1), "RolloutUnderWay", id="old pods left"),
        pytest.param(rolling(replicas=4), "RolloutUnderWay", id="a surge"),
        pytest.param(rolling(conditions=STUCK), "RolloutFailed", id="stuck"),
    ],
)
def test_when_the_template_is_left_alone(found: ScaleTarget, reason: str | None) -> None:
    blocker = rollout_blocker(WatchedCluster(Kube(Access("http://127.0.0.1:1"))), found)
    assert (blocker.reason if blocker else None) == reason
    vetoes = {name for name, _ in held(size(0.3), of=found, apply="Recreate")}
    assert vetoes == ({reason} if reason else set())


@pytest.mark.parametrize(
    ("missing", "replicas", "surging"),
    [(None, 3, True), (None, 4, False), (0, 9, True), (1, 1, False), ("50%", 1, True), ("50%", 2, False)],
)
def test_when_a_rollout_starts_a_pod_before_it_ends_one(
    missing: int | str | None, replicas: int, surging: bool
) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": missing}}
    made = msgspec.convert({"spec": {"strategy": strategy}}, WireWorkload)
    assert surges(ScaleTarget(DEPLOYMENTS, "shop", "web", "d", "7", replicas, replicas, made)) is surging
    ends_first = msgspec.convert({"spec": {"strategy": {"type": "Recreate"}}}, WireWorkload)
    assert not surges(ScaleTarget(DEPLOYMENTS, "shop", "web", "d", "7", replicas, replicas, ends_first))


def test_directions() -> None:
    cluster = WatchedCluster(Kube(Access("http://127.0.0.1:1")))
    cluster.quotas.store.put(FULL)
    cluster.pods.store.put(pod("a"))
    about = subject(custom(spec=spec(vertical={"apply": "InPlace"})))
    change = Change(was=1, sizes={"app": size(0.6)})
    found: tuple[Veto, ...] = Headroom(cluster).vetoes(about, target(), {"app": size(0.25)}, change)
    assert [one.direction for one in found] == [Direction.UP], "a quota never holds shrinking"
    assert Headroom(cluster).vetoes(about, target(), {"app": size(0.25)}, None) == ()
