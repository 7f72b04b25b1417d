"""Forecasts of 10,000 workloads: what lines take of a tick, what other models take beside it, and memory.

Lines are drawn in the tick of everybody; a seasonal forecast is made again every four minutes, a learned one every
minute, between two ticks. The learned one studies each workload's past at first sight and again every two hours.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from typing import NamedTuple

import numpy as np

from trimtab.core.forecast.demand_forecasts import DemandForecasts, make
from trimtab.core.model import Observation, TotalSample
from trimtab.core.startup import startup
from trimtab.policy import ForecastChoice, Metric, MetricKind, Policy, TotalAverage
from trimtab.series import Series

AT, DAYS, STEP_S = 1_750_000_020.0, 15, 300.0


def policy(choice: ForecastChoice) -> Policy:
    signal = TotalAverage(metric=Metric(kind=MetricKind.EXTERNAL, name="load"), target=1.0)
    return Policy(signals=(signal,), forecast=choice)


def seen(at: float, value: float) -> Observation:
    sample = TotalSample(value=value, at=at)
    return Observation(at=at, spec_replicas=1, status_replicas=1, samples=(sample,), startup=startup([120.0], at))


def lines(workloads: int) -> float:
    """Seconds of one tick: everybody's demand noted, and a line drawn."""
    found, line = DemandForecasts(), policy(ForecastChoice(options={"slope_quantile": 0.4}))
    for step in range(15):
        began = time.process_time()
        for workload in range(workloads):
            now = seen(AT + 15.0 * step, 100.0 + step)
            found.note(str(workload), line, now)
            found.of(str(workload), line, now)
    return time.process_time() - began


def seasons(workloads: int) -> dict[str, float]:
    """Everybody's two weeks, and one forecast each."""
    found, model = DemandForecasts(), policy(ForecastChoice(model="seasonal"))
    times = np.arange(AT - DAYS * 86400.0, AT, STEP_S)
    noise = np.random.default_rng(1).normal(0.0, 2.0, len(times))
    past = Series(times, 100.0 + 30.0 * np.sin(2 * np.pi * times / 86400.0) + noise)
    for workload in range(workloads):
        owner, now = str(workload), seen(AT, 100.0)
        found.note(owner, model, now)
        found.restore(owner, model, f"{owner}/" + _name(found, owner), past, STEP_S)
        found.of(owner, model, now)
    cut_s, made_s, rounds = 0.0, 0.0, 0
    while found._asked:
        rounds += 1
        batches, began = found.batches(), time.process_time()
        for batch in batches:
            cut_s += time.process_time() - began
            began = time.process_time()
            found.put(batch, make(batch))
            made_s += time.process_time() - began
            began = time.process_time()
    rows = found.log._rows.values()
    kept = sum(codes.nbytes for row in rows for codes in row.minutes._days.values()) / workloads / 1000
    return {"cut_s": cut_s, "made_s": made_s, "rounds": rounds, "kb_per_workload": kept}


def _name(found: DemandForecasts, owner: str) -> str:
    return found._keys[owner][0].split("/")[1]


class LearnedCost(NamedTuple):
    """CPU seconds of all workloads together."""

    first_s: float  # everybody's past is studied for the first time
    again_s: float  # one forecast each
    study_s: float  # one forecast each, after two hours more of past

    @property
    def tick_s(self) -> float:
        """On average: a forecast each minute, a study every two hours, ticks of 15 s."""
        return self.again_s / 4 + (self.study_s - self.again_s) / 480


def learned(workloads: int) -> LearnedCost:
    """A week of minutes each; then a round of forecasts, then one that studies the next two hours."""
    found, model = DemandForecasts(), policy(ForecastChoice(model="learned"))
    times = np.arange(AT - 8 * 86400.0, AT, 60.0)
    noise = np.random.default_rng(1).normal(0.0, 0.4, len(times))
    past = Series(times, 20.0 + 6.0 * np.sin(2 * np.pi * times / 86400.0) + noise)
    for workload in range(workloads):
        owner = str(workload)
        found.note(owner, model, seen(AT, 20.0))
        found.restore(owner, model, f"{owner}/" + _name(found, owner), past, 60.0)
    first_s = _round(found, model, workloads, AT)
    again_s = _round(found, model, workloads, AT + 60.0)
    for workload in range(workloads):
        for minute in range(2, 131):
            found.note(str(workload), model, seen(AT + 60.0 * minute, 20.0 + 0.01 * minute))
    return LearnedCost(first_s, again_s, _round(found, model, workloads, AT + 131 * 60.0))


def _round(found: DemandForecasts, model: Policy, workloads: int, at: float) -> float:
    """The CPU seconds of one forecast for everybody."""
    for workload in range(workloads):
        found.note(str(workload), model, seen(at, 20.0))
        found.of(str(workload), model, seen(at, 20.0))
    began = time.process_time()
    while found._asked:
        found.make_due()
    return time.process_time() - began


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--workloads", type=int, default=10_000)
    workloads = options.parse_args().workloads
    tick_s, learn, season = lines(workloads), learned(workloads), seasons(workloads)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"lines of {workloads} workloads: {tick_s:.2f} s of a tick")
    print(
        f"seasonal forecasts of {workloads} workloads: {season['cut_s']:.1f} s on the loop in pieces, "
        f"{season['made_s']:.1f} s in a worker, {season['rounds']:.0f} rounds"
    )
    print(
        f"learned forecasts of {workloads} workloads: {learn.tick_s:.2f} s of a tick on average; {learn.again_s:.1f} s "
        f"for one each, {learn.study_s:.1f} s with a study, {learn.first_s:.0f} s with the first one"
    )
    print(f"memory: {season['kb_per_workload']:.0f} KB per workload, {peak_mb:.0f} MB in all")
    print(
        json.dumps(
            {"benchmark": "forecasts", "workloads": workloads, "line_tick_s": tick_s, "peak_mb": peak_mb}
            | season
            | {"learned_tick_s": learn.tick_s}
            | learn._asdict()
        )
    )


if __name__ == "__main__":
    main()
