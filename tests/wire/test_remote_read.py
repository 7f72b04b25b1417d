"""Requests as the protocol writes them; answers in any pieces, and those that are not answers."""

from __future__ import annotations

import pytest

from tests.history.chunks import chunk, field, frame, number, series, snappy, varint
from trimtab.errors import InvalidInput, MetricsUnavailable
from trimtab.wire.remote_read import Frames, Matcher, SeriesChunks, parse_matchers, read_request

LABELS = {"__name__": "up", "pod": "web-1"}
CHUNK = chunk([(60_000 * index, float(index)) for index in range(120)])


def parts(*pieces: bytes) -> list[SeriesChunks]:
    frames = Frames()
    found = [part for piece in pieces for part in frames.feed(piece)]
    frames.end()
    return found


def test_a_request_byte_by_byte() -> None:
    matchers = [Matcher("__name__", "=", "up"), Matcher("pod", "!~", "a|b")]
    first = number(1, 0) + field(2, b"__name__") + field(3, b"up")
    second = number(1, 3) + field(2, b"pod") + field(3, b"a|b")
    query = number(1, 1000) + number(2, 2000) + field(3, first) + field(3, second)
    message = field(1, query) + number(2, 1)
    # snappy: the length, a literal with four bytes for its own length less one, the literal
    expected = varint(len(message)) + bytes([63 << 2]) + (len(message) - 1).to_bytes(4, "little") + message
    assert read_request(matchers, 1000, 2000) == expected


@pytest.mark.parametrize("text", ["", 'a="b"', 'a="b",c!="", d =~ "x|y.*",e!~"é"', 'a="b",'])
def test_matchers(text: str) -> None:
    said = {"a": ("=", "b"), "c": ("!=", ""), "d": ("=~", "x|y.*"), "e": ("!~", "é")}
    assert all(said[one.label] == (one.operator, one.value) for one in parse_matchers(text))
    assert len(parse_matchers(text)) == text.count('"') // 2


@pytest.mark.parametrize("text", ['a="b\\"c"', "a='b'", "a=`b`", 'a=="b"', 'a="b" c="d"', '"a.b"="c"', "a"])
def test_unusual_matchers_are_left_to_promql(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_matchers(text)


def test_frames_in_pieces_of_any_size() -> None:
    sent = (
        frame(series(LABELS, CHUNK, CHUNK)) + frame(series({"pod": "b"}, CHUNK)) + frame(series({"pod": "c"}, b"\0\1"))
    )
    expected = [
        SeriesChunks(LABELS, [CHUNK, CHUNK]),
        SeriesChunks({"pod": "b"}, [CHUNK]),
        SeriesChunks({"pod": "c"}, [b"\0\1"]),
    ]
    for size in (1, 7, 500, len(sent)):
        assert parts(*(sent[at : at + size] for at in range(0, len(sent), size))) == expected


def test_no_series_at_all() -> None:
    assert parts(b"") == []


@pytest.mark.parametrize(
    "sent, said",
    [
        pytest.param(frame(series(LABELS, CHUNK))[:-1], "missing", id="the connection ended early"),
        pytest.param(
            frame(series(LABELS, CHUNK)) + b"query timed out\n", "missing", id="a server that fails in between"
        ),
        pytest.param(b"expanding series: " + b"the storage is closed " * 9, "not a frame", id="a long error text"),
        pytest.param(b"<!DOCTYPE html><title>Log in</title>" * 9, "not a frame", id="a login page"),
        pytest.param(snappy(field(1, b"")), "missing|not a frame", id="samples instead of chunks"),
        pytest.param(frame(series(LABELS, CHUNK, encoding=2)), "encoding 2", id="a native histogram"),
        pytest.param(frame(b"\x0d" + bytes(200)), "another kind", id="another message"),
        pytest.param(frame(b"\x0a\xff" + bytes(4)), "another kind|ends early", id="a field longer than its message"),
    ],
)
def test_what_is_no_answer_is_refused(sent: bytes, said: str) -> None:
    with pytest.raises(MetricsUnavailable, match=said):
        parts(sent)
