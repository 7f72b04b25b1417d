"""JSON of whoever sent it: what is malformed is said so, what is nested without end becomes null."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.fake import Fake, script
from tests.wire.test_watch import end_of_list, event, informing, names, stream, until
from trimtab.wire.decode import decode, shallow
from trimtab.wire.objects import Custom, WirePod
from trimtab.wire.resources import HPAS
from trimtab.wire.watch import Informer

DEEP = 20_000
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=20,
)


BROKEN = (
    b'{"metadata": {"name": "\xff"}}',
    b'{"metadata": {"name": "\xff"}, "spec": {"x": ' + b"[" * DEEP + b"]" * DEEP + b"}}",
    b'{"metadata": ',
    b"[" * DEEP,
    b"\xff",
    b"",
)


def nested(opening: bytes, closing: bytes, depth: int = DEEP) -> bytes:
    return opening * depth + b"1" + closing * depth


@pytest.mark.parametrize("content", [nested(b"[", b"]"), nested(b'{"a":', b"}"), b'"' + b"[" * DEEP + b'"'])
def test_a_field_without_bottom_is_null_and_the_rest_is_read(content: bytes) -> None:
    found = decode(b'{"metadata": {"name": "x"}, "spec": {"deep": ' + content + b', "after": 2}}', Custom)
    assert (found.metadata.name, found.spec["after"]) == ("x", 2)
    assert found.spec["deep"] is None or isinstance(found.spec["deep"], str) or _depth(found.spec["deep"]) < 100


def _depth(value: object) -> int:
    depth = 0
    while isinstance(value, list | dict) and value:
        value, depth = (value[0] if isinstance(value, list) else value["a"]), depth + 1
    return depth


@pytest.mark.parametrize("text", BROKEN)
def test_whatever_is_wrong_is_said_as_unreadable(text: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode(text, Custom)


@given(VALUES)
def test_what_is_shallow_stays_as_it_is(value: object) -> None:
    text = json.dumps(value).encode()
    assert shallow(text) == text


@given(VALUES, st.integers(0, 3))
def test_what_is_cut_is_json_of_that_depth(value: object, deepest: int) -> None:
    def cut(part: object, left: int) -> object:
        if isinstance(part, list):
            return [cut(inner, left - 1) for inner in part] if left else None
        if isinstance(part, dict):
            return {key: cut(inner, left - 1) for key, inner in part.items()} if left else None
        return part

    assert json.loads(shallow(json.dumps(value).encode(), deepest)) == cut(value, deepest)


def test_one_such_object_costs_no_list() -> None:
    good = b'{"metadata": {"namespace": "a", "name": "good"}, "spec": {}}'
    bad = b'{"metadata": {"namespace": "b", "name": "bad"}, "spec": {"x": ' + nested(b"[", b"]") + b"}}"
    body = b'{"metadata": {"resourceVersion": "1"}, "items": [' + bad + b", " + good + b"]}"

    async def run() -> list[str]:
        async with Fake(script(web.Response(body=body))) as fake, fake.kube() as kube:
            return [found.metadata.name for found in (await kube.list(Custom, HPAS)).items]

    assert asyncio.run(run()) == ["bad", "good"]


def test_one_such_object_costs_no_watch() -> None:
    bad = b'{"type": "ADDED", "object": {"metadata": {"namespace": "b", "name": "bad", "resourceVersion": "2"}, '
    bad += b'"extra": ' + nested(b'{"a":', b"}") + b"}}\n"

    async def check(informer: Informer[WirePod], fake: Fake) -> None:
        await until(lambda: names(informer) == {"bad", "x", "y"})

    informing(stream(event("ADDED", "x"), end_of_list("1"), bad, event("ADDED", "y", "3"), hold=True), check)
