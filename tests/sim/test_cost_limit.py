"""A run is given up only where it could not have won, with a bridge or without."""

from __future__ import annotations

import numpy as np
import pytest

from trimtab.bench.baselines import hpa
from trimtab.core.tuned import tuned
from trimtab.policy import SLO, Bridge
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.cost_limit import cost_limit
from trimtab.sim.generate import SHAPES, generate
from trimtab.sim.grid import DAY_STEPS, MEAN_STEPS, STEP_S
from trimtab.sim.numba_engine import sweep
from trimtab.sim.program import program
from trimtab.sim.score import Actuator
from trimtab.sim.sliding_windows import trailing_mean
from trimtab.tune.rolling_choice import day_weights, faded
from trimtab.tune.search import reactive_settings

DAYS, DELAY = 4, 8
ACTUATORS = [Actuator(DELAY), Actuator(DELAY, Bridge(ceiling=0.65)), Actuator(DELAY, Bridge(ceiling=0.78))]


@pytest.mark.parametrize("name", ["office", "bursty"])
@pytest.mark.parametrize("lam", [0.5, 8.0, 128.0])
def test_who_is_given_up_could_not_have_won(name: str, lam: float) -> None:
    shape = SHAPES[name]
    load = generate(type(shape)(**{**vars(shape), "days": DAYS}))
    signal, programs = (
        trailing_mean(load, MEAN_STEPS),
        [program(tuned(hpa(), each), STEP_S) for each in reactive_settings(hpa(), ClusterSpec())],
    )
    whole = sweep(load, signal, programs, 20, ACTUATORS, DAY_STEPS)
    scores = np.array([[faded(days.j(lam)[None])[0] for days in each] for each in whole])
    by_day = load.reshape(DAYS, DAY_STEPS).sum(axis=1)
    for least in np.quantile(scores, [0.0, 0.1, 0.5]).tolist():
        limit = cost_limit(least, day_weights(DAYS), by_day, DAY_STEPS, SLO, lam)
        kept = sweep(load, signal, programs, 20, ACTUATORS[:1], DAY_STEPS, within=limit)
        gone = np.array([not days for days in kept])
        assert scores[gone].min(initial=np.inf) > least
        for days, (before, *_) in zip(kept, whole, strict=True):
            assert not days or all(map(np.array_equal, days[0], before)), "who is kept is as before"
    assert gone.any() or lam < 1.0, "lower targets cost several times the best"
