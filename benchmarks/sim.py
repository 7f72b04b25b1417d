"""Simulation: 135 candidates over 14 days at 15 s in the compiled lane, and the same days through decide() itself.

Limits: 60 million candidate-steps per second on two cores (about 0.2 s in all), and 10 s for a replay by decide().
"""

from __future__ import annotations

import json
import os
import time

import numpy as np

from trimtab.bench.baselines import hpa, on_cpu
from trimtab.core.tuned import tuned
from trimtab.sim.cluster import run
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.generate import SHAPES, generate
from trimtab.sim.grid import DAY_STEPS, MEAN_STEPS, STEP_S
from trimtab.sim.numba_engine import sweep
from trimtab.sim.program import program
from trimtab.sim.score import Actuator
from trimtab.sim.sliding_windows import trailing_mean
from trimtab.tune.search import reactive_settings

REPEATS = 5


def measure() -> dict[str, float]:
    load = generate(SHAPES["bursty"])
    signal = trailing_mean(load, MEAN_STEPS)
    programs = [program(tuned(hpa(), each), STEP_S) for each in reactive_settings(hpa(), ClusterSpec())]
    sweep(load, signal, programs[:1], 20, [Actuator(8)], DAY_STEPS)  # compiled, or read from the cache
    walls, cores = [], []
    for _ in range(REPEATS):
        wall, core = time.perf_counter(), time.process_time()
        sweep(load, signal, programs, 20, [Actuator(8)], DAY_STEPS)
        walls.append(time.perf_counter() - wall)
        cores.append(time.process_time() - core)
    steps = len(programs) * len(load)
    return {
        "sweep_s": round(min(walls), 3),
        "million_steps_a_second": round(steps / min(walls) / 1e6, 1),
        "million_steps_a_core_second": round(steps / min(cores) / 1e6, 1),
        "decide_total_s": round(_replay_s(load, cpu=False), 2),
        "decide_cpu_s": round(_replay_s(load, cpu=True), 2),
    }


def _replay_s(load: np.ndarray, cpu: bool) -> float:
    began = time.process_time()
    run(on_cpu() if cpu else hpa(), load, ClusterSpec(startup_s=120), first_pods=30)
    return time.process_time() - began


def main() -> None:
    figures = measure()
    print(f"135 candidates x 14 days x 15 s, scored: {figures['sweep_s']} s on {os.cpu_count()} cores,")
    print(f"  {figures['million_steps_a_second']} million candidate-steps per second")
    print(f"  ({figures['million_steps_a_core_second']} million per second of one core's time)")
    print(
        f"14 days through decide(): {figures['decide_total_s']} s on a total, {figures['decide_cpu_s']} s on pods' CPU"
    )
    limits = {"million_steps_a_second": 60, "decide_total_s": 10, "decide_cpu_s": 10}
    print(json.dumps({"benchmark": "sim", "limits": limits} | figures))


if __name__ == "__main__":
    main()
