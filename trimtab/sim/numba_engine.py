"""The compiled lane: replays one demand under many simple policies at once, equal to decide() in every step.

The arithmetic is core's own leaves, compiled; only the windows are restated here, as rings over whole steps, and a test
holds them equal to decide(). Candidates run side by side on all cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import ceil

import numpy as np

from trimtab.core.bounds_in_force import clamp
from trimtab.core.priced import into_band
from trimtab.core.replica_calculator import (
    in_thousandths,
    ratio_of,
    tolerated_ratio,
    whole,
    within,
)
from trimtab.core.settle.rate import end_down, end_up
from trimtab.core.settle.stabilise import into
from trimtab.policy import SLO
from trimtab.series import Floats
from trimtab.sim.compiled import compiled, shared
from trimtab.sim.cost_limit import UNLIMITED, CostLimit
from trimtab.sim.pod_cpu import NOBODY, PodsAtWork, at_work, empty_work, wish_of_share, work
from trimtab.sim.prices import START_PRICE
from trimtab.sim.program import (
    BETWEEN,
    BY_SHARE,
    BY_TOTAL,
    COOLDOWN,
    DISABLED,
    FARTHEST,
    HIGHEST,
    RATE,
    RATE_WIDTH,
    SILENT,
    Program,
)
from trimtab.sim.resize_in_place import shown_load
from trimtab.sim.rings import ENDS, Ints, changed, empty_past, front, longest_period, note, push
from trimtab.sim.score import Actuator, Counts, Days, measure
from trimtab.sim.stateless_rules import settle_stateless

shared(
    within,
    whole,
    in_thousandths,
    ratio_of,
    tolerated_ratio,
    clamp,
    into,
    into_band,
    end_up,
    end_down,
)


def run_compiled(
    signal: Floats, program: Program, first_pods: int, pods: PodsAtWork = NOBODY, within: CostLimit = UNLIMITED
) -> Counts:
    """The billed pods of every step, as decided at the end of the one before; none where they cost too much."""
    assert program.signal[0] != BY_SHARE or len(pods.load) == len(signal)
    replicas = np.empty(len(signal), dtype=np.int32)
    return replicas if run_into(signal, program, first_pods, pods, within, replicas) else replicas[:0]


def run_on(
    load: Floats,
    signal: Floats,
    shown: Floats,
    program: Program,
    first_pods: int,
    actuator: Actuator,
    within: CostLimit = UNLIMITED,
) -> Counts:
    """The same where pods follow so: what they show of the load, and when, may depend on it."""
    by_share = program.signal[0] == BY_SHARE
    pods = at_work(load, shown, int(program.signal[6]), actuator) if by_share else NOBODY
    return run_compiled(signal, program, first_pods, pods, within)


def sweep(
    load: Floats,
    signal: Floats,
    programs: Sequence[Program],
    first_pods: int,
    actuators: Sequence[Actuator],
    day_steps: int,
    slo: float = SLO,
    done: Callable[[], None] = lambda: None,
    shown: Floats | None = None,
    within: CostLimit = UNLIMITED,
) -> list[list[Days]]:
    """The days of every program (outer) with every actuator (inner); a bridge looks at what is `shown` of the load.
    Who costs more than is allowed may be given up, and has none."""
    seen = shown_load(load) if shown is None else shown

    def measured(replicas: Counts, actuator: Actuator) -> Days:
        return measure(
            load,
            replicas,
            actuator.delay_steps,
            day_steps,
            slo,
            actuator.bridge,
            seen,
            actuator.refused,
            actuator.ceiling,
        )

    def days_of(program: Program) -> list[Days]:
        if program.signal[0] == BY_SHARE:
            runs = [run_on(load, signal, seen, program, first_pods, actuator, within) for actuator in actuators]
        else:
            runs = [run_compiled(signal, program, first_pods, within=within)] * len(actuators)
        whole_runs = zip(runs, actuators, strict=True) if all(map(len, runs)) else ()
        days = [measured(replicas, actuator) for replicas, actuator in whole_runs]
        done()
        return days

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(days_of, programs))


@compiled
def run_into(
    signal: Floats, program: Program, first_pods: int, pods: PodsAtWork, limit: CostLimit, replicas: Counts
) -> bool:
    """One demand under one program, in whole steps; False: given up. Rules that look back are here."""
    head, unpriced, ahead, bounds, band, priced = program
    least, most, spent, before, day, day_end = int(head[4]), int(head[5]), 0.0, first_pods, 0, limit.day_steps - 1
    highs, lows, grown, shrunk = empty_past(unpriced)
    priced_highs, priced_lows, _, _ = empty_past(priced)
    up_period, down_period = longest_period(unpriced, 1), longest_period(unpriced, 1 + RATE_WIDTH)
    current, share, counted, up_at, down_at = first_pods, 0.0, 1, -1, -1
    serving, counting, levels, left = empty_work(pods.limits)
    load, shown, limits = pods.load, pods.shown, pods.limits
    for t in range(len(signal)):
        replicas[t] = current
        if day_end >= 0:
            cost = current + START_PRICE * max(0, current - before)
            spent, before = spent + limit.weights[day] * cost, current
            if t == day_end:
                if spent > limit.most[day]:
                    return False
                day, day_end = day + 1, day_end + limit.day_steps
        if head[0] == BY_SHARE:
            share, counted = work(load[t], shown[t - 1], limits, t, current, serving, counting, levels, left)
        if bounds.shape[1] > 0:
            least, most = bounds[0, t], bounds[1, t]
        if current > most or current < least:  # bounds need no metrics, and leave no wish behind
            wanted, raw = clamp(current, least, most), -1
        elif counted == 0:  # no sample holds: it wishes for what there is
            wanted, raw = current, current
        else:
            rules, up_window, down_window = unpriced, lows, highs
            if band.shape[1] > 0 and band[0, t] != SILENT:
                wish, ratio = band_wish(current, band[0, t], band[1, t])
                rules, up_window, down_window = priced, priced_lows, priced_highs
            elif head[0] == BY_SHARE:
                wish, ratio = wish_of_share(share, counted, head[1], head[2], head[3], current)
            else:
                wish, ratio = first_wish(int(head[0]), head[1], head[2], head[3], signal[t], current)
                if len(ahead) > 0:
                    wish, ratio = raised(wish, ratio, max(0.0, ahead[t]) / head[1], current)
            raw = ceil(wish - 1e-9)
            for index in range(len(rules)):
                code, settled = int(rules[index, 0]), wish
                if code == BETWEEN:
                    if wish < current and down_window[ENDS, 2] >= 0:
                        settled = into(float(current), wish, front(down_window, t, wish, True))
                    elif wish > current and up_window[ENDS, 2] >= 0:
                        settled = into(float(current), front(up_window, t, wish, False), wish)
                elif code == RATE:
                    if wish != current:
                        settled = within_rates(rules, index, wish, current, t, grown, shrunk)
                elif code == HIGHEST:
                    settled = front(down_window, t, wish, True)
                elif code == COOLDOWN:
                    last = max(up_at, down_at) if rules[index, 3] != 0.0 else (up_at if ratio > 1.0 else down_at)
                    rest = rules[index, 1] if ratio > 1.0 else rules[index, 2]
                    if (wish != current or ratio != 1.0) and last >= 0 and t - last < rest:
                        wish, settled, ratio = float(current), float(current), 1.0
                else:
                    wish, ratio = settle_stateless(code, rules, index, wish, ratio, current)
                    settled = wish
                if settled != wish:
                    wish, ratio = settled, settled / current
            wanted = clamp(ceil(wish - 1e-9), least, most)
        if raw >= 0:  # what was recommended counts for either rules; who does not look back keeps nothing
            push_all(highs, lows, priced_highs, priced_lows, t, raw)
        if wanted > current:
            up_at = t
            note(grown, t, wanted - current, up_period)
        elif wanted < current:
            down_at = t
            note(shrunk, t, current - wanted, down_period)
        current = wanted
    return True


@compiled
def first_wish(kind: int, target: float, up: float, down: float, value: float, current: int) -> tuple[float, float]:
    """Wanted replicas and their ratio to the current ones, before any rule."""
    if kind == BY_TOTAL:
        total, share = in_thousandths(value), in_thousandths(target)
        ratio = tolerated_ratio(total, share, up, down, current)
        return (float(current) if ratio == 1.0 else float(whole(total / share))), ratio
    ratio = (value / current) / target
    return current * ratio, ratio


@compiled
def push_all(highs: Ints, lows: Ints, priced_highs: Ints, priced_lows: Ints, t: int, raw: int) -> None:
    push(highs, t, raw, True)
    push(lows, t, raw, False)
    push(priced_highs, t, raw, True)
    push(priced_lows, t, raw, False)


@compiled
def band_wish(current: int, start: int, keep: int) -> tuple[float, float]:
    """Wanted replicas and their ratio where pods are priced."""
    wish = float(into_band(current, start, keep))
    return wish, wish / current


@compiled
def raised(wish: float, ratio: float, coming: float, current: int) -> tuple[float, float]:
    """A forecast may only add."""
    pods = float(whole(coming - 1e-9))
    return (pods, coming / current) if pods > wish else (wish, ratio)


@compiled
def within_rates(rules: Floats, index: int, wish: float, current: int, t: int, grown: Ints, shrunk: Ints) -> float:
    """As much of the wish as the policies of its direction allow now."""
    up = wish > current
    first = 1 if up else 1 + RATE_WIDTH
    if rules[index, first] == DISABLED:
        return float(current)
    best = current
    for number in range(int(rules[index, first + 1])):
        place = first + 2 + 3 * number
        period = rules[index, place + 2]
        start = current - changed(grown, t, period) + changed(shrunk, t, period)
        percent, value = rules[index, place] != 0.0, int(rules[index, place + 1])
        end = end_up(percent, value, start) if up else end_down(percent, value, start)
        farther = end > best if up == (rules[index, first] == FARTHEST) else end < best
        best = end if farther or number == 0 else best
    return min(wish, float(max(current, best))) if up else max(wish, float(min(current, best)))
