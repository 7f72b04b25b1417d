"""The four transforms of the forecasts, for a fleet of 1000 workloads with two weeks of minutes: seconds on one core.

One line per library that is installed, so that a change of library can be judged in one run.
"""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

ROWS, MINUTES = 100, 14 * 1440  # a batch of rows, ten times
SIZES = {"two weeks": MINUTES, "padded": 40500, "a prime": 20161 + 2}


def seconds(job: Callable[[], Any]) -> float:
    """The best of three."""
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        job()
        best = min(best, time.perf_counter() - began)
    return best


def transforms(fft: Any) -> dict[str, float]:
    load = np.random.default_rng(1)
    found: dict[str, float] = {}
    for name, size in SIZES.items():
        values = load.random((ROWS, size))
        spectrum = fft.rfft(values, axis=1)
        found[f"rfft {name}"] = 10 * seconds(partial(fft.rfft, values, axis=1))
        found[f"irfft {name}"] = 10 * seconds(partial(fft.irfft, spectrum, size, axis=1))
    return found


def main() -> None:
    for library in ("numpy.fft", "scipy.fft"):
        try:
            found = transforms(importlib.import_module(library))
        except ModuleNotFoundError:
            continue
        print(json.dumps({"library": library} | {name: round(value, 3) for name, value in found.items()}))


if __name__ == "__main__":
    main()
