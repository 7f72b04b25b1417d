"""Simulate policies on one load: each in the compiled engine, or by decide() step by step where it cannot be compiled.

Both give the same replicas in every step; `why_slow` says why a policy takes the slow way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import msgspec
import numpy as np
from msgspec.structs import replace

from trimtab.core.forecast.learned.model import Throughout, startup_of, throughout
from trimtab.core.forecast.learned.net import PROBABILITIES, NetWeights
from trimtab.core.model import Missing, Observation
from trimtab.core.overload import Yardstick, yardstick
from trimtab.core.priced import levels
from trimtab.policy import Objective, Policy
from trimtab.series import Floats
from trimtab.sim.cluster import Run, run
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.cost_limit import UNLIMITED, CostLimit
from trimtab.sim.demand_forecast import forecast_demand
from trimtab.sim.grid import DAY_STEPS, STEP_S, delay_steps
from trimtab.sim.numba_engine import run_on
from trimtab.sim.program import (
    NO_BAND,
    NOTHING_AHEAD,
    SILENT,
    BoundsBySteps,
    bounds_by_step,
    is_cpu_share,
    program,
    uncovered,
)
from trimtab.sim.resize_in_place import shown_load, size_factors
from trimtab.sim.score import EVERY_STEP, Actuator, Counts, Days, measure, ready_pods, violating_load
from trimtab.sim.sliding_windows import delayed, trailing_mean

_PLAIN = ClusterSpec()
_STEPPED = {
    "startup_jitter": "start-up times that vary",
    "memory_load": "memory that depends on the load",
    "retry_share": "retries",
    "faults": "faults",
}


def why_slow(policy: Policy, cluster: ClusterSpec) -> str:
    """Why decide() itself has to be run; empty when the compiled engine gives the same."""
    if cluster.queue:
        return "its work waits in a queue"
    return uncovered(policy) or (f"the cluster has {parts}" if (parts := ", ".join(stepped_parts(cluster))) else "")


def stepped_parts(cluster: ClusterSpec) -> tuple[str, ...]:
    """The parts of a simulated cluster that the compiled engine does not know."""
    return tuple(part for name, part in _STEPPED.items() if np.any(getattr(cluster, name) != getattr(_PLAIN, name)))


def simulate(
    policy: Policy, load: Floats, cluster: ClusterSpec, *, first_pods: int, seed: int = 0, start: float = 0.0
) -> Run:
    """The run of one policy; see `Simulation`."""
    return Simulation(load, cluster, first_pods=first_pods, start=start, seed=seed).run(policy)


class Simulation:
    """One load on one simulated cluster. What all policies share is computed once: signal, forecasts, schedules."""

    def __init__(
        self,
        load: Floats,
        cluster: ClusterSpec,
        *,
        first_pods: int,
        start: float = 0.0,
        seed: int = 0,
        scored: Floats = EVERY_STEP,
        weights: NetWeights | None = None,
        refused: float = 0.0,
    ) -> None:
        """`load` is in its own unit, at 15 s steps from `start` on; where `scored` is 0, `days` count nothing.

        `weights` are those of the learned forecast, if not ours; `days` count with so large a share of pods `refused`
        every larger size.
        """
        self.load, self.cluster, self.first_pods = load, cluster, first_pods
        self.start, self.seed, self.scored = start, seed, scored
        self.weights, self.refused = weights, refused
        self._forecasts: dict[bytes, Floats] = {}
        self._learned: dict[tuple[float, float], Throughout] = {}  # by what a pod carries and how long it starts
        self._levels: dict[tuple[float, float, float, float], Floats] = {}  # the same, service level and price

    def run(self, policy: Policy) -> Run:
        """Every step of one policy."""
        if why_slow(policy, self.cluster):
            return self._decided(policy)
        policy = self.cluster.fitted(policy)
        self._prepare([policy])
        pods, delay = self._pods, delay_steps(self.cluster.startup_s)
        replicas = self._replicas(policy, UNLIMITED)
        ready = ready_pods(replicas, delay)
        factors = size_factors(self._shown, ready, policy.bridge) if policy.bridge else np.ones(len(pods) + 1)
        now, after = factors[:-1], factors[1:]
        requested = replicas + ready * (np.maximum(now, after) - 1.0)
        return Run(
            load=pods,
            replicas=replicas,
            ready=ready,
            billed=requested,
            requested=requested,
            violating=violating_load(pods, ready * now, self.cluster.level_share, self.cluster.ceiling_share),
            killed=np.zeros(len(pods), dtype=np.int32),
            resized=np.where(now != after, ready, 0),
            starts=int(np.maximum(np.diff(replicas), 0).sum()),
        )

    def days(
        self,
        policies: Sequence[Policy],
        done: Callable[[int], None] = lambda count: None,
        within: CostLimit = UNLIMITED,
    ) -> list[Days | None]:
        """What each day of each policy cost; None: given up, because it spent more than `within` allows.

        Policies with an objective share one learned forecast.
        A search that ran every candidate step by step would take minutes, so candidates are compared without the
        `stepped_parts` of the cluster.
        """
        groups: dict[bytes, list[int]] = {}
        policies = [self.cluster.fitted(policy) for policy in policies]
        for number, policy in enumerate(policies):
            alike = policy if is_cpu_share(policy) else replace(policy, bridge=None)
            groups.setdefault(msgspec.msgpack.encode(alike), []).append(number)
        self._prepare([policies[numbers[0]] for numbers in groups.values()])
        found: list[Days | None] = [None] * len(policies)

        def fill(numbers: list[int]) -> None:
            for number, days in zip(numbers, self._scored([policies[n] for n in numbers], within), strict=True):
                found[number] = days
            done(len(numbers))

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(fill, groups.values()))
        return found

    def _scored(self, policies: list[Policy], within: CostLimit) -> list[Days | None]:
        """Policies that differ in nothing but the bridge."""
        first = policies[0]
        if self.cluster.queue or uncovered(first):
            return [self._decided(policy).days(DAY_STEPS, self.scored) for policy in policies]
        replicas = self._replicas(first, within)
        if not len(replicas):
            return [None] * len(policies)
        delay, cluster = delay_steps(self.cluster.startup_s), self.cluster
        level, ceiling = cluster.level_share, cluster.ceiling_share

        def measured(policy: Policy) -> Days:
            shape = delay, DAY_STEPS, level, policy.bridge, self._shown, self.refused
            return measure(self._pods, replicas, *shape, ceiling=ceiling, scored=self.scored)

        return [measured(policy) for policy in policies]

    def _decided(self, policy: Policy) -> Run:
        return run(policy, self.load, self.cluster, first_pods=self.first_pods, seed=self.seed, start=self.start)

    def _replicas(self, policy: Policy, within: CostLimit) -> Counts:
        cluster = self.cluster
        view = cluster.mean_steps, cluster.metric_delay_steps
        actuator = Actuator(delay_steps(cluster.startup_s), policy.bridge, self.refused, cluster.ceiling_share, *view)
        band = self._band(policy, policy.objective) if policy.objective else NO_BAND
        compiled = program(policy, STEP_S, self._ahead(policy), self._by_step(policy), band)
        return run_on(self._pods, self._signal, self._shown, compiled, self.first_pods, actuator, within)

    def _band(self, policy: Policy, objective: Objective) -> BoundsBySteps:
        """What the policy's forecast is worth at the end of each step; never fewer than the load needs."""
        pod, startup_s = self._asked(policy)
        found = self._learned[pod.request, startup_s]
        start, keep = (
            self._levels[pod.request, startup_s, pod.share, price].astype(np.int64)[row]
            for row, price in enumerate(_band(objective))
        )
        need = np.ceil(self._signal / pod.level - 1e-9).astype(np.int64)
        return np.where(found.silent, SILENT, np.stack([np.maximum(start, need), keep]))

    def _prepare(self, policies: list[Policy]) -> None:
        """Make what several policies need before threads ask for it."""
        wanted: dict[tuple[float, float, float], dict[float, None]] = {}
        for policy in policies:
            if uncovered(policy):
                continue
            if policy.objective is None:
                self._ahead(policy)
                continue
            pod, startup_s = self._asked(policy)
            key = pod.request, startup_s, pod.share
            wanted.setdefault(key, {}).update(dict.fromkeys(_band(policy.objective)))
        for (carries, startup_s, level), prices in wanted.items():
            missing = [price for price in prices if (carries, startup_s, level, price) not in self._levels]
            self._learn(carries, startup_s)
            found = self._learned[carries, startup_s]
            start, keep = (
                levels(PROBABILITIES, demand, missing, level, carries) for demand in (found.start, found.keep)
            )
            for row, price in enumerate(missing):
                self._levels[carries, startup_s, level, price] = np.stack([start[row], keep[row]])

    def _asked(self, policy: Policy) -> tuple[Yardstick, float]:
        """What the policy takes a pod to carry, and the start-up time that its forecast looks ahead."""
        (signal,), choice = policy.signals, policy.forecast
        assert choice is not None
        measured_s = max(1.0, delay_steps(self.cluster.startup_s) * STEP_S)
        pod = yardstick(policy, signal, Observation(at=self.start, spec_replicas=1, status_replicas=1))
        assert not isinstance(pod, Missing), "a total says by its target what a pod carries"
        return pod, startup_of(measured_s if choice.horizon_s is None else choice.horizon_s)

    def _learn(self, carries: float, startup_s: float) -> None:
        if (carries, startup_s) not in self._learned:
            times = self.start + STEP_S * np.arange(1, len(self.load) + 1, dtype=np.float64)
            self._learned[carries, startup_s] = throughout(times, self._signal, carries, startup_s, self.weights)

    def _ahead(self, policy: Policy) -> Floats:
        """Demand does not depend on how it is served, so one look ahead serves every policy with this choice."""
        choice = policy.forecast
        if choice is None or policy.objective is not None:
            return NOTHING_AHEAD
        key = msgspec.msgpack.encode(choice)
        if key not in self._forecasts:
            quantiles = [choice.quantile]
            (self._forecasts[key],) = forecast_demand(choice, quantiles, self.load, self.cluster, self.start)
        return self._forecasts[key]

    def _by_step(self, policy: Policy) -> BoundsBySteps:
        return bounds_by_step(policy.bounds, self.start, len(self.load), STEP_S)

    @cached_property
    def _pods(self) -> Floats:
        """The load in what one pod carries at 100 %."""
        return self.load / self.cluster.pod_capacity

    @cached_property
    def _signal(self) -> Floats:
        return delayed(trailing_mean(self.load, self.cluster.mean_steps), self.cluster.metric_delay_steps)

    @cached_property
    def _shown(self) -> Floats:
        return shown_load(self._pods, self.cluster.mean_steps, self.cluster.metric_delay_steps)


def _band(objective: Objective) -> tuple[float, float]:
    """The prices at which a pod is worth starting and keeping."""
    return objective.price * objective.start_share, objective.price * objective.keep_share
