"""The journal gets every act, and a wish that stays unwritten once."""

from __future__ import annotations

from pathlib import Path

from tests.live.build import AT, custom, object_tick, spec, subject
from trimtab.acts import AxisOutcome, Fate
from trimtab.core.model import Decision, Observation, Plan, RuleName, Step, TotalSample
from trimtab.journal import Journal
from trimtab.live.object_tick import ObjectTick
from trimtab.live.tell.record import Recorder
from trimtab.live.tell.telemetry import Telemetry
from trimtab.policy import Axis

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
        recorder.record([tick], [recorder.note(tick)])
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


def held(at: float, rule: RuleName | None) -> ObjectTick:
    """The load asks for 4 of 2, and a rule keeps it."""
    steps = (Step(rule=rule, axis=Axis.REPLICAS, before=4, after=2),) if rule else ()
    decision = Decision(plan=Plan(replicas=2), change=None, steps=steps)
    seen = Observation(at=at, spec_replicas=2, status_replicas=2)
    return object_tick(subject(custom(spec=spec(metrics=[QUEUE]))), seen, decision=decision)


def test_what_holds_a_wish_is_written_down_when_it_begins_changes_and_ends(tmp_path: Path) -> None:
    """ "Why did it not scale?" is what people ask on call."""
    rules = [None, RuleName.COOLDOWN, RuleName.COOLDOWN, RuleName.RATE, None, None]
    ticks = [held(AT + 60 * minute, rule) for minute, rule in enumerate(rules)]
    assert recorded(tmp_path, *ticks)[0] == [AT + 60, AT + 180, AT + 240]


def test_rules_that_change_all_the_time_are_written_down_once_a_minute(tmp_path: Path) -> None:
    ticks = [held(AT + 5 * turn, (RuleName.COOLDOWN, RuleName.RATE)[turn % 2]) for turn in range(60)]
    assert len(recorded(tmp_path, *ticks)[0]) == 5


def test_a_tick_that_takes_longer_than_its_period_is_counted() -> None:
    telemetry = Telemetry()
    for took_s in (2.0, 15.0, 21.0):
        telemetry.ticked(took_s, 15.0)
    assert "trimtab_late_ticks_total 1\n" in telemetry.render()
    assert "trimtab_ticks_total 3\n" in telemetry.render()
