"""Whatever a scraped pod writes into labels, a PromQL parser reads in our queries what we meant."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.errors import InvalidInput
from trimtab.history.pod_owners import Member, OwnerLink, SeriesMatchers, find_members, gather
from trimtab.history.source import Level, Selection
from trimtab.history.workload_history import by_hand, plan
from trimtab.kinds import keda_triggers
from trimtab.kinds.ledger import Ledger
from trimtab.kinds.source_fields import SourceFields
from trimtab.promql import Matcher, among, selector

INJECTION = (
    'x)-[^-]+"}[180s]),"stem","$1","pod","(.+)-[^-]+") or vector(1000) or '
    'label_replace(rate(container_cpu_usage_seconds_total{pod=~"(?:y'
)
HOSTILE = st.one_of(
    st.text(min_size=1),
    st.sampled_from([INJECTION, "x(", '"', "\\", "}", "|.*", "a\nb", "`", "$1", "#", "web.*", "[", "\x00", "\ud7ff"]),
    st.from_regex(r"[-a-z0-9.*|()\\\"{}\[\]]{1,20}", fullmatch=True),
)
NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,5}[a-z0-9])?(\.[a-z0-9]{1,5})?", fullmatch=True)
LEVELS: tuple[Level, ...] = ("workload", "container", "pod")
Chosen = tuple[str, tuple[tuple[str, str, str], ...]]


def selectors(query: str) -> list[Chosen]:
    """Each selector that Prometheus would see: the metric, and its matchers with their texts as they are understood."""
    return list(_selectors(promql_parser.parse(query)))


def _selectors(node: Any) -> Iterator[Chosen]:
    if isinstance(node, promql_parser.VectorSelector):
        yield str(node.name), tuple((one.name, str(one.op), one.value) for one in node.matchers.matchers)
    for part in ("expr", "vector_selector", "lhs", "rhs"):
        if (inner := getattr(node, part, None)) is not None:
            yield from _selectors(inner)
    for argument in getattr(node, "args", ()):
        yield from _selectors(argument)


def matcher_of(chosen: Chosen, label: str) -> str:
    return next(value for name, _, value in chosen[1] if name == label)


@given(HOSTILE)
def test_a_value_is_a_value(text: str) -> None:
    ((name, matchers),) = selectors(selector("up", [Matcher("a", "=", text), Matcher("b", "!=", "")]))
    assert (name, [value for _, _, value in matchers]) == ("up", [text, ""])


@given(st.lists(HOSTILE, min_size=1, max_size=3), HOSTILE)
def test_a_pattern_matches_what_was_listed_and_nothing_else(texts: list[str], other: str) -> None:
    ((_, ((_, _, pattern),)),) = selectors(selector("up", [among("pod", texts)]))
    assert all(re.fullmatch(pattern, text) for text in texts)
    assert (re.fullmatch(pattern, other) is not None) == (other in texts)


@given(HOSTILE, HOSTILE, st.sampled_from(LEVELS), st.booleans())
def test_queries_for_usage_ask_one_metric_in_the_namespaces_of_their_members(
    stem: str, namespace: str, level: Level, listed: bool
) -> None:
    """Even of members that should never have been taken for workloads."""
    member = Member(namespace, "Deployment", "web", set() if listed else {stem}, {f"{stem}-a"})
    (page,) = plan([member], Selection("cpu", level), (Matcher("cluster", "=", stem),), 60)
    ((name, _),) = chosen = selectors(page.expression)
    assert name == "container_cpu_usage_seconds_total"
    assert matcher_of(chosen[0], "cluster") == stem
    assert re.fullmatch(matcher_of(chosen[0], "namespace"), namespace)
    assert re.fullmatch(matcher_of(chosen[0], "pod"), f"{stem}-a")
    assert [name for name, _ in selectors(by_hand("memory", (namespace,), (), 60))] == [
        "container_memory_working_set_bytes"
    ]


SETTINGS = ("topic", "consumerGroup", "subscription", "stream", "consumer")


def fields(settings: dict[str, Any]) -> SourceFields:
    return SourceFields(settings, "", Ledger())


def asked(chosen: Chosen) -> tuple[str, list[str]]:
    return chosen[0], [label for label, _, _ in chosen[1]]


@given(HOSTILE)
def test_queries_in_the_place_of_a_keda_trigger(text: str) -> None:
    for build in (keda_triggers._kafka, keda_triggers._pulsar, keda_triggers._jetstream):
        try:
            found, usual = (build(fields(dict.fromkeys(SETTINGS, word)), "shop") for word in (text, "usual"))
        except (keda_triggers.Unanswerable, InvalidInput):
            continue
        assert [asked(chosen) for chosen in selectors(found.query)] == [asked(one) for one in selectors(usual.query)]


class Scraped:
    """A Prometheus that tells these series, whoever wrote them; `asked` are the selectors it was given."""

    def __init__(self, pods: list[dict[str, str]], sets: list[dict[str, str]]) -> None:
        self.told = {"kube_pod_owner": pods, "kube_replicaset_owner": sets}
        self.asked: list[Chosen] = []
        self.access = None

    async def series(self, query: str, start: float, end: float) -> list[dict[str, str]]:
        ((name, matchers),) = selectors(query)
        self.asked.append((name, matchers))
        return self.told[name]


def members_told(pods: list[dict[str, str]], sets: list[dict[str, str]], *namespaces: str) -> list[Member]:
    honest = {"namespace": "shop", "pod": "web-5f6d7-aaaaa", "owner_kind": "ReplicaSet", "owner_name": "web-5f6d7"}
    owner = {"namespace": "shop", "replicaset": "web-5f6d7", "owner_kind": "Deployment", "owner_name": "web"}
    server: Any = Scraped([*pods, honest], [*sets, owner])
    return asyncio.run(find_members(server, None, namespaces, SeriesMatchers(), 0.0, 1.0))


@given(
    st.fixed_dictionaries({"namespace": HOSTILE, "pod": HOSTILE, "owner_kind": HOSTILE, "owner_name": HOSTILE}),
    st.fixed_dictionaries({"namespace": HOSTILE, "replicaset": HOSTILE, "owner_kind": HOSTILE, "owner_name": HOSTILE}),
)
def test_what_is_no_name_is_nobodys(pod: dict[str, str], replica_set: dict[str, str]) -> None:
    name = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
    for member in members_told([pod], [replica_set]):
        texts = (member.namespace, member.name, *member.stems, *member.pods)
        assert all(name.fullmatch(text) and len(text) <= 253 for text in texts), member
        assert member.kind.isalnum()


def test_a_tenant_does_not_break_the_queries_of_others() -> None:
    pod = {"namespace": "evil", "pod": f"{INJECTION}-a", "owner_kind": "ReplicaSet", "owner_name": INJECTION}
    owner = {"namespace": "evil", "replicaset": INJECTION, "owner_kind": "Deployment", "owner_name": "e"}
    assert [member.key for member in members_told([pod], [owner])] == ["shop/Deployment/web"]


def test_an_answer_about_another_namespace_is_dropped() -> None:
    pod = {"namespace": "evil", "pod": "e-1", "owner_kind": "StatefulSet", "owner_name": "e"}
    assert [member.key for member in members_told([pod], [], "shop")] == ["shop/Deployment/web"]


@pytest.mark.parametrize(
    "told, believed",
    [
        ((Matcher("job", "=", "ksm"),), {"job": "ksm", "cluster": "a", "namespace": "shop"}),
        (
            (Matcher("job", "=", "ksm"), Matcher("cluster", "=", "b")),
            {"job": "ksm", "cluster": "b", "namespace": "shop"},
        ),
        ((), None),
    ],
)
def test_owners_are_told_by_the_configured_kube_state_metrics_alone(
    told: tuple[Matcher, ...], believed: dict[str, str] | None
) -> None:
    """What is said for it of a label counts instead of what is said of usage."""
    server: Any = Scraped([{"namespace": "shop", "pod": "web-0", "owner_kind": "StatefulSet", "owner_name": "web"}], [])
    matchers = SeriesMatchers((Matcher("cluster", "=", "a"), Matcher("job", "=", "kubelet")), told)

    class Empty:
        async def list(self, kind: object, resource: object, namespace: str) -> Any:
            from trimtab.wire.kube import Listing

            return Listing([], "")

    kube: Any = Empty()
    found = asyncio.run(find_members(server, kube, ("shop",), matchers, 0.0, 1.0))
    assert [member.key for member in found] == (["shop/StatefulSet/web"] if believed else [])
    for _, asked in server.asked:
        assert {name: value for name, _, value in asked if name != "owner_is_controller"} == believed


def test_rows_are_named_by_names() -> None:
    (page,) = plan(gather([OwnerLink("shop", "web-0", "StatefulSet", "web")], []), Selection("cpu", "pod"), (), 60)
    labels = {"namespace": "shop", "stem": "web", "pod": "web-0", "container": "app"}
    assert page.name(labels) == "shop/StatefulSet/web/app/web-0"
    for wrong in ({"container": "a/b"}, {"container": ""}, {"pod": "web/0"}, {"namespace": "evil"}):
        assert page.name(labels | wrong) is None
