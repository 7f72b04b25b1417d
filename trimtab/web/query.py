"""What a request asks for, checked: every refusal names the parameter, its value and the fix."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import NamedTuple

from trimtab.errors import InvalidInput
from trimtab.journal import ObjectName

MOST_REPLICAS = 100_000
RANGES = {
    "target": (0.01, 1.5),
    "tolerance": (0.0, 1.0),
    "up_window_s": (0.0, 3600.0),
    "down_window_s": (0.0, 3600.0),
    "least": (0, MOST_REPLICAS),
    "most": (1, MOST_REPLICAS),
    "startup_s": (0.0, 7200.0),
    "price": (0.001, 1e6),
    "bridge": (1.0, 2.0),
}


class Knobs(NamedTuple):
    """What the page's sliders hold; `target` is the share of what one pod carries."""

    target: float
    tolerance: float
    up_window_s: float
    down_window_s: float
    least: int
    most: int
    startup_s: float
    price: float  # pod-minutes that one violated pod-minute of load is worth
    bridge: float  # how many times their written CPU ready pods may have; 1 is no bridge


def name_of(query: Mapping[str, str]) -> ObjectName:
    missing = next((field for field in ObjectName._fields if not query.get(field)), None)
    if missing:
        raise InvalidInput(missing, "missing", "say kind, namespace and name of the object")
    return ObjectName(query["kind"], query["namespace"], query["name"])


def number(query: Mapping[str, str], key: str, default: float, low: float = -1e12, high: float = 1e12) -> float:
    text = query.get(key)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        raise InvalidInput(key, text[:40], "give a number") from None
    if not (isfinite(value) and low <= value <= high):
        raise InvalidInput(key, text[:40], f"give a number from {low:g} to {high:g}")
    return value


def knobs_of(query: Mapping[str, str], present: Knobs) -> Knobs:
    """Settings that are not named stay as they are."""
    found = [number(query, key, getattr(present, key), *RANGES[key]) for key in Knobs._fields]
    knobs = Knobs._make(found)
    return knobs._replace(least=round(knobs.least), most=round(knobs.most))
