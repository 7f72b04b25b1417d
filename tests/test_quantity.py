"""Quantities as Kubernetes and Go write them, there and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.errors import InvalidInput
from trimtab.quantity import (
    describe_memory,
    format_cpu,
    format_duration,
    format_memory,
    format_number,
    parse_duration,
    parse_quantity,
)


@pytest.mark.parametrize(
    "text, value",
    [
        ("250m", 0.25),
        ("1", 1.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1Ki", 1024.0),
        ("1Gi", 2.0**30),
        ("2G", 2e9),
        ("100n", 1e-7),
        ("1e3", 1000.0),
        ("-2", -2.0),
        (3, 3.0),
        ("0.1n", 1e-9),
        ("-1e-40", -1e-9),
        ("0e-40", 0.0),
    ],
)
def test_quantities(text: str | int, value: float) -> None:
    assert parse_quantity(text) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("text", ["", "abc", "1Qi", "1 Gi", "1GiB", "m", "1e", "--1", "1e3Gi", "١٢", "１m"])
def test_what_is_no_quantity_is_refused_with_its_path(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"spec\.cpu") as caught:
        parse_quantity(text, "spec.cpu")
    assert caught.value.value == text


@pytest.mark.parametrize("text", ["1e400", "1e9999999", "-1e9999999", "9" * 400, "9" * 5000 + "E"])
def test_a_quantity_beyond_all_numbers_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="out of range"):
        parse_quantity(text)


@pytest.mark.parametrize("text", ["9" * 400, "9" * 400 + "s", "9" * 308 + "h"])
def test_a_duration_beyond_all_numbers_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="out of range"):
        parse_duration(text)


@pytest.mark.parametrize(
    "text, seconds", [("30s", 30), ("5m", 300), ("1h30m", 5400), ("500ms", 0.5), ("7d", 604800), ("15", 15), (15, 15)]
)
def test_durations(text: str | int, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5x", "m5", "-5m", "5 m", "٣s", "３"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    "size, text", [(2**30, "1Gi"), (2e9, "2G"), (1536 * 2**20, "1536Mi"), (1, "1"), (0, "0"), (1_500_000, "1500k")]
)
def test_memory_in_its_plainest_unit(size: float, text: str) -> None:
    assert format_memory(size) == text


def test_memory_for_people_is_short() -> None:
    assert (describe_memory(2**30), describe_memory(2_048_374_000), describe_memory(2e9)) == ("1Gi", "1.91Gi", "2G")
    assert describe_memory(1_234_567) == "1.18Mi"


def test_other_formats() -> None:
    assert (format_cpu(0.25), format_cpu(2.0), format_number(0.5), format_number(3.0)) == ("250m", "2", "500m", "3")
    assert (format_duration(5400), format_duration(45), format_duration(0)) == ("1h30m", "45s", "0s")


@given(st.integers(0, 10**15))
def test_memory_survives_the_round_trip(size: int) -> None:
    assert parse_quantity(format_memory(size)) == size


@given(st.integers(0, 10**7))
def test_cpu_survives_the_round_trip(milli: int) -> None:
    assert round(parse_quantity(format_cpu(milli / 1000)) * 1000) == milli
