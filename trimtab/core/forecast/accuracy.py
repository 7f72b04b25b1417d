"""How wrong a forecast was: Crane's error, which fears a shortage more than waste, and plain mean errors.

e = predicted / actual - 1 where predicted is above; where it is below, with relative shortfall x: -ln(1 -
x) / ln(1.25). An actual value near zero makes relative errors meaningless: then the mean absolute error
speaks for the whole.
"""

from __future__ import annotations

from math import log

import numpy as np

from trimtab.series import Floats

_NEAR_ZERO = 1e-3
_SHORTFALL_BASE = log(1.25)
_WORST_SHORTFALL = 1.0 - 1e-9  # a forecast of zero would be infinitely wrong


def mean_absolute(actual: Floats, predicted: Floats) -> float:
    return float(np.abs(predicted - actual).mean())


def amplified(shortfall: Floats) -> Floats:
    """What a relative shortfall counts: 0.1 as 0.47, 0.5 as 3.1."""
    worst: Floats = -np.log1p(-np.minimum(shortfall, _WORST_SHORTFALL)) / _SHORTFALL_BASE
    return worst


def prediction_error(actual: Floats, predicted: Floats) -> float:
    """Crane's measure: the mean relative error with amplified shortfalls, or the mean absolute error."""
    if bool((actual < _NEAR_ZERO).any()):
        return mean_absolute(actual, predicted)
    relative = (predicted - actual) / actual
    return float(np.where(relative < 0, amplified(np.maximum(-relative, 0.0)), relative).mean())
