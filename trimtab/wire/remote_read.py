"""Remote read: Prometheus' chunks as they are stored, without PromQL and JSON, which are most of a long answer's cost.

Asked: a ReadRequest (protobuf) in a snappy block. Answered: frames of uvarint length, CRC-32C, ChunkedReadResponse.
Source: prompb/remote.proto, prompb/types.proto, storage/remote/chunked.go of Prometheus; snappy's block format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from trimtab.errors import InvalidInput, MetricsUnavailable
from trimtab.wire.protobuf import NotProtobuf, bytes_field, fields, number_field, read_varint, varint

STREAMED_XOR_CHUNKS, XOR = 1, 1
OPERATORS = ("=", "!=", "=~", "!~")
MATCHER = re.compile(r'\s*([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*"([^"\\]*)"\s*(?:,|$)', re.ASCII)
FRAME_BYTES = 64 * 2**20  # Prometheus begins a new frame after one megabyte
SHORT = 128  # bytes: a text that a server writes into a stream that fails begins like a frame shorter than this


class Matcher(NamedTuple):
    label: str
    operator: Literal["=", "!=", "=~", "!~"]
    value: str


class SeriesChunks(NamedTuple):
    """Chunks of one series, in the order of time; a long series comes in several parts, one after the other."""

    labels: dict[str, str]
    chunks: list[bytes]


def parse_matchers(text: str, path: str = "matchers") -> list[Matcher]:
    """Matchers as PromQL writes them; unusual spellings (escapes, other quotes) are left to PromQL.

    `path` is who wrote them, for the refusal.
    """
    found, at = [], 0
    while at < len(text):
        matched = MATCHER.match(text, at)
        if matched is None:
            raise InvalidInput(path, text[at:], 'write them as label="value",label=~"a|b"')
        found.append(Matcher(*matched.groups()))  # type: ignore[arg-type]
        at = matched.end()
    return found


def read_request(matchers: Sequence[Matcher], start_ms: int, end_ms: int) -> bytes:
    """The body of a request for all samples from start to end, both inclusive."""
    chosen = (
        number_field(1, OPERATORS.index(matcher.operator))
        + bytes_field(2, matcher.label.encode())
        + bytes_field(3, matcher.value.encode())
        for matcher in matchers
    )
    query = (
        number_field(1, start_ms) + number_field(2, end_ms) + b"".join(bytes_field(3, matcher) for matcher in chosen)
    )
    return _snappy(bytes_field(1, query) + number_field(2, STREAMED_XOR_CHUNKS))


def _snappy(data: bytes) -> bytes:
    """A valid block of one literal: requests are too small for more."""
    return varint(len(data)) + b"\xfc" + (len(data) - 1).to_bytes(4, "little") + data


class Frames:
    """Cuts what comes in into frames; call `end` when nothing more comes."""

    def __init__(self) -> None:
        self._rest = bytearray()  # grows and shrinks without being copied each time

    def feed(self, data: bytes) -> Iterator[SeriesChunks]:
        self._rest += data
        begin = 0
        try:
            while (frame := _frame(self._rest, begin)) is not None:
                begin, message = frame
                yield from _parts(message)
        except NotProtobuf as wrong:
            raise _unreadable(str(wrong)) from None
        del self._rest[:begin]

    def end(self) -> None:
        if self._rest:
            raise _unreadable(f"the end of a frame is missing after {len(self._rest)} bytes")


def _frame(data: bytearray, begin: int) -> tuple[int, bytes] | None:
    """The frame that begins here, with where the next one does; None while it is not whole.

    A checksum in Python would take longer than all the rest, and TCP has its own; but it tells a failing server's
    words from a frame, so short frames are checked.
    """
    try:
        size, at = read_varint(data, begin)
    except IndexError:
        return None
    end = at + 4 + size
    if size > FRAME_BYTES:
        raise _unreadable(f"a frame of {size:,} bytes, where {FRAME_BYTES:,} are the most")
    if end > len(data):
        return None
    message = bytes(data[at + 4 : end])
    if size < SHORT and _crc32c(message) != int.from_bytes(data[at : at + 4], "big"):
        raise _unreadable("what came is not a frame")
    return end, message


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def _parts(message: bytes) -> Iterator[SeriesChunks]:
    for field, series in fields(message):
        if field == 1 and isinstance(series, bytes):
            part = SeriesChunks({}, [])
            for kind, item in fields(series):
                if kind == 1 and isinstance(item, bytes):
                    label = {key: value for key, value in fields(item) if isinstance(value, bytes)}
                    part.labels[_label(label.get(1, b""))] = _label(label.get(2, b""))
                elif kind == 2 and isinstance(item, bytes):
                    part.chunks.append(_chunk(item))
            yield part


def _label(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise _unreadable("a label that is no text") from None


def _chunk(message: bytes) -> bytes:
    encoding, data = 0, b""
    for field, value in fields(message):
        if field == 3 and isinstance(value, int):
            encoding = value
        elif field == 4 and isinstance(value, bytes):
            data = value
    if encoding != XOR:
        raise _unreadable(f"chunks of encoding {encoding} instead of floats ({XOR})")
    return data


def _unreadable(what: str) -> MetricsUnavailable:
    return MetricsUnavailable(f"the answer to a remote read cannot be read: {what}")
