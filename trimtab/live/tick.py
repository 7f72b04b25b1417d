"""tick: one evaluation of every object. Read `Ticker.tick`; docs/architecture.md lists its steps.

A failure of one object is caught by the guard, becomes a condition and an event on that object, and stops no other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from trimtab.acts import AxisOutcome, Fate, Outcome
from trimtab.core.admit import paused, writes
from trimtab.core.decide import decide
from trimtab.core.model import Change, Decision, Missing, Observation, Plan, Samples, Veto
from trimtab.core.tuned import down_window
from trimtab.errors import ClusterUnavailable
from trimtab.live.act import floor as act_floor
from trimtab.live.act.apply import apply, unwritten
from trimtab.live.act.breaker import Breaker, fleet_wishes
from trimtab.live.act.bridge import take_back_bridges
from trimtab.live.act.sizes import writable
from trimtab.live.guard import Guard
from trimtab.live.headroom import Headroom, refused_pods
from trimtab.live.look import conflict, floor, memory, revert, sizes
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.live.look.hold import hold_decreases
from trimtab.live.look.memory import ObjectMemory
from trimtab.live.look.stale_view import stale_view_vetoes
from trimtab.live.look.subject import Compiler, Subject
from trimtab.live.measure.bounded_queries import patience
from trimtab.live.measure.checkpoint import Checkpoints
from trimtab.live.measure.forecasts import LONGEST_READ_S, Forecasts
from trimtab.live.measure.gather import Gather, Wanted
from trimtab.live.measure.recent import LastMinutes
from trimtab.live.measure.usage import UsageWatch
from trimtab.live.object_tick import ObjectTick
from trimtab.live.tell.record import DecisionLog, Recorder
from trimtab.live.tell.say import announce, say, say_frozen
from trimtab.live.tell.status_writer import Happening, StatusWriter
from trimtab.live.tell.telemetry import Telemetry
from trimtab.live.tell.teller import Teller
from trimtab.live.tuning.latency_levels import LatencyLevels
from trimtab.live.tuning.nightly import NightlyTuning
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Custom, WirePod
from trimtab.wire.resources import HPAS, Resource

ACTS_AT_ONCE = 64  # spends the request budget though each takes 0.3 s; API servers let a service account have 245
log = logging.getLogger(__name__)
ServedObject = tuple[Resource, Custom]


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
        levels: LatencyLevels | None = None,
    ) -> None:
        self.cluster, self.gather, self.writer, self.compiler = cluster, gather, writer, compiler
        self.breaker, self.usage, self.checkpoints, self.forecasts = breaker, usage, checkpoints, forecasts
        self.status_writer = StatusWriter(writer)
        self.teller = Teller()
        self.guard = Guard(writer, self.status_writer, self.teller, telemetry)
        self.recorder = Recorder(telemetry, journal)
        self.tuning = NightlyTuning(forecasts, checkpoints)
        self.levels = levels or LatencyLevels()
        self.last_minutes = LastMinutes(checkpoints.stored, cluster.shard.lease, forecasts)
        self._readers = [self.last_minutes, checkpoints, *([forecasts.past] if forecasts.past else [])]
        for reader in self._readers[1:]:
            reader.after = self.last_minutes
        self.period_s, self.patience_s = period_s, patience(period_s)
        self._memories: dict[str, ObjectMemory] = {}
        self._term = -1
        self.notes = act_floor.ForecastNotes()
        self.clock_trouble = ""  # which clock is wrong
        self._last_targets: dict[str, str | None] = {}  # by object, when we last led
        self._taken_over_at: dict[str, float] = {}  # objects that somebody served before us
        self._unread: dict[str, ObjectTick] = {}  # those whose history was still being read in this tick

    async def tick(self, at: float) -> None:
        """Evaluate every object once. `at` is now for the whole tick: nothing below reads the clock.

        Looking and measuring get a third of the period each and acting the rest, so a slow object or source costs the
        others no more than that.
        """
        ends_at = asyncio.get_running_loop().time() + self.period_s
        objects = self._served_objects()
        self._forget_all_but(objects)
        subjects = await self._compile(objects, at)
        looked = await self._look(subjects, at)
        samples = await self._measure(looked, at)
        decided = await self._decide(looked, samples, at)
        permitted = self._break(decided, at)
        done = await self._act(permitted, objects, looked, at, ends_at)
        await self._record(done, at)

    # --- the steps, for all objects --------------------------------------------------------------------------------

    def _served_objects(self) -> list[ServedObject]:
        """Return everything that asks us to scale something, less what other operators serve."""
        ours = [(feed.resource, found) for feed in self.cluster.ours.values() if feed.resource for found in feed.store]
        ours += [(HPAS, hpa) for hpa in self.cluster.hpas.store if floor.speaks_of_forecasts(hpa) is not False]
        left = self.cluster.left
        return [item for item in ours if item[1].metadata.namespace not in left] if left else ours

    def _forget_all_but(self, objects: Sequence[ServedObject]) -> None:
        uids = {found.metadata.uid for _, found in objects}
        parts = (self.compiler, self.status_writer, self.teller, self.guard, self.recorder, self.forecasts, self.tuning)
        for part in (*parts, self.notes, self.levels):
            part.forget(uids)
        self._memories = {uid: known for uid, known in self._memories.items() if uid in uids}
        for remembered in (self._last_targets, self._taken_over_at):
            for uid in remembered.keys() - uids:
                del remembered[uid]

    async def _compile(self, objects: Sequence[ServedObject], at: float) -> list[Subject]:
        return await self.guard.each_at_once(partial(self._compile_one, at), objects, at)

    async def _look(self, subjects: Sequence[Subject], at: float) -> list[ObjectTick]:
        claims = conflict.Claims(self.cluster, [subject for subject in subjects if subject.resource is not HPAS], at)
        return await self.guard.each(partial(self._look_at, claims, at), subjects, at, self.patience_s)

    async def _measure(self, ticks: list[ObjectTick], at: float) -> dict[str, tuple[Samples | Missing, ...]]:
        """Return the samples of each object's signals, by uid."""
        sized = [tick for tick in ticks if tick.subject.policy.vertical]
        targets = [tick.target for tick in sized]
        namespaces = self.usage.namespaces(targets, at)
        measured = await self.gather.gather([_wanted(tick) for tick in ticks], at, namespaces)
        kills = {tick.target.uid: tick.memory.oom_kills for tick in sized if tick.memory.oom_kills}
        self.usage.look(targets, measured.usage, at, kills)
        self._unread = {}
        self.last_minutes.read_once(ticks, at)
        self.checkpoints.follow(ticks, at)
        self.forecasts.read_back(ticks, at)
        return {tick.subject.uid: samples for tick, samples in zip(ticks, measured.samples, strict=True)}

    async def _decide(
        self, ticks: list[ObjectTick], samples: dict[str, tuple[Samples | Missing, ...]], at: float
    ) -> list[ObjectTick]:
        ticks = await self.guard.each_at_once(partial(self._measured, samples), ticks, at)
        decided = await self.guard.each_at_once(partial(self._decide_one, Headroom(self.cluster)), ticks, at)
        self.forecasts.follow(self._readers if self._unread else (), self._whole)
        return decided

    def _break(self, ticks: list[ObjectTick], at: float) -> list[ObjectTick]:
        """Decide again without scale-downs when the fleet breaker trips: too many objects want to shrink at once."""
        tripped = self.breaker.trip(fleet_wishes(ticks), at)
        for place in tripped:
            who = f"objects of namespace {place}" if place else "objects"
            log.warning(
                "fleet breaker: too many %s want to shrink at once; none does for %g s", who, self.breaker.window_s
            )
        if not tripped:
            return ticks
        return [_decided(tick, tick.seen, self.breaker.vetoes(tick.subject.name.namespace, at)) for tick in ticks]

    async def _act(
        self,
        permitted: list[ObjectTick],
        objects: list[ServedObject],
        looked: list[ObjectTick],
        at: float,
        ends_at: float,
    ) -> list[ObjectTick]:
        """Write every change, and take back what no object asks for any more. Status and events wait until then."""
        left_s = max(ends_at - asyncio.get_running_loop().time(), self.patience_s)
        acting = self.guard.each(self._act_on, permitted, at, left_s, ACTS_AT_ONCE)
        with self.teller.silent(self.patience_s):
            floors = [] if self.compiler.shadow else act_floor.unwanted_floors(self.cluster)
            if self.compiler.shadow or not (floors or self.cluster.members.bridged):
                return await acting  # nearly always: a second task costs turns of the event loop
            done, *_ = await asyncio.gather(
                acting,
                self.guard.each(self._restore_floor, floors, at, left_s),
                take_back_bridges(self.writer, self.cluster, [found for _, found in objects], looked, left_s),
            )
        return done

    async def _record(self, done: list[ObjectTick], at: float) -> None:
        """Record the tick in metrics, journal and nightly tuning, then say what there is to say."""
        try:
            notes = await self.guard.each_at_once(self.recorder.note, done, at)
            self.recorder.record(done, notes)
            nights = await self.guard.each_at_once(partial(self.tuning.note, at=at), done, at)
            self.last_minutes.keep(at)
            self.tuning.follow(done, [tick for tick in nights if tick], at)
            self.levels.follow([tick.subject for tick in done], at)
        finally:
            self.teller.begin()

    # --- one object ------------------------------------------------------------------------------------------------

    def _compile_one(self, at: float, served: ServedObject) -> Subject:
        resource, found = served
        enabled = self.cluster.enabled(found.metadata.namespace)
        return self.compiler.subject(resource, found, enabled, at, self.cluster.frozen)

    async def _look_at(self, claims: conflict.Claims, at: float, subject: Subject) -> ObjectTick:
        ref, namespace = subject.target, subject.name.namespace
        target = await self.cluster.target(namespace, ref.api_version, ref.kind, ref.name)
        known = await self._remembered(subject, target, at)
        pods = self.cluster.pods_of(target)
        subject, known = self.levels.settle(subject, known, pods, at)
        subject, known, news = self.tuning.settle(subject, known, at)
        self._memories[subject.uid] = known
        if news is not None:
            announce(self.teller, self.writer, subject, news, at)
        against = claims.against(subject, at)
        subject = conflict.without_bridge(sizes.fit_to_target(subject, target), against)
        self.forecasts.note_pods(subject.uid, target.uid, pods)
        seen = Observation(
            at=at,
            spec_replicas=target.replicas,
            status_replicas=target.status_replicas,
            pods=pods,
            sizes=sizes.current_sizes(subject, target, known),
            written_for=sizes.written_for(subject, target, known),
        )
        unchanged = Decision(plan=Plan(replicas=target.replicas), change=None)
        tick = ObjectTick(subject, target, against, known, known, seen, unchanged, clock_trouble=self.clock_trouble)
        if subject.policy.bridge is None:
            return tick
        return tick._replace(bridged=sizes.bridge_in_force(self._wire_pods(target)))

    async def _remembered(self, subject: Subject, target: ScaleTarget, at: float) -> ObjectMemory:
        known, status = self._memories.get(subject.uid), subject.object.status
        first = known is None
        if first and ("memory" in status or floor.is_ours(subject.object)):
            self._taken_over_at.setdefault(subject.uid, at)
        known = known or memory.read(status, at, target.replicas, str(subject.name))
        if {known.target, self._last_targets.pop(subject.uid, None)} - {None, target.ref}:
            self.forecasts.begin_anew(subject.uid)
        if first and known.target in (None, target.ref):
            known = await revert.with_missed_write(self.cluster, target, known, subject.policy, status, at)
        known = sizes.drop_foreign_sizes(memory.of_target(known, target.ref, at, target.replicas), subject.policy)
        known = await revert.noticed(self.cluster, target, known, subject.object.metadata.generation, at)
        known = sizes.note_kills(self.cluster, target, known, subject.policy)
        return sizes.note_overload(self.cluster, target, known, subject.policy, at)

    def _measured(self, samples: dict[str, tuple[Samples | Missing, ...]], tick: ObjectTick) -> ObjectTick:
        """The tick with all that was measured; its demand is remembered."""
        subject, target, at = tick.subject, tick.target, tick.seen.at
        seen = replace(
            tick.seen,
            samples=samples[subject.uid][: len(subject.policy.signals)],
            usage=self.usage.of(target),
            startup=self.forecasts.startup(target.uid, at),
            vetoes=self._vetoes(tick) + self.tuning.vetoes(subject, tick.seen),
        )
        for latency in samples[subject.uid][len(subject.policy.signals) :]:
            self.levels.note(subject, seen, latency)
        self.forecasts.note(subject, seen)
        return tick._replace(seen=seen)

    def _decide_one(self, headroom: Headroom, tick: ObjectTick) -> ObjectTick:
        subject, target = tick.subject, tick.target
        seen = replace(tick.seen, forecasts=self.forecasts.look(subject, tick.seen, self._is_reading(tick)))
        tick = _decided(tick, seen)
        change = tick.decision.change
        blocked = headroom.vetoes(subject, target, seen.sizes, change)
        blocked += headroom.bridge_vetoes(target, change, tick.memory.core.bridge)
        return _decided(tick, seen, blocked) if blocked else tick

    def _vetoes(self, tick: ObjectTick) -> tuple[Veto, ...]:
        at, subject = tick.seen.at, tick.subject
        breaker = self.breaker.vetoes(subject.name.namespace, at)
        stale = stale_view_vetoes(self.cluster, subject, tick.target, tick.seen.pods)
        refused = refused_pods(tick.target)
        own = revert.veto(tick.memory, at) + self._as_new_leader(tick)
        pod_level = sizes.pod_level_vetoes(subject.policy, tick.target)
        return conflict.vetoes(tick.claims) + own + stale + breaker + refused + pod_level

    def _is_reading(self, tick: ObjectTick) -> bool:
        """Whether somebody served it before us, and what that operator knew is still being read."""
        since = self._taken_over_at.get(tick.subject.uid)
        if since is None or not 0.0 <= tick.seen.at - since < LONGEST_READ_S or self._has_history(tick):
            return False
        self._unread[tick.subject.uid] = tick
        return True

    def _has_history(self, tick: ObjectTick) -> bool:
        kept = self.checkpoints.has_read(tick.subject.uid)
        had_all = self.checkpoints.has_found(tick.subject.uid)  # else Prometheus may remember it
        return self.last_minutes.was_read and kept and (had_all or self.forecasts.has_read(tick))

    def _whole(self) -> set[str]:
        return {uid for uid, tick in self._unread.items() if self._has_history(tick)}

    def _as_new_leader(self, tick: ObjectTick) -> tuple[Veto, ...]:
        """Where a price decides, no rule of the policy looks back: for one window a new leader lets no pod go."""
        policy, since = tick.subject.policy, self._taken_over_at.get(tick.subject.uid)
        if policy.objective is None or since is None:
            return ()
        detail = "a new leader lets nothing go for one stabilization window"
        return hold_decreases(policy, tick.seen, since + down_window(policy.settle), "NewLeader", detail)

    async def _act_on(self, tick: ObjectTick) -> ObjectTick:
        """Write the change, if this object may; remember it only after the write succeeded."""
        if tick.subject.resource is HPAS:
            return await self._raise_floor(tick)
        after = replace(tick.memory, core=tick.decision.memory)
        outcome = unwritten(tick.decision.change, Fate.SHADOW, self._why_shadow())
        if writes(tick.subject.policy.admit, tick.seen.at):
            after, outcome = await self._write(tick, after)
        tick = tick._replace(outcome=outcome, after=after)
        self._memories[tick.subject.uid] = after
        if tick.subject.policy.vertical or tick.subject.policy.bridge:
            in_force = sizes.current_sizes(tick.subject, tick.target, after)
            tick = tick._replace(resizing=sizes.resize_progress(self._wire_pods(tick.target), in_force))
        if self.cluster.frozen:
            say_frozen(self.teller, self.status_writer, tick)
        else:
            say(self.teller, self.status_writer, tick)
        return tick

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
            self._memories.pop(subject.uid, None)  # the next tick sees whether it was written
            raise
        advised = Change(was=change.was, sizes=change.sizes) if change and not (now and now.sizes) else None
        return after, outcome + unwritten(advised, Fate.ADVISED)

    async def _raise_floor(self, tick: ObjectTick) -> ObjectTick:
        """Predictive HPA: the HPA scales, we move its minReplicas. Its status is not ours, so we report by events."""
        subject, at = tick.subject, tick.seen.at
        after = self._memories[subject.uid] = replace(tick.memory, core=tick.decision.memory)
        moved = act_floor.moved(subject.object, subject.policy, tick.seen, tick.decision)
        note, may_write = act_floor.forecast_note(tick.decision), writes(subject.policy.admit, at)
        if moved is None:
            if may_write and self.notes.is_news(subject.object, note, at):
                await act_floor.write_note(self.writer, subject.object, note)
            return tick._replace(after=after)
        fate = Fate.WRITTEN if may_write else Fate.SHADOW
        if fate is Fate.WRITTEN:
            await act_floor.write(self.writer, subject.object, moved, at, note)
            announce(self.teller, self.writer, subject, Happening("ForecastFloor", moved.text), at)
        why = "" if fate is Fate.WRITTEN else self._why_shadow()
        return tick._replace(after=after, outcome=(AxisOutcome(axis="floor", fate=fate, reason=why),))

    async def _restore_floor(self, served: ServedObject) -> None:
        await act_floor.restore(self.writer, served[1])

    def _wire_pods(self, target: ScaleTarget) -> list[WirePod]:
        return self.cluster.members.pods(target.namespace, target.uid)

    # --- between ticks ---------------------------------------------------------------------------------------------

    def take_over(self, term: int) -> None:
        """Start to lead: others may have acted meanwhile, so memories are read again and windows start anew.

        `term` is the same as before if nobody else has led.
        """
        self._last_targets |= {uid: known.target for uid, known in self._memories.items()}
        self._memories.clear()
        self._taken_over_at.clear()
        self.last_minutes.take_over()
        self.usage.take_over(others_led=term != self._term)
        self.checkpoints.take_over()
        self.forecasts.take_over()
        self._term = term
        self.status_writer.forget(set())
        self.tuning.take_over()
        self.levels.take_over()

    def clock_set(self, by_s: float) -> None:
        """Move what is remembered along with a wall clock that was set."""
        log.warning("the clock was set by %+.0f s: what is remembered moves with it", by_s)
        self._memories = {uid: memory.shifted(known, by_s) for uid, known in self._memories.items()}
        self.status_writer.forget(set())
        self.recorder.forget(set())
        for part in (self.breaker, self.usage, self.checkpoints):
            part.clock_set(by_s)
        self.forecasts.demand.clock_set()


def _decided(tick: ObjectTick, seen: Observation, more: tuple[Veto, ...] = ()) -> ObjectTick:
    """Decide; vetoes are part of the observation, so that explain and replay know them."""
    seen = replace(seen, vetoes=seen.vetoes + more) if more else seen
    return tick._replace(seen=seen, decision=decide(tick.subject.policy, seen, tick.memory.core))


def _wanted(tick: ObjectTick) -> Wanted:
    policy = tick.subject.policy
    if paused(policy.admit, tick.seen.at):
        return Wanted(tick.subject.name.namespace, (), tick.seen.pods)
    promise = policy.objective.latency if policy.objective else None
    latency = promise.metric if promise else None
    return Wanted(tick.subject.name.namespace, policy.signals, tick.seen.pods, latency)
