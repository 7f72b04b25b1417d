"""A night of tuning: workloads with fourteen days behind them, in the child process as the operator starts it.

It ends with one line of JSON. `--workloads 1000` is a whole fleet; fewer are scaled up to 1,000 and 10,000, without
what the process costs before it looks at the first workload.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import time
from collections.abc import Iterator
from itertools import cycle, islice

import numpy as np
from msgspec.structs import replace

from trimtab.bench.baselines import hpa
from trimtab.cli.night_process import in_child
from trimtab.core.nights import NightCase, Verdict, VerdictKind
from trimtab.core.overload import Yardstick
from trimtab.policy import BRIDGED_START_SHARE, Bridge, ForecastChoice, Objective, Tuning, TuningMode
from trimtab.sim.generate import SHAPES, generate

DAYS, CORES, FLEETS = 14, 2, (1000, 10_000)


def cases(count: int) -> Iterator[NightCase]:
    """Every shape of load in turn, each with a bridge and an objective: all that a night can choose from."""
    policy = replace(
        hpa(),
        tuning=Tuning(mode=TuningMode.NIGHTLY),
        bridge=Bridge(),
        objective=Objective(start_share=BRIDGED_START_SHARE),
        forecast=ForecastChoice(model="learned"),
    )
    for number, name in enumerate(islice(cycle(SHAPES), count)):
        shape = SHAPES[name]
        values = generate(type(shape)(**{**vars(shape), "days": DAYS, "seed": number}))
        demand = values.reshape(-1, 4).mean(axis=1).astype(np.float32).tobytes()
        yield NightCase(
            uid=f"{name}-{number}",
            workload=name,
            policy=policy,
            start=0.0,
            demand=demand,
            pod=Yardstick(request=1.0, level=0.8, limit=1.0),
            startup_s=120.0,
        )


def night(made: list[NightCase]) -> tuple[list[Verdict], float, float]:
    """The verdicts, the seconds of CPU they took, and the megabytes of the largest child so far."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = asyncio.run(in_child(iter(made), len(made)))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return found, cpu_s, after.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=24)
    count = parser.parse_args().workloads
    made = list(cases(count))  # what it costs to make them is not part of a night
    _, alone_s, _ = night([])
    began = time.perf_counter()
    found, cpu_s, child_mb = night(made)
    each_s = (cpu_s - alone_s) / count
    figures = {
        "workloads": count,
        "days": DAYS,
        "wall_s": round(time.perf_counter() - began, 1),
        "cpu_s_before_the_first": round(alone_s, 1),
        "cpu_s_per_workload": round(each_s, 2),
        **{f"minutes_for_{fleet}_on_two_cores": round(each_s * fleet / CORES / 60, 1) for fleet in FLEETS},
        "child_mb": round(child_mb),
        "better": sum(verdict.kind in (VerdictKind.SWITCHED, VerdictKind.WAITS) for verdict in found),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
