"""telemetry: the operator's own numbers in Prometheus' text format, and whether it is alive and ready."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from aiohttp import web

from trimtab.core.demand import demand_of
from trimtab.core.explain import resizes
from trimtab.core.forecast.horizon import horizon_s
from trimtab.core.model import Forecast, Missing, Startup
from trimtab.journal import ObjectName
from trimtab.live.headroom import BLOCKERS
from trimtab.live.object_tick import ObjectTick
from trimtab.policy import RESOURCES, Axis
from trimtab.ticks import load_of, ready_and_capacity

Line = tuple[str, dict[str, str], float]
EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"
NOT_READY = "trimtab_object_not_ready"
CHECKS = 20  # forecasts to check at once per signal: one for each twentieth of its horizon
log = logging.getLogger(__name__)


class Family(NamedTuple):
    """One metric: its type and its help text. A test holds the table complete."""

    kind: Literal["counter", "gauge"]
    help: str


FAMILIES = {
    "trimtab_ticks_total": Family("counter", "Looks at everything."),
    "trimtab_tick_duration_seconds": Family("gauge", "How long the last tick took."),
    "trimtab_tick_seconds_total": Family("counter", "How long all ticks took together."),
    "trimtab_late_ticks_total": Family("counter", "Ticks that took longer than their period."),
    "trimtab_objects": Family("gauge", "Objects that the last tick decided on."),
    "trimtab_acts_total": Family("counter", "Changes that were decided on, by axis and what became of them."),
    "trimtab_object_failures_total": Family("counter", "Objects that failed in a tick, by the kind of error."),
    NOT_READY: Family("gauge", "1 for every object that could not be served in the last tick, with the reason."),
    "trimtab_current_replicas": Family("gauge", "Replicas that the target has in its spec."),
    "trimtab_desired_replicas": Family("gauge", "Replicas that the last tick decided on."),
    "trimtab_ready_replicas": Family("gauge", "Pods that are ready."),
    "trimtab_load": Family("gauge", "The total load that the pods carry, in the unit of the first signal."),
    "trimtab_capacity": Family("gauge", "The load that ready pods carry within the service level, in the same unit."),
    "trimtab_bridge_factor": Family("gauge", "How many times their written cpu ready pods have; 1 without a bridge."),
    "trimtab_bridge_pods": Family("gauge", "Pods that have more than their written cpu."),
    "trimtab_bridge_resizes_total": Family("counter", "Resizes of pods by bridges."),
    "trimtab_proposal_replicas": Family("gauge", "Replicas that one signal or its forecast asks for."),
    "trimtab_restricted": Family("gauge", "1 for every rule that changed the wish in the last tick."),
    "trimtab_veto": Family("gauge", "1 for everything outside the object that held a change back in the last tick."),
    "trimtab_resize_blocked": Family("gauge", "1 while a quota, a LimitRange, a node or a rollout blocks new sizes."),
    "trimtab_size_changes_total": Family("counter", "Requests that were changed, by container, direction and reason."),
    "trimtab_container_request": Family("gauge", "The request in force of a container: cores of cpu, bytes of memory."),
    "trimtab_resize_pending": Family("gauge", "Pods whose resize the kubelet has deferred or called infeasible."),
    "trimtab_sample_missing": Family(
        "gauge", "1 for every signal that the last tick had no value of, with the reason."
    ),
    "trimtab_node_wait_seconds": Family("gauge", "How long new pods waited for a node, which is part of their start."),
    "trimtab_pods_unschedulable": Family("gauge", "Pods of an object's target that the scheduler finds no node for."),
    "trimtab_startup_seconds": Family(
        "gauge", "From creation to the first Ready, at a percentile of a workload's pods."
    ),
    "trimtab_forecast": Family("gauge", "The load expected a horizon ahead, at the quantile that the object asks for."),
    "trimtab_forecast_error": Family("gauge", "The forecast of a horizon ago over the load now, less 1."),
    "trimtab_tuning_promised_j": Family("gauge", "J of a day that the backtest of the settings in force promised."),
    "trimtab_tuning_realized_j": Family("gauge", "J of the last day under settings that tuning put in force."),
    "trimtab_tuning_share": Family("gauge", "The share of the fleet whose settings may switch in one night."),
    "trimtab_tuning_paused": Family("gauge", "1 while nothing switches, after two nights that broke their promise."),
    "trimtab_operators_wanted": Family("gauge", "Pods that the operator's own Deployment asks for."),
    "trimtab_operators_ready": Family("gauge", "Pods of the operator's own Deployment that are ready."),
    "trimtab_leader": Family("gauge", "1 while this process writes."),
    "trimtab_shard": Family("gauge", "Which part of the namespaces this process serves, counted from 0."),
    "trimtab_shards": Family("gauge", "Among how many operators the namespaces are divided."),
    "trimtab_feed_up": Family("gauge", "1 while a collection of the API server is followed, or known not to be there."),
    "trimtab_standing_by": Family("gauge", "1 while another installation of the whole cluster serves instead."),
    "trimtab_other_installations": Family("gauge", "Other living installations of the whole cluster."),
    "trimtab_clock_ahead_seconds": Family("gauge", "By how much a clock is ahead of the others; 0 while they agree."),
    "trimtab_frozen": Family("gauge", "1 while somebody holds the brake: nothing is written."),
    "trimtab_breaker_open": Family("gauge", "1 while the fleet breaker lets nobody shrink."),
    "trimtab_breaker_trips_total": Family("counter", "How often too many wanted to shrink at once."),
    "trimtab_api_budget_waited_seconds_total": Family(
        "counter", "How long requests waited for their turn at the API server."
    ),
    "trimtab_api_requests_total": Family("counter", "Requests to the API server; code 0: no answer."),
    "trimtab_queries_total": Family("counter", "Requests to Prometheus; code 0: no answer."),
    "trimtab_questions_total": Family("counter", "Metrics asked for, by the namespace whose objects need them."),
    "trimtab_late_answers_total": Family("counter", "Metrics that were not answered in time, by namespace."),
    "trimtab_background_seconds_total": Family(
        "counter", "How long advice, read-back and checkpoints worked beside the ticks, by namespace."
    ),
    "trimtab_journal_up": Family("gauge", "1 while decisions are recorded."),
    "trimtab_journal_lost_total": Family("counter", "Decisions that are in no journal."),
}


class Telemetry:
    """Counters and the last tick's gauges; `watchers` see each tick too, `extra` adds what others count."""

    def __init__(self) -> None:
        self.failures: Counter[str] = Counter()
        self.acts: Counter[tuple[str, str]] = Counter()  # axis and fate
        self.size_changes: Counter[tuple[ObjectName, str, str, str, str]] = Counter()
        self.ticks = 0
        self.tick_s = 0.0
        self.tick_total_s = 0.0
        self.late_ticks = 0  # that took longer than their period, so that the next one began late
        self.watchers: list[Callable[[Sequence[ObjectTick]], None]] = []
        self.extra: list[Callable[[], Iterable[Line]]] = []
        self._objects: Sequence[ObjectTick] = ()

    def saw(self, ticks: Sequence[ObjectTick]) -> None:
        self._objects = ticks
        self._count_sizes(ticks)
        for watcher in self.watchers:
            try:
                watcher(ticks)
            except Exception:  # the journal and the nights of everybody come after it
                log.exception("a bug of trimtab: a number of this tick is missing")
                self.failures["Watcher"] += 1
        self.acts.update((part.axis, str(part.fate)) for tick in ticks for part in tick.outcome)

    def _count_sizes(self, ticks: Sequence[ObjectTick]) -> None:
        """Of objects that are served now: nobody's memory of those that are gone."""
        served = {tick.subject.name for tick in ticks} if self.size_changes else ()
        kept = {key: count for key, count in self.size_changes.items() if key[0] in served}
        self.size_changes = Counter(kept)
        for tick in ticks:
            for change in resizes(tick.seen, tick.decision) if tick.wrote("sizes") else ():
                said = change.container, str(change.axis), change.direction, change.reason
                self.size_changes[tick.subject.name, *said] += 1

    def stand_by(self) -> None:
        """Somebody else looks at the objects now: what was last seen here is not how they are."""
        self.saw(())

    def ticked(self, duration_s: float, period_s: float) -> None:
        self.ticks += 1
        self.late_ticks += duration_s > period_s
        self.tick_s, self.tick_total_s = duration_s, self.tick_total_s + duration_s

    def render(self) -> str:
        return render([*self._own(), *(line for more in self.extra for line in more())])

    def _own(self) -> Iterable[Line]:
        yield "trimtab_ticks_total", {}, self.ticks
        yield "trimtab_tick_duration_seconds", {}, self.tick_s
        yield "trimtab_tick_seconds_total", {}, self.tick_total_s
        yield "trimtab_late_ticks_total", {}, self.late_ticks
        yield "trimtab_objects", {}, len(self._objects)
        for (axis, fate), count in self.acts.items():
            yield "trimtab_acts_total", {"axis": axis, "outcome": fate}, count
        for kind, count in self.failures.items():
            yield "trimtab_object_failures_total", {"error": kind}, count
        for (name, container, resource, direction, reason), count in self.size_changes.items():
            said = {"container": container, "resource": resource, "direction": direction, "reason": reason}
            yield "trimtab_size_changes_total", labels_of(name) | said, count
        for tick in self._objects:
            yield from _of_object(tick)


