"""A policy as numbers for the compiled lane: one row for the signal and one for each rule, in their order.

What the lane covers: one total demand (or document 002's factor of it), tolerance, stabilisation, up-limit, rates,
factors, cooldown, fixed bounds, and a forecast of the total. `uncovered` names the first thing it does not, and then
decide() itself is run.
"""

from __future__ import annotations

from math import ceil, floor
from typing import NamedTuple

import numpy as np

from trimtab.policy import (
    Admit,
    Bridge,
    Cooldown,
    Factor,
    MaxFactor,
    MinFactor,
    Mode,
    Policy,
    Rate,
    Rates,
    RoundUp,
    Rule,
    Select,
    Stabilise,
    StabiliseMax,
    TotalAverage,
    UpLimit,
)
from trimtab.series import Floats

HIGHEST, BETWEEN, UP_LIMIT, RATE, MAX_FACTOR, MIN_FACTOR, COOLDOWN, ROUND_UP = range(8)
BY_TOTAL, BY_FACTOR = range(2)
RATE_POLICIES = 3  # for each direction
RATE_WIDTH = 2 + 3 * RATE_POLICIES  # select, count, and percent, value, period of each
WIDTH = 1 + 2 * RATE_WIDTH
FARTHEST, NEAREST, DISABLED = 0.0, 1.0, 2.0
SELECTS = {Select.MAX: FARTHEST, Select.MIN: NEAREST, Select.DISABLED: DISABLED}

_WINDOWED = (Stabilise, StabiliseMax)
_COVERED = (*_WINDOWED, UpLimit, Rate, MaxFactor, MinFactor, Cooldown, RoundUp)


NOTHING_AHEAD: Floats = np.empty(0)


class Program(NamedTuple):
    """`signal`: kind, target, tolerance up and down, fewest and most replicas. `rules`: code and arguments of each.

    `ahead`: the demand that is forecast at each step, 0 where nothing is; empty without a forecast.
    `bridge`: it changes what pods carry, never how many there are.
    """

    signal: Floats
    rules: Floats
    ahead: Floats = NOTHING_AHEAD
    bridge: Bridge | None = None


def uncovered(policy: Policy) -> str:
    """Why the compiled lane cannot run this policy; empty when it can."""
    if len(policy.signals) != 1 or not isinstance(policy.signals[0], TotalAverage | Factor):
        return "it needs exactly one signal on total demand"
    if policy.admit not in (Admit(), Admit(mode=Mode.SHADOW)):
        return "it is paused or pinned"
    if policy.vertical is not None or policy.gates:
        return "it has a vertical part or gates"
    if policy.forecast is not None and (policy.forecast.exact or isinstance(policy.signals[0], Factor)):
        return "its forecast is of each pod, not of the total"
    if policy.bounds.spans or policy.bounds.min_replicas < 1:
        return "its bounds change with time, or reach zero"
    if policy.replays_noop or policy.absence.zero_is_missing:
        return "it repeats scalings that change nothing, or takes zero for an absence"
    if policy.bridge is not None and policy.bridge.resizes_per_hour is not None:
        return "its bridge is limited in resizes"
    return _uncovered_rule(policy.settle)


def _uncovered_rule(rules: tuple[Rule, ...]) -> str:
    if odd := next((rule for rule in rules if not isinstance(rule, _COVERED)), None):
        return f"its rule {type(odd).__name__} is not compiled"
    if sum(isinstance(rule, _WINDOWED) for rule in rules) > 1:
        return "it has two stabilisation windows"
    if sum(isinstance(rule, Rate) for rule in rules) > 1:
        return "it has two rate rules"
    rates = [side for rule in rules if isinstance(rule, Rate) for side in (rule.up, rule.down)]
    if any(len(side.policies) > RATE_POLICIES for side in rates):
        return f"it has more than {RATE_POLICIES} rate policies in one direction"
    return ""


def program(policy: Policy, step_s: float, ahead: Floats = NOTHING_AHEAD) -> Program:
    """The numbers of a policy that `uncovered` has nothing against; times become whole steps."""
    assert not uncovered(policy) and (policy.forecast is None) == (len(ahead) == 0)
    (signal,), bounds = policy.signals, policy.bounds
    if isinstance(signal, TotalAverage):
        head = [BY_TOTAL, signal.target, signal.tolerance.up, signal.tolerance.down]
    else:
        assert isinstance(signal, Factor)
        head = [BY_FACTOR, signal.target, 0.0, 0.0]
    rows = np.zeros((len(policy.settle), WIDTH))
    for row, rule in zip(rows, policy.settle, strict=True):
        numbers = _numbers(rule, step_s)
        row[: len(numbers)] = numbers
    numbers_of_signal = np.array([*head, bounds.min_replicas, bounds.max_replicas], dtype=np.float64)
    return Program(numbers_of_signal, rows, ahead, policy.bridge)


def _numbers(rule: Rule, step_s: float) -> list[float]:
    match rule:
        case StabiliseMax():  # a wish exactly as old as the window still counts
            return [HIGHEST, floor(rule.window_s / step_s)]
        case Stabilise():  # here it does not
            return [BETWEEN, ceil(rule.down_s / step_s) - 1, ceil(rule.up_s / step_s) - 1]
        case UpLimit():
            return [UP_LIMIT, rule.factor, rule.minimum]
        case Rate():
            return [RATE, *_rates(rule.up, step_s), *_rates(rule.down, step_s)]
        case MaxFactor():
            return [MAX_FACTOR, rule.up, rule.down]
        case MinFactor():
            return [MIN_FACTOR, rule.up, rule.down]
        case Cooldown():
            rests = ceil(rule.up_s / step_s), ceil(rule.down_s / step_s)
            return [COOLDOWN, *rests, rule.any_direction]
        case RoundUp():
            return [ROUND_UP, rule.epsilon]
        case _:
            raise AssertionError(f"{type(rule).__name__} is not covered")


def _rates(rates: Rates, step_s: float) -> list[float]:
    numbers: list[float] = [SELECTS[rates.select], len(rates.policies)]
    for policy in rates.policies:
        numbers += [policy.percent, policy.value, policy.period_s / step_s]
    return numbers + [0.0] * (RATE_WIDTH - len(numbers))
