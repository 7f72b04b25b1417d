"""Demand in two bytes: a logarithm in steps of a thousandth, so that any value from 1e-9 to 1e19 is right to 0.05 %."""

from __future__ import annotations

from math import log

import numpy as np
from numpy.typing import NDArray

from trimtab.series import Floats

Codes = NDArray[np.uint16]

HOLE, ZERO, LEAST, MOST = 0, 1, 2, 65535
_STEP = 0.001
_OFFSET = LEAST - round(log(1e-9) / _STEP)
_VALUES = np.exp((np.arange(MOST + 1) - _OFFSET) * _STEP)
_VALUES[[HOLE, ZERO]] = np.nan, 0.0


def code_of(value: float) -> int:
    """Demand below zero is none."""
    return ZERO if value <= 0.0 else min(max(round(log(value) / _STEP) + _OFFSET, LEAST), MOST)


def codes_of(values: Floats) -> Codes:
    """The same for many; what is not finite is a hole."""
    known = np.isfinite(values)
    positive = known & (values > 0.0)
    logs = np.log(np.where(positive, values, 1.0)) / _STEP
    codes = np.where(positive, np.clip(np.rint(logs) + _OFFSET, LEAST, MOST), np.where(known, ZERO, HOLE))
    return codes.astype(np.uint16)


def values_of(codes: Codes) -> Floats:
    """Holes are NaN."""
    values: Floats = _VALUES[codes]
    return values
