"""tick: one look at everything. Read the program in `tick`; every verb is a function or another module.

compile -> look -> gather -> decide -> break -> act -> say -> record. What fails for one object is caught by the
guard, becomes a condition and an event on that object, and the rest goes on.
"""

from __future__ import annotations

import logging
import time

from msgspec.structs import replace

from trimtab.core.admit import paused, writes
from trimtab.core.decide import decide
from trimtab.core.explain import DecisionCondition, sentence
from trimtab.core.model import Missing, Observation, Samples, Veto
from trimtab.errors import ClusterUnavailable, Refused
from trimtab.journal import Journal
from trimtab.live.act import apply, floor, resize, sizes
from trimtab.live.act.breaker import Breaker
from trimtab.live.act.pen import Pen
from trimtab.live.guard import Guard
from trimtab.live.headroom import Room
from trimtab.live.look import conflict, kept, revert
from trimtab.live.look.kept import Kept
from trimtab.live.look.recall import recalled
from trimtab.live.look.subject import Compiler, Subject
from trimtab.live.look.world import World
from trimtab.live.measure.checkpoint import Checkpoints, Watched
from trimtab.live.measure.foresight import Foresight
from trimtab.live.measure.gather import Gather, Wanted
from trimtab.live.measure.usage import UsageWatch
from trimtab.live.tell import conditions
from trimtab.live.tell.events import Happening, tell
from trimtab.live.tell.record import Recorder
from trimtab.live.tell.scribe import Scribe
from trimtab.live.tell.status import STATUS, Said
from trimtab.live.tell.telemetry import Telemetry
from trimtab.live.view import Case, View
from trimtab.wire.objects import Custom
from trimtab.wire.resources import HPAS, Resource

log = logging.getLogger(__name__)


