"""What a fuzzer begins with is read, and what it found stays found."""

from __future__ import annotations

import pytest

from tests.fuzz.examples import BEGIN, SCALAR, VECTOR
from tests.fuzz.targets import TARGETS, feed

FOUND = [
    pytest.param("quantities", b"2.5e30000000015", id="a Decimal's own overflow"),
    pytest.param("quantities", b"1e400", id="more than a float holds"),
    pytest.param("durations", b"9" * 400, id="a duration without an end"),
    pytest.param("durations", b"3" * 20_000 + b"s" + b"3" * 20_000 + b"!", id="digits with many ways to read them"),
    pytest.param("quantities", b"3" * 20_000 + b"!", id="digits with many ways to read them, too"),
    pytest.param("prometheus_json", VECTOR.replace(b"vector", b"\xa7vector"), id="bytes that are no text"),
    pytest.param("prometheus_json", SCALAR.replace(b'"1"', b'"many"'), id="a scalar that is no number"),
    pytest.param("prometheus_json", VECTOR.replace(b'"1.5"', b'"many"'), id="a sample that is no number"),
    pytest.param(
        "pods",
        bytes.fromhex(
            "3154545454544b93939393939393939393939393939393939354545493939393939393939393939393939393939393545454545454"
        ),
        id="a bridged pod with more cpu than a float can multiply",
    ),
    pytest.param("range_rows", b'[[1750000500,"\xff"]]', id="a row that is no text"),
]


@pytest.mark.parametrize(("name", "data"), FOUND)
def test_what_was_found_is_an_answer_now(name: str, data: bytes) -> None:
    feed(TARGETS[name], data)


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_reads_what_it_begins_with(name: str) -> None:
    for data in [*BEGIN.get(name, []), b"", b"\x00", bytes(range(64))]:
        feed(TARGETS[name], data)
