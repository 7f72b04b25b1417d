"""Whatever stands in an object of namespace A, each request it causes is about A, shared, or our own bookkeeping."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.virtual.apiserver import Audited, Call, Denied, Place, place_of
from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.faults import Refusing
from tests.virtual.machines import OWN_NAMESPACE
from tests.virtual.served import Served
from trimtab.errors import TrimtabError
from trimtab.kinds import read
from trimtab.wire.resources import Resource

HOME, OTHER = "evil", "vault"
NASTY = (
    "bad",
    "safe",
    "../../../../../apis/apps/v1/namespaces/vault/deployments/safe",
    "..%2f..%2fvault",
    "vault/safe",
    "bad/scale",
    "bad?namespace=vault",
    "bad#x",
    "bad\n\r\x00",
    "..",
    ".",
    "",
    "*",
    "a" * 300,
    "\u0130\u2028",
)
TEXT = st.one_of(st.sampled_from(NASTY), st.text(max_size=20))
KIND = st.one_of(
    st.sampled_from(["Deployment", "StatefulSet", "Namespace", "Pod", "Autoscaler", "Secret", "ConfigMap"]), TEXT
)
VERSION = st.one_of(
    st.sampled_from(["apps/v1", "v1", "trimtab.dev/v1alpha1", "../api/v1/pods", "apps/v1/namespaces"]), TEXT
)
POOLS = Served(Resource("infra.example.com", "v1", "pools", "Pool", namespaced=False), frozenset({"scale"}))
POOL = ("infra.example.com/v1", "Pool")  # it has a scale, and no namespace
KNOWN = st.sampled_from([("apps/v1", "Deployment"), ("v1", "Service"), ("v1", "Namespace"), ("v1", "Pod"), POOL])
REF = st.one_of(
    st.tuples(KNOWN, TEXT).map(lambda ref: {"apiVersion": ref[0][0], "kind": ref[0][1], "name": ref[1]}),
    st.fixed_dictionaries({"apiVersion": VERSION, "kind": KIND, "name": TEXT}, optional={"namespace": TEXT}),
)
LABELS = st.dictionaries(TEXT, TEXT, max_size=2)
TARGET = st.just({"type": "AverageValue", "averageValue": "1"})
SELECTOR = st.fixed_dictionaries({"matchLabels": LABELS})
NAMED = st.one_of(
    st.just({"name": "load"}), st.fixed_dictionaries({"name": st.just("load") | TEXT}, optional={"selector": SELECTOR})
)
METRIC = st.one_of(
    st.fixed_dictionaries(
        {
            "type": st.just("Object"),
            "object": st.fixed_dictionaries({"describedObject": REF, "metric": NAMED, "target": TARGET}),
        }
    ),
    st.fixed_dictionaries(
        {"type": st.just("External"), "external": st.fixed_dictionaries({"metric": NAMED, "target": TARGET})}
    ),
    st.fixed_dictionaries(
        {"type": st.just("Pods"), "pods": st.fixed_dictionaries({"metric": NAMED, "target": TARGET})}
    ),
    st.fixed_dictionaries(
        {"type": st.just("Prometheus"), "prometheus": st.fixed_dictionaries({"query": TEXT, "target": TARGET})}
    ),
)
STATUS = st.fixed_dictionaries(
    {},
    optional={
        "memory": st.recursive(
            TEXT | st.integers() | st.floats(), lambda inner: st.dictionaries(TEXT, inner, max_size=2), max_leaves=4
        ),
        "lastScaleTime": TEXT,
        "conditions": st.lists(LABELS, max_size=2),
        "recommendedValue": TEXT,
        "currentReplicas": st.integers(),
    },
)
ANNOTATIONS = st.dictionaries(
    st.sampled_from(["trimtab.dev/pin", "trimtab.dev/min-replicas", "predictive", "trimtab.dev/mode"]),
    st.sampled_from(["0", "true", "99", "vault/safe"]) | TEXT,
    max_size=3,
)
OWN = st.just({"apiVersion": "apps/v1", "kind": "Deployment", "name": "bad"})
SPEC = st.fixed_dictionaries(
    {"scaleTargetRef": OWN | OWN | REF},
    optional={"metrics": st.lists(METRIC, min_size=1, max_size=1), "minReplicas": st.integers(1, 3)},
)
ANALYTICS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["Replicas", "Resource"]),
        "completionStrategy": st.just({"completionStrategyType": "Periodical", "periodSeconds": 30}),
        "resourceSelectors": st.lists(REF, min_size=1, max_size=2),
    }
)
RECOMMENDATION = st.fixed_dictionaries(
    {"targetRef": REF, "type": st.sampled_from(["Replicas", "Resource"]), "adoptionType": st.just("Auto")}
)
OBJECT = st.one_of(
    st.tuples(st.just(("trimtab.dev/v1alpha1", "Autoscaler")), SPEC),
    st.tuples(st.just(("autoscaling/v2", "HorizontalPodAutoscaler")), SPEC),
    st.tuples(st.just(("autoscaling.crane.io/v1alpha1", "EffectiveHorizontalPodAutoscaler")), SPEC),
    st.tuples(st.just(("analysis.crane.io/v1alpha1", "Analytics")), ANALYTICS),
    st.tuples(st.just(("analysis.crane.io/v1alpha1", "Recommendation")), RECOMMENDATION),
)


def test_most_of_what_is_tried_is_nasty_and_many_are_admitted() -> None:
    """What is refused as a whole causes no request, and would show nothing."""
    admitted: list[bool] = []

    @settings(max_examples=300, deadline=None)
    @given(OBJECT)
    def look(found: Any) -> None:
        (version, kind), spec = found
        usual = autoscaler(f"{HOME}/x")["spec"] if "scaleTargetRef" in spec else {}
        with suppress(TrimtabError):
            read({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": usual | spec})
            admitted.append(True)

    look()
    assert len(admitted) >= 20


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(OBJECT, ANNOTATIONS, STATUS), min_size=4, max_size=10))
def test_every_request_of_an_object_is_about_its_own_namespace(found: list[Any]) -> None:
    with Cluster(seed=1) as cluster:
        cluster.deploy(f"{OTHER}/safe", replicas=3, load=1.0)
        cluster.deploy(f"{HOME}/bad", replicas=3, load=1.0)
        cluster.server.install(POOLS)
        cluster.server.put("/apis/infra.example.com/v1/pools/safe", {"spec": {"replicas": 3}})
        for number, (((version, kind), spec), annotations, status) in enumerate(found):
            _put(cluster, version, kind, f"x{number}", spec, annotations, status)
        cluster.run(seconds=60)
        strange = [(each.verb, each.path) for each in cluster.audit("operator-0") if not _is_fine(each)]
        assert strange == []
        assert cluster.replicas(f"{OTHER}/safe") == 3


A_POOL = {"apiVersion": POOL[0], "kind": POOL[1], "name": "safe"}
ONCE = {"completionStrategyType": "Once"}


@pytest.mark.parametrize(
    ("group", "kind", "spec"),
    [
        ("trimtab.dev", "Autoscaler", {"scaleTargetRef": A_POOL, "minReplicas": 5}),
        ("autoscaling.crane.io", "EffectiveHorizontalPodAutoscaler", {"scaleTargetRef": A_POOL, "minReplicas": 5}),
        ("analysis.crane.io", "Analytics", {"resourceSelectors": [A_POOL], "completionStrategy": ONCE}),
        ("analysis.crane.io", "Recommendation", {"targetRef": A_POOL, "adoptionType": "StatusAndAnnotation"}),
    ],
)
def test_what_belongs_to_no_namespace_is_no_tenants(group: str, kind: str, spec: dict[str, Any]) -> None:
    """A pool of nodes has a scale, too; who may scale it is no question of a namespace."""
    with Cluster(seed=1) as cluster:
        cluster.server.install(POOLS)
        cluster.server.put("/apis/infra.example.com/v1/pools/safe", {"spec": {"replicas": 3}})
        advised = {"type": "Replicas"} if group == "analysis.crane.io" else {}
        status = {"recommendedValue": "maxReplicas: 1"}
        _put(cluster, f"{group}/v1alpha1", kind, "x", spec | advised, {"trimtab.dev/pin": "0"}, status)
        cluster.run(seconds=60)
        assert [each.path for each in cluster.audit("operator-0", path="/pools")] == []


def _put(cluster: Cluster, version: str, kind: str, name: str, spec: Any, annotations: Any, status: Any) -> None:
    usual = autoscaler(f"{HOME}/{name}")["spec"] if "scaleTargetRef" in spec else {}
    path = cluster.resource(version, kind).path(HOME, name)
    cluster.server.put(path, {"metadata": {"annotations": annotations}, "spec": usual | spec, "status": status})


def _is_fine(call: Audited) -> bool:
    try:
        place = place_of(call.path)
    except Denied:
        return False
    ours = (place.plural, place.name) == ("namespaces", OWN_NAMESPACE)
    return ours or place.namespace in (HOME, OWN_NAMESPACE) or _is_shared(call, place)


def _is_shared(call: Audited, place: Place) -> bool:
    """Lists and watches of everybody's, and discovery."""
    if not place.plural:
        return call.verb == "get"
    return not place.namespace and not place.name and call.verb in ("get", "list", "watch")


