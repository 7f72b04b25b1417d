"""The families that nightly retuning chooses from, simulated once for all contenders, prices and start-up times.

A policy believes what it was told: the load as it is seen and the start-up time as it was measured. What happens may
differ (`Disturbance`): then candidates are chosen by what is believed and judged by what happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from trimtab.bench.baselines import hpa
from trimtab.bench.protocol import MAX_PODS, MIN_PODS, Load
from trimtab.core.forecast.learned.net import NetWeights
from trimtab.core.tuned import tuned
from trimtab.policy import Bounds, Bridge
from trimtab.series import Floats
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.grid import DAY_STEPS, MEAN_STEPS, STEP_S, delay_steps
from trimtab.sim.numba_engine import sweep
from trimtab.sim.priced_levels import band_path, priced_levels
from trimtab.sim.program import program
from trimtab.sim.resize_in_place import shown_load
from trimtab.sim.score import Actuator, Days, measure
from trimtab.sim.sliding_windows import trailing_mean
from trimtab.tune.search import BANDS, reactive_settings

Bridges = tuple[Bridge | None, ...]
PRICES = tuple(sorted({price for band in BANDS for price in (band.start, band.keep)}))
Family = list[Days]


class Disturbance(NamedTuple):
    """What is otherwise than a policy believes."""

    late_steps: int = 0  # samples are this old
    startup_factor: float = 1.0  # pods take this many times as long as was measured
    refused: float = 0.0  # the share of resizes that nodes refuse

    def seen(self, load: Floats) -> Floats:
        """The load as it is known at the end of each step."""
        if not self.late_steps:
            return load
        return np.concatenate([np.full(self.late_steps, load[0]), load[: -self.late_steps]])


CALM = Disturbance()


class Families(NamedTuple):
    """Every candidate's days, by start-up time and bridge."""

    reactive: dict[tuple[float, Bridge | None], Family]
    priced: dict[tuple[float, Bridge | None], Family]

    def of(self, startup_s: float, reactive: Bridges, priced: Bridges) -> Family:
        """One family of candidates; the order breaks ties."""
        found = [days for bridge in reactive for days in self.reactive[startup_s, bridge]]
        return found + [days for bridge in priced for days in self.priced[startup_s, bridge]]


def families_of(
    load: Load,
    startups_s: Sequence[float],
    weights: NetWeights,
    reactive: Bridges,
    priced: Bridges,
    disturbance: Disturbance = CALM,
) -> Families:
    """Both families with all of these bridges."""
    seen = disturbance.seen(load.values)
    by_price = {
        (startup_s, bridge): family
        for startup_s in (startups_s if priced else ())
        for bridge, family in _priced(load, seen, startup_s, weights, priced, disturbance).items()
    }
    return Families(_reactive(load, seen, startups_s, reactive, disturbance) if reactive else {}, by_price)


def _reactive(
    load: Load, seen: Floats, startups_s: Sequence[float], bridges: Bridges, disturbance: Disturbance
) -> dict[tuple[float, Bridge | None], Family]:
    keys = [(startup_s, bridge) for startup_s in startups_s for bridge in bridges]
    actuators = [_actuator(startup_s, bridge, disturbance) for startup_s, bridge in keys]
    programs = [program(tuned(hpa(), each), STEP_S) for each in reactive_settings(hpa(), ClusterSpec())]
    signal, shown = trailing_mean(seen, MEAN_STEPS), shown_load(seen)
    swept = sweep(load.values, signal, programs, load.first_pods, actuators, DAY_STEPS, shown=shown)
    return {key: [days[number] for days in swept] for number, key in enumerate(keys)}


def _priced(
    load: Load, seen: Floats, startup_s: float, weights: NetWeights, bridges: Bridges, disturbance: Disturbance
) -> dict[Bridge | None, Family]:
    found, shown = priced_levels(seen, startup_s, weights, PRICES), shown_load(seen)
    bounds = Bounds(min_replicas=MIN_PODS, max_replicas=MAX_PODS)
    paths = [
        band_path(found.start[PRICES.index(band.start)], found.keep[PRICES.index(band.keep)], load.first_pods, bounds)
        for band in BANDS
    ]

    def days(path: np.ndarray, bridge: Bridge | None) -> Days:
        actuator = _actuator(startup_s, bridge, disturbance)
        return measure(
            load.values, path, actuator.delay_steps, DAY_STEPS, bridge=bridge, seen=shown, refused=disturbance.refused
        )

    return {bridge: [days(path, bridge) for path in paths] for bridge in bridges}


def _actuator(startup_s: float, bridge: Bridge | None, disturbance: Disturbance) -> Actuator:
    return Actuator(delay_steps(startup_s * disturbance.startup_factor), bridge, disturbance.refused)
