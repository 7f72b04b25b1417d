"""A policy as numbers for the compiled lane: one row for the signal and one for each rule, in their order.

What the lane covers: one total demand, custom-hpa's factor of it, or the CPU of pods as a share of their requests;
tolerance, stabilisation, up-limit, rates, factors, cooldown, bounds and schedules, a forecast of the total, and the
pods that a learned forecast of it is worth at a price. `uncovered` names the first thing it does not, and then decide()
itself is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor
from typing import NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from trimtab.core.settle.stateless import STATELESS
from trimtab.policy import (
    Admit,
    Bounds,
    Cooldown,
    Factor,
    Mode,
    Policy,
    Rate,
    Rates,
    Rule,
    Select,
    Stabilise,
    StabiliseMax,
    TotalAverage,
    Utilization,
    is_cpu,
)
from trimtab.series import Floats

HIGHEST, BETWEEN, RATE, COOLDOWN, FIRST_STATELESS = range(5)  # then one code for each rule of STATELESS, in order
BY_TOTAL, BY_FACTOR, BY_SHARE = range(3)
SILENT = -1  # in a band: the forecast says nothing, so the target decides
RATE_POLICIES = 3  # for each direction
RATE_WIDTH = 2 + 3 * RATE_POLICIES  # select, count, and percent, value, period of each
WIDTH = 1 + 2 * RATE_WIDTH
FARTHEST, NEAREST, DISABLED = 0.0, 1.0, 2.0
SELECTS = {Select.MAX: FARTHEST, Select.MIN: NEAREST, Select.DISABLED: DISABLED}

_WINDOWED = (Stabilise, StabiliseMax)
_COVERED = (*_WINDOWED, Rate, Cooldown, *STATELESS)


BoundsBySteps = NDArray[np.int64]
NOTHING_AHEAD: Floats = np.empty(0)
FIXED_BOUNDS: BoundsBySteps = np.empty((2, 0), dtype=np.int64)
NO_BAND: BoundsBySteps = np.empty((2, 0), dtype=np.int64)


class Program(NamedTuple):
    """`signal`: kind, target, tolerance up and down, fewest and most replicas, steps until any ready pod's CPU counts.
    `rules`: code and arguments of each.

    `ahead`: the demand that is forecast at each step, 0 where nothing is; empty without a forecast.
    `bounds`: fewest (row 0) and most (row 1) replicas at each step; empty where schedules change nothing.
    `band`: the pods worth starting (row 0) and keeping (row 1) at each step; empty without an objective.
    `priced`: the rules where the band decides.
    """

    signal: Floats
    rules: Floats
    ahead: Floats = NOTHING_AHEAD
    bounds: BoundsBySteps = FIXED_BOUNDS
    band: BoundsBySteps = NO_BAND
    priced: Floats = np.empty((0, WIDTH))


def uncovered(policy: Policy) -> str:
    """Why the compiled lane cannot run this policy; empty when it can."""
    if len(policy.signals) != 1:
        return "it has several metrics" if policy.signals else "it has no metric"
    if not isinstance(policy.signals[0], TotalAverage | Factor) and not is_cpu_share(policy):
        return "its metric is measured at each pod"
    if policy.admit not in (Admit(), Admit(mode=Mode.SHADOW)):
        return "it is paused or pinned"
    if policy.vertical is not None or policy.gates:
        return "it has a vertical part or gates"
    if policy.forecast is not None and (policy.forecast.exact or isinstance(policy.signals[0], Factor)):
        return "its forecast is of each pod, not of the total"
    if why := _uncovered_objective(policy):
        return why
    if policy.bounds.min_replicas < 1:
        return "its floor is zero"
    if policy.replays_noop or policy.absence.zero_is_missing:
        return "it repeats scalings that change nothing, or takes zero for an absence"
    if policy.bridge is not None and policy.bridge.resizes_per_hour is not None:
        return "its bridge is limited in resizes"
    return _uncovered_rule(policy.settle)


def _uncovered_objective(policy: Policy) -> str:
    if policy.objective is None:
        return ""
    if not isinstance(policy.signals[0], TotalAverage):
        return "its load has a price, and is no total"
    if policy.forecast is None or policy.forecast.model != "learned":
        return "its price has another forecast than the learned one"
    return _uncovered_rule(policy.objective.settle)


def is_cpu_share(policy: Policy) -> bool:
    """CPU as a share of requests, alone, of pods or of the one container that a simulated pod has; an absence of
    samples holds, and unready pods never count."""
    if len(policy.signals) != 1 or policy.forecast is not None or policy.objective is not None:
        return False
    (signal,) = policy.signals
    of_pods = isinstance(signal, Utilization) and is_cpu(signal.metric)
    return of_pods and policy.absence.then_replicas is None and policy.pods.readiness_delay_s > 0


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


def bounds_by_step(bounds: Bounds, start: float, steps: int, step_s: float) -> BoundsBySteps:
    """`bounds_at` the end of every step, where schedules change it."""
    if not bounds.spans:
        return FIXED_BOUNDS
    ends = start + np.arange(1, steps + 1) * step_s
    least, most = np.full(steps, bounds.min_replicas), np.full(steps, bounds.max_replicas)
    for span in bounds.spans:
        running = slice(*np.searchsorted(ends, (span.start, span.end)))
        if span.max_replicas is not None:
            most[running] = np.minimum(most[running], span.max_replicas)
        if span.min_replicas is not None:
            least[running] = np.maximum(least[running], span.min_replicas)
    most = np.maximum(most, bounds.min_replicas)
    return np.stack((np.minimum(least, most), most))


def program(
    policy: Policy,
    step_s: float,
    ahead: Floats = NOTHING_AHEAD,
    by_step: BoundsBySteps = FIXED_BOUNDS,
    band: BoundsBySteps = NO_BAND,
) -> Program:
    """The numbers of a policy that `uncovered` has nothing against; times become whole steps."""
    assert not uncovered(policy)
    assert (len(ahead) > 0) == (policy.forecast is not None and policy.objective is None)
    assert bool(policy.bounds.spans) == bool(by_step.shape[1]) and bool(policy.objective) == bool(band.shape[1])
    (signal,), bounds = policy.signals, policy.bounds
    if isinstance(signal, TotalAverage):
        head = [BY_TOTAL, signal.target, signal.tolerance.up, signal.tolerance.down]
    elif isinstance(signal, Utilization):
        head = [BY_SHARE, signal.percent, signal.tolerance.up, signal.tolerance.down]
    else:
        assert isinstance(signal, Factor)
        head = [BY_FACTOR, signal.target, 0.0, 0.0]
    old_after = max(0, ceil(policy.pods.cpu_init_s / step_s) - 1)
    priced = _rows(policy.objective.settle if policy.objective else (), step_s)
    return Program(_signal(head, bounds, old_after), _rows(policy.settle, step_s), ahead, by_step, band, priced)


def _signal(head: Sequence[float], bounds: Bounds, old_after: int = 0) -> Floats:
    return np.array([*head, bounds.min_replicas, bounds.max_replicas, old_after], dtype=np.float64)


def _rows(rules: tuple[Rule, ...], step_s: float) -> Floats:
    rows = np.zeros((len(rules), WIDTH))
    for row, rule in zip(rows, rules, strict=True):
        numbers = _numbers(rule, step_s)
        row[: len(numbers)] = numbers
    return rows


def _numbers(rule: Rule, step_s: float) -> list[float]:
    match rule:
        case StabiliseMax():  # a wish exactly as old as the window still counts
            return [HIGHEST, floor(rule.window_s / step_s)]
        case Stabilise():  # here it does not
            return [BETWEEN, ceil(rule.down_s / step_s) - 1, ceil(rule.up_s / step_s) - 1]
        case Rate():
            return [RATE, *_rates(rule.up, step_s), *_rates(rule.down, step_s)]
        case Cooldown():
            rests = ceil(rule.up_s / step_s), ceil(rule.down_s / step_s)
            return [COOLDOWN, *rests, rule.any_direction]
        case _:
            return [FIRST_STATELESS + list(STATELESS).index(type(rule)), *structs.astuple(rule)]


def _rates(rates: Rates, step_s: float) -> list[float]:
    numbers: list[float] = [SELECTS[rates.select], len(rates.policies)]
    for policy in rates.policies:
        numbers += [policy.percent, policy.value, policy.period_s / step_s]
    return numbers + [0.0] * (RATE_WIDTH - len(numbers))
