"""How near the learned level is to the truth, on services whose curve of latency over usage is known.

    python benchmarks/latency.py [--weeks 20]

Each service has a week of minutes: a daily load with quiet weekends, usage that scatters by 3 %, and the 99th
percentile of latency of that minute, which scatters as that of a sample does. The truth is the usage at which 1 % of
50,000 minutes would break the promise, found by bisection on the service itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from math import factorial
from typing import NamedTuple

import numpy as np

from trimtab.core.latency import LatencyLevel, MinutePairs, learn
from trimtab.series import Floats

Rng = np.random.Generator
Service = Callable[[Floats, Rng], Floats]  # the p99 of minutes with this usage
DAY = 1440
START = 1_760_000_000.0


class Week(NamedTuple):
    minutes: MinutePairs
    below_s: float
    truth: float


def m_m_1(served: float) -> Service:
    """One request at a time, exponential service times: p99 = ln(100) / (served - usage)."""
    return lambda usage, rng: _scattered(np.log(100.0) / np.maximum(served - usage, 0.02 * served), usage, 10.0, rng)


def m_g_k(usage: Floats, rng: Rng) -> Floats:
    """Eight requests at once, service times with a coefficient of variation of 1.5, waiting after Allen and Cunneen."""
    servers, mean_s, cv2 = 8, 0.2, 2.25
    busy = np.minimum(usage * mean_s, 0.99 * servers)
    grid = np.linspace(0.0, 0.99 * servers, 400)
    waits = np.interp(busy, grid, [_erlang_c(servers, each) for each in grid])
    spread = np.log(1.0 + cv2)
    served_s = mean_s * np.exp(-spread / 2.0 + 2.326 * np.sqrt(spread))
    wait_s = mean_s * (1.0 + cv2) / 2.0 / (servers - busy)
    return _scattered(served_s + wait_s * np.maximum(0.0, np.log(100.0 * np.maximum(waits, 1e-9))), usage, 8.0, rng)


def with_pauses(usage: Floats, rng: Rng) -> Floats:
    """A garbage collector stops a pod for 120 ms, more often the more it serves."""
    requests = 720.0 * usage  # of six pods in two minutes
    plain = _scattered(0.06 / np.maximum(1.0 - usage / 60.0, 0.02) + 0.04, usage, 8.0, rng)
    hit = 0.12 * rng.poisson(requests * usage / 3600.0) / 720.0
    return np.where(hit > 0.01, plain + 0.1 + 0.35 * (1.0 - 0.01 / np.maximum(hit, 0.01)), plain)


def _scattered(curve: Floats, usage: Floats, spread: float, rng: Rng) -> Floats:
    scattered: Floats = curve * np.exp(
        rng.standard_normal(len(usage)) * spread / np.sqrt(np.maximum(720.0 * usage, 1.0))
    )
    return scattered


def _erlang_c(servers: int, busy: float) -> float:
    free = sum(busy**count / factorial(count) for count in range(servers))
    full = busy**servers / factorial(servers) * servers / (servers - busy)
    return full / (free + full)


def truth(service: Service, below_s: float, most: float) -> float:
    """The usage at which 1 % of the minutes break the promise."""
    rng, low, high = np.random.default_rng(0), 0.0, most
    for _ in range(20):
        middle = (low + high) / 2.0
        broken = (service(np.full(50_000, middle), rng) > below_s).mean()
        low, high = (low, middle) if broken > 0.01 else (middle, high)
    return low


def usage_of(days: int, low: float, high: float, rng: Rng) -> Floats:
    minute = np.arange(days * DAY)
    wave = 0.5 - 0.5 * np.cos(2.0 * np.pi * (minute % DAY) / DAY)
    mean = low + (high - low) * wave * np.where((minute // DAY) % 7 >= 5, 0.8, 1.0)
    return np.asarray(mean * np.exp(0.03 * rng.standard_normal(len(minute))))


def week_of(service: Service, below_s: float, most: float, rng: Rng, days: int = 7) -> Week:
    right = truth(service, below_s, most)
    usage = usage_of(days, 0.25 * right, 1.15 * right, rng)
    return Week(
        MinutePairs(START + 60.0 * np.arange(len(usage), dtype=np.float64), usage, service(usage, rng)), below_s, right
    )


def slow_database(rng: Rng) -> Week:
    """Another second for 5 to 30 minutes a dozen times, whatever the load is."""
    week = week_of(m_m_1(50.0), 0.3, 49.0, rng)
    for first in rng.integers(0, len(week.minutes.times) - 40, 12):
        week.minutes.latency[first : first + rng.integers(5, 30)] += 1.0
    return week


def release(rng: Rng) -> Week:
    """After three to five days a release serves a fifth less; the truth is what it serves now."""
    days = int(rng.integers(3, 6))
    old, new = week_of(m_m_1(50.0), 0.3, 49.0, rng, days), week_of(m_m_1(40.0), 0.3, 39.0, rng, 7 - days)
    usage = np.concatenate((old.minutes.usage, new.minutes.usage))
    latency = np.concatenate((old.minutes.latency, new.minutes.latency))
    return Week(MinutePairs(START + 60.0 * np.arange(len(usage), dtype=np.float64), usage, latency), 0.3, new.truth)


SERVICES: dict[str, Callable[[Rng], Week]] = {
    "M/M/1": lambda rng: week_of(m_m_1(50.0), 0.3, 49.0, rng),
    "M/G/8": lambda rng: week_of(m_g_k, 2.4, 39.0, rng),
    "pauses of a garbage collector": lambda rng: week_of(with_pauses, 0.3, 59.0, rng),
    "slow database": slow_database,
    "release that serves less": release,
}


def learned(name: str, seed: int) -> tuple[LatencyLevel, float]:
    """What is learned from one week, and its error relative to the truth."""
    week = SERVICES[name](np.random.default_rng(seed))
    found = learn(week.minutes, week.below_s)
    return found, found.level / week.truth - 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--weeks", type=int, default=20)
    weeks = parser.parse_args().weeks
    print("| service | weeks | within 5 % | median error | lowest | highest | no level |")
    print("|---|---|---|---|---|---|---|")
    for name in SERVICES:
        found = [learned(name, seed) for seed in range(weeks)]
        errors = np.array([error for level, error in found if level.level > 0])
        near = int((np.abs(errors) <= 0.05).sum())
        numbers = " | ".join(f"{100.0 * value:+.1f} %" for value in (np.median(errors), errors.min(), errors.max()))
        print(f"| {name} | {weeks} | {near} | {numbers} | {weeks - len(errors)} |", flush=True)


if __name__ == "__main__":
    main()
