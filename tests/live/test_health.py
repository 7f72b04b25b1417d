"""What the operator notes of itself: who is silent, in conflict, put back or muted, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from tests.live.build import AT, custom, object_tick, spec, subject
from trimtab.core.model import Missing, Observation, Reason, TotalSample, Veto
from trimtab.journal import HEALTH, Journal
from trimtab.live.act.breaker import Breaker, FleetWish
from trimtab.live.object_tick import ObjectTick
from trimtab.live.tell.record import MOST, health_of
from trimtab.policy import Axis
from trimtab.web.fleet import health
from trimtab.wire.budget import Budget

QUEUE = {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "5"}}
METRICS = [{"type": "External", "external": QUEUE}]


def seen(sample: TotalSample | Missing | None = None, **more: Any) -> Observation:
    samples = (sample or TotalSample(value=10, at=AT),)
    return Observation(at=AT, spec_replicas=2, status_replicas=2, samples=samples, **more)


def tick(name: str, look: Observation, **more: Any) -> ObjectTick:
    notes = more.pop("annotations", {})
    about = subject(custom(name, spec=spec(name, metrics=METRICS, **more), metadata={"annotations": notes}))
    return object_tick(about, look)


def noted(*ticks: ObjectTick, breaker: Breaker | None = None, frozen: bool = False) -> dict[str, Any]:
    text = msgspec.json.encode(health_of(ticks, AT, Budget(50, 100), breaker or Breaker(), frozen))
    found: dict[str, Any] = msgspec.json.decode(text)
    return found


def test_a_calm_fleet_has_nothing_to_tell() -> None:
    found = noted(tick("web", seen()))
    assert found["counts"] == {"conflicts": 0, "reverts": 0, "muted": 0, "sources": 0}
    assert found["breaker"] == {"trips": 0, "held": []} and not found["frozen"]
    assert found["budget"] == {"perSecond": 50, "spent": 0, "waitedSeconds": 0}


def test_sources_are_named_with_their_reason_and_whom_they_concern() -> None:
    gone = [tick(f"web-{number}", seen(Missing(reason=Reason.UNREACHABLE, since=AT - number))) for number in (60, 90)]
    found = noted(*gone, tick("late", seen(Missing(reason=Reason.STALE))), tick("well", seen()))
    first, second = found["sources"]
    assert (first[0], first[2], first[3]) == ("q", 2, AT - 90) and "answer" in first[1]
    assert second[2:] == [1, None]


def test_who_is_in_the_way_and_until_when() -> None:
    vetoes = (
        Veto(axis=Axis.REPLICAS, direction=None, reason="Conflict", detail="HorizontalPodAutoscaler web moves it"),
        Veto(axis=Axis.CPU, direction=None, reason="Reverted", detail="argocd puts it back", until=AT + 60),
        Veto(axis=Axis.MEMORY, direction=None, reason="Reverted", detail="argocd puts it back", until=AT + 60),
    )
    found = noted(tick("web", seen(vetoes=vetoes)))
    name = ["Autoscaler", "shop", "web"]
    assert found["conflicts"] == [[*name, "HorizontalPodAutoscaler web moves it", None]]
    assert found["reverts"] == [[*name, "argocd puts it back", AT + 60]], "both axes are one quarrel"


def test_what_is_muted_says_why() -> None:
    silent = (Missing(reason=Reason.NOT_PREDICTABLE),)
    found = noted(
        tick("paused", seen(), mode="Paused"),
        tick("pinned", seen(), annotations={"trimtab.dev/pin": "7"}),
        tick("guess", seen(forecasts=silent), forecast={"model": "linear"}),
    )
    said = {row[2]: row[3] for row in found["muted"]}
    assert said["paused"] == "paused" and said["pinned"] == "pinned to 7 replicas"
    assert said["guess"].startswith("no forecast of q: ")


def test_an_open_breaker_names_whom_it_holds() -> None:
    breaker = Breaker(300)
    breaker.trip([FleetWish(f"uid-{number}", "shop", True) for number in range(12)], AT)
    found = noted(breaker=breaker, frozen=True)
    assert found["frozen"] and found["breaker"]["trips"] == 1
    assert dict(map(tuple, found["breaker"]["held"]))["shop"] == AT + 300


def test_a_long_list_is_cut_and_counted() -> None:
    found = noted(*(tick(f"web-{number}", seen(), mode="Paused") for number in range(MOST + 5)))
    assert len(found["muted"]) == MOST and found["counts"]["muted"] == MOST + 5


def test_the_page_shows_the_last_note(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db")
    assert health(journal)["operator"] is None
    for frozen in (False, True):
        journal.note(HEALTH, msgspec.json.encode(noted(frozen=frozen)).decode())
        journal.write([])
    assert health(journal)["operator"]["frozen"] is True
