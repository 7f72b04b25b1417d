"""When it is night, what stays of a night's verdict, and what decides then."""

from __future__ import annotations

from datetime import UTC, date, datetime
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from tests.tune.test_night import policy, verdict
from trimtab.core.nights import InForce, Promise, VerdictKind
from trimtab.core.tuned import settings_of
from trimtab.kinds.annotations import TUNING_UNDO
from trimtab.live.look.memory import ObjectMemory, TuningMemory, read, shifted, written
from trimtab.live.tuning.night_time import night_of
from trimtab.live.tuning.nightly import REST_S, asked_to_undo, in_force, remembered, undone
from trimtab.policy import Bridge, ForecastChoice, Objective, TunedSettings, Tuning, TuningMode
from trimtab.wire.from_kubernetes import rfc3339

AT = 1_750_000_000.0
BETTER = TunedSettings(target=0.6, tolerance=0.05, window_s=60.0)


@pytest.mark.parametrize(
    "moment, zone, night",
    [
        pytest.param("2026-03-01T01:59:59", "UTC", None, id="a second early"),
        pytest.param("2026-03-01T02:00:00", "UTC", date(2026, 3, 1), id="two o'clock"),
        pytest.param("2026-03-01T04:59:59", "UTC", date(2026, 3, 1), id="the last second"),
        pytest.param("2026-03-01T05:00:00", "UTC", None, id="morning"),
        pytest.param("2026-03-01T01:00:00", "Europe/Berlin", date(2026, 3, 1), id="two o'clock in Berlin"),
        pytest.param("2026-03-29T00:59:59", "Europe/Berlin", None, id="before the clock jumps from two to three"),
        pytest.param("2026-03-29T01:00:00", "Europe/Berlin", date(2026, 3, 29), id="three o'clock, right after two"),
        pytest.param("2026-10-25T00:30:00", "Europe/Berlin", date(2026, 10, 25), id="half past two, the first one"),
        pytest.param("2026-10-25T01:30:00", "Europe/Berlin", date(2026, 10, 25), id="half past two again"),
        pytest.param("2026-03-01T16:30:00", "Pacific/Auckland", None, id="half past five there"),
        pytest.param("2026-03-01T13:30:00", "Pacific/Auckland", date(2026, 3, 2), id="already tomorrow there"),
    ],
)
def test_a_night_is_from_two_to_five_in_its_own_zone(moment: str, zone: str, night: date | None) -> None:
    assert night_of(datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp(), zone) == night


def switched() -> TuningMemory:
    found, news = remembered(replace(verdict("web", VerdictKind.SWITCHED, 0.1), present=BETTER), None, "x", AT)
    assert news is not None and news.reason == "TuningSwitched" and not news.warning
    return found


def test_a_switch_remembers_what_it_replaced_and_since_when() -> None:
    found = switched()
    assert found.in_force is not None and found.in_force.replaced == BETTER and found.in_force.since == AT
    assert found.about == "x" and found.evidence is not None


def test_going_back_is_to_what_ran_before_and_rests() -> None:
    again, _ = remembered(replace(verdict("web", VerdictKind.SWITCHED, 0.1), present=BETTER), switched(), "x", AT + 1)
    back, news = remembered(replace(verdict("web", VerdictKind.WENT_BACK, 0.0), reason="J was 3"), again, "x", AT + 2)
    assert news is not None and news.warning and "J was 3" in news.message
    assert back.in_force == switched().in_force and back.rests_until == AT + 2 + REST_S
    first, _ = remembered(replace(verdict("web", VerdictKind.WENT_BACK, 0.0), reason="J was 3"), back, "x", AT + 3)
    assert first.in_force is None


@pytest.mark.parametrize("kind", [VerdictKind.KEPT, VerdictKind.UNKNOWN, VerdictKind.UNTUNABLE, VerdictKind.WAITS])
def test_other_nights_change_nothing_in_force(kind: VerdictKind) -> None:
    found, news = remembered(replace(verdict("web", kind, 0.1), present=BETTER), switched(), "x", AT + 1)
    assert found.in_force == switched().in_force and found.verdict is kind and news is None


def test_advice_is_told_once() -> None:
    advised = replace(verdict("web", VerdictKind.ADVISED, 0.1), present=BETTER)
    found, news = remembered(advised, None, "x", AT)
    assert news is not None and news.reason == "TuningAdvised" and found.in_force is None
    assert remembered(advised, found, "x", AT + 1)[1] is None


def test_what_is_remembered_outlives_a_restart_and_moves_with_the_clock() -> None:
    memory = ObjectMemory(tuning=replace(switched(), rests_until=AT + 100))
    assert read({"memory": written(memory)}, AT + 10, 3).tuning == memory.tuning
    moved = shifted(memory, 50.0).tuning
    assert moved is not None and moved.in_force is not None
    assert (moved.at, moved.in_force.since, moved.rests_until) == (AT + 50, AT + 50, AT + 150)


def test_an_objective_has_to_be_earned_under_nightly_tuning_alone() -> None:
    priced = policy(objective=Objective(), forecast=ForecastChoice(model="learned"), bridge=Bridge())
    waiting = in_force(priced, None)
    assert waiting.objective is None and waiting.forecast is None and waiting.bridge == priced.bridge
    assert in_force(replace(priced, tuning=Tuning(mode=TuningMode.ADVISE)), None).objective is not None
    settings = replace(settings_of(priced), ceiling=0.7, priced=True)
    earned = InForce(settings=settings, replaced=BETTER, promise=Promise(j=1.2, spread=0.1), since=AT)
    found = TuningMemory(at=AT, verdict=VerdictKind.SWITCHED, in_force=earned)
    now = in_force(priced, found)
    assert now.objective == priced.objective and now.bridge == Bridge(ceiling=0.7)
    assert now.forecast is not None and now.bounds == priced.bounds
    untunable = TuningMemory(at=AT, verdict=VerdictKind.UNTUNABLE)
    assert in_force(priced, untunable) == priced, "no night will ever compare it: what is written steers"
    two = replace(priced, signals=priced.signals * 2)
    assert in_force(two, None) == two


def test_one_request_takes_one_switch_back() -> None:
    """What an earlier night had put in force stays, however often the request is seen."""
    first = switched()
    again, _ = remembered(replace(verdict("web", VerdictKind.SWITCHED, 0.1), present=BETTER), first, "x", AT + 60.0)
    annotations = {TUNING_UNDO: rfc3339(AT + 120.0)}
    found = SimpleNamespace(object=SimpleNamespace(metadata=SimpleNamespace(annotations=annotations)))
    asked_at = asked_to_undo(found, again, AT + 180.0)  # type: ignore[arg-type]
    assert asked_at == AT + 120.0
    back, news = undone(again, asked_at, AT + 180.0)
    assert news is not None and back.in_force == first.in_force
    assert asked_to_undo(found, back, AT + 195.0) is None  # type: ignore[arg-type]
