"""Loads made up from seasons, bursts, level shifts and noise; the same seed is the same load.

load(t) = peak x season(t) x level(t) x (1 + noise) + bursts, never below zero.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import isfinite

import numpy as np

from trimtab.errors import InvalidInput
from trimtab.series import Floats
from trimtab.sim.grid import DAY_STEPS


@dataclass(frozen=True)
class LoadShape:
    """What a load looks like; shares are of the peak."""

    peak: float = 30.0
    valley: float = 0.3  # the load at the quietest hour
    steep: float = 1.0  # how suddenly the day begins and ends; 1 is a plain wave
    weekend: float = 1.0  # times the load of a weekday
    noise: float = 0.03
    bursts_a_day: float = 0.0
    burst: float = 0.0  # height, before a random factor around 1
    burst_minutes: float = 10.0
    shift: float = 1.0  # the level is multiplied by this ...
    shift_after: float = 0.5  # ... after this part of the time
    days: int = 14
    seed: int = 1


SHAPES: dict[str, LoadShape] = {
    "flat": LoadShape(valley=1.0),
    "diurnal": LoadShape(weekend=0.7),
    "office": LoadShape(weekend=0.4, steep=4.0),
    "bursty": LoadShape(valley=0.6, bursts_a_day=8, burst=0.7, noise=0.1),
    "shift": LoadShape(shift=2.5, peak=15.0),
    "noisy": LoadShape(noise=0.25),
}


def generate(shape: LoadShape) -> Floats:
    """The load on the grid."""
    draw = np.random.default_rng(shape.seed)
    steps = np.arange(shape.days * DAY_STEPS)
    day = steps / DAY_STEPS
    wave = (1 - np.cos(2 * np.pi * (day - 4 / 24))) / 2  # quietest at four in the morning
    swing = wave**shape.steep / (wave**shape.steep + (1 - wave) ** shape.steep)
    season = (shape.valley + (1 - shape.valley) * swing) * np.where(day.astype(int) % 7 >= 5, shape.weekend, 1.0)
    level = np.where(steps >= shape.shift_after * len(steps), shape.shift, 1.0)
    values = season * level * (1 + shape.noise * draw.standard_normal(len(steps)))
    return np.maximum(0.0, shape.peak * (values + _bursts(shape, len(steps), draw)))


def _bursts(shape: LoadShape, steps: int, draw: np.random.Generator) -> Floats:
    """Jumps up at random times that fade away."""
    found = np.zeros(steps)
    fade = np.exp(-np.arange(round(shape.burst_minutes * 4)) / (shape.burst_minutes * 1.5))
    for first in np.flatnonzero(draw.uniform(size=steps) < shape.bursts_a_day / DAY_STEPS).tolist():
        part = found[first : first + len(fade)]
        part += shape.burst * draw.uniform(0.5, 1.5) * fade[: len(part)]
    return found


def parse_shape(text: str) -> LoadShape:
    """ "diurnal" or "bursty,days=7,peak=50": a known shape, and what is different about it."""
    name, *changes = [word.strip() for word in text.split(",")]
    if name not in SHAPES:
        raise InvalidInput("generate", name, f"known shapes are {', '.join(SHAPES)}")
    kinds = {field.name: type(getattr(LoadShape, field.name)) for field in fields(LoadShape)}
    changed: dict[str, float] = {}
    for change in changes:
        key, _, value = change.partition("=")
        if key not in kinds:
            raise InvalidInput("generate", change, f"known are {', '.join(f'{key}=' for key in kinds)}")
        changed[key] = _number(change, value, kinds[key])
    shape = replace(SHAPES[name], **changed)  # type: ignore[arg-type]
    if not 1 <= shape.days <= 400 or shape.peak <= 0:
        raise InvalidInput("generate", text, "give 1 to 400 days and a peak above zero")
    return shape


def _number(change: str, value: str, kind: type[float]) -> float:
    try:
        number = kind(value)
    except ValueError:
        number = -1
    if not (isfinite(number) and number >= 0):
        raise InvalidInput("generate", change, f"write a {'whole ' * (kind is int)}number from 0 on after the =")
    return number
