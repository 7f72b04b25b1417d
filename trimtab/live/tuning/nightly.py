"""nightly: asks for better settings once a night, puts them in force, and says so.

The work is somebody else's: `Tuner` gets cases one by one, as it asks for them, and answers in its own time. A tick
waits for none of it. What is in force is part of the object's memory, so a restart keeps it; an edit of the object
ends it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import date
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from trimtab.core.demand import keys_of
from trimtab.core.explain.tuning import gain_text, settings_text
from trimtab.core.model import Startup
from trimtab.core.nights import Fleet, InForce, NightCase, Verdict, VerdictKind
from trimtab.core.requests import full_load
from trimtab.core.tuned import by_target, may_be_tuned, tuned
from trimtab.errors import TrimtabError
from trimtab.live.look.memory import ObjectMemory, TuningMemory
from trimtab.live.look.subject import Subject
from trimtab.live.measure.forecasts import Forecasts
from trimtab.live.object_tick import ObjectTick
from trimtab.live.tell.status_writer import Happening
from trimtab.live.tuning.lived import LivedDays
from trimtab.live.tuning.night_time import night_of
from trimtab.policy import Policy, TuningMode

Tuner = Callable[[Iterator[NightCase], Fleet], Awaitable[list[Verdict]]]
REST_S = 7 * 86400.0  # after it went back
SAME_NIGHT_S = 20 * 3600.0  # nights of all time zones
STARTUP_S = 120.0  # until one was measured
MINUTE_S = 60.0
log = logging.getLogger(__name__)


class _Night(NamedTuple):
    """A workload whose night has come."""

    uid: str
    policy: Policy  # as written
    memory: TuningMemory | None
    tick: ObjectTick


class NightlyTuning:
    """Call `settle` when an object is looked at, `note` when it was acted on, `follow` after each tick."""

    def __init__(self, forecasts: Forecasts) -> None:
        self.forecasts = forecasts
        self.tuner: Tuner | None = None
        self.lived = LivedDays()
        self._written: dict[str, Policy] = {}
        self._asked: dict[str, date] = {}  # the last night of each
        self._verdicts: dict[str, tuple[int, Verdict]] = {}  # with the generation of the object that it is about
        self._work: asyncio.Task[None] | None = None

    def settle(
        self, subject: Subject, known: ObjectMemory, at: float
    ) -> tuple[Subject, ObjectMemory, Happening | None]:
        """The subject with the settings in force, its memory with what the last night found, and what to tell."""
        uid, policy = subject.uid, subject.policy
        if policy.tuning.mode is TuningMode.OFF:
            self._written.pop(uid, None)
            return subject, replace(known, tuning=None) if known.tuning else known, None
        self._written[uid] = policy
        generation, found, news = subject.object.metadata.generation, known.tuning, None
        if found is not None and found.generation != generation:
            found = replace(found, generation=generation, in_force=None, advice=None, evidence=None, rests_until=None)
        looked_at, verdict = self._verdicts.pop(uid, (generation, None))
        if verdict is not None and looked_at == generation:  # else it was edited meanwhile: the next night looks again
            found, news = remembered(verdict, found, generation, at)
        return subject._replace(policy=in_force(policy, found)), replace(known, tuning=found), news

    def note(self, tick: ObjectTick, at: float) -> ObjectTick | None:
        """Count what was lived; the tick, where its night has come."""
        written = self._written.get(tick.subject.uid)
        if written is None:
            return None
        self.lived.note(tick, written)
        return tick if self._is_due(tick, at) else None

    def follow(self, ticks: Sequence[ObjectTick], due: Sequence[ObjectTick], at: float) -> None:
        """Ask for those whose night has come, unless the last ones are still being looked at."""
        if self.tuner is None or not due or (self._work is not None and not self._work.done()):
            return
        ours = [tick.after.tuning for tick in ticks if tick.subject.uid in self._written]
        fleet = Fleet(workloads=len(ticks), switched=sum(1 for found in ours if _switched_lately(found, at)))
        self._work = asyncio.create_task(self._look(self.tuner, due, fleet, at))

    def take_over(self) -> None:
        """A new term: what was found, or asked for, in an old one is of then."""
        self.close()
        self._verdicts.clear()
        self._asked.clear()

    async def finished(self) -> None:
        """The end of what is under way."""
        if self._work is not None:
            await self._work

    def close(self) -> None:
        if self._work is not None:
            self._work.cancel()

    def _is_due(self, tick: ObjectTick, at: float) -> bool:
        uid, zone = tick.subject.uid, self._written[tick.subject.uid].tuning.timezone
        night, found = night_of(at, zone), tick.after.tuning
        looked = found is not None and found.at <= at and night_of(found.at, zone) == night
        return night is not None and not looked and self._asked.get(uid) != night

    async def _look(self, tuner: Tuner, due: Sequence[ObjectTick], fleet: Fleet, at: float) -> None:
        nights = [_Night(tick.subject.uid, self._written[tick.subject.uid], tick.after.tuning, tick) for tick in due]
        for each in nights:
            night = night_of(at, each.policy.tuning.timezone)
            if night is not None:
                self._asked[each.uid] = night
        log.info("tuning: looking at the last days of %d workloads", len(nights))
        try:
            verdicts = await tuner(self._cases(nights, at), fleet)
        except TrimtabError as error:
            log.warning("tuning: nothing was found tonight: %s", error)
            return
        except Exception:
            log.exception("tuning: nothing was found tonight: a bug of trimtab")
            return
        asked = {each.uid: each.tick.subject.object.metadata.generation for each in nights}
        self._verdicts |= {each.name: (asked[each.name], each) for each in verdicts if each.name in self._written}
        for each in nights:
            self.lived.begin_day(each.uid)

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
        keys, seen = keys_of(night.uid, night.policy), night.tick.seen
        carries = full_load(night.policy, night.policy.signals[0], seen) if night.policy.signals else None
        frame = self.forecasts.demand.log.frame(keys[:1], at, MINUTE_S)
        startup, found = seen.startup, night.memory
        return NightCase(
            name=night.uid,
            policy=night.policy,
            start=frame.start,
            demand=np.asarray(frame.values[0] if len(frame.values) else [], dtype=np.float32).tobytes(),
            pod_capacity=carries if isinstance(carries, float) else 0.0,
            startup_s=startup.quantiles[-1].value if isinstance(startup, Startup) else STARTUP_S,
            in_force=found.in_force if found else None,
            lived=self.lived.day(night.uid),
            rests=bool(found and found.rests_until and at < found.rests_until),
        )

    def forget(self, uids: set[str]) -> None:
        """All but these are gone."""
        self.lived.forget(uids)
        for part in (self._written, self._asked, self._verdicts):
            for uid in part.keys() - uids:
                del part[uid]


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
    verdict: Verdict, before: TuningMemory | None, generation: int, at: float
) -> tuple[TuningMemory, Happening | None]:
    """What stays of a night, and the event of it where something changed."""
    found = TuningMemory(
        at=at,
        generation=generation,
        verdict=verdict.kind,
        reason=verdict.reason,
        in_force=before.in_force if before else None,
        evidence=verdict.evidence,
        rests_until=before.rests_until if before else None,
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
        return replace(found, in_force=new), Happening("TuningSwitched", text)
    found = replace(found, advice=verdict.settings)
    told = before is not None and before.advice == verdict.settings
    return found, None if told or verdict.kind is not VerdictKind.ADVISED else Happening("TuningAdvised", text)


def _switched_lately(found: TuningMemory | None, at: float) -> bool:
    return found is not None and found.in_force is not None and at - found.in_force.since < SAME_NIGHT_S
