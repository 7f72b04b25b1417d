"""Pasts that are not what they seem: counted in another unit for a part of the time, or cut off at what pods had."""

from __future__ import annotations

import numpy as np

from trimtab.core.forecast.learned.study import other_unit_before
from trimtab.series import Floats
from trimtab.sim.grid import DAY_STEPS, MEAN_STEPS
from trimtab.tune.demand import Demand

LEAST_PLATEAU = 0.02  # of the time at the very top ...
LEAST_SAMPLES = 3  # ... and so many samples: of coarse ones, one alone may be as long
_ALIKE = 1e-3  # of the top


def in_present_unit(demand: Demand, pod_capacity: float) -> Demand:
    """What came since it is counted as it is now; a note says how much that is, where it is not all."""
    minutes = _minutes(demand) / pod_capacity
    first = other_unit_before(minutes)
    if not first:
        return demand
    since = demand.last((len(demand.values) - first * MEAN_STEPS) / DAY_STEPS)
    times = float(np.median(minutes[first:]) / max(float(np.median(minutes[:first])), 1e-9))
    grown = f"{_rounded(times)} times" if times > 1 else f"a {_rounded(1 / times)}th of"
    note = f"the last {since.days:.1f} days are about {grown} what came before, as if counted in another unit"
    return since._replace(notes=(*demand.notes, note))


def _rounded(times: float) -> str:
    return f"{float(f'{times:.1g}'):,.0f}"


def notes_on(demand: Demand, pod_capacity: float) -> tuple[str, ...]:
    """What a person should know of a load before believing a backtest on it."""
    since = in_present_unit(demand, pod_capacity)
    advice = () if since is demand else (f"{since.notes[-1]}: --days {since.days:.1f} takes them alone",)
    return (*advice, *_plateau(since))


def _plateau(demand: Demand) -> tuple[str, ...]:
    """CPU at its limit is not demand: it stands still at the top."""
    minutes = _minutes(demand)
    top = float(minutes.max())
    at_top = minutes >= top * (1.0 - _ALIKE)
    share, samples = float(at_top.mean()), float(at_top.sum()) / _held(minutes)
    if top <= 0.0 or at_top.all() or share < LEAST_PLATEAU or samples < LEAST_SAMPLES:
        return ()
    still = f"{share:.0%} of the time the load stands still at its highest, {top:g}"
    return (f"{still}: was that all that pods, or what they wait for, could do? More may have been asked for",)


def _held(minutes: Floats) -> float:
    """For how many minutes a value usually stays: a sample is held until the next."""
    edges = np.flatnonzero(np.diff(minutes, prepend=np.nan, append=np.nan) != 0.0)
    return float(np.median(np.diff(edges)))


def _minutes(demand: Demand) -> Floats:
    whole = len(demand.values) // MEAN_STEPS * MEAN_STEPS
    minutes: Floats = demand.values[:whole].reshape(-1, MEAN_STEPS).mean(axis=1)
    return minutes
