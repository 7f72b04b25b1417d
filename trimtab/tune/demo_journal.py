"""The demo's journal: the week that was scored and, while somebody watches, what happens next in fast motion."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from trimtab.core.model import Decision, Memory, Observation
from trimtab.journal import Journal, ObjectName
from trimtab.series import Floats
from trimtab.sim.cluster import run
from trimtab.tune.case import first_pods
from trimtab.tune.demo_fleet import START, WEEK, WEEK_S
from trimtab.tune.demo_play import DemoResult
from trimtab.tune.recording import SimulatedRecord

NOW = START + 2 * WEEK_S  # the scored week ends
SPEED = 120.0  # simulated seconds in a second
WEEKS_AHEAD = 50
WRITE_EVERY_S = 0.5
FOLD_EVERY = 60  # writes


def write_week(path: Path, results: Sequence[DemoResult]) -> None:
    """Write every decision of the scored week."""
    journal = Journal(path)
    for result in results:
        result.record.write(journal)
    journal.prune(NOW)
    journal.close()


class _Ended(Exception):
    """Nobody watches any more."""


class LiveDemo:
    """Continues the simulation after the scored week: one thread per workload, and one that writes the journal."""

    def __init__(self, path: Path, results: Sequence[DemoResult]) -> None:
        self._path = path
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._records = [_empty_record(result) for result in results]
        simulations = zip(results, self._records, strict=True)
        self._threads = [threading.Thread(target=self._simulate, args=each, daemon=True) for each in simulations]
        self._threads.append(threading.Thread(target=self._write, daemon=True))

    def __enter__(self) -> LiveDemo:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(5.0)

    def _simulate(self, result: DemoResult, record: SimulatedRecord) -> None:
        """The two weeks once more, for they are what forecasts remember, then on and on."""
        workload, caught_up_at = result.workload, 0.0

        def watch(seen: Observation, memory: Memory, decision: Decision) -> None:
            nonlocal caught_up_at
            if seen.at < NOW:
                if self._stop.is_set():
                    raise _Ended
                return
            caught_up_at = caught_up_at or time.monotonic()
            due = caught_up_at + (seen.at - NOW) / SPEED
            if self._stop.wait(max(0.0, due - time.monotonic())):
                raise _Ended
            with self._lock:
                record.watch(seen, memory, decision)

        pods, load = workload.pods, _endless(workload.load)
        if pods.memory_load is not None:
            pods = replace(pods, memory_load=_endless(pods.memory_load))
        first = first_pods(result.policy, float(load[0]) / pods.pod_capacity)
        try:
            run(result.policy, load, pods, first_pods=first, seed=1, start=START, watch=watch)
        except _Ended:
            return

    def _write(self) -> None:
        journal, count = Journal(self._path), 0
        while not self._stop.wait(WRITE_EVERY_S):
            with self._lock:
                for record in self._records:
                    record.write(journal)
            count += 1
            if count % FOLD_EVERY == 0:
                span = journal.span()
                journal.prune(span[1] - 900 if span else NOW)
        journal.close()


def _empty_record(result: DemoResult) -> SimulatedRecord:
    workload = result.workload
    return SimulatedRecord(ObjectName("Autoscaler", "demo", workload.name), result.policy, workload.pods.startup_s)


def _endless(values: Floats) -> Floats:
    """The two weeks, then the second one again and again."""
    return np.concatenate([values, *[values[WEEK:]] * WEEKS_AHEAD])
