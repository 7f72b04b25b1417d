"""nightly: asks for better settings once a night, puts them in force, and says so.

The search runs elsewhere: `Tuner` gets cases one by one, as it asks for them, and answers in its own time. A tick waits
for none of it. What is in force is part of the object's memory, so a restart keeps it. An edit of what tuning changes
or looks at ends it, `kubectl trimtab tuning NAME --undo` takes it back, and in either case nothing shrinks for one
stabilization window.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import date
from hashlib import blake2b
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from trimtab.core.demand import keys_of
from trimtab.core.explain.tuning import gain_text, settings_text
from trimtab.core.model import Observation, Startup, Veto
from trimtab.core.nights import InForce, JudgedDay, NightCase, Rollout, Verdict, VerdictKind, let_switch, next_night
from trimtab.core.overload import Yardstick, yardstick
from trimtab.core.tuned import by_target, down_window, may_be_tuned, settings_of, tuned
from trimtab.errors import TrimtabError
from trimtab.kinds.annotations import TUNING_UNDO
from trimtab.kinds.cron import is_weekend
from trimtab.kinds.meta import seconds_of
from trimtab.live.look.hold import hold_decreases
from trimtab.live.look.memory import ObjectMemory, TuningMemory
from trimtab.live.look.subject import Subject
from trimtab.live.measure.background import Background, in_turns
from trimtab.live.measure.checkpoint import Checkpoints
from trimtab.live.measure.forecasts import Forecasts
from trimtab.live.object_tick import ObjectTick
from trimtab.live.tell.status_writer import Happening
from trimtab.live.tuning.night_time import night_of
from trimtab.live.tuning.realised_cost import LivedDays
from trimtab.live.tuning.rollout import StoredRollout
from trimtab.policy import Policy, TuningMode

Tuner = Callable[[Iterator[NightCase], int], Awaitable[list[Verdict]]]
REST_S = 7 * 86400.0  # after a rollback
STARTUP_S = 120.0  # until one was measured
MINUTE_S = 60.0
HALF_DAY_S = 43200.0
log = logging.getLogger(__name__)


class _Night(NamedTuple):
    """A workload whose night has come."""

    uid: str
    policy: Policy  # as written
    memory: TuningMemory | None
    tick: ObjectTick


class _Answer(NamedTuple):
    """A verdict on settings that an edit would make another question of."""

    about: str
    verdict: Verdict
    judged: JudgedDay | None


class NightlyTuning(Background):
    """Call `settle` when an object is looked at, `note` when it was acted on, `follow` after each tick."""

    def __init__(self, forecasts: Forecasts, checkpoints: Checkpoints) -> None:
        super().__init__()
        self.forecasts, self.checkpoints = forecasts, checkpoints
        self.tuner: Tuner | None = None
        self.lived = LivedDays()
        self.rollout = StoredRollout(checkpoints.stored, checkpoints.usage.cluster.shard.lease)
        self._written: dict[str, Policy] = {}
        self._asked: dict[str, date] = {}  # the last night of each
        self._answers: dict[str, _Answer] = {}
        self._holds: dict[str, float] = {}  # until when nothing shrinks

    def settle(
        self, subject: Subject, known: ObjectMemory, at: float
    ) -> tuple[Subject, ObjectMemory, Happening | None]:
        """The subject with the settings in force, its memory with what the last night found, and what to tell."""
        uid, policy, found = subject.uid, subject.policy, known.tuning
        off = policy.tuning.mode is TuningMode.OFF
        if off:
            self._written.pop(uid, None)
            if found is None:
                return subject, known, None
        else:
            self._written[uid] = policy
        about = digest(policy)
        answer = self._answers.pop(uid, None)
        if off or (found is not None and found.about not in ("", about)):
            now, news = None, _dropped(found)
        else:
            now, news = found and replace(found, about=about), None
            if answer is not None and answer.about == about:  # else it was edited meanwhile: the next night looks again
                now, news = remembered(answer.verdict, found, about, at, answer.judged)
            elif (asked_at := asked_to_undo(subject, now, at)) is not None and now is not None:
                now, news = undone(now, asked_at, at)
        steering, before = in_force(policy, now), found.in_force if found else None
        if before != (now.in_force if now else None):
            windows_s = (down_window(policy.settle), down_window(steering.settle))
            self._holds[uid] = at + max(*windows_s, before.settings.window_s if before else 0.0)
        return subject._replace(policy=steering), replace(known, tuning=now), news

    def vetoes(self, subject: Subject, seen: Observation) -> tuple[Veto, ...]:
        """After other settings came in force nothing shrinks for one stabilization window."""
        detail = "other settings came in force: nothing shrinks for one stabilization window"
        return hold_decreases(subject.policy, seen, self._holds.get(subject.uid, 0.0), "TuningChanged", detail)

    def note(self, tick: ObjectTick, at: float) -> ObjectTick | None:
        """Count what was lived; the tick, where its night has come."""
        written = self._written.get(tick.subject.uid)
        if written is None:
            return None
        self.lived.note(tick, written)
        return tick if self._is_due(tick, at) else None

    def follow(self, ticks: Sequence[ObjectTick], due: Sequence[ObjectTick], at: float) -> None:
        """Ask for those whose night has come, unless the last ones are still being looked at."""
        if self.tuner is None or not due or not self.idle:
            return
        due = in_turns(due, lambda tick: tick.subject.name.namespace)
        fleet = {tick.subject.uid: tick.after.tuning for tick in ticks if tick.subject.uid in self._written}
        self.start(self._look(self.tuner, due, fleet, at))

    def take_over(self) -> None:
        """A new term: what was found, or asked for, in an old one is of then."""
        self.close()
        self.rollout.forget()
        self._answers.clear()
        self._asked.clear()

    def _is_due(self, tick: ObjectTick, at: float) -> bool:
        uid, zone = tick.subject.uid, self._written[tick.subject.uid].tuning.timezone
        night, found = night_of(at, zone), tick.after.tuning
        looked = found is not None and found.at <= at and night_of(found.at, zone) == night
        if night is None or looked or self._asked.get(uid) == night:
            return False
        kept = self.checkpoints.has_read(uid) or self.forecasts.is_whole(tick)
        return kept and self.forecasts.has_read(tick)

    async def _look(
        self, tuner: Tuner, due: Sequence[ObjectTick], fleet: dict[str, TuningMemory | None], at: float
    ) -> None:
        nights = {tick.subject.uid: _night(tick, self._written[tick.subject.uid]) for tick in due}
        for each in nights.values():
            night = night_of(at, each.policy.tuning.timezone)
            if night is not None:
                self._asked[each.uid] = night
        log.info("tuning: looking at the last days of %d workloads", len(nights))
        try:
            verdicts = await tuner(self._cases(list(nights.values()), at), len(nights))
            answers = self._judged([each for each in verdicts if each.uid in nights], nights, at)
            answers = await self._rolled_out(answers, nights, fleet, at)
        except TrimtabError as error:
            log.warning("tuning: nothing was found tonight: %s", error)
            return
        except Exception:
            log.exception("tuning: nothing was found tonight: a bug of trimtab")
            return
        self._answers |= {uid: answer for uid, answer in answers.items() if uid in self._written}
        for uid in nights:
            self.lived.begin_day(uid)

    def _judged(self, verdicts: Sequence[Verdict], nights: dict[str, _Night], at: float) -> dict[str, _Answer]:
        answers = {}
        for verdict in verdicts:
            night, judged = nights[verdict.uid], None
            earlier = night.memory.in_force if night.memory else None
            if verdict.realized_j is not None and earlier is not None:
                weekend = is_weekend(at - HALF_DAY_S, night.policy.tuning.timezone)
                judged = JudgedDay.of(verdict.realized_j, earlier.promise, weekend, at)
            answers[verdict.uid] = _Answer(digest(night.policy), verdict, judged)
        return answers

    async def _rolled_out(
        self, answers: dict[str, _Answer], nights: dict[str, _Night], fleet: dict[str, TuningMemory | None], at: float
    ) -> dict[str, _Answer]:
        """The answers, with those that have to wait for others saying so."""
        places = {uid: night.tick.subject.name.namespace for uid, night in nights.items()}
        verdicts = [each.verdict for each in answers.values()]
        try:
            before = await self.rollout.read()
        except TrimtabError as error:  # rollbacks wait for nothing
            verdicts = let_switch(verdicts, places, 0, f"how far the rollout has come cannot be read: {error}")
            return {each.uid: answers[each.uid]._replace(verdict=each) for each in verdicts}
        rollout = next_night(before, _batch(before, fleet, answers), at, is_weekend(at + HALF_DAY_S, _zone(nights)))
        switched = sum(_switched_since(found, rollout.night_at) for found in fleet.values())
        left = max(0, rollout.limit(len(fleet), at) - switched)
        verdicts = let_switch(verdicts, places, left, _why_wait(rollout, at))
        if any(each.kind is VerdictKind.SWITCHED for each in verdicts):
            rollout = replace(rollout, batch_at=rollout.night_at)
        if rollout.paused(at) and not before.paused(at):
            log.warning("tuning: two nights in a row did worse than promised: nothing switches for a week")
        await self.rollout.write(rollout)
        return {each.uid: answers[each.uid]._replace(verdict=each) for each in verdicts}

    def _cases(self, nights: Sequence[_Night], at: float) -> Iterator[NightCase]:
        """One by one: the days of many workloads at once would be too much to hold."""
        for night in nights:
            if night.uid not in self._written:
                continue
            try:
                case = self._case(night, at)
            except Exception:  # the others have their night
                log.exception("tuning: %s has no night: a bug of trimtab", night.tick.subject.name)
                continue
            if case:
                yield case

    def _case(self, night: _Night, at: float) -> NightCase | None:
        keys, seen, name = keys_of(night.uid, night.policy), night.tick.seen, night.tick.subject.name
        pod = yardstick(night.policy, night.policy.signals[0], seen) if night.policy.signals else None
        frame = self.forecasts.demand.log.frame(keys[:1], at, MINUTE_S)
        startup, found = seen.startup, night.memory
        return NightCase(
            uid=night.uid,
            workload=f"{name.namespace}/{name.name}",
            policy=night.policy,
            start=frame.start,
            demand=np.asarray(frame.values[0] if len(frame.values) else [], dtype=np.float32).tobytes(),
            pod=pod if isinstance(pod, Yardstick) else None,
            startup_s=startup.quantiles[-1].value if isinstance(startup, Startup) else STARTUP_S,
            in_force=found.in_force if found else None,
            lived=self.lived.day(night.uid),
            rests=bool(found and found.rests_until and at < found.rests_until),
        )

    def forget(self, uids: set[str]) -> None:
        """All but these are gone."""
        self.lived.forget(uids)
        for part in (self._written, self._asked, self._answers, self._holds):
            for uid in part.keys() - uids:
                del part[uid]


def digest(policy: Policy) -> str:
    """Of what tuning changes, and of what it is measured by; an edit of anything else leaves it in force."""
    metrics = [signal.metric for signal in policy.signals]
    settings = settings_of(policy) if may_be_tuned(policy) else policy.signals
    price = (policy.objective.price, policy.objective.service_level) if policy.objective else None
    if policy.objective and (promise := policy.objective.latency):  # both are learned from it
        settings, price = (), (policy.objective.price, promise.below_s)
    limits = replace(policy.tuning, timezone="")
    return blake2b(msgspec.msgpack.encode((metrics, settings, price, limits)), digest_size=8).hexdigest()


def in_force(policy: Policy, found: TuningMemory | None) -> Policy:
    """What decides: settings that were earned, else what is written; an objective has to be earned too, where a night
    can compare it."""
    if policy.tuning.mode is not TuningMode.NIGHTLY or not may_be_tuned(policy):
        return policy
    if found is not None and found.in_force is not None:
        return tuned(policy, found.in_force.settings)
    untunable = found is not None and found.verdict is VerdictKind.UNTUNABLE
    return policy if untunable else by_target(policy)


def remembered(
    verdict: Verdict, before: TuningMemory | None, about: str, at: float, judged: JudgedDay | None = None
) -> tuple[TuningMemory, Happening | None]:
    """What stays of a night, and the event of it where something changed."""
    found = TuningMemory(
        at=at,
        about=about,
        verdict=verdict.kind,
        reason=verdict.reason,
        in_force=before.in_force if before else None,
        evidence=verdict.evidence,
        rests_until=before.rests_until if before else None,
        switched_at=before.switched_at if before else None,
        judged=_with_day(before.judged if before else (), judged),
        undone=before.undone if before else None,
    )
    if verdict.kind is VerdictKind.WENT_BACK and before and before.in_force:
        text = f"back to {settings_text(before.in_force.replaced)}: {verdict.reason}"
        found = replace(found, in_force=before.in_force.before, rests_until=at + REST_S)
        return found, Happening("TuningWentBack", text, warning=True)
    if verdict.settings is None or verdict.present is None or verdict.promise is None or verdict.evidence is None:
        return found, None
    text = f"{settings_text(verdict.settings)} instead of {settings_text(verdict.present)}"
    text = f"{text}: {gain_text(verdict.evidence)}"
    if verdict.kind is VerdictKind.SWITCHED:
        earlier = replace(found.in_force, before=None) if found.in_force else None
        new = InForce(
            settings=verdict.settings, replaced=verdict.present, promise=verdict.promise, since=at, before=earlier
        )
        return replace(found, in_force=new, switched_at=at, judged=()), Happening("TuningSwitched", text)
    found = replace(found, advice=verdict.settings)
    told = before is not None and before.advice == verdict.settings
    return found, None if told or verdict.kind is not VerdictKind.ADVISED else Happening("TuningAdvised", text)


def undone(found: TuningMemory, asked_at: float, at: float) -> tuple[TuningMemory, Happening | None]:
    """The settings of before, because somebody asked for them; the workload is left alone for a while."""
    now = replace(found, undone=asked_at)
    if found.in_force is None or found.in_force.since > asked_at:
        return now, None
    text = f"back to {settings_text(found.in_force.replaced)}: {TUNING_UNDO} asks for it"
    reason = "it was undone by hand"
    now = replace(now, in_force=found.in_force.before, rests_until=at + REST_S, advice=None, reason=reason)
    return replace(now, verdict=VerdictKind.WENT_BACK), Happening("TuningUndone", text)


def asked_to_undo(subject: Subject, found: TuningMemory | None, at: float) -> float | None:
    """When somebody asked for it, if that was not followed yet; nobody asks from the future."""
    asked_at = seconds_of((subject.object.metadata.annotations or {}).get(TUNING_UNDO))
    if found is None or asked_at is None or asked_at > at:
        return None
    return asked_at if found.undone is None or asked_at > found.undone else None


def _dropped(found: TuningMemory | None) -> Happening | None:
    if found is None or found.in_force is None:
        return None
    edited = "a metric, or what tuning changes, was edited"
    return Happening("TuningDropped", f"{settings_text(found.in_force.settings)} no longer holds: {edited}")


def _night(tick: ObjectTick, written: Policy) -> _Night:
    return _Night(tick.subject.uid, written, tick.after.tuning, tick)


def _batch(
    rollout: Rollout, fleet: dict[str, TuningMemory | None], answers: dict[str, _Answer]
) -> list[tuple[JudgedDay, ...]]:
    """Those that switched last, each with the days that it was judged by since, tonight's included."""
    found = []
    for uid, memory in fleet.items():
        if memory is not None and _switched_since(memory, rollout.batch_at):
            found.append(_with_day(memory.judged, answers[uid].judged if uid in answers else None))
    return found


def _switched_since(found: TuningMemory | None, at: float | None) -> bool:
    return found is not None and found.switched_at is not None and at is not None and found.switched_at >= at


def _with_day(judged: tuple[JudgedDay, ...], day: JudgedDay | None) -> tuple[JudgedDay, ...]:
    """The last weekday and the last day of a weekend."""
    return judged if day is None else (*(each for each in judged if each.weekend is not day.weekend), day)


def _why_wait(rollout: Rollout, at: float) -> str:
    if rollout.paused(at):
        return "switches are paused for a week: two nights in a row did worse than promised"
    if not rollout.allowed:
        return "those that switched last are judged first, by a day like the one that begins"
    return "enough others switch tonight; it is tried again"


def _zone(nights: dict[str, _Night]) -> str:
    """The time zone of most."""
    zones = [night.policy.tuning.timezone for night in nights.values()]
    return max(sorted(set(zones)), key=zones.count)
