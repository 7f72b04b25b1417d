"""run(): the virtual cluster. Load meets pods, pods make metrics, decide() looks at them and the pods obey.

Every step: pods become ready, serve what they can, are measured; then one decision, whose change is billed from the
next step on. The same policy, load, cluster and seed give the same run, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import ceil

import msgspec
import numpy as np

from trimtab.core.bridge import Needed, factor_of, level_needed, still_needed
from trimtab.core.decide import decide
from trimtab.core.demand import is_per_pod
from trimtab.core.model import Change, Decision, Memory, Missing, Observation, Reason
from trimtab.core.remember import remember, restored, stored
from trimtab.core.startup import startup
from trimtab.policy import PodAverage, Policy, Total, Utilization, Watermark
from trimtab.series import Floats
from trimtab.sim.cluster_spec import ClusterSpec, Fault, FaultKind
from trimtab.sim.demand_forecast import SimulatedForecasts
from trimtab.sim.grid import STEP_S
from trimtab.sim.meter import NO_TROUBLE, Meter, Trouble
from trimtab.sim.queue import late_load
from trimtab.sim.score import EVERY_STEP, Counts, Days, serve
from trimtab.sim.simulated_pods import CONTAINER, Pods, SimPod
from trimtab.sim.usage_sampler import UsageSampler

_METRIC_FAULTS = (FaultKind.MISSING, FaultKind.NAN, FaultKind.NEGATIVE, FaultKind.ZERO, FaultKind.STALE)

Watch = Callable[[Observation, Memory, Decision], None]


@dataclass(frozen=True)
class Run:
    """What happened at every step; load and capacity in units of one pod's capacity."""

    load: Floats
    replicas: Counts
    ready: Counts
    billed: Floats  # pods of the first size
    requested: Floats  # cores, in pods of the first size
    violating: Floats  # load that met a violated service level
    killed: Counts  # pods that ran out of memory
    resized: Counts  # pods that the bridge resized
    refusals: int = 0  # writes that the API server refused
    starts: int = 0

    @property
    def kills(self) -> int:
        return int(self.killed.sum())

    def since(self, step: int) -> Run:
        """The later part of a run; refusals and starts stay those of the whole."""
        return self._part(slice(step, None))

    def until(self, step: int) -> Run:
        return self._part(slice(step))

    def _part(self, part: slice) -> Run:
        arrays = ("load", "replicas", "ready", "billed", "requested", "violating", "killed", "resized")
        return replace(self, **{name: getattr(self, name)[part] for name in arrays})

    def days(self, day_steps: int, scored: Floats = EVERY_STEP) -> Days:
        """The same sums as `score.measure`, added in the same order, so that both print the same digits."""
        change, weights = np.diff(self.replicas, prepend=self.replicas[0]), scored if len(scored) else 1.0
        columns = (self.billed, self.violating, np.maximum(change, 0), np.abs(change), self.load, self.resized)
        day = np.arange(len(self.load)) // day_steps
        return Days(*(np.bincount(day, weights=weights * column).astype(np.float64) for column in columns))


def run(
    policy: Policy,
    load: Floats,
    spec: ClusterSpec | None = None,
    *,
    first_pods: int,
    seed: int = 0,
    start: float = 0.0,
    step_s: float = STEP_S,
    watch: Watch | None = None,
    memory: Memory | None = None,
) -> Run:
    """Replay `load` (in its own unit, at `step_s`) under a policy; `watch` sees every decision with its inputs.

    `memory` is what is known before the first decision: nothing, or an operator's `first_sight`.
    """
    cluster = _Cluster(policy, spec or ClusterSpec(), first_pods, seed, start, step_s)
    cluster.watch, cluster.memory = watch, memory or Memory()
    for step, value in enumerate(load.tolist()):
        cluster.step(step, value)
    return cluster.result()


@dataclass
class _Trail:
    load: list[float] = field(default_factory=list)
    replicas: list[int] = field(default_factory=list)
    ready: list[int] = field(default_factory=list)
    billed: list[float] = field(default_factory=list)
    requested: list[float] = field(default_factory=list)
    violating: list[float] = field(default_factory=list)
    killed: list[int] = field(default_factory=list)
    resized: list[int] = field(default_factory=list)


