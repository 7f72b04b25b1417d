"""A workload's own history as a demand to replay: on the 15 s grid, in the unit of the policy's target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.errors import InvalidInput, NotEnoughData
from trimtab.history.files import POD_LEVEL
from trimtab.kinds.queues import queue_followed
from trimtab.policy import Backlog, MetricKind, Policy, Signal, Utilization
from trimtab.quantity import format_duration
from trimtab.series import Floats, Frame
from trimtab.sim.grid import MEAN_S, STEP_S

SHORTEST_S = 3600.0
FINE_S = 1.5 * MEAN_S  # metrics are means of a minute: finer samples show nothing that a policy could see
LEAST_PODS, MOST_PODS = 0.01, 100_000.0  # a peak beyond these is a mistake in the unit


class Demand(NamedTuple):
    """What was asked of the workload; `notes` say what was done to the data."""

    name: str
    values: Floats
    start: float
    notes: tuple[str, ...] = ()
    known: NDArray[np.bool_] | None = None  # steps that have a sample; None: all

    @property
    def days(self) -> float:
        return len(self.values) * STEP_S / 86400

    def last(self, days: float | None) -> Demand:
        """Its end, where so many days are wanted."""
        first = max(0, len(self.values) - round(days * 86400 / STEP_S)) if days is not None else 0
        known = None if self.known is None else self.known[first:]
        return self._replace(values=self.values[first:], start=self.start + first * STEP_S, known=known)

    def last_whole_days(self) -> Demand:
        """What is tuned on: its last day ends now, and what is too much at the beginning is told."""
        days = int(self.days)
        if days in (0, self.days):
            return self
        early = format_duration((self.days - days) * 86400)
        note = f"tuned on the last {days} whole days of {self.days:.2f}: the first {early} are left out"
        return self.last(days)._replace(notes=(*self.notes, note))


def demand_of(frame: Frame, where: str, series: str = "", days: float | None = None) -> Demand:
    """One series of a frame, held from sample to sample; holes repeat the last value and are told."""
    row = _row(frame, where, series)
    if days is not None:
        frame = frame.tail(max(1, round(days * 86400 / frame.step_s)))
    values = frame.values[row]
    present = np.flatnonzero(np.isfinite(values))
    if not len(present):
        raise NotEnoughData(f"{where}: {frame.names[row]} has no value in the whole window; widen it, check the query")
    values = values[present[0] : present[-1] + 1]
    start = frame.start + int(present[0]) * frame.step_s
    if len(values) * frame.step_s < SHORTEST_S:
        span = format_duration(len(values) * frame.step_s)
        raise NotEnoughData(f"{where}: {frame.names[row]} spans {span}; a backtest needs an hour, tuning some days")
    held, notes = _hold(values, frame.step_s)
    notes = tuple(filter(None, (resolution_note(frame.step_s), *notes)))
    grid = np.arange(int(len(held) * frame.step_s // STEP_S)) * STEP_S
    steps, present = (grid / frame.step_s).astype(np.intp), np.isfinite(values)
    return Demand(frame.names[row], held[steps], start, notes, None if present.all() else present[steps])


def resolution_note(step_s: float) -> str:
    """What coarse samples hide, and what they make of a ramp."""
    if step_s <= FINE_S:
        return ""
    every = format_duration(step_s)
    return (
        f"one sample per {every}, held until the next: shorter peaks do not show and a ramp comes as one jump, so take"
        " violations for rough and compare policies by cost"
    )


def _row(frame: Frame, where: str, series: str) -> int:
    if series:
        if series not in frame.names:
            raise InvalidInput("--series", series, f"{where} has {_some(frame.names)}")
        return frame.names.index(series)
    workloads = [name for name in frame.names if name.count("/") < POD_LEVEL]
    if len(workloads) == 1:  # beside the pods that it is the sum of
        return frame.names.index(workloads[0])
    if len(frame.names) != 1:
        raise InvalidInput(where, f"{len(frame.names)} series", f"choose one with --series: {_some(frame.names)}")
    return 0


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _hold(values: Floats, step_s: float) -> tuple[Floats, tuple[str, ...]]:
    present = np.isfinite(values)
    if present.all():
        return values, ()
    last = np.maximum.accumulate(np.where(present, np.arange(len(values)), 0))
    edges = np.flatnonzero(np.diff(present.astype(np.int8), prepend=1, append=1))
    longest = int((edges[1::2] - edges[::2]).max())
    count = int((~present).sum())
    note = (
        f"{count} of {len(values)} samples (one per {format_duration(step_s)}) are missing,"
        f" {format_duration(longest * step_s)} at the longest; the last value was held"
    )
    return values[last], (note,)


def load_signal(policy: Policy) -> Signal | None:
    """The signal whose unit the load has: that of a queue, else the first, but memory follows no load that history
    knows of."""
    queues = [signal for signal in policy.signals if isinstance(signal, Backlog)]
    others = [signal for signal in policy.signals if not _of_resource(signal, "memory")]
    return next(iter([*queues, *others, *policy.signals]), None)


def check_one_unit(policies: Sequence[tuple[str, Policy]], given: float | None) -> list[str]:
    """One load has one unit, so policies in cores and in another are not judged together; what is taken on trust.

    A share of CPU follows a load in any unit of which somebody said how much one pod carries.
    """
    signals = [(name, load_signal(policy)) for name, policy in policies]
    if any(isinstance(signal, Backlog) for _, signal in signals):  # the length of their queue is simulated
        signals = [(name, signal) for name, signal in signals if signal is None or not queue_followed(signal)]
    shares = [name for name, signal in signals if signal is None or isinstance(signal, Utilization)]
    cores = [name for name, signal in signals if signal and name not in shares and _of_resource(signal, "cpu")]
    cores += shares if given is None else []
    others = {signal.metric: name for name, signal in signals if signal and name not in (*shares, *cores)}
    if cores and others:
        value = f"{cores[0]} goes by CPU in cores, {next(iter(others.values()))} by {next(iter(others)).label}"
        fix = "one load has one unit: judge them apart, or say --pod-capacity in the unit of the load"
        raise InvalidInput("policies", value, fix)
    named = dict.fromkeys(metric.name or metric.query for metric in others)
    return [f"the load is taken to be in the unit of each of {', '.join(named)}"] if len(named) > 1 else []


def memory_note(policy: Policy) -> str:
    """What a metric of memory does in a simulation that knows the load alone."""
    if not any(_of_resource(signal, "memory") for signal in policy.signals):
        return ""
    return "how memory follows the load is not known: its metric is simulated at a quarter of the request"


def _of_resource(signal: Signal, name: str) -> bool:
    return signal.metric.kind in (MetricKind.RESOURCE, MetricKind.CONTAINER) and signal.metric.name == name


def check_unit(demand: Demand, capacity: float, where: str) -> None:
    """A load in the wrong unit shows: it needs no pod at all, or more than any cluster has."""
    peak = float(demand.values.max()) / capacity
    if peak == 0.0:
        raise InvalidInput(where, "zero all the time", "nothing was asked of it: check the query, or the column")
    if peak < LEAST_PODS or peak > MOST_PODS:
        value = f"its peak of {demand.values.max():g} would keep {peak:.2g} pods busy"
        raise InvalidInput(where, value, f"is it in the unit of the target? One pod carries {capacity:g} at 100 %")


def idle_note(demand: Demand, capacity: float, min_replicas: int) -> str:
    """A load that never needs more than the floor compares nothing; most often its unit is not the target's."""
    peak = float(demand.values.max())
    if peak > min_replicas * capacity:
        return ""
    return f"the load peaks at {peak:g}, which minReplicas ({min_replicas}) carries: is it in the unit of the target?"