def labels_of(name: ObjectName) -> dict[str, str]:
    return {"kind": name.kind, "namespace": name.namespace, "name": name.name}


def _of_object(tick: ObjectTick) -> Iterable[Line]:
    labels, policy, seen, decision = labels_of(tick.subject.name), tick.subject.policy, tick.seen, tick.decision
    yield "trimtab_current_replicas", labels, seen.spec_replicas
    if (found := tick.after.tuning) is not None and found.in_force is not None:
        yield "trimtab_tuning_promised_j", labels, found.in_force.promise.j
        if found.judged:
            yield "trimtab_tuning_realized_j", labels, found.judged[-1].j
    yield "trimtab_desired_replicas", labels, decision.plan.replicas
    ready, capacity = ready_and_capacity(policy, seen, decision)
    yield "trimtab_ready_replicas", labels, ready
    for name, amount in (("trimtab_load", load_of(seen)), ("trimtab_capacity", capacity)):
        if amount is not None:
            yield name, labels, amount
    if policy.bridge is not None:
        yield "trimtab_bridge_factor", labels, tick.after.core.bridge
        yield "trimtab_bridge_pods", labels, tick.bridged.pods
        yield "trimtab_bridge_resizes_total", labels, tick.after.bridge_resizes
    for proposal in decision.proposals:
        if not isinstance(proposal.replicas, Missing):
            yield "trimtab_proposal_replicas", {**labels, "source": proposal.source}, proposal.replicas
    for rule in dict.fromkeys(step.reason for step in decision.steps if step.axis is Axis.REPLICAS):
        yield "trimtab_restricted", {**labels, "reason": rule}, 1
    for reason in dict.fromkeys(veto.reason for veto in seen.vetoes):
        yield "trimtab_veto", {**labels, "reason": reason}, 1
        if reason in BLOCKERS:
            yield "trimtab_resize_blocked", {**labels, "reason": reason}, 1
    for container, size in decision.plan.sizes.items() if policy.vertical is not None else ():
        for axis in RESOURCES:
            if (amount := size.requests.amount(axis)) is not None:
                yield "trimtab_container_request", {**labels, "container": container, "resource": str(axis)}, amount
    for stuck, count in Counter(waiting.reason for waiting in tick.resizing.stuck).items():
        yield "trimtab_resize_pending", {**labels, "reason": stuck}, count
    if waits := sum(1 for pod in seen.pods if pod.waits_since is not None):
        yield "trimtab_pods_unschedulable", labels, waits
    for signal, sample in zip(policy.signals, seen.samples, strict=False):
        if isinstance(sample, Missing):
            yield "trimtab_sample_missing", {**labels, "source": signal.metric.label, "reason": sample.reason}, 1
    if isinstance(seen.startup, Startup):
        for quantile in seen.startup.quantiles:
            percentile = {"percentile": f"{100 * quantile.probability:g}"}
            yield "trimtab_startup_seconds", labels | percentile, quantile.value
        for quantile in seen.startup.waits:
            percentile = {"percentile": f"{100 * quantile.probability:g}"}
            yield "trimtab_node_wait_seconds", labels | percentile, quantile.value
    for signal, forecast in zip(policy.signals, seen.forecasts, strict=False):
        if isinstance(forecast, Forecast) and policy.forecast is not None:
            value = forecast.at_quantile(policy.forecast.quantile)
            yield "trimtab_forecast", {**labels, "source": signal.metric.label, "model": forecast.model}, value


