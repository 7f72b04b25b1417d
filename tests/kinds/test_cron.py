"""Cron windows: open and closed, over midnight, over weekends, over daylight saving; and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
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


Written = tuple[int, int, str]
CLOCK_CHANGES = [  # the day before each
    ("Europe/Berlin", "2026-03-28"),
    ("Europe/Berlin", "2026-10-24"),
    ("America/New_York", "2026-03-07"),
    ("America/New_York", "2026-10-31"),
    ("Australia/Lord_Howe", "2026-10-03"),  # half an hour
    ("Australia/Lord_Howe", "2026-04-04"),
    ("America/Havana", "2026-03-07"),  # midnight itself is skipped
    ("America/Havana", "2026-10-31"),
    ("Pacific/Apia", "2011-12-29"),  # a whole day is
    ("UTC", "2026-03-28"),
]
DAYS = {"*": range(7), "1-5": range(1, 6), "6": [6], "FRI-MON": [5, 6, 0, 1], "0": [0]}


@cache
def wall_minutes(zone: ZoneInfo, begin: float, minutes: int) -> list[list[datetime]]:
    """What the wall clock passes on its way to each minute: an hour that is skipped in one go, a doubled one once."""
    passed, last = [], datetime.fromtimestamp(begin, zone).replace(tzinfo=None) - timedelta(minutes=1)
    for minute in range(minutes):
        now = datetime.fromtimestamp(begin + 60 * minute, zone).replace(tzinfo=None)
        count = max(0, round((now - last).total_seconds() / 60))
        passed.append([last + timedelta(minutes=step) for step in range(1, count + 1)])
        last = max(last, now)
    return passed


def comes(written: Written, wall: datetime) -> bool:
    minute, hour, days = written
    return (wall.minute, wall.hour) == (minute, hour) and wall.isoweekday() % 7 in DAYS[days]


def open_by_minute(start: Written, end: Written, passed: list[list[datetime]]) -> list[bool]:
    """Backwards: it was open before each end, and closed before each start that is not an end too."""
    state, found = True, []
    for walls in reversed(passed):
        found.append(state)
        for wall in reversed(walls):
            if comes(end, wall):
                state = True
            elif comes(start, wall):
                state = False
    return found[::-1]


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(CLOCK_CHANGES),
    st.tuples(st.sampled_from([0, 15, 30, 45]), st.integers(0, 4), st.sampled_from(sorted(DAYS))),
    st.tuples(st.sampled_from([0, 15, 30, 45]), st.integers(0, 4), st.sampled_from(sorted(DAYS))),
)
def test_a_window_is_open_as_the_wall_clock_has_it(change: tuple[str, str], start: Written, end: Written) -> None:
    zone = ZoneInfo(change[0])
    begin = at(f"{change[1]}T00:00:00", zone)
    opens, closes = (f"{minute} {hour} * * {days}" for minute, hour, days in (start, end))
    wanted = open_by_minute(start, end, wall_minutes(zone, begin, 11 * 24 * 60))[: 3 * 24 * 60]
    spans = cron.spans(opens, closes, zone, begin, begin + 3 * 86400)
    found = [any(first <= begin + 60 * minute < last for first, last in spans) for minute in range(len(wanted))]
    assert found == wanted
    assert [cron.active(opens, closes, zone, begin + 60 * minute) for minute in range(0, len(wanted), 97)] == wanted[
        ::97
    ]


@pytest.mark.parametrize("end", ["45 2 * * *", "0 3 * * *", "0 3 * * 0"])
def test_a_window_in_the_skipped_hour_is_empty(end: str) -> None:
    first, day = at("2026-03-28T04:00:00", BERLIN), end[-1]
    assert cron.spans(f"0 2 * * {day}", end, BERLIN, first, first + 24 * 3600 - 3600) == []
    assert not cron.active(f"0 2 * * {day}", end, BERLIN, first)


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
