"""Forecasts of 10,000 workloads: what lines take of a tick, what a seasonal model takes beside it, and memory.

Lines are drawn in the tick of everybody; a seasonal forecast is made again every four minutes, between two ticks.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

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
    kept = found.log.bytes_kept / workloads / 1000
    return {"cut_s": cut_s, "made_s": made_s, "rounds": rounds, "kb_per_workload": kept}


def _name(found: DemandForecasts, owner: str) -> str:
    return found._keys[owner][0].split("/")[1]


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--workloads", type=int, default=10_000)
    workloads = options.parse_args().workloads
    tick_s, season = lines(workloads), seasons(workloads)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"lines of {workloads} workloads: {tick_s:.2f} s of a tick")
    print(
        f"seasonal forecasts of {workloads} workloads: {season['cut_s']:.1f} s on the loop in pieces, "
        f"{season['made_s']:.1f} s in a worker, {season['rounds']:.0f} rounds"
    )
    print(f"memory: {season['kb_per_workload']:.0f} KB per workload, {peak_mb:.0f} MB in all")
    print(
        json.dumps(
            {"benchmark": "forecasts", "workloads": workloads, "line_tick_s": tick_s, "peak_mb": peak_mb} | season
        )
    )


if __name__ == "__main__":
    main()
