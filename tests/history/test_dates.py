"""Times as people write them: all forms of the same times are the same, and what may mean two days is refused."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from trimtab.errors import InvalidInput
from trimtab.history.files import EITHER_WAY, read_times

FIRST, STEP_S = datetime(2026, 11, 2, tzinfo=UTC).timestamp(), 3600.0
HOURS = FIRST + STEP_S * np.arange(48)
FORMS = [
    "%Y-%m-%dT%H:%M:%SZ",
    "%Y-%m-%d %H:%M:%S +0000 UTC",
    "%Y-%m-%d %H:%M:%S UTC",
    "%Y/%m/%d %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y, %I:%M:%S %p",
    "%m-%d-%Y %I:%M%p",
    "%d-%b-%Y %H:%M:%S",
    "%d %b %Y %H:%M:%S",
    "%a, %d %b %Y %H:%M:%S GMT",
]


def read(*texts: str) -> list[float]:
    return list(read_times("web.csv", texts, range(2, len(texts) + 2)).tolist())


@pytest.mark.parametrize("days", [0, 9, 12, 29], ids=lambda days: f"from {2 + days} November on")
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_two_days_is_read_as_those_days(form: str, days: int) -> None:
    times = HOURS + days * 86400.0
    texts = [datetime.fromtimestamp(at, UTC).strftime(form) for at in times]
    assert read(*texts) == times.tolist()
    assert read(*(text.replace(" 0", " ").replace("/0", "/") for text in texts)) == times.tolist()


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(("02/11/2026 00:00", "02/11/2026 01:00"), id="one day"),
        pytest.param(("02/11/2026", "03/11/2026", "04/11/2026"), id="days or months"),
        pytest.param(("01/02/2026 00:00", "01/02/2026 01:00", "12/02/2026 00:00", "12/02/2026 01:00"), id="far apart"),
    ],
)
def test_a_date_that_may_be_two_is_refused_with_the_way_out(texts: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(*texts)
    assert str(refused.value) == f"web.csv row 2: '{texts[0]}': {EITHER_WAY}"


def test_a_date_that_reads_the_same_both_ways_is_no_riddle() -> None:
    assert read("11/11/2026 12:00 AM", "11/11/2026 1:00 PM") == [FIRST + 9 * 86400.0, FIRST + 9 * 86400.0 + 46800.0]


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-02 00:00:00 CET",
        "13/13/2026 00:00",
        "00/11/2026 00:00",
        "31/02/2026 00:00",
        "02/11/26 00:00",
        "2 Xyz 2026",
    ],
)
def test_what_is_no_time_is_named_with_its_row(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"web\.csv row 3: .*ISO 8601"):
        read("14/11/2026 00:00", text)
    with pytest.raises(InvalidInput, match=r"web\.csv row 2: "):
        read(text)


def test_one_column_has_one_order_of_day_and_month() -> None:
    with pytest.raises(InvalidInput, match="the same way in all rows"):
        read("14/11/2026 00:00", "11/15/2026 00:00")
