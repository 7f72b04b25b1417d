"""10,000 containers: one minute's samples into their histograms, and everybody's estimates out.

Limits: an update in 50 ms, the percentiles in 200 ms; also shown: dated estimates as records, for whole workloads.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np

from trimtab.core.usage import ContainerSample, UsageHistograms, usages

CONTAINERS, MINUTES, REPEATS = 10_000, 20, 9
NOW = 1_700_000_000.0


def minute(draw: np.random.Generator, number: int) -> list[ContainerSample]:
    """Samples as the metrics API gives them: one pod of each of 5,000 workloads, two containers each."""
    cores, sizes = draw.gamma(2.0, 0.2, CONTAINERS).tolist(), draw.gamma(4.0, 1e8, CONTAINERS).tolist()
    return [
        ContainerSample(
            f"team/web-{index // 2}", "pod-0", "app" if index % 2 else "proxy", NOW + 60 * number, cpu, memory
        )
        for index, (cpu, memory) in enumerate(zip(cores, sizes, strict=True))
    ]


def ms(action: Callable[[], object]) -> float:
    started = time.process_time()
    action()
    return 1000 * (time.process_time() - started)


def measure() -> dict[str, float]:
    draw, book = np.random.default_rng(1), UsageHistograms()
    batches = [minute(draw, number) for number in range(MINUTES)]
    first, *updates = [ms(partial(book.observe, batch)) for batch in batches]
    at = NOW + 60 * MINUTES
    assert len(book.keys()) == CONTAINERS and int(book.rows["count"].sum()) == CONTAINERS * MINUTES
    both = ([0.5, 0.9, 0.95],)
    percentiles = [ms(lambda: (book.cpu.percentiles(*both), book.memory.percentiles(*both))) for _ in range(REPEATS)]
    records = [ms(lambda: usages(book, at)) for _ in range(REPEATS)]
    return {
        "first_update_ms": round(first, 1),
        "update_ms": round(median(updates), 1),
        "percentiles_ms": round(median(percentiles), 1),
        "estimates_ms": round(median(records), 1),
    }


def main() -> None:
    figures = measure()
    print(f"{CONTAINERS} containers, CPU and memory:")
    print(f"  one minute's samples in {figures['update_ms']} ms ({figures['first_update_ms']} ms the first time)")
    print(f"  three percentiles of both in {figures['percentiles_ms']} ms")
    print(f"  dated estimates with bounds and safety facts in {figures['estimates_ms']} ms")
    limits = {"update_ms": 50, "percentiles_ms": 200}
    print(json.dumps({"benchmark": "histograms", "containers": CONTAINERS, "limits": limits} | figures))


if __name__ == "__main__":
    main()
