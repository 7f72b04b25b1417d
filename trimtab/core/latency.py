"""latency: how much one pod serves while a latency promise holds, learned from minutes of usage and latency.

The level is the highest usage per ready pod at which the promise held in 99 % of the minutes. More usage never makes a
broken promise less likely, so the share of broken minutes is fitted as a rising curve (isotonic regression, pool
adjacent violators), and the level is the last usage at which that curve is at most 1 %. Enough minutes must lie at or
below the level to say "99 %" with 95 % confidence (Wilson's bound).

Three things are told apart from usage. Minutes that are broken at half the usage or less have another bottleneck; that
share is not held against higher usage. Latency that is the same at any usage says nothing about a level. And where the
same usage has another latency since some day, only the time since then counts.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.policy import Record
from trimtab.series import Floats, Frame

MINUTE_S = 60.0
PROMISED = 0.99  # of the minutes
LEAST_MINUTES = 300  # Wilson's bound of none broken among fewer is above 1 %
SETTLE_MINUTES = 3  # after pods came or went: start-ups, deploys, warm caches
RARE = (
    0.002  # share of minutes; another bottleneck comes in episodes, so its share at one usage may be several times this
)
OTHER_MOST = 0.2  # with more minutes broken at low usage, nothing is said of high usage
WIDE = 1.5  # the highest usage over the lowest, to see whether latency depends on it
SAME = 1.1  # latency at high usage over that at low usage, where it does not depend on it
CHANGED = 1.15  # latency at the same usage, after a release over before
RAISE = 1.1  # a night may raise a level that has not met its end by as much
TARGET_SHARE = 7.0 / 8.0  # of the level: a target leaves room for one start-up
_Z = 1.645
_GROUP = 30  # minutes of about the same usage
_BLOCKS_PER_DAY, _BINS = 3, 16
Flags = NDArray[np.bool_]


class MinutePairs(NamedTuple):
    """Minutes in order: unix seconds, usage per ready pod, and latency in seconds; NaN where one is not known."""

    times: Floats
    usage: Floats
    latency: Floats

    def where(self, chosen: Flags) -> MinutePairs:
        return MinutePairs(self.times[chosen], self.usage[chosen], self.latency[chosen])


class LevelKind(enum.StrEnum):
    KNEE = "Knee"  # more was tried, and broke the promise
    HELD = "Held"  # the promise held at all that was seen
    BROKEN = "Broken"  # it held at nothing that was seen, but all of that was high: the level is a tenth below
    NONE = "None"  # nothing could be learned; the reason says why


class LatencyLevel(Record, frozen=True):
    """What was learned: above `level` a pod is overloaded. Amounts are in the unit of the usage."""

    kind: LevelKind
    below_s: float
    level: float = 0.0
    observed: float = 0.0  # the highest usage with enough minutes
    days: float = 0.0
    minutes: int = 0
    broken: float = 0.0  # share of all minutes
    other: float = 0.0  # share of minutes with another bottleneck
    since: float | None = None  # only minutes since then count
    reason: str = ""

    def text(self, unit: str) -> str:
        """ "one pod serves 38 requests/s below 300 ms (observed up to 44; 9 days)"."""
        below = seconds(self.below_s)
        if self.kind is LevelKind.NONE:
            return f"how much one pod serves below {below} is not known: {self.reason}"
        if self.kind is LevelKind.BROKEN:
            return f"one pod serves less than {amount(self.level * RAISE)}{unit} below {below}: {self.reason}"
        days = f"{self.days:.0f} days" if self.days >= 1.5 else f"{24 * self.days:.0f} hours"
        seen = f"observed up to {amount(self.observed)}; {days}"
        more = f"{seen} since the last change of capacity" if self.since else seen
        other = f"; {self.other:.1%} of the minutes were slower at any usage, which more pods do not change"
        return f"one pod serves {amount(self.level)}{unit} below {below} ({more}){other if self.other > 0.005 else ''}"


def amount(value: float) -> str:
    return f"{float(f'{value:.3g}'):g}"


def seconds(value: float) -> str:
    return f"{amount(1000.0 * value)} ms" if value < 1.0 else f"{amount(value)} s"


def steady_minutes(pods: Floats) -> Flags:
    """Return which minutes tell something: the number of ready pods is known, above zero, and was so for a while."""
    same = np.ones(len(pods), dtype=bool)
    for back in range(1, SETTLE_MINUTES + 1):
        same[back:] &= pods[back:] == pods[:-back]
    return same & (pods > 0)


def learn(minutes: MinutePairs, below_s: float) -> LatencyLevel:
    """Learn the level of a promise, or say why there is none."""
    known = minutes.where(np.isfinite(minutes.usage) & np.isfinite(minutes.latency) & (minutes.usage > 0))
    if len(known.times) < LEAST_MINUTES:
        gone = len(minutes.times) - len(known.times)
        why = f"{len(known.times)} minutes with traffic and a steady number of pods are too few, at least"
        return _nothing(known, below_s, f"{why} {LEAST_MINUTES} are needed ({gone} were left out)")
    if why := _odd_unit(known, below_s):
        return _nothing(known, below_s, why)
    since = _changed_at(known)
    if since is not None:
        known = known.where(known.times >= since)
        if len(known.times) < LEAST_MINUTES:
            why = f"the same usage has another latency since then, and {len(known.times)} minutes are too few"
            return _nothing(known, below_s, why, since)
    return _level_of(known, below_s, since)


def _level_of(known: MinutePairs, below_s: float, since: float | None) -> LatencyLevel:
    usage, broken = known.usage, known.latency > below_s
    observed = float(np.sort(usage)[-_GROUP])
    low = usage <= 0.5 * observed
    other = float(broken[low].mean()) if low.sum() >= LEAST_MINUTES else 0.0
    if usual := _broken_at_lowest(known, below_s):
        lowest = float(np.quantile(usage, 0.05))
        if lowest > observed / 2.0:
            return _broken(known, below_s, since, f"it was broken at every usage seen, from {amount(lowest)} up")
        why = f"not reachable with any number of pods: latency is {seconds(usual)} at the lowest usage seen"
        return _nothing(known, below_s, why, since)
    if other > OTHER_MOST:
        why = f"{other:.0%} of the minutes at half the usage or less are slower: look for another bottleneck"
        return _nothing(known, below_s, why, since)
    allowed = 1.0 - PROMISED if other < RARE else max(0.05, 1.0 - PROMISED + 3.0 * other)
    level, more = _highest(usage, broken, allowed)
    if _independent(known) and not more:
        return _nothing(known, below_s, "latency does not depend on usage, so overload is judged without it", since)
    below = usage <= level
    if level <= 0.0 or upper_bound(int((broken & below).sum()), int(below.sum())) > allowed:
        lowest = float(np.quantile(usage, 0.05))
        why = f"it was broken too often at every usage seen, from {amount(lowest)} up"
        if lowest > observed / 2.0:
            return _broken(known, below_s, since, why)
        return _nothing(known, below_s, why, since)
    kind = LevelKind.KNEE if more else LevelKind.HELD
    level = min(level, observed)
    return _described(known, below_s, since, kind=kind, level=level, observed=observed, other=other)


def _broken(known: MinutePairs, below_s: float, since: float | None, why: str) -> LatencyLevel:
    """Less for each pod may keep the promise: a tenth less is tried, and again, down to half of the highest usage."""
    lowest, highest = (float(np.quantile(known.usage, share)) for share in (0.05, 1.0))
    return _described(known, below_s, since, kind=LevelKind.BROKEN, level=lowest / RAISE, observed=highest, reason=why)


def _nothing(known: MinutePairs, below_s: float, why: str, since: float | None = None) -> LatencyLevel:
    return _described(known, below_s, since, kind=LevelKind.NONE, reason=why)


def _described(known: MinutePairs, below_s: float, since: float | None, **found: object) -> LatencyLevel:
    span = float(known.times[-1] - known.times[0]) + MINUTE_S if len(known.times) else 0.0
    broken = float((known.latency > below_s).mean()) if len(known.times) else 0.0
    about = {"days": span / 86400.0, "minutes": len(known.times), "broken": broken, "since": since}
    return LatencyLevel(**{"below_s": below_s, **about, **found})  # type: ignore[arg-type]


def _odd_unit(known: MinutePairs, below_s: float) -> str:
    """A promise in seconds beside a query in milliseconds."""
    usual = float(np.median(known.latency))
    if usual < 100.0 * below_s or usual < 2.0:
        return ""
    below = seconds(below_s)
    return f"the query gives {amount(usual)}, the promise is {below}: does it count milliseconds? Divide it by 1000"


def _broken_at_lowest(known: MinutePairs, below_s: float) -> float:
    """Return the usual latency at the lowest usage, where that breaks the promise; else 0."""
    usual = float(np.median(known.latency[known.usage <= np.quantile(known.usage, 0.05)]))
    return usual if usual > below_s else 0.0


def _independent(known: MinutePairs) -> bool:
    low, top = np.quantile(known.usage, (0.25, 0.75))
    edges = np.quantile(known.usage, (0.05, 0.95))
    if edges[1] < WIDE * edges[0]:
        return False
    few, many = known.latency[known.usage <= low], known.latency[known.usage >= top]
    return bool(np.median(many) < SAME * np.median(few)) and bool(
        np.quantile(many, 0.95) < SAME * np.quantile(few, 0.95)
    )


def _highest(usage: Floats, broken: Flags, allowed: float) -> tuple[float, bool]:
    """Return the last usage at which the fitted share of broken minutes is allowed, and whether there is more."""
    order = np.argsort(usage, kind="stable")
    first = np.arange(0, len(order), _GROUP)
    counts = np.diff(np.append(first, len(order)))
    ends = usage[order][first + counts - 1]
    level = 0.0
    for end, share in rising_shares(np.add.reduceat(broken[order].astype(float), first), counts.astype(float)):
        if share > allowed:
            return level, True
        level = float(ends[end])
    return level, False


def rising_shares(parts: Floats, wholes: Floats) -> list[tuple[int, float]]:
    """Pool adjacent violators: the rising shares nearest to parts / wholes, as (last index, share) of each block.

    Shares are median ranks (Benard), so that one broken minute among few counts for a little more than it is.
    """
    blocks: list[tuple[int, float, float]] = []
    for index, (part, whole) in enumerate(zip(parts.tolist(), wholes.tolist(), strict=True)):
        block = (index, part, whole)
        while blocks and blocks[-1][1] * block[2] >= block[1] * blocks[-1][2]:
            before = blocks.pop()
            block = (index, before[1] + block[1], before[2] + block[2])
        blocks.append(block)
    return [(index, (part + 0.7 * (part > 0)) / (whole + 0.4)) for index, part, whole in blocks]


def upper_bound(part: int, whole: int) -> float:
    """Wilson's bound: with 95 % confidence the share is not above it."""
    if whole == 0:
        return 1.0
    share, z2 = part / whole, _Z * _Z
    spread = _Z * np.sqrt(share * (1.0 - share) / whole + z2 / (4.0 * whole * whole))
    return float((share + z2 / (2.0 * whole) + spread) / (1.0 + z2 / whole))


