"""The demo's shop as a journal: some days until now at once, and then, where somebody looks, on and on, fast."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from trimtab.core.model import Decision, Memory, Observation
from trimtab.journal import DAY_S, Journal, ObjectName
from trimtab.sim.cluster import run
from trimtab.sim.grid import STEP_S
from trimtab.tune.case import first_pods
from trimtab.tune.demo_fleet import WEEK
from trimtab.tune.demo_play import DemoResult
from trimtab.tune.recording import SimulatedRecord

DAYS = 2.0  # before today
SPEED = 120.0  # simulated seconds in a second
WRITE_EVERY_S = 0.5
FOLD_EVERY = 60  # writes


class _Ended(Exception):
    """Nobody looks any more."""


class DemoJournal:
    """One thread for each workload simulates, one writes what they saw."""

    def __init__(self, path: Path, results: Sequence[DemoResult], now: float, live: bool) -> None:
        self.path, self.now, self.live = path, now, live
        self.start = now // DAY_S * DAY_S - DAYS * DAY_S
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._caught_up = threading.Barrier(len(results) + 1)
        self._origin = 0.0
        self._threads = [threading.Thread(target=self._simulate, args=(result,), daemon=True) for result in results]
        self._records: list[SimulatedRecord] = []

    def __enter__(self) -> DemoJournal:
        """Returns when everything until now is written."""
        journal = Journal(self.path)
        for thread in self._threads:
            thread.start()
        self._caught_up.wait()
        self._origin = time.monotonic()
        self._write(journal)
        journal.prune(self.now)
        journal.close()
        self._caught_up.wait()
        if self.live:
            threading.Thread(target=self._keep_writing, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(5.0)

    def _simulate(self, result: DemoResult) -> None:
        workload, policy = result.workload, result.policy
        found = SimulatedRecord(ObjectName("Autoscaler", "demo", workload.name), policy, workload.cluster.startup_s)
        past = int((self.now - self.start) // STEP_S)
        values = workload.demand.values[WEEK:]
        load = np.concatenate([values, *[workload.demand.values] * 50])[: None if self.live else past]
        with self._lock:
            self._records.append(found)

        def watch(seen: Observation, memory: Memory, decision: Decision) -> None:
            with self._lock:
                found.watch(seen, memory, decision)
            if seen.at >= self.start + past * STEP_S:
                self._pace(seen.at, first=seen.at < self.start + (past + 1) * STEP_S)

        try:
            first = first_pods(policy, float(load[0]) / workload.cluster.pod_capacity)
            run(policy, load, workload.cluster, first_pods=first, seed=1, start=self.start, watch=watch)
        except _Ended:
            return
        except BaseException:
            self._caught_up.abort()  # whoever waits for the others must not wait for ever
            raise

    def _pace(self, at: float, first: bool) -> None:
        """Wait until the simulated clock is there."""
        if first:  # all of the past is seen, then all of it is written
            self._caught_up.wait()
            self._caught_up.wait()
        due = self._origin + (at - self.now) / SPEED
        if self._stop.wait(max(0.0, due - time.monotonic())):
            raise _Ended

    def _write(self, journal: Journal) -> None:
        with self._lock:
            for found in self._records:
                found.write(journal)

    def _keep_writing(self) -> None:
        journal, count = Journal(self.path), 0
        while not self._stop.wait(WRITE_EVERY_S):
            self._write(journal)
            count += 1
            if count % FOLD_EVERY == 0:
                span = journal.span()
                journal.prune(span[1] - 900 if span else self.now)
        journal.close()
