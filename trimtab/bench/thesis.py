"""The evaluation of the predictive HPA thesis (McNaughton): traffic patterns, and statistics of pairs of runs.

Every minute has an idle CPU percentage and a response time, low is good for both.
score = -z(idle) - z(response), where z normalises over all minutes of both runs; d = score(predictive) -
score(reactive), minute by minute. z = mean(d) / std(d) and p = 1 - Phi(z) are what was published;
t = mean(d) / (s(d) / sqrt(n)) is the paired test that was missing.
"""

from __future__ import annotations

from math import erfc, sqrt
from typing import NamedTuple

import numpy as np

from trimtab.series import Floats


class Segment(NamedTuple):
    """Requests per second, from one rate to another in a straight line."""

    start_rps: float
    end_rps: float
    seconds: float


Profile = tuple[Segment, ...]


class Comparison(NamedTuple):
    """What one comparison says; positive means that the predictive run was better."""

    n: int
    mean: float
    std: float
    z: float
    p: float
    paired_t: float
    paired_p: float


def _profile(*segments: tuple[float, float, float]) -> Profile:
    return tuple(Segment(*segment) for segment in segments)


PROFILES: dict[str, Profile] = {
    "step-ladder": _profile(*((rate, rate, 180) for rate in range(1, 20, 3)), (1, 1, 240)),
    "jagged-edge": _profile(
        (1, 1, 300), (1, 10, 300), (10, 5, 120), (5, 15, 300), (15, 10, 120), (10, 20, 300), (1, 1, 300)
    ),
    "increase-decrease": _profile((1, 1, 300), (1, 20, 900), (20, 1, 900), (1, 1, 300)),
    "flash-crowd-short": _profile((1, 1, 300), (1, 5, 300), (5, 20, 120), (20, 5, 120), (5, 1, 300), (1, 1, 300)),
    "flash-crowd": _profile((1, 1, 300), (1, 5, 660), (5, 20, 240), (20, 5, 240), (5, 1, 660), (1, 1, 300)),
    "load-tester": _profile((1, 20, 90), (20, 20, 120), (20, 1, 90)),
}


def duration_s(profile: Profile) -> float:
    return sum(segment.seconds for segment in profile)


def rate_at(profile: Profile, second: float) -> float:
    """Requests per second at this moment; a jump between segments happens at the start of the later one."""
    for segment in profile:
        if second < segment.seconds:
            share = second / segment.seconds
            return segment.start_rps + (segment.end_rps - segment.start_rps) * share
        second -= segment.seconds
    return 0.0


def scores(predictive: Floats, reactive: Floats, weights: tuple[float, float] = (1.0, 1.0)) -> tuple[Floats, Floats]:
    """The score of each minute of both runs; rows are (idle percent, response seconds), weighed as given."""
    everything = np.concatenate((predictive, reactive))
    mean, std = everything.mean(axis=0), everything.std(axis=0)
    factors = np.array(weights)
    return -((predictive - mean) / std) @ factors, -((reactive - mean) / std) @ factors


def compare(ours: Floats, theirs: Floats) -> Comparison:
    """Paired minutes: the statistics as published, and the paired test with its square root of n."""
    difference = ours - theirs
    n, mean, std = len(difference), float(difference.mean()), float(difference.std())
    z = mean / std if std else 0.0
    paired_t = mean / (float(difference.std(ddof=1)) / sqrt(n)) if std and n > 1 else 0.0
    return Comparison(n, mean, std, z, upper_tail(z), paired_t, upper_tail(paired_t))


def upper_tail(z: float) -> float:
    """1 - Phi(z)."""
    return erfc(z / sqrt(2.0)) / 2.0
