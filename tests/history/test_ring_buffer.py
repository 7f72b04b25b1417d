"""The ring store: one column a tick, holes where nobody wrote, and no more memory than agreed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.errors import InvalidInput
from trimtab.history.ring_buffer import RingBuffer
from trimtab.series import Frame

NAN = np.nan


def test_the_newest_steps_in_the_order_of_time() -> None:
    ring = RingBuffer(step_s=15, steps=4)
    for tick in range(6):
        ring.append(1500 + 15 * tick, ["a", "b"], [tick, 10 * tick])
    frame = ring.frame()
    assert (frame.names, frame.start, frame.step_s, frame.end) == (("a", "b"), 1530, 15, 1590)
    np.testing.assert_array_equal(frame.values, [[2, 3, 4, 5], [20, 30, 40, 50]])
    np.testing.assert_array_equal(ring.frame(["b"], steps=2).values, [[40, 50]])


def test_a_missed_tick_is_a_hole_and_not_an_old_value() -> None:
    ring = RingBuffer(step_s=15, steps=3)
    for at, value in ((0, 1), (15, 2), (30, 3), (75, 4)):
        ring.append(at, ["a"], [value])
    np.testing.assert_array_equal(ring.frame().values, [[NAN, NAN, 4]])


def test_a_late_value_finds_its_place_and_a_too_late_one_is_dropped() -> None:
    ring = RingBuffer(step_s=10, steps=3)
    ring.append(100, ["a"], [1])
    ring.append(85, ["a"], [2])
    ring.append(50, ["a"], [3])
    np.testing.assert_array_equal(ring.frame().values, [[2, NAN, 1]])


def test_a_forgotten_key_leaves_nothing_to_the_next_one() -> None:
    ring = RingBuffer(step_s=10, steps=2)
    ring.append(0, ["old", "stays"], [1, 2])
    ring.forget(["old", "never seen"])
    ring.append(10, ["new"], [3])
    assert ("old" in ring, len(ring)) == (False, 2)
    np.testing.assert_array_equal(ring.frame(["new", "stays", "old"]).values, [[NAN, 3], [2, NAN], [NAN, NAN]])


def test_it_grows_with_its_keys() -> None:
    ring = RingBuffer(step_s=10, steps=2)
    keys = [f"key-{index}" for index in range(1000)]
    ring.append(0, keys, np.arange(1000.0))
    ring.append(10, keys[::-1], np.arange(1000.0))
    np.testing.assert_array_equal(ring.frame(["key-0", "key-999"]).values, [[0, 999], [999, 0]])


def test_history_is_loaded_under_what_comes_later() -> None:
    ring = RingBuffer(step_s=10, steps=4)
    ring.append(50, ["a"], [9])
    ring.load(Frame(("a", "b"), 0, 10, np.array([[1.0, 2, 3, 4], [5, 6, 7, 8]])))
    np.testing.assert_array_equal(ring.frame(["a", "b"]).values, [[3, 4, NAN, 9], [7, 8, NAN, NAN]])
    with pytest.raises(InvalidInput, match="a step of 10 s"):
        ring.load(Frame(("a",), 0, 15, np.ones((1, 2))))


def test_an_empty_ring_is_an_empty_frame() -> None:
    assert RingBuffer(step_s=10, steps=4).frame().values.shape == (0, 4)
    assert np.isnan(RingBuffer(step_s=10, steps=4).frame(["a"]).values).all()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60), st.sampled_from("abc"), st.integers(0, 99)), max_size=60))
def test_it_equals_a_dictionary_that_forgets(writes: list[tuple[int, str, int]]) -> None:
    ring, plain, newest = RingBuffer(step_s=1, steps=8), dict[tuple[str, int], float](), -1
    for at, key, value in writes:
        ring.append(at, [key], [value])
        newest = max(newest, at)
        if at > newest - 8:
            plain[key, at] = value
    expected = [[plain.get((key, at), NAN) for at in range(newest - 7, newest + 1)] for key in "abc"]
    np.testing.assert_array_equal(ring.frame(list("abc")).values, expected)
