"""Cron windows: open and closed, over midnight, over weekends, over daylight saving; and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.errors import InvalidInput
from trimtab.kinds import cron

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str, zone: object = UTC) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "start, end, now, wanted",
    [
        pytest.param("0 8 * * *", "0 18 * * *", "2024-05-15T07:59:59", False, id="before"),
        pytest.param("0 8 * * *", "0 18 * * *", "2024-05-15T08:00:00", True, id="the start is inside"),
        pytest.param("0 8 * * *", "0 18 * * *", "2024-05-15T18:00:00", False, id="the end is not"),
        pytest.param("0 22 * * *", "0 6 * * *", "2024-05-15T03:00:00", True, id="over midnight"),
        pytest.param("0 8 ? * 1-5", "0 18 ? * 1-5", "2024-05-18T12:00:00", False, id="not on Saturday"),
        pytest.param("0 8 * * FRI-MON", "0 18 * * FRI-MON", "2024-05-19T12:00:00", True, id="FRI-MON holds Sunday"),
        pytest.param("@daily", "0 1 * * *", "2024-05-15T00:30:00", True, id="@daily"),
    ],
)
def test_active(start: str, end: str, now: str, wanted: bool) -> None:
    assert cron.active(start, end, UTC, at(now)) is wanted


def test_a_window_follows_its_zone() -> None:
    noon = at("2024-07-01T12:00:00")
    assert cron.active("0 14 * * *", "0 15 * * *", BERLIN, noon)
    assert not cron.active("0 14 * * *", "0 15 * * *", UTC, noon)


@pytest.mark.parametrize(
    "day, open_s",
    [
        pytest.param("2024-03-30", 3 * 3600, id="an ordinary night"),
        pytest.param("2024-03-31", 2 * 3600, id="the night that loses an hour"),
        pytest.param("2024-10-27", 4 * 3600, id="the night that gains one"),
    ],
)
def test_daylight_saving(day: str, open_s: float) -> None:
    first = at(f"{day}T00:00:00", BERLIN)
    (span,) = cron.spans("0 1 * * *", "0 4 * * *", BERLIN, first, first + 12 * 3600)
    assert span[1] - span[0] == open_s


def test_a_start_in_the_skipped_hour_comes_right_after_it() -> None:
    first = at("2024-03-31T00:00:00", BERLIN)
    (span,) = cron.spans("30 2 * * *", "0 4 * * *", BERLIN, first, first + 12 * 3600)
    assert span == (at("2024-03-31T03:00:00", BERLIN), at("2024-03-31T04:00:00", BERLIN))


def test_spans_of_a_week() -> None:
    monday = at("2024-05-13T00:00:00")
    found = cron.spans("0 8 * * 1-5", "0 18 * * 1-5", UTC, monday, monday + 7 * 86400)
    assert len(found) == 5
    assert found[0] == (monday + 8 * 3600, monday + 18 * 3600)


def test_a_span_that_is_open_at_the_beginning_starts_there() -> None:
    noon = at("2024-05-15T12:00:00")
    assert cron.spans("0 8 * * *", "0 18 * * *", UTC, noon, noon + 3600) == [(noon, noon + 6 * 3600)]


def test_a_window_that_never_closes_is_one_span() -> None:
    begin = at("2024-05-15T12:00:00")
    (span,) = cron.spans("0 0 * * *", "0 0 * * *", UTC, begin, begin + 3 * 86400)
    assert span[0] == begin
    assert span[1] >= begin + 3 * 86400


FIELD = st.tuples(st.integers(0, 59), st.integers(0, 23), st.sampled_from(["*", "1-5", "6", "FRI-MON", "0"]))


@settings(max_examples=60, deadline=None)
@given(FIELD, FIELD, st.integers(0, 14 * 24 * 60))
def test_spans_say_what_active_says(start: tuple[int, int, str], end: tuple[int, int, str], minute: int) -> None:
    opens, closes = (f"{m} {h} * * {days}" for m, h, days in (start, end))
    begin = at("2024-03-25T00:00:00")
    moment = begin + minute * 60.0
    inside = any(a <= moment < b for a, b in cron.spans(opens, closes, BERLIN, begin, begin + 15 * 86400))
    assert inside is cron.active(opens, closes, BERLIN, moment)


@pytest.mark.parametrize(
    "written, wanted",
    [
        ("0 8 ? * ?", "0 8 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("0 8 * * sat-tue", "0 8 * * 6,0,1,2"),
        ("0 8 * * FRI-MON/2", "0 8 * * 5,0"),
        ("0 8 * JAN mon-fri", "0 8 * JAN 1-5"),
    ],
)
def test_translate(written: str, wanted: str) -> None:
    assert cron.translate(written) == wanted


@pytest.mark.parametrize(
    "written, word",
    [
        ("", "must not be empty"),
        ("0 8 * *", "write five fields"),
        ("0 0 8 * * *", "write five fields"),
        ("61 8 * * *", "bad minute"),
        ("0 8 31 2 *", "this date never comes|bad day"),
        ("@reboot", "write five fields"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_path(written: str, word: str) -> None:
    with pytest.raises(InvalidInput, match=word) as caught:
        cron.translate(written, "spec.schedules[0].start")
    assert caught.value.path == "spec.schedules[0].start"
    assert caught.value.value == written


@pytest.mark.parametrize("name", [None, "", "Local", "UTC"])
def test_no_zone_is_utc(name: str | None) -> None:
    assert cron.zone_of(name) is UTC


@pytest.mark.parametrize("name", ["Europe/Bärlin", "XXX", "../etc/passwd", "/etc"])
def test_an_unknown_zone_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="timezone not valid"):
        cron.zone_of(name)
