"""Of what tenants write, whatever is followed keeps only what is read: no object grows beyond a bound of its own.

Every place of every followed type in which there may be many things, or a text of any length, is filled to what etcd
takes of one object.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from trimtab.live.advice import Advisor
from trimtab.live.look.cluster import WatchedCluster
from trimtab.wire.access import Access
from trimtab.wire.decode import decode
from trimtab.wire.kube import Kube
from trimtab.wire.objects import (
    Blocker,
    Followed,
    FollowedHpa,
    FollowedScaler,
    Lease,
    Node,
    PartialObject,
    ReadAnnotations,
    ShortMapping,
    WirePod,
    WireWorkload,
)

ETCD_BYTES = 1_400_000
MOST_KEPT_BYTES = 600_000  # half of it is text whose one odd letter takes four bytes for each other
ODD = "\U0001f600"
KINDS = (WirePod, WireWorkload, Node, Lease, PartialObject, Followed, FollowedHpa, FollowedScaler, Blocker)
OURS_TO_WRITE = {"Followed.status"}


def test_every_followed_kind_is_looked_at() -> None:
    kube = Kube(Access("http://localhost"))
    feeds = [*WatchedCluster(kube).feeds, *Advisor(kube, None, ()).feeds.values()]
    assert {feed.kind for feed in feeds} <= set(KINDS)


Place = tuple[str, ...]  # the names of the fields on the way there; "*": in each item


def places(kind: inspect.Type, way: Place = ()) -> Iterator[tuple[Place, inspect.Type]]:
    """Every place of this type that may hold many things, or a text that the API server does not bound."""
    if isinstance(kind, inspect.UnionType):
        for one in kind.types:
            yield from places(one, way)
    elif isinstance(kind, inspect.StructType):
        for field in kind.fields:
            yield from places(field.type, (*way, field.encode_name))
    elif isinstance(kind, inspect.VarTupleType | inspect.DictType | inspect.CustomType):
        yield way, kind
        if isinstance(kind, inspect.VarTupleType):
            yield from places(kind.item_type, (*way, "*"))
    elif isinstance(kind, inspect.StrType) and way[-1] == "image":
        yield way, kind


PLACES = [(kind, way, found) for kind in KINDS for way, found in places(inspect.type_info(kind))]
IDS = [f"{kind.__name__}.{'.'.join(way)}" for kind, way, _ in PLACES]


def contents(found: inspect.Type) -> Iterator[Any]:
    """What a tenant would put there."""
    if isinstance(found, inspect.StrType):
        yield ODD + "a" * (ETCD_BYTES // 4)
    elif isinstance(found, inspect.VarTupleType):
        yield [{}] * (ETCD_BYTES // 3) if not isinstance(found.item_type, inspect.StrType) else ["a"] * 300_000
    elif isinstance(found, inspect.CustomType) and issubclass(found.cls, ReadAnnotations):
        yield {"note": ODD + "a" * 250_000}
        yield {"trimtab.dev/note": ODD + "a" * 250_000}
        yield {f"trimtab.dev/{number}": "" for number in range(15_000)}
    elif isinstance(found, inspect.CustomType) and issubclass(found.cls, ShortMapping):
        for field in ("metrics", "other"):
            yield {field: ODD + "a" * (ETCD_BYTES // 4)}
            yield {field: [[]] * (ETCD_BYTES // 3)}
            yield {field: {str(number): 1 for number in range(100_000)}}
    else:
        yield {f"a{number}": "1" for number in range(100_000)}


def at(way: Place, content: Any) -> Any:
    for name in reversed(way):
        content = [content] if name == "*" else {name: content}
    return content


def size_bytes(value: Any) -> int:
    """What it takes in memory, with everything in it."""
    if isinstance(value, msgspec.Struct):
        inner: Iterator[Any] = (getattr(value, name) for name in value.__struct_fields__)
    elif isinstance(value, dict):
        inner = (part for item in value.items() for part in item)
    elif isinstance(value, list | tuple):
        inner = iter(value)
    else:
        inner = iter(())
    return sys.getsizeof(value) + sum(map(size_bytes, inner))


@pytest.mark.parametrize("kind, way, found", PLACES, ids=IDS)
def test_no_object_keeps_more_than_its_bound(kind: Any, way: Place, found: inspect.Type) -> None:
    if f"{kind.__name__}.{'.'.join(way)}" in OURS_TO_WRITE:
        return
    for content in contents(found):
        try:
            kept = decode(msgspec.json.encode(at(way, content)), kind)
        except msgspec.ValidationError:
            continue
        assert size_bytes(kept) < MOST_KEPT_BYTES


def test_what_is_read_is_kept() -> None:
    notes = {"trimtab.dev/paused": "true", "predictive": "true", "note": "x"}
    spec = {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 3, "metrics": []}
    body = msgspec.json.encode({"metadata": {"name": "web", "annotations": notes}, "spec": spec, "status": {"a": 1}})
    whole, other = decode(body, FollowedHpa), decode(body, FollowedScaler)
    assert whole.metadata.annotations == {"trimtab.dev/paused": "true", "predictive": "true"}
    assert (whole.spec, whole.status) == (spec, {})
    assert other.spec == {name: spec[name] for name in ("scaleTargetRef", "metrics")}
    assert decode(body, Followed).status == {"a": 1}