def _changed_at(known: MinutePairs) -> float | None:
    """Return since when the same usage has another latency; None where it has not changed."""
    block = ((known.times - known.times[0]) // (86400.0 / _BLOCKS_PER_DAY)).astype(np.int64)
    edges = np.quantile(known.usage, np.linspace(0.0, 1.0, _BINS + 1)[1:-1])
    place = block * _BINS + np.searchsorted(edges, known.usage)
    shape = (int(block[-1]) + 1, _BINS)
    size = shape[0] * shape[1]
    counts = np.bincount(place, minlength=size).reshape(shape).cumsum(axis=0)
    sums = np.bincount(place, np.log(np.maximum(known.latency, 1e-6)), size).reshape(shape).cumsum(axis=0)
    best, found = 0.0, None
    for last in range(shape[0] - 1):
        old, new = counts[last], counts[-1] - counts[last]
        both = (old >= _GROUP) & (new >= _GROUP)
        if new.sum() < LEAST_MINUTES or old.sum() < LEAST_MINUTES or not both.any():
            continue
        moved = (sums[-1] - sums[last])[both] / new[both] - sums[last][both] / old[both]
        weights = old[both] * new[both] / (old[both] + new[both])
        mean = abs(float(np.average(moved, weights=weights)))
        score = mean * float(np.sqrt(weights.sum()))
        if mean > np.log(CHANGED) and score > best:
            best, found = score, float(known.times[0] + (last + 1) * 86400.0 / _BLOCKS_PER_DAY)
    return found


def next_level(in_force: float | None, found: LatencyLevel, night: bool) -> float | None:
    """Return the level from now on; None: overload is judged without latency.

    Where the promise held at all that was seen, a night adds a tenth, but never more than a tenth to what was observed.
    A level that broke the promise is rolled back as soon as the minutes show it.
    """
    if found.kind is LevelKind.NONE:
        return in_force if found.minutes < LEAST_MINUTES else None
    if found.kind is not LevelKind.HELD:
        return found.level
    held = max(found.level, in_force or 0.0)
    return max(held, min(RAISE * held, RAISE * found.observed)) if night else held


def paired(usage: Frame, latency: Frame, pods: Frame | None = None) -> MinutePairs:
    """Return minutes of single series of usage and latency; with `pods`, the usage is that of all ready pods."""
    width = max(MINUTE_S, *(frame.step_s for frame in (usage, latency, pods) if frame is not None))
    first = int(min(usage.start, latency.start) // width)
    count = int(max(usage.end, latency.end) // width) + 1 - first
    each = _means(usage, width, first, count)
    if pods is not None:
        ready = _means(pods, width, first, count)
        each = np.where(steady_minutes(ready), each / np.maximum(ready, 1.0), np.nan)
    times = width * (first + np.arange(count, dtype=np.float64))
    return MinutePairs(times, each, _means(latency, width, first, count))


def _means(frame: Frame, width: float, first: int, count: int) -> Floats:
    """Means of steps of `width` seconds; NaN where there is no sample."""
    values, places = frame.values[0], (frame.times // width).astype(np.int64) - first
    known = np.isfinite(values) & (places >= 0) & (places < count)
    sums = np.bincount(places[known], values[known], count)
    counts = np.bincount(places[known], minlength=count)
    means: Floats = np.divide(sums, counts, out=np.full(count, np.nan), where=counts > 0)
    return means


class CurvePoint(NamedTuple):
    """Minutes of about the same usage."""

    usage: float
    minutes: int
    median_s: float
    p99_s: float


def curve(minutes: MinutePairs, bins: int = 48) -> list[CurvePoint]:
    """Return latency over usage, for a picture."""
    known = minutes.where(np.isfinite(minutes.usage) & np.isfinite(minutes.latency) & (minutes.usage > 0))
    if not len(known.usage):
        return []
    edges = np.linspace(0.0, float(known.usage.max()), bins + 1)
    place = np.clip(np.searchsorted(edges, known.usage, side="left") - 1, 0, bins - 1)
    found = []
    for bin_ in np.unique(place).tolist():
        some = known.latency[place == bin_]
        median, p99 = np.quantile(some, (0.5, PROMISED))
        found.append(CurvePoint(float(edges[bin_ + 1]), len(some), float(median), float(p99)))
    return found