class _Cluster:
    def __init__(
        self, policy: Policy, spec: ClusterSpec, first_pods: int, seed: int, start: float, step_s: float
    ) -> None:
        policy = spec.fitted(policy)
        self.policy, self.spec, self.start, self.step_s = policy, spec, start, step_s
        self.decided = msgspec.structs.replace(policy, bridge=None)  # ready pods grow when the protocol says: `_bridge`
        self.draw = np.random.default_rng(seed)
        usual_steps = ceil(spec.startup_s * sum(spec.startup_jitter) / 2 / step_s)
        names = {CONTAINER} | {signal.metric.container for signal in policy.signals if signal.metric.container}
        self.pods = Pods(first_pods, spec.pod_cores, spec.pod_memory_bytes, self._startup_steps, usual_steps, names)
        self.pods.cpu_limit = spec.shown_limit
        self.meter = Meter(spec, start, step_s)
        self.memory = Memory()
        self.usage = UsageSampler() if policy.vertical is not None else None
        falls = any(fault.kind is FaultKind.OPERATOR_DOWN for fault in spec.faults)
        self.forecasts = SimulatedForecasts(policy, keeps=falls) if policy.forecast else None
        self.replicas, self.backlog, self.retried = first_pods, 0.0, 0.0
        self.refusals = self.starts = 0
        self.factor, self.next_factor = 1.0, 1.0
        self._bridge_needed: Needed = ()
        self.trail = _Trail()
        self.watch: Watch | None = None
        per_pod = any(isinstance(signal, Utilization | PodAverage | Total | Watermark) for signal in policy.signals)
        # A queue is worked off within a start-up, so the operator that follows one knows how long that takes.
        self._startup = startup([usual_steps * step_s], start) if spec.queue else Missing(reason=Reason.NOT_CONFIGURED)
        self._shows_pods = policy.vertical is not None or per_pod or is_per_pod(policy)

    def _startup_steps(self) -> int:
        low, high = self.spec.startup_jitter
        factor = self.draw.uniform(low, high) if high > low else low
        return ceil(self.spec.startup_s * factor / self.step_s)

    def step(self, step: int, load: float) -> None:
        for fault in self.spec.faults:
            if fault.kind is FaultKind.NODE_LOSS and self._begins(fault, step):
                self.starts += self.pods.lose(fault.amount, step)
        self.pods.tick(step)
        self._bridge(step)
        self._serve(step, load)
        if not self._fault(step, FaultKind.OPERATOR_DOWN):
            self._operate(step)

    def _bridge(self, step: int) -> None:
        """What the last step needed of the pods that are ready now is asked for now, and there in the next step."""
        bridge, ready, self.factor = self.policy.bridge, self.pods.ready, self.next_factor
        if bridge is not None and step > 0:
            load = self.meter.shown_total() / self.spec.pod_capacity
            level = level_needed(load, ready, bridge.ceiling, bridge.max_factor)
            self._bridge_needed = still_needed(self._bridge_needed, level, step * self.step_s)
            self.next_factor = factor_of(self._bridge_needed)
        self.trail.resized.append(ready if self.next_factor != self.factor else 0)

    def _serve(self, step: int, load: float) -> None:
        """One step of work: what is served, what is left, and how busy that makes the pods."""
        spec, pods, trail = self.spec, self.pods, self.trail
        total = load + self.retried
        arriving = total / spec.pod_capacity
        ready = pods.ready_cores * self.factor / spec.pod_cores
        capacity = ready * spec.ceiling_share
        served = min(arriving + self.backlog, capacity)
        if spec.queue:
            self.backlog, violates = arriving + self.backlog - served, False
            self.meter.record_queue(self.backlog, served)
        else:
            self.backlog, violates = serve(arriving, self.backlog, ready * spec.level_share, capacity)
        self.retried = total * spec.retry_share if violates else 0.0
        trail.load.append(arriving)
        trail.replicas.append(len(pods.all))
        trail.ready.append(pods.ready)
        grown = pods.ready * (max(self.factor, self.next_factor) - 1.0)
        trail.billed.append(grown + (self._billed() if self.usage else len(pods.all)))
        trail.requested.append(grown + (self._requested() if self.usage else len(pods.all)))
        trail.violating.append(arriving if violates else 0.0)
        trail.killed.append(0)
        memory_bytes = self._remember_memory(step)
        cores = served * spec.pod_cores
        share = cores / pods.ready_cores if pods.ready_cores else 0.0
        self.meter.record(total, share, cores, memory_bytes, pods.ready_cores / max(1, pods.ready))

    def _billed(self) -> float:
        """Pods of the first size; half of a node's price is taken to be its cores, half its memory."""
        cores, memory_bytes = self.spec.pod_cores, self.spec.pod_memory_bytes
        return sum(pod.cores / cores + pod.memory_bytes / memory_bytes for pod in self.pods.all) / 2

    def _requested(self) -> float:
        return sum(pod.cores for pod in self.pods.all) / self.spec.pod_cores

    def _remember_memory(self, step: int) -> float:
        """What each pod keeps in memory; one that outgrows its limit is killed."""
        spec, pods = self.spec, self.pods
        if spec.memory_load is None:
            return spec.base_memory_bytes
        share = spec.base_memory_bytes + float(spec.memory_load[step]) / max(1, len(pods.all))
        for pod in [pod for pod in pods.all if pod.ready and share > pod.memory_bytes]:
            self._kill(pod, step)
        return share

    def _kill(self, pod: SimPod, step: int) -> None:
        self.trail.killed[-1] += 1
        self.memory = msgspec.structs.replace(self.memory, overloaded=True)
        if self.usage:
            self.usage.note_kill(pod, self.start + (step + 1) * self.step_s)
        self.pods.restart(pod, step + 1)

    def _operate(self, step: int) -> None:
        """The operator's tick at the end of a step."""
        at = self.start + (step + 1) * self.step_s
        if self._fault(step - 1, FaultKind.OPERATOR_DOWN):
            self._restart(at)
        seen, memory = self._observe(step, at), self.memory
        decision = decide(self.decided, seen, memory)
        self.memory = decision.memory
        if self.watch is not None:
            self.watch(seen, memory, self._with_bridge(decision))
        if self.forecasts:
            self.forecasts.after_tick(at)
        if decision.change is not None:  # Shadow too: a simulation asks what it would do
            self._write(decision.change, step, at)

    def _with_bridge(self, decision: Decision) -> Decision:
        """As a watcher sees it: with the size that ready pods have from now on."""
        if self.policy.bridge is None:
            return decision
        return msgspec.structs.replace(decision, plan=msgspec.structs.replace(decision.plan, bridge=self.next_factor))

    def _restart(self, at: float) -> None:
        """A new operator knows what was stored."""
        text = msgspec.json.encode(stored(self.memory))
        self.memory = restored(msgspec.json.decode(text, type=Memory), at, self.replicas)
        if self.forecasts:
            self.forecasts.restart()
        if self.usage:
            self.usage.restart()

    def _observe(self, step: int, at: float) -> Observation:
        pods, policy = self.pods, self.policy
        trouble = self._trouble(step) if self.spec.faults else NO_TROUBLE
        samples = tuple(self.meter.sample(signal, pods, trouble) for signal in policy.signals)
        seen = Observation(
            at=at,
            spec_replicas=self.replicas,
            status_replicas=len(pods.all),
            pods=pods.facts(self.start, self.step_s) if self._shows_pods else (),
            sizes=pods.sizes(limited=self.spec.ceiling_share == 1.0) if self.usage else {},
            samples=samples,
            startup=self._startup,
        )
        if self.forecasts:
            seen = self.forecasts.complete(seen, pods.facts(self.start, self.step_s))
        return self.usage.complete(seen, self.meter, pods, trouble) if self.usage else seen

    def _trouble(self, step: int) -> Trouble:
        fault = next((fault for kind in _METRIC_FAULTS if (fault := self._fault(step, kind))), None)
        late = self._fault(step, FaultKind.LATE)
        since = ceil(fault.start_s / self.step_s) if fault else 0
        return Trouble(fault.kind if fault else None, since, late.amount if late else 0.0)

    def _write(self, change: Change, step: int, at: float) -> None:
        """What the API server is told; only what it accepts is remembered."""
        refusal = self._fault(step, FaultKind.REFUSED)
        if refusal is not None and self.draw.uniform() < refusal.amount:
            self.refusals += 1
            return
        if change.replicas is not None:
            self.starts += max(0, change.replicas - self.replicas)
            self.replicas = change.replicas
            self.pods.scale(change.replicas, step + 1)
        if change.sizes:
            self._resize(change)
        self.memory = remember(self.policy, self.memory, change, at)

    def _resize(self, change: Change) -> None:
        assert change.sizes is not None
        size = change.sizes[CONTAINER].requests
        cores, memory_bytes = size.cpu_cores or self.pods.cores, size.memory_bytes or self.pods.memory_bytes
        self.pods.cores, self.pods.memory_bytes = cores, memory_bytes
        for pod in self.pods.all:
            if self.spec.resize_refusal == 0 or self.draw.uniform() >= self.spec.resize_refusal:
                self.pods.resize(pod, cores, memory_bytes)

    def _fault(self, step: int, kind: FaultKind) -> Fault | None:
        if not self.spec.faults:
            return None
        second = step * self.step_s
        return next((fault for fault in self.spec.faults if fault.kind is kind and fault.holds(second)), None)

    def _begins(self, fault: Fault, step: int) -> bool:
        return (step - 1) * self.step_s < fault.start_s <= step * self.step_s

    def result(self) -> Run:
        trail, queue = self.trail, self.spec.queue
        load, ready = np.array(trail.load), np.array(trail.ready, dtype=np.int32)
        capacity = ready.astype(np.float64) * self.spec.ceiling_share
        violating = late_load(load, capacity, queue.wait_s) if queue else np.array(trail.violating)
        return Run(
            load=load,
            replicas=np.array(trail.replicas, dtype=np.int32),
            ready=ready,
            billed=np.array(trail.billed, dtype=np.float64),
            requested=np.array(trail.requested, dtype=np.float64),
            violating=violating,
            killed=np.array(trail.killed, dtype=np.int32),
            resized=np.array(trail.resized, dtype=np.int32),
            refusals=self.refusals,
            starts=self.starts,
        )
