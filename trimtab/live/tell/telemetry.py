"""telemetry: the operator's own numbers in Prometheus' text format, and whether it is alive and ready."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from aiohttp import web

from trimtab.core.model import Forecast, Missing, Startup
from trimtab.journal import ObjectName
from trimtab.live.object_tick import ObjectTick
from trimtab.live.tell.families import FAMILIES, Family
from trimtab.policy import Axis
from trimtab.ticks import load_of, ready_and_capacity

Line = tuple[str, dict[str, str], float]
EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"
log = logging.getLogger(__name__)


class Telemetry:
    """Counters and the last tick's gauges; `watchers` see each tick too, `extra` adds what others count."""

    def __init__(self) -> None:
        self.failures: Counter[str] = Counter()
        self.acts: Counter[tuple[str, str]] = Counter()  # axis and fate
        self.ticks = 0
        self.tick_s = 0.0
        self.tick_total_s = 0.0
        self.late_ticks = 0  # that took longer than their period, so that the next one began late
        self.watchers: list[Callable[[Sequence[ObjectTick]], None]] = []
        self.extra: list[Callable[[], Iterable[Line]]] = []
        self._objects: Sequence[ObjectTick] = ()

    def saw(self, ticks: Sequence[ObjectTick]) -> None:
        self._objects = ticks
        for watcher in self.watchers:
            try:
                watcher(ticks)
            except Exception:  # the journal and the nights of everybody come after it
                log.exception("a bug of trimtab: a number of this tick is missing")
                self.failures["Watcher"] += 1
        self.acts.update((part.axis, str(part.fate)) for tick in ticks for part in tick.outcome)

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
        for tick in self._objects:
            yield from _of_object(tick)


def labels_of(name: ObjectName) -> dict[str, str]:
    return {"kind": name.kind, "namespace": name.namespace, "name": name.name}


def _of_object(tick: ObjectTick) -> Iterable[Line]:
    labels, policy, seen, decision = labels_of(tick.subject.name), tick.subject.policy, tick.seen, tick.decision
    yield "trimtab_current_replicas", labels, seen.spec_replicas
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
    for signal, sample in zip(policy.signals, seen.samples, strict=False):
        if isinstance(sample, Missing):
            yield "trimtab_sample_missing", {**labels, "source": signal.metric.label, "reason": sample.reason}, 1
    if isinstance(seen.startup, Startup):
        for quantile in seen.startup.quantiles:
            percentile = {"percentile": f"{100 * quantile.probability:g}"}
            yield "trimtab_startup_seconds", labels | percentile, quantile.value
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
