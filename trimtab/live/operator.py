"""operator: `trimtab run`. Watches, leads, ticks, answers on its port, and ends within seconds when told to."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus

import msgspec
from aiohttp import web

from trimtab.core.forecast.demand_forecasts import DemandForecasts
from trimtab.errors import TrimtabError
from trimtab.journal import HEALTH, Retention
from trimtab.live.act.breaker import Breaker
from trimtab.live.advice import Advisor
from trimtab.live.look.cluster import WatchedCluster
from trimtab.live.look.freeze import Freeze
from trimtab.live.look.installations import Installations, OwnOperators
from trimtab.live.look.subject import Compiler
from trimtab.live.measure.background import Lanes
from trimtab.live.measure.bounded_queries import patience
from trimtab.live.measure.checkpoint import Checkpoints
from trimtab.live.measure.forecasts import Forecasts
from trimtab.live.measure.gather import Gather
from trimtab.live.measure.past_demand import PastDemand
from trimtab.live.measure.tenancy import QueryTenancy
from trimtab.live.measure.usage import Rebuild, UsageWatch
from trimtab.live.object_tick import ObjectTick
from trimtab.live.settings import OperatorSettings
from trimtab.live.tell.kept_journal import KeptJournal
from trimtab.live.tell.record import health_of
from trimtab.live.tell.telemetry import ForecastErrors, Line, Telemetry, listen
from trimtab.live.tick import Ticker
from trimtab.live.tuning.latency_levels import LatencyLevels
from trimtab.wire.access import Access
from trimtab.wire.budget import Budget
from trimtab.wire.clock import SYSTEM, Clock, ServerClock, SteadyTime
from trimtab.wire.kube import Kube
from trimtab.wire.prometheus import Prometheus
from trimtab.wire.shards import ShardLeadership

log = logging.getLogger(__name__)
LAST_TICK_S = 2.0  # with the lease's release it ends within 5 s
LOOK_AGAIN_S = 0.2  # while something is not known yet
QUERIES = (200.0, 400.0)  # to Prometheus, per second and at once; sixteen are under way
PAGE_S = 1.0  # so long a page of /metrics serves
LATE_TICKS = 10  # after this many missed ticks the operator calls itself unhealthy


class Operator:
    def __init__(
        self, access: Access, prometheus: Access | None, settings: OperatorSettings, clock: Clock = SYSTEM
    ) -> None:
        self.settings, self.clock, self.telemetry = settings, ServerClock(clock), Telemetry()
        self.extend_server: Callable[[web.Application], None] = lambda _: None  # what others answer on our port
        namespace = settings.lease_namespace or settings.namespace or access.namespace
        self.leadership = _leadership(access, namespace, settings, self.clock)
        budget = Budget(settings.api_per_s, settings.api_burst)
        self.kube = Kube(
            access, budget, fence=self._seconds_to_write, clock=self.clock, brake=lambda: self.cluster.frozen
        )
        timeout_s = max(1.0, min(10.0, settings.tick_s))
        self.prometheus = Prometheus(prometheus, Budget(*QUERIES), timeout_s) if prometheus else None
        own = (access.namespace, tuple(os.environ.get("TRIMTAB_DEPLOYMENT", "").split(",")))
        self.cluster = WatchedCluster(self.kube, settings.namespace, own, namespace, settings.shard)
        self.cluster.served_system = settings.system_namespaces
        self.installations = Installations(self.cluster, self.leadership)
        self.own_operators = OwnOperators(self.cluster)
        self.freeze = Freeze(self.cluster, self.leadership)
        keep = Retention(size_bytes=settings.journal_bytes)
        self.journal = KeptJournal(settings.journal, keep) if settings.journal else None
        self.breaker = Breaker(settings.breaker_s)
        self.lanes = Lanes.new()
        self.ticker = self._ticker(prometheus, namespace)
        self.checkpoints, self.forecasts = self.ticker.checkpoints, self.ticker.forecasts
        self.advisor = self._advisor(settings.history(prometheus), namespace)
        forecast_errors = ForecastErrors()
        self.telemetry.watchers += [forecast_errors.saw, self._note_health]
        self.telemetry.extra += [self._numbers, forecast_errors.lines]
        self._passed_at = clock.since_boot()
        self._said_of_clock = ""
        self._page = (float("-inf"), "")
        self._ticking = asyncio.Lock()
        self._term = float("inf")  # in which the last tick was: since when we led
        self._waiting_for: list[str] = ["everything"]
        self._was_ready = False

    def _ticker(self, prometheus: Access | None, namespace: str) -> Ticker:
        settings, demand, lane = self.settings, DemandForecasts(), self.lanes.read_back
        usage_s, matchers = settings.usage_every_s, settings.series_matchers
        tenancy, history = QueryTenancy(settings.tenancy, self.cluster.may_query), settings.history(prometheus)
        self.gather = self._gather(tenancy)
        rebuild = Rebuild(history, self.kube, settings.usage, usage_s, matchers, lane) if history else None
        usage = UsageWatch(self.cluster, settings.usage, usage_s, rebuild)
        read = (history, self.kube, demand, prometheus, tenancy, matchers, lane) if history and prometheus else None
        past = PastDemand(*read) if read else None
        return Ticker(
            self.cluster,
            self.gather,
            self.kube,
            Compiler(settings.shadow, settings.change_rules),
            self.breaker,
            self.telemetry,
            usage,
            Checkpoints(self.kube, usage, settings.checkpoint_s, namespace, demand, past, self.lanes.checkpoints),
            Forecasts(demand, past),
            self.journal,
            settings.tick_s,
            LatencyLevels(prometheus, tenancy, lane),
        )

    def _gather(self, tenancy: QueryTenancy) -> Gather:
        settings = self.settings
        return Gather(
            self.kube,
            self.prometheus,
            everywhere=not settings.namespace,
            scrape_s=settings.scrape_s,
            tenancy=tenancy,
            patience_s=patience(settings.tick_s),
        )

    def _advisor(self, history: Access | None, namespace: str) -> Advisor:
        settings = self.settings
        return Advisor(
            self.kube,
            history,
            (namespace, *settings.advice_namespaces),
            settings.namespace,
            shadow=settings.shadow,
            every_s=settings.tick_s,
            matchers=settings.series_matchers,
            enabled=self._serves_namespace,
            lane=self.lanes.advice,
        )

    def _serves_namespace(self, namespace: str) -> bool:
        return self.cluster.enabled(namespace) and self.settings.shard.owns(namespace)

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set; then the lease is released and everything closed."""
        server = await self._listen()
        loops = (self.cluster.run(), self.leadership.run(), self._loop(), self.advisor.run())
        tasks = [asyncio.create_task(loop) for loop in loops]
        ended = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([*tasks, ended], return_when=asyncio.FIRST_COMPLETED)
        finally:
            failed = [task for task in tasks if task.done()]
            await self._finish_tick()
            for task in (*tasks, ended):
                task.cancel()
            await asyncio.wait([*tasks, ended], timeout=2.5)  # releasing the lease is part of it
            if server is not None:
                await server.cleanup()
            await self._close()
        for task in failed:
            task.result()  # none of them ends by itself: raise what ended it

    def _seconds_to_write(self) -> float:
        """The fence of every write: none while another installation serves."""
        return self.leadership.seconds_left() if self.installations.may_serve else 0.0

    async def _loop(self) -> None:
        self.leadership.on_change(lambda leads: None if leads else self.telemetry.stand_by())
        steady, due, at_once = SteadyTime(self.clock), 0.0, True
        while True:
            began, by_s, settled = self.clock.since_boot(), steady.set_by(), True
            due = self.clock.now() if at_once else due + by_s  # now is by the clock as it was set
            with self._going_on():
                if by_s:
                    self.ticker.clock_set(by_s)
                settled = await self._pass(due)
                self._passed_at = began
            if settled:
                now = self.clock.now()
                due = next_due(due, self.settings.tick_s, now)
                at_once = await self._begins_to_lead(due - now)
            else:
                await asyncio.sleep(min(self.settings.tick_s, LOOK_AGAIN_S))
                at_once = True

    async def _pass(self, due: float) -> bool:
        """A tick, if we serve; False while something is not known yet."""
        self._waiting_for = self.cluster.unsettled()
        if self._waiting_for:
            return False
        self._was_ready = self._was_ready or not self.leadership.trouble
        with self._going_on():
            if self.leadership.may_write():
                await self.installations.look(self.clock.since_boot())
            self.own_operators.look(self.clock.since_boot())
            self.freeze.look(self.clock.since_boot())
        if self._serves():
            async with self._ticking:
                with uncollected():
                    await self._tick(due)
            with self._going_on():
                if self.journal:
                    await self.journal.prune_if_due(self.clock.now(), self.clock.since_boot())
        return True

    @contextmanager
    def _going_on(self) -> Iterator[None]:
        """A bug beside the ticks costs what it is in, and nobody the ticks; /healthz fails where it costs them all."""
        try:
            yield
        except Exception:
            log.exception("between two ticks: a bug of trimtab; the next time it is tried again")
            self.telemetry.failures["Loop"] += 1

    def _serves(self) -> bool:
        """Who stood still finds its Lease lost and got back in one try: a new term, and a takeover like any other."""
        serves = self.leadership.may_write() and self.installations.may_serve
        term = self.leadership.led_since if serves else float("inf")
        if serves and term != self._term:
            self.ticker.take_over(self.leadership.term)
        self._term = term
        return serves

    async def _begins_to_lead(self, within_s: float) -> bool:
        """Who leads already, or goes on standing by, waits to the end."""
        if self.leadership.leading.is_set():
            await asyncio.sleep(within_s)
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                return await self.leadership.leading.wait()
        return False

    async def _tick(self, at: float) -> None:
        started = self.clock.since_boot()
        try:
            await self.ticker.tick(at)
        except TrimtabError as error:
            log.warning("this tick was given up: %s", error)
        except Exception:
            log.exception("this tick was given up: a bug of trimtab; the next one tries again")
            self.telemetry.failures["Tick"] += 1
        self._look_at_clocks()
        took_s = self.clock.since_boot() - started
        self.telemetry.ticked(took_s, self.settings.tick_s)
        if took_s > self.settings.tick_s:
            log.warning("a tick took %.1f s, longer than its period: nothing is lost, but looks are late", took_s)

    def _look_at_clocks(self) -> None:
        if self.gather.sampled_at is not None:
            self.clock.compare(self.gather.sampled_at)
        self.ticker.clock_trouble = self.clock.trouble
        if self.clock.trouble != self._said_of_clock:
            self._said_of_clock = self.clock.trouble
            log.warning("%s", self.clock.trouble or "all clocks agree again")

    def _note_health(self, ticks: Sequence[ObjectTick]) -> None:
        if self.journal and self.leadership.may_write():
            found = health_of(ticks, self.clock.now(), self.kube.budget, self.breaker, self.cluster.frozen)
            self.journal.note(HEALTH, msgspec.json.encode(found).decode())

    async def _finish_tick(self) -> None:
        """What was written must be remembered and recorded: the tick under way gets a moment, and no other starts."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_TICK_S):
                await self._ticking.acquire()
                await self.ticker.teller.finish()
                await self.ticker.last_minutes.write(self.clock.now())

    async def _close(self) -> None:
        self.freeze.close()
        self.checkpoints.close()
        self.gather.close()
        await self.ticker.teller.close()
        self.forecasts.close()
        self.ticker.tuning.close()
        self.ticker.levels.close()
        self.ticker.last_minutes.close()
        await self.kube.close()
        if self.prometheus:
            await self.prometheus.close()
        if self.journal:
            self.journal.close()

    async def _listen(self) -> web.AppRunner | None:
        if self.settings.listen is None:
            return None
        routes = {"/metrics": self.metrics, "/healthz": self.health, "/readyz": self.ready}
        return await listen(*self.settings.listen, routes, self.extend_server)

    def metrics(self) -> tuple[int, str]:
        """Rendered once a second at most, however many ask: with many objects it takes as long as a part of a tick."""
        now = self.clock.since_boot()
        if now - self._page[0] >= PAGE_S:
            self._page = now, self.telemetry.render()
        return 200, self._page[1]

    def health(self) -> tuple[int, str]:
        late_s = self.clock.since_boot() - self._passed_at
        if late_s > LATE_TICKS * max(self.settings.tick_s, 3.0):
            return HTTPStatus.INTERNAL_SERVER_ERROR, f"no tick for {late_s:.0f} s\n"
        return 200, "ok\n"

    def ready(self) -> tuple[int, str]:
        """Ready once everything was known: in trouble later it is degraded, and says so.

        What it cannot follow costs one kind its decreases. Not being ready would cost more: a drain of its node would
        be refused, and nobody could ask it why.
        """
        if not self._was_ready:
            waiting = [f"waiting for {', '.join(self._waiting_for)}"] if self._waiting_for else []
            return HTTPStatus.SERVICE_UNAVAILABLE, "\n".join([*waiting, *self._troubles(), ""])
        leads = self.leadership.may_write() and not self.installations.elder
        state = f"{'leading' if leads else 'standing by'}{self._division()}"
        beside = f": {self.installations.said}" if self.installations.said else ""
        troubles, notes = self._troubles(), self._notes()
        return 200, "\n".join([f"{'degraded' if troubles else 'ok'}, {state}{beside}", *troubles, *notes, ""])

    def _troubles(self) -> list[str]:
        said = [f"not followed: {feed.name}: {feed.trouble}" for feed in self.cluster.feeds if feed.trouble]
        if self.leadership.trouble and not self.leadership.may_write():
            said.append(f"its Lease: {self.leadership.trouble}")
        if self.clock.trouble:
            said.append(self.clock.trouble)
        return said

    def _notes(self) -> list[str]:
        """What an administrator should know, and no reason for an alarm by itself."""
        journal = self.journal.trouble if self.journal else ""
        absent = ", ".join(feed.name for feed in self.cluster.ours.values() if feed.resource is None and feed.absent)
        installed = f"not installed: {absent}" if absent else ""
        left = f"left to operators of their own: {', '.join(sorted(self.cluster.left))}" if self.cluster.left else ""
        return [note for note in (self.freeze.said, journal, installed, left) if note]

    def _division(self) -> str:
        """Which shard, where there are several, and who of another division keeps it waiting."""
        shard, waits_for = self.settings.shard, self.leadership.waits_for
        said = f" as shard {shard}" if shard.of > 1 else ""
        return f"{said}, until nobody holds the Lease {waits_for} of another division" if waits_for else said

    def _numbers(self) -> Iterable[Line]:
        leads = self.leadership.may_write() and self.installations.may_serve
        yield "trimtab_leader", {}, float(leads)
        if leads:
            yield from self.ticker.guard.not_ready()
            yield from self.advisor.not_ready()
        for deployment in self.cluster.own_deployments:
            labels = {"deployment": deployment.metadata.name}
            yield "trimtab_operators_wanted", labels, float(deployment.spec.replicas or 0)
            yield "trimtab_operators_ready", labels, float(self.cluster.ready_pods(deployment))
        yield "trimtab_standing_by", {}, float(bool(self.installations.elder))
        yield "trimtab_other_installations", {}, float(len(self.installations.younger) + bool(self.installations.elder))
        yield "trimtab_shard", {"of": str(self.settings.shard.of)}, float(self.settings.shard.number)
        yield "trimtab_shards", {}, float(self.settings.shard.of)
        for feed in self.cluster.feeds:
            yield "trimtab_feed_up", {"feed": feed.name}, float(feed.settled and not feed.trouble)
        for of, ahead_s in self.clock.ahead().items():
            yield "trimtab_clock_ahead_seconds", {"of": of}, ahead_s
        yield "trimtab_frozen", {}, float(self.cluster.frozen)
        yield "trimtab_breaker_open", {}, float(self.breaker.open(self.clock.now()))
        yield "trimtab_breaker_trips_total", {}, float(self.breaker.trips)
        if (rollout := self.ticker.tuning.rollout.known) is not None:
            yield "trimtab_tuning_share", {}, rollout.share
            yield "trimtab_tuning_paused", {}, float(rollout.paused(self.clock.now()))
        yield "trimtab_api_budget_waited_seconds_total", {}, self.kube.budget.waited_s
        for (verb, resource, status), count in self.kube.counts.items():
            yield "trimtab_api_requests_total", {"verb": verb, "resource": resource, "code": str(status)}, float(count)
        if self.journal:
            yield from self.journal.lines()
        if self.prometheus:
            for (_, what, status), count in self.prometheus.counts.items():
                yield "trimtab_queries_total", {"what": what, "code": str(status)}, float(count)
        for lane in self.lanes:
            for namespace, spent_s in lane.spent_s.items():
                yield "trimtab_background_seconds_total", {"work": lane.name, "namespace": namespace}, spent_s
        asking = self.gather.bounded
        for name, counts in (("trimtab_questions_total", asking.asked), ("trimtab_late_answers_total", asking.late)):
            yield from ((name, {"namespace": namespace}, float(count)) for namespace, count in counts.items())


def _leadership(access: Access, namespace: str, settings: OperatorSettings, clock: ServerClock) -> ShardLeadership:
    times = dict(zip(("duration_s", "renew_deadline_s", "retry_s"), settings.lease_s, strict=True))
    where = (access, namespace, settings.shard.lease, settings.identity)
    found = ShardLeadership(*where, clock=clock, shard=settings.shard, serves=settings.namespace, **times)
    found.kube.http.server_clock, found.unfit = clock, lambda: clock.unfit
    return found


def next_due(due: float, period_s: float, now: float) -> float:
    """Return when the next tick is due: one period after the last was due, so that waking late does not add up.

    A tick carries the time it was due, not the time it woke, so a window of one period ends with the next tick, as in
    HPA. A missed tick stays missed, and a clock that was set back delays nothing.
    """
    return min(max(due + period_s, now), now + period_s)


@contextmanager
def uncollected() -> Iterator[None]:
    """Pause the garbage collector: nearly everything a tick makes dies with it, and a collection would walk it all."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