def render(lines: Iterable[Line], families: Mapping[str, Family] = FAMILIES) -> str:
    """Families together, each with its help and its type."""
    found: dict[str, list[str]] = {}
    for name, labels, value in lines:
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        braced = f"{{{inside}}}" if inside else ""
        found.setdefault(name, []).append(f"{name}{braced} {_number(value)}")
    out = []
    for name, rows in found.items():
        out += [f"# HELP {name} {families[name].help}", f"# TYPE {name} {families[name].kind}", *rows]
    return "\n".join(out) + "\n"


def _number(value: float) -> str:
    """Short where that is exact: a large counter must not stand still."""
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


async def listen(
    address: str,
    port: int,
    routes: dict[str, Callable[[], tuple[int, str]]],
    extend: Callable[[web.Application], None] = lambda _: None,
) -> web.AppRunner:
    """Serve plain text at these paths, and what `extend` adds; stop it with `cleanup()`."""
    app = web.Application()
    extend(app)
    for path, answer in routes.items():
        app.router.add_get(path, _plain(answer))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    await web.TCPSite(runner, address or None, port).start()
    return runner


def _plain(answer: Callable[[], tuple[int, str]]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handler(_: web.Request) -> web.StreamResponse:
        status, text = answer()
        return web.Response(status=status, text=text, headers={"Content-Type": EXPOSITION})

    return handler


class ObjectSignal(NamedTuple):
    """One signal of one object."""

    name: ObjectName
    place: int  # among the object's signals
    label: str


class ForecastErrors:
    """Compares forecasts with the load once their moment has come; `errors` has the last error of each signal.

    error = forecast made a horizon ago / load now - 1: 0.1 is a tenth too much, -0.1 a tenth too little.
    """

    def __init__(self) -> None:
        self.errors: dict[ObjectSignal, float] = {}
        self._due: dict[ObjectSignal, deque[tuple[float, float]]] = defaultdict(deque)  # (when, value)

    def saw(self, ticks: Sequence[ObjectTick]) -> None:
        alive = set()
        for tick in ticks:
            name, policy, seen = tick.subject.name, tick.subject.policy, tick.seen
            if policy.forecast is None:
                continue
            for index, (signal, forecast) in enumerate(zip(policy.signals, seen.forecasts, strict=False)):
                value = None
                if isinstance(forecast, Forecast) and not forecast.per_pod:
                    value = forecast.at_quantile(policy.forecast.quantile)
                load = demand_of(seen.samples[index], seen.pods) if index < len(seen.samples) else None
                source = ObjectSignal(name, index, signal.metric.label)
                self.note(source, seen.at, value, horizon_s(policy.forecast, seen), load)
                alive.add(source)
        self._forget(alive)

    def note(
        self, source: ObjectSignal, at: float, forecast: float | None, horizon_s: float, load: float | None
    ) -> None:
        waiting = self._due[source]
        while waiting and waiting[0][0] <= at:
            _, value = waiting.popleft()
            if load:
                self.errors[source] = value / load - 1.0
        if forecast is not None and (not waiting or at + horizon_s - waiting[-1][0] >= horizon_s / CHECKS):
            waiting.append((at + horizon_s, forecast))

    def lines(self) -> Iterable[Line]:
        for source, error in self.errors.items():
            yield "trimtab_forecast_error", labels_of(source.name) | {"source": source.label}, error

    def _forget(self, alive: set[ObjectSignal]) -> None:
        for gone in self.errors.keys() - alive:
            del self.errors[gone]
        for gone in self._due.keys() - alive:
            del self._due[gone]
