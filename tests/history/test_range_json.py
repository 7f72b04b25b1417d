"""Parsing of samples agrees with Python's own floats, whatever a server may send."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.errors import MetricsUnavailable
from trimtab.history.query_pages import read_row
from trimtab.history.source import TimeGrid
from trimtab.series import Floats

START, STEP = 1_700_000_000.0, 15.0


def row_of(raw: bytes, steps: int) -> Floats:
    row = np.full(steps, np.nan)
    read_row(raw, TimeGrid(START, STEP, steps), row)
    return row


@pytest.mark.parametrize(
    "text, expected",
    [
        ("0", 0.0),
        ("-0.5", -0.5),
        ("1.5", 1.5),
        ("3", 3.0),
        ("1e-05", 1e-05),
        ("1.7976931348623157e+308", 1.7976931348623157e308),
        ("2.2250738585072014e-308", 2.2250738585072014e-308),
        ("123456789012345678901234567890", 1.2345678901234568e29),
        ("0.000000000000000000000000123456789012345678", 1.23456789012345678e-25),
        ("9007199254740993", 9007199254740992.0),
    ],
)
def test_numbers(text: str, expected: float) -> None:
    row = row_of(f'[[1700000000,"{text}"]]'.encode(), 1)
    np.testing.assert_array_equal(row, [expected])


def test_what_is_not_finite_or_not_there_is_a_hole() -> None:
    raw = b'[[1700000000,"NaN"],[1700000015.001,"+Inf"],[1700000030,"-Inf"],[1700000045,"7"]]'
    np.testing.assert_array_equal(row_of(raw, 5), [np.nan, np.nan, np.nan, 7.0, np.nan])


def test_samples_outside_of_the_grid_do_not_matter() -> None:
    raw = b'[[1600000000,"1"], [1700000000,"2"], [1800000000,"3"]]'
    np.testing.assert_array_equal(row_of(raw, 2), [2.0, np.nan])


def test_no_samples_at_all() -> None:
    np.testing.assert_array_equal(row_of(b"[]", 2), [np.nan, np.nan])


@pytest.mark.parametrize(
    "raw",
    [b'[[1700000000,"x"]]', b'[[1700000000,""]]', b'[[,"1"]]', b"oops", b'[[1700000000,"1.2.3"]]'],
)
def test_what_cannot_be_read_is_no_value(raw: bytes) -> None:
    with pytest.raises(MetricsUnavailable):
        row_of(raw, 2)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(), min_size=1, max_size=20))
def test_it_agrees_with_python(values: list[float]) -> None:
    spelling = {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}
    pairs = [[START + STEP * index, spelling.get(repr(value), repr(value))] for index, value in enumerate(values)]
    raw = json.dumps(pairs, separators=(",", ":")).encode()
    expected = [value if math.isfinite(value) else math.nan for value in values]
    np.testing.assert_array_equal(row_of(raw, len(values)), expected)