def test_kinds_that_nobody_serves_cost_one_request_however_many_are_named() -> None:
    with Cluster(seed=1) as cluster:
        for number in range(40):
            ref = {"apiVersion": f"nobody-{number}.example.com/v1", "kind": "Thing", "name": "web"}
            cluster.apply(autoscaler(f"{HOME}/web-{number}", scaleTargetRef=ref))
        cluster.run(minutes=5)
        assert not cluster.audit(path="example.com")
        lists = [asked for asked in cluster.audit(verb="get") if asked.path == "/apis"]
        assert len(lists) <= 25, "one in each of twenty ticks, some at the start"
        assert cluster.conditions("Autoscaler", f"{HOME}/web-39")["AbleToScale"][0] == "False"


MACHINES = Served(Resource("infra.example.com", "v1", "machines", "Machine", scalable=True), frozenset({"scale"}))


class Undiscoverable(Refusing):
    """Nobody may list the groups of the cluster."""

    def befalls(self, call: Call, plural: str) -> bool:
        return call.path == "/apis"


@pytest.mark.parametrize("of", ["nobody-{}.example.com/v1", "infra.example.com/v1"], ids=["groups", "objects"])
def test_what_is_missing_costs_a_few_questions_per_tick_however_much_is_named(of: str) -> None:
    """Where nobody may list the groups each of them is asked for, and so is each object of a kind that there is."""
    with Cluster(seed=1) as cluster:
        cluster.server.install(MACHINES)
        cluster.faults(Undiscoverable(0.0, status=403))
        for number in range(150):
            ref = {"apiVersion": of.format(number), "kind": "Machine", "name": f"m{number}"}
            cluster.apply(autoscaler(f"{HOME}/m{number}", scaleTargetRef=ref))
        cluster.apply(autoscaler(f"{OTHER}/alone", scaleTargetRef=ref | {"name": "alone"}))
        cluster.run(minutes=1)
        before = len(cluster.audit(path="example.com"))
        cluster.run(minutes=2)
        asked = cluster.audit(path="example.com")[before:]
        assert len(asked) <= 8 * (50 + 2), "fifty and the lone one, and now and then where its kind lives"
        assert cluster.conditions("Autoscaler", f"{HOME}/m149")["AbleToScale"] == ("False", "FailedGetScale")


def test_a_target_that_comes_late_is_found_at_the_next_tick() -> None:
    with Cluster(seed=1) as cluster:
        cluster.server.install(MACHINES)
        ref = {"apiVersion": "infra.example.com/v1", "kind": "Machine", "name": "web"}
        cluster.apply(autoscaler("shop/web", scaleTargetRef=ref, minReplicas=3))
        cluster.run(minutes=5)
        path = "/apis/infra.example.com/v1/namespaces/shop/machines/web"
        cluster.server.put(path, {"spec": {"replicas": 1}})
        cluster.run(seconds=15)
        assert [call.body["spec"]["replicas"] for call in cluster.audit("operator-0", "patch", f"{path}/scale")] == [3]
