"""The scanner of `samples`, compiled; importing this needs numba (`trimtab[fast]`).

number = digits x 10^exponent with at most 18 digits, so a value is right to one unit in the last place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit

F = TypeVar("F", bound=Callable[..., Any])
POWERS = 10.0 ** np.arange(23)  # those that a float holds exactly


def jit(function: F) -> F:
    try:
        compiled: Any = njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no writable place for the compiled code: for this process only, then
        compiled = njit(nogil=True)(function)
    result: F = compiled
    return result


@jit
def number(text: Any, at: int) -> tuple[float, int]:
    """The number that begins at `at` and where it ends, or -1; digits beyond the 18th do not count."""
    size = len(text)
    sign = 1.0
    if at < size and text[at] in (43, 45):
        sign = -1.0 if text[at] == 45 else 1.0
        at += 1
    if at + 2 < size and text[at] in (73, 78):  # Inf, NaN
        return np.nan, at + 3
    digits, kept, exponent, seen, after_point = np.int64(0), 0, 0, 0, False
    while at < size:
        byte = text[at]
        if 48 <= byte <= 57:
            seen += 1
            if kept < 18:
                digits = digits * 10 + (byte - 48)
                kept += 1 if digits > 0 else 0
                exponent -= 1 if after_point else 0
            else:
                exponent += 0 if after_point else 1
        elif byte == 46 and not after_point:
            after_point = True
        else:
            break
        at += 1
    if seen == 0:
        return np.nan, -1
    if at < size and text[at] in (69, 101):
        at += 1
        down = at < size and text[at] == 45
        if at < size and text[at] in (43, 45):
            at += 1
        power = 0
        while at < size and 48 <= text[at] <= 57:
            power = power * 10 + (text[at] - 48)
            at += 1
        exponent += -power if down else power
    value = float(digits)
    while exponent > 0 and value != 0.0:
        step = min(exponent, 22)
        value *= POWERS[step]
        exponent -= step
    while exponent < 0 and value != 0.0:
        step = min(-exponent, 22)
        value /= POWERS[step]
        exponent += step
    return sign * value, at


@jit
def scan(text: Any, start: float, step_s: float, row: Any) -> bool:
    """One pass over the bytes; False when they are not what they should be."""
    at, size = 0, len(text)
    while at < size:
        if text[at] != 91 or (at + 1 < size and text[at + 1] in (91, 93)):  # up to the "[" of a pair
            if text[at] not in (91, 93, 44, 32):
                return False
            at += 1
            continue
        seconds, at = number(text, at + 1)
        if at < 0 or at + 1 >= size or text[at] != 44 or text[at + 1] != 34:  # ,"
            return False
        value, at = number(text, at + 2)
        if at < 0 or at + 1 >= size or text[at] != 34 or text[at + 1] != 93:  # "]
            return False
        at += 2
        index = round((seconds - start) / step_s)
        if 0 <= index < len(row) and np.isfinite(value):
            row[index] = value
    return True
