"""The journal gets every act, and a wish that stays unwritten once."""

from __future__ import annotations

from pathlib import Path

from tests.live.build import AT, custom, object_tick, spec, subject
from trimtab.core.model import Observation, TotalSample
from trimtab.journal import AxisOutcome, Fate, Journal
from trimtab.live.object_tick import ObjectTick
from trimtab.live.tell.record import Recorder
from trimtab.live.tell.telemetry import Telemetry

QUEUE = {
    "type": "External",
    "external": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "5"}},
}


def wishing(load: float, at: float, *fates: Fate) -> ObjectTick:
    seen = Observation(at=at, spec_replicas=2, status_replicas=2, samples=(TotalSample(value=load, at=at),))
    outcome = tuple(AxisOutcome(axis="replicas", fate=fate) for fate in fates)
    return object_tick(subject(custom(spec=spec(metrics=[QUEUE]))), seen, outcome=outcome)


def recorded(folder: Path, *ticks: ObjectTick) -> tuple[list[float], list[float], Telemetry]:
    """When something was written down as an act, and as a slim row."""
    telemetry, journal = Telemetry(), Journal(folder / "j.db")
    recorder = Recorder(telemetry, journal)
    for tick in ticks:
        recorder.record([tick])
    return [act.seen.at for act in journal.acts()], [row.at for row in journal.ticks()], telemetry


def test_a_wish_that_cannot_be_written_is_an_act_when_it_is_new(tmp_path: Path) -> None:
    ticks = [wishing(15, AT, Fate.SHADOW), wishing(15, AT + 1, Fate.SHADOW), wishing(20, AT + 2, Fate.SHADOW)]
    acts, rows, telemetry = recorded(tmp_path, *ticks)
    assert acts == [AT, AT + 2] and rows == [AT, AT + 1, AT + 2]
    assert telemetry.acts == {("replicas", "shadow"): 3}


def test_every_write_is_an_act_and_an_idle_look_is_none(tmp_path: Path) -> None:
    acts, rows, telemetry = recorded(
        tmp_path, wishing(20, AT, Fate.WRITTEN), wishing(20, AT + 1, Fate.WRITTEN), wishing(10, AT + 2)
    )
    assert acts == [AT, AT + 1] and rows == [AT, AT + 1, AT + 2] and telemetry.acts == {("replicas", "written"): 2}
