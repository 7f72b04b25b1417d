"""The lockstep decoder gives back, bit for bit, what was written into chunks of any shape."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.history.chunks import Sample, chunk
from trimtab.errors import MetricsUnavailable
from trimtab.history.gorilla import decode

MINUTE = 60_000
EDGES = [edge + more for edge in (0, 1 << 13, 1 << 16, 1 << 19) for more in (-1, 0, 1)]
changes = st.one_of(
    st.just(0), st.sampled_from([sign * edge for edge in EDGES for sign in (1, -1)]), st.integers(0, 1 << 40)
)
values = st.one_of(st.sampled_from([0.0, -0.0, 1.0, 1.5, 5e-324, float("inf"), float("nan")]), st.floats())


@st.composite
def series(draw: st.DrawFn) -> list[Sample]:
    at, distance, found = draw(st.integers(-(1 << 41), 1 << 41)), 20 * MINUTE, []
    for value in draw(st.lists(values, min_size=1, max_size=12)):
        found.append((at, value))
        distance = max(1, distance + draw(changes))
        at += distance
    return found


@settings(max_examples=150, deadline=None)
@given(st.lists(series(), min_size=1, max_size=8))
def test_many_chunks_of_different_lengths_at_once(written: list[list[Sample]]) -> None:
    decoded = decode([chunk(one) for one in written])
    assert decoded.counts.tolist() == [len(one) for one in written]
    assert decoded.times_ms.tolist() == [at for one in written for at, _ in one]
    expected = np.array([value for one in written for _, value in one])
    np.testing.assert_array_equal(decoded.values.view(np.uint64), expected.view(np.uint64))  # NaNs bit by bit, too


def test_a_counter_of_two_hours() -> None:
    counter = [(1_760_000_400_000 + index * MINUTE, 0.37 * index) for index in range(120)]
    decoded = decode([chunk(counter)])
    assert list(zip(decoded.times_ms.tolist(), decoded.values.tolist(), strict=True)) == counter


@pytest.mark.parametrize("change", EDGES)
def test_every_edge_of_the_widths_of_a_change(change: int) -> None:
    """14 bits reach from -8191 to 8192, not to -8192 as two's complement would."""
    at = [0, 600_000, 1_200_000 + change]
    assert decode([chunk([(one, 1.0) for one in at])]).times_ms.tolist() == at


def test_nothing_at_all() -> None:
    assert len(decode([]).values) == 0
    assert decode([b"\0\0", chunk([(5, 1.0)])]).counts.tolist() == [0, 1]


def test_a_chunk_that_was_cut_is_refused() -> None:
    whole = chunk([(index * MINUTE, 0.1 * index) for index in range(50)])
    with pytest.raises(MetricsUnavailable, match="ends before its samples"):
        decode([whole[:40], whole])