class Ticker:
    """Holds what outlives a tick: memories, what was said, the breaker."""

    def __init__(
        self,
        world: World,
        gather: Gather,
        pen: Pen,
        compiler: Compiler,
        breaker: Breaker,
        telemetry: Telemetry,
        usage: UsageWatch,
        foresight: Foresight,
        journal: Journal | None = None,
    ) -> None:
        self.world, self.gather, self.pen, self.compiler, self.usage = world, gather, pen, compiler, usage
        self.breaker, self.foresight = breaker, foresight
        self.scribe = Scribe(pen)
        self.guard = Guard(pen, self.scribe, telemetry)
        self.recorder = Recorder(telemetry, journal)
        self.checkpoints = Checkpoints(pen, usage.book, usage.checkpoint_s)
        self._kept: dict[str, Kept] = {}

    def take_over(self) -> None:
        """A new term: others may have acted meanwhile, so memories are read again and windows start anew."""
        self._kept.clear()
        self.scribe.forget(set())

    async def tick(self, at: float) -> None:
        """`at` is now for everything that is decided in this tick."""
        found = [(feed.resource, one) for feed in self.world.ours.values() if feed.resource for one in feed.store]
        found += [(HPAS, one) for one in self.world.hpas.store if floor.is_predictive(one)]
        subjects = await self.guard.each(self._compile, found, _of_object)
        self._forget({one.metadata.uid for _, one in found})
        claims = conflict.Claims(self.world, [one for one in subjects if one.resource is not HPAS], at)
        views = await self.guard.each(lambda one: self._look(one, claims, at), subjects, _of_subject)
        self.foresight.forget({view.subject.uid for view in views}, {view.target.uid for view in views})
        samples = await self.gather.gather([_wanted(view, at) for view in views])
        await self._watch_usage([view for view in views if view.subject.policy.vertical], at)
        pairs, room = list(zip(views, samples, strict=True)), Room(self.world)
        cases = await self.guard.each(
            lambda pair: self._decide(pair[0], pair[1], room, at), pairs, lambda p: _of_subject(p[0].subject)
        )
        cases = self._break(cases, at)
        done = await self.guard.each(self._act, cases, lambda case: _of_subject(case.view.subject))
        await self.guard.each(self._restore, self._orphans(), _of_object)
        self.recorder.record(done)

    async def _watch_usage(self, views: list[View], at: float) -> None:
        watched = [Watched(view.subject, view.target.uid) for view in views]
        await self.checkpoints.read(watched, at)
        await self.usage.look([view.target for view in views], at)
        await self.checkpoints.write(watched, at)

    async def _compile(self, item: tuple[Resource, Custom]) -> Subject:
        resource, found = item
        return self.compiler.subject(resource, found, self.world.enabled(found.metadata.namespace), time.time())

    async def _look(self, subject: Subject, claims: conflict.Claims, at: float) -> View:
        ref, namespace = subject.target, subject.name.namespace
        target = await self.world.target(namespace, ref.api_version, ref.kind, ref.name)
        memory = self._kept.get(subject.uid)
        if memory is None:
            status = subject.object.status
            memory = kept.read(status, at, target.replicas)
            memory = await recalled(self.world, target, memory, subject.policy, status, at)
        memory = await revert.noticed(self.world, target, memory, subject.object.metadata.generation, at)
        memory = sizes.overloaded(self.world, target, memory, subject.policy)
        self._kept[subject.uid] = memory
        subject, pods = sizes.fitted(subject, target), self.world.pods_of(target)
        self.foresight.note_pods(target.uid, pods)
        return View(subject, target, pods, memory, claims.against(subject, at))

    async def _decide(self, view: View, samples: tuple[Samples | Missing, ...], room: Room, at: float) -> Case:
        started = self.foresight.startup(view.target.uid, at)
        seen = Observation(
            at=at,
            spec_replicas=view.target.replicas,
            status_replicas=view.target.status_replicas,
            pods=view.pods,
            samples=samples,
            sizes=sizes.now(view.subject, view.target, view.kept),
            written_for=sizes.written_for(view.subject, view.target, view.kept),
            usage=self.usage.of(view.target),
            startup=started,
            vetoes=self._vetoes(view, at),
        )
        await self.foresight.note_demand(view.subject, seen)
        seen = replace(seen, forecasts=self.foresight.forecasts(view.subject, started, at))
        decision = decide(view.subject.policy, seen, view.kept.core)
        blocked = room.vetoes(view.subject, view.target, seen.sizes, decision.change)
        if blocked:  # decided again, so that what stands in the way is part of what was seen
            seen = replace(seen, vetoes=seen.vetoes + blocked)
            decision = decide(view.subject.policy, seen, view.kept.core)
        return Case(view, seen, decision)

    def _vetoes(self, view: View, at: float) -> tuple[Veto, ...]:
        return conflict.vetoes(view.claims) + revert.veto(view.kept, at) + self.breaker.vetoes(at)

    def _break(self, cases: list[Case], at: float) -> list[Case]:
        """Too many fall at once: decide again, with nobody allowed to."""
        if not self.breaker.trip([case.decision for case in cases], at):
            return cases
        log.warning(
            "fleet breaker: too many objects want to shrink at once; nobody does for %g s", self.breaker.window_s
        )
        held = [(case, replace(case.seen, vetoes=case.seen.vetoes + self.breaker.vetoes(at))) for case in cases]
        return [
            Case(case.view, seen, decide(case.view.subject.policy, seen, case.view.kept.core)) for case, seen in held
        ]

    async def _act(self, case: Case) -> Case:
        """Write the change, if this object may; remember it only after the write succeeded; then say so."""
        view, decision = case.view, case.decision
        if view.subject.resource is HPAS:
            return await self._raise_floor(case)
        memory, change = replace(view.kept, core=decision.memory), sizes.writable(view.subject, decision.change)
        outcome, trouble = "idle" if decision.change is None else "shadow", None
        if writes(view.subject.policy.admit, case.seen.at):
            try:
                memory, trouble = await apply.apply(
                    self.pen, self.world, view.subject, view.target, change, memory, case.seen.at
                )
            except ClusterUnavailable:
                self._kept.pop(view.subject.uid, None)  # whether it was written is seen at the next look
                raise
            if change is not None:
                outcome = f"refused: {trouble}" if trouble else "written"
            elif decision.change is not None:
                outcome = "advised"
        self._kept[view.subject.uid] = memory
        done = case._replace(outcome=outcome, kept=memory)
        await self._say(done, trouble)
        return done

    async def _raise_floor(self, case: Case) -> Case:
        """Document 003: the HPA scales, we move its minReplicas. Its status is not ours: we speak by events."""
        subject = case.view.subject
        memory = self._kept[subject.uid] = replace(case.view.kept, core=case.decision.memory)
        may = writes(subject.policy.admit, case.seen.at)
        outcome = await floor.follow(self.pen, subject.object, subject.policy, case.seen, case.decision, may)
        return case._replace(outcome=outcome, kept=memory)

    def _orphans(self) -> list[tuple[Resource, Custom]]:
        """HPAs with a floor of ours that do not ask for one any more, where anything may be written at all."""
        return [
            (HPAS, one)
            for one in self.world.hpas.store
            if floor.is_ours(one)
            and not floor.is_predictive(one)
            and not self.compiler.shadow
            and self.world.enabled(one.metadata.namespace)
        ]

    async def _restore(self, item: tuple[Resource, Custom]) -> None:
        await floor.restore(self.pen, item[1])

    async def _say(self, case: Case, trouble: Refused | None) -> None:
        view, decision, after = case.view, case.decision, case.kept
        assert after is not None
        subject, about = view.subject, view.subject.object
        found = self._conditions(case, trouble)
        said = Said(subject, case.seen, view.kept.core, decision, after, found, view.target)
        if case.outcome == "written" and decision.change is not None and decision.change.replicas is not None:
            text = sentence(subject.policy, case.seen, view.kept.core, decision)
            await tell(
                self.pen,
                subject.resource,
                about,
                Happening("SuccessfulRescale", f"New size: {decision.change.replicas}; reason: {text}"),
            )
        await self.scribe.say(subject.resource, about, STATUS[subject.name.kind](said), found, case.seen.at)

    def _conditions(self, case: Case, trouble: Refused | None) -> tuple[DecisionCondition, ...]:
        view, after, at = case.view, case.kept or case.view.kept, case.seen.at
        found = conditions.of_decision(view.subject, case.seen, view.kept, case.decision, case.outcome, trouble)
        found["Conflict"] = conditions.of_rivals(view.claims)
        found["Reverted"] = conditions.of_revert(after, at)
        if view.subject.policy.vertical is not None:
            found["ResizeBlocked"] = conditions.of_blockers(case.seen.vetoes)
            found["ResizePending"] = conditions.of_stuck(resize.stuck(self.world.members.pods(view.target.uid)))
        return tuple(found.values())

    def _forget(self, uids: set[str]) -> None:
        """All but these are gone."""
        for part in (self.compiler, self.scribe, self.guard, self.recorder):
            part.forget(uids)
        self._kept = {uid: one for uid, one in self._kept.items() if uid in uids}


def _wanted(view: View, at: float) -> Wanted:
    policy = view.subject.policy
    signals = () if paused(policy.admit, at) else policy.signals
    return Wanted(view.subject.name.namespace, signals, view.pods)


def _of_object(item: tuple[Resource, Custom]) -> tuple[Resource, Custom]:
    return item


def _of_subject(subject: Subject) -> tuple[Resource, Custom]:
    return subject.resource, subject.object
