"""tick: one look at everything. Read the program in `Ticker.tick`; docs/architecture.md has the table of its verbs.

What fails for one object is caught by the guard, becomes a condition and an event on that object, and the rest goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from msgspec.structs import replace

from trimtab.acts import AxisOutcome, Fate, Outcome
from trimtab.core.admit import paused, writes
from trimtab.core.decide import decide
from trimtab.core.model import Change, Decision, Missing, Observation, Plan, Samples, Veto
from trimtab.errors import ClusterUnavailable
from trimtab.live.act import floor as act_floor
from trimtab.live.act import take_back
from trimtab.live.act.apply import apply, unwritten
from trimtab.live.act.breaker import Breaker, fleet_wishes
from trimtab.live.act.sizes import writable
from trimtab.live.guard import Guard
from trimtab.live.headroom import Headroom
from trimtab.live.look import bridge, conflict, doubts, floor, memory, revert, sizes
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.live.look.memory import ObjectMemory
from trimtab.live.look.subject import Compiler, Subject
from trimtab.live.look.unrecorded import with_unrecorded_scaling
from trimtab.live.measure.asking import patience
from trimtab.live.measure.checkpoint import Checkpoints
from trimtab.live.measure.forecasts import Forecasts
from trimtab.live.measure.gather import Gather, Measured, Wanted
from trimtab.live.measure.usage import UsageWatch
from trimtab.live.object_tick import ObjectTick
from trimtab.live.tell.events import Happening
from trimtab.live.tell.record import DecisionLog, Recorder
from trimtab.live.tell.say import announce, say
from trimtab.live.tell.status_writer import StatusWriter
from trimtab.live.tell.telemetry import Telemetry
from trimtab.live.tell.teller import Teller
from trimtab.live.tuning.nightly import NightlyTuning
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Custom, WirePod
from trimtab.wire.resources import HPAS, Resource

ACTS_AT_ONCE = 64  # spends the request budget though each takes 0.3 s; API servers let a service account have 245
log = logging.getLogger(__name__)


class Ticker:
    """Holds what outlives a tick: memories, what was said, the breaker."""

    def __init__(
        self,
        cluster: WatchedCluster,
        gather: Gather,
        writer: Kube,
        compiler: Compiler,
        breaker: Breaker,
        telemetry: Telemetry,
        usage: UsageWatch,
        checkpoints: Checkpoints,
        forecasts: Forecasts,
        journal: DecisionLog | None = None,
        period_s: float = 15.0,
    ) -> None:
        self.cluster, self.gather, self.writer, self.compiler = cluster, gather, writer, compiler
        self.breaker, self.usage, self.checkpoints, self.forecasts = breaker, usage, checkpoints, forecasts
        self.status_writer = StatusWriter(writer)
        self.teller = Teller()
        self.guard = Guard(writer, self.status_writer, self.teller, telemetry)
        self.recorder = Recorder(telemetry, journal)
        self.tuning = NightlyTuning(forecasts)
        self.period_s, self.patience_s = period_s, patience(period_s)
        self._memories: dict[str, ObjectMemory] = {}
        self._term = -1
        self._served: dict[str, str | None] = {}  # whom objects asked for when we last led

    def take_over(self, term: int) -> None:
        """We lead: others may have acted meanwhile, so memories are read again and windows start anew.

        `term` is the same as before if nobody else has led.
        """
        self._served |= {uid: known.target for uid, known in self._memories.items()}
        self._memories.clear()
        self.usage.take_over(others_led=term != self._term)
        self.checkpoints.take_over()
        self.forecasts.take_over()
        self._term = term
        self.status_writer.forget(set())
        self.tuning.take_over()

    def clock_set(self, by_s: float) -> None:
        """The wall clock was set: what is remembered lies as far back as before."""
        log.warning("the clock was set by %+.0f s: what is remembered moves with it", by_s)
        self._memories = {uid: memory.shifted(known, by_s) for uid, known in self._memories.items()}
        self.status_writer.forget(set())
        self.recorder.forget(set())
        for part in (self.breaker, self.usage, self.checkpoints):
            part.clock_set(by_s)
        self.forecasts.demand.clock_set()

    async def tick(self, at: float) -> None:
        """`at` is now for everything that happens in this tick: nothing below asks the clock.

        Looking and measuring have a third of the period each, acting the rest of it: who is slow costs the others no
        more than that.
        """
        ends_at, objects = asyncio.get_running_loop().time() + self.period_s, self._objects()
        self._forget({found.metadata.uid for _, found in objects})
        subjects = await self.guard.each_at_once(lambda item: self._compile(*item, at), objects, _of_object, at)
        claims = conflict.Claims(self.cluster, [each for each in subjects if each.resource is not HPAS], at)
        looked = await self.guard.each(
            lambda subject: self._look(subject, claims, at), subjects, _of_subject, at, self.patience_s
        )
        gathered = await self._measure(looked, at)
        measured, headroom = list(zip(looked, gathered.samples, strict=True)), Headroom(self.cluster)
        decided = await self.guard.each_at_once(
            lambda pair: self._decide(*pair, headroom), measured, lambda pair: _of_subject(pair[0].subject), at
        )
        self.forecasts.follow()
        held = self._break(decided, at)
        left_s = max(ends_at - asyncio.get_running_loop().time(), self.patience_s)
        acting = self.guard.each(self._act, held, lambda tick: _of_subject(tick.subject), at, left_s, ACTS_AT_ONCE)
        with self.teller.silent(self.patience_s):
            if self.compiler.shadow or not take_back.needed(self.cluster):
                done = await acting
            else:
                done, _ = await asyncio.gather(acting, self._take_back(objects, looked, at, left_s))
        try:
            await self._record(done, at)
        finally:
            self.teller.begin()

    def _objects(self) -> list[tuple[Resource, Custom]]:
        """Everything that asks us to scale something, and nobody else."""
        ours = [(feed.resource, found) for feed in self.cluster.ours.values() if feed.resource for found in feed.store]
        ours += [(HPAS, hpa) for hpa in self.cluster.hpas.store if floor.speaks_of_forecasts(hpa) is not False]
        return (
            [item for item in ours if item[1].metadata.namespace not in self.cluster.left]
            if self.cluster.left
            else ours
        )

    def _compile(self, resource: Resource, found: Custom, at: float) -> Subject:
        enabled = self.cluster.enabled(found.metadata.namespace)
        return self.compiler.subject(resource, found, enabled, at, self.cluster.frozen)

    async def _look(self, subject: Subject, claims: conflict.Claims, at: float) -> ObjectTick:
        ref, namespace = subject.target, subject.name.namespace
        target = await self.cluster.target(namespace, ref.api_version, ref.kind, ref.name)
        known = await self._remembered(subject, target, at)
        subject, known, news = self.tuning.settle(subject, known, at)
        self._memories[subject.uid] = known
        if news is not None:
            announce(self.teller, self.writer, subject, news, at)
        against, pods = claims.against(subject, at), self.cluster.pods_of(target)
        subject = conflict.without_bridge(sizes.fitted(subject, target), against)
        self.forecasts.note_pods(subject.uid, target.uid, pods)
        seen = Observation(
            at=at,
            spec_replicas=target.replicas,
            status_replicas=target.status_replicas,
            pods=pods,
            sizes=sizes.now(subject, target, known),
            written_for=sizes.written_for(subject, target, known),
        )
        as_it_is = Decision(plan=Plan(replicas=target.replicas), change=None)
        tick = ObjectTick(subject, target, against, known, known, seen, as_it_is)
        if subject.policy.bridge is None:
            return tick
        return tick._replace(bridged=bridge.in_force(self.cluster.members.pods(target.namespace, target.uid)))

    async def _remembered(self, subject: Subject, target: ScaleTarget, at: float) -> ObjectMemory:
        known, status = self._memories.get(subject.uid), subject.object.status
        first = known is None
        known = known or memory.read(status, at, target.replicas, str(subject.name))
        if {known.target, self._served.pop(subject.uid, None)} - {None, target.ref}:
            self.forecasts.begin_anew(subject.uid)
        if first and known.target in (None, target.ref):
            known = await with_unrecorded_scaling(self.cluster, target, known, subject.policy, status, at)
        known = sizes.of_policy(memory.of_target(known, target.ref, at, target.replicas), subject.policy)
        known = await revert.noticed(self.cluster, target, known, subject.object.metadata.generation, at)
        return sizes.overloaded(self.cluster, target, known, subject.policy, at)

    async def _measure(self, ticks: list[ObjectTick], at: float) -> Measured:
        sized = [tick for tick in ticks if tick.subject.policy.vertical]
        targets = [tick.target for tick in sized]
        wanted = [_wanted(tick) for tick in ticks]
        gathered = await self.gather.gather(wanted, at, self.usage.namespaces(targets, at))
        self.usage.look(targets, gathered.usage, at)
        self.checkpoints.follow(ticks, at)
        self.forecasts.read_back(ticks, at)
        return gathered

    def _decide(self, tick: ObjectTick, samples: tuple[Samples | Missing, ...], headroom: Headroom) -> ObjectTick:
        subject, target, at = tick.subject, tick.target, tick.seen.at
        started = self.forecasts.startup(target.uid, at)
        seen = replace(
            tick.seen, samples=samples, usage=self.usage.of(target), startup=started, vetoes=self._vetoes(tick)
        )
        seen = replace(seen, forecasts=self.forecasts.look(subject, seen))
        tick = _decided(tick, seen)
        change = tick.decision.change
        blocked = headroom.vetoes(subject, target, seen.sizes, change)
        blocked += headroom.bridge_vetoes(target, change, tick.memory.core.bridge)
        return _decided(tick, seen, blocked) if blocked else tick

    def _vetoes(self, tick: ObjectTick) -> tuple[Veto, ...]:
        at, subject = tick.seen.at, tick.subject
        breaker = self.breaker.vetoes(subject.name.namespace, at)
        stale = doubts.vetoes(self.cluster, subject, tick.target, tick.seen.pods)
        return conflict.vetoes(tick.claims) + revert.veto(tick.memory, at) + stale + breaker

    def _break(self, ticks: list[ObjectTick], at: float) -> list[ObjectTick]:
        """Too many fall at once: decide again, with nobody allowed to."""
        tripped = self.breaker.trip(fleet_wishes(ticks), at)
        for place in tripped:
            who = f"objects of namespace {place}" if place else "objects"
            log.warning(
                "fleet breaker: too many %s want to shrink at once; none does for %g s", who, self.breaker.window_s
            )
        if not tripped:
            return ticks
        return [_decided(tick, tick.seen, self.breaker.vetoes(tick.subject.name.namespace, at)) for tick in ticks]

    async def _act(self, tick: ObjectTick) -> ObjectTick:
        """Write the change, if this object may; remember it only after the write succeeded. It is told later."""
        if tick.subject.resource is HPAS:
            return await self._raise_floor(tick)
        after = replace(tick.memory, core=tick.decision.memory)
        outcome = unwritten(tick.decision.change, Fate.SHADOW, self._why_shadow())
        if writes(tick.subject.policy.admit, tick.seen.at):
            after, outcome = await self._write(tick, after)
        tick = tick._replace(outcome=outcome, after=after)
        self._memories[tick.subject.uid] = after
        say(self.teller, self.status_writer, tick, self._resized(tick))
        return tick

    async def _record(self, done: list[ObjectTick], at: float) -> None:
        """For metrics, the journal and the night; what cannot be said of one object is missing of that one alone."""
        whose = lambda tick: _of_subject(tick.subject)  # noqa: E731
        notes = await self.guard.each_at_once(self.recorder.note, done, whose, at)
        self.recorder.record(done, notes)
        nights = await self.guard.each_at_once(lambda tick: self.tuning.note(tick, at), done, whose, at)
        self.tuning.follow(done, [tick for tick in nights if tick], at)

    def _why_shadow(self) -> str:
        if self.cluster.frozen:
            return "the installation is frozen, until `trimtab unfreeze`"
        return "trimtab runs with --shadow" if self.compiler.shadow else "the object's mode is Shadow"

    async def _write(self, tick: ObjectTick, after: ObjectMemory) -> tuple[ObjectMemory, Outcome]:
        subject, change = tick.subject, tick.decision.change
        now = writable(subject, change)
        try:
            after, outcome = await apply(self.writer, self.cluster, subject, tick.target, now, after, tick.seen.at)
        except (ClusterUnavailable, asyncio.CancelledError):
            self._memories.pop(subject.uid, None)  # whether it was written is seen at the next look
            raise
        advised = Change(was=change.was, sizes=change.sizes) if change and not (now and now.sizes) else None
        return after, outcome + unwritten(advised, Fate.ADVISED)

    async def _raise_floor(self, tick: ObjectTick) -> ObjectTick:
        """Document 003: the HPA scales, we move its minReplicas. Its status is not ours: we speak by events."""
        subject, at = tick.subject, tick.seen.at
        after = self._memories[subject.uid] = replace(tick.memory, core=tick.decision.memory)
        moved = act_floor.moved(subject.object, subject.policy, tick.seen, tick.decision)
        if moved is None:
            return tick._replace(after=after)
        fate = Fate.WRITTEN if writes(subject.policy.admit, at) else Fate.SHADOW
        if fate is Fate.WRITTEN:
            await act_floor.write(self.writer, subject.object, moved, at)
            announce(self.teller, self.writer, subject, Happening("ForecastFloor", moved.text), at)
        why = "" if fate is Fate.WRITTEN else self._why_shadow()
        return tick._replace(after=after, outcome=(AxisOutcome(axis="floor", fate=fate, reason=why),))

    async def _take_back(
        self, objects: list[tuple[Resource, Custom]], looked: list[ObjectTick], at: float, within_s: float
    ) -> None:
        """What was ours and nobody asks for any more."""
        floors, served = take_back.floors(self.cluster), [found for _, found in objects]
        await asyncio.gather(
            self.guard.each(lambda item: act_floor.restore(self.writer, item[1]), floors, _of_object, at, within_s),
            take_back.bridges(self.writer, self.cluster, served, looked, within_s),
        )

    def _resized(self, tick: ObjectTick) -> Sequence[WirePod]:
        """Its pods, where their sizes move."""
        policy, target = tick.subject.policy, tick.target
        return self.cluster.members.pods(target.namespace, target.uid) if policy.vertical or policy.bridge else ()

    def _forget(self, uids: set[str]) -> None:
        """All but these are gone."""
        parts = (self.compiler, self.status_writer, self.teller, self.guard, self.recorder, self.forecasts, self.tuning)
        for part in parts:
            part.forget(uids)
        self._memories = {uid: known for uid, known in self._memories.items() if uid in uids}
        self._served = {uid: target for uid, target in self._served.items() if uid in uids}


def _decided(tick: ObjectTick, seen: Observation, more: tuple[Veto, ...] = ()) -> ObjectTick:
    """What stands in the way is part of what was seen, so that explain and replay know it."""
    seen = replace(seen, vetoes=seen.vetoes + more) if more else seen
    return tick._replace(seen=seen, decision=decide(tick.subject.policy, seen, tick.memory.core))


def _wanted(tick: ObjectTick) -> Wanted:
    policy = tick.subject.policy
    signals = () if paused(policy.admit, tick.seen.at) else policy.signals
    return Wanted(tick.subject.name.namespace, signals, tick.seen.pods)


def _of_object(item: tuple[Resource, Custom]) -> tuple[Resource, Custom]:
    return item


def _of_subject(subject: Subject) -> tuple[Resource, Custom]:
    return subject.resource, subject.object
