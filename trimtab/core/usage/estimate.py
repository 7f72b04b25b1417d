"""What the histograms say containers need: percentile, margin, then bounds that widen where there is little history.

Memory covers the highest working set of eight days and the margin besides, as `recommend` does: VPA's histogram forgets
half of a weekly peak every day.

upper = p95 * (1 + 1 / confidence), lower = p50 * (1 + 0.001 / confidence) ** -2, target = p90, all after the margin;
confidence = min(days of history, samples / one per minute). Amounts are truncated to whole millicores or bytes (VPA).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trimtab.core.model import Estimate, UsageEstimates
from trimtab.core.usage.bank import Bank
from trimtab.core.usage.histograms import UsageHistograms
from trimtab.policy import Size
from trimtab.series import Floats

MOST = 1e14  # where VPA's amounts saturate
CPU_GRAIN, MEMORY_GRAIN = 1000, 1  # amounts are whole millicores and bytes


class ConfidenceMultiplier(NamedTuple):
    """A confidence multiplier: amount * (1 + multiplier / confidence) ** exponent."""

    multiplier: float
    exponent: float


LOWER, UPPER = ConfidenceMultiplier(0.001, -2.0), ConfidenceMultiplier(1.0, 1.0)


def usages(histograms: UsageHistograms, at: float) -> dict[str, UsageEstimates]:
    """A dated estimate for every workload; it expires with its samples, not with the clock of whoever asks."""
    rows = histograms.rows
    last = np.fmax(np.fmax(rows["cpu_last"], rows["memory_last"]), rows["oom_at"]).tolist()
    found: dict[str, dict[str, Estimate]] = {}
    newest: dict[str, float] = {}
    for (workload, container), estimate, sampled_at in zip(
        histograms.keys(), estimates(histograms, at), last, strict=True
    ):
        found.setdefault(workload, {})[container] = estimate
        newest[workload] = max(newest.get(workload, 0.0), _known(sampled_at) or 0.0)
    fresh_s = histograms.settings.fresh_s
    return {
        name: UsageEstimates(
            made_at=at, expires_at=newest[name] + fresh_s, containers=containers, sampled_at=newest[name]
        )
        for name, containers in found.items()
    }


def estimates(histograms: UsageHistograms, at: float) -> list[Estimate]:
    """One for each row; a resource that was never measured has no amount, which is not zero."""
    rows, settings = histograms.rows, histograms.settings
    trust = confidence(rows["cpu_first"], rows["cpu_last"], rows["count"], settings.confidence_s)
    cpu = amounts(histograms.cpu, settings.cpu_percentiles, CPU_GRAIN, settings.margin, trust)
    memory = amounts(histograms.memory, settings.memory_percentiles, MEMORY_GRAIN, settings.margin, trust)
    observed_s = (rows["cpu_last"] - rows["cpu_first"] - rows["unseen_s"]).tolist()
    highest, watched = histograms.highest_working_sets(at), histograms.memory_peaks(at)
    memory[1:] = np.fmax(memory[1:], with_margin(highest, settings.margin))
    peaks = np.where(np.isnan(watched), nan, np.fmax(watched, highest)).tolist()
    ooms = rows["oom_at"].tolist()
    needs = np.where(rows["oom_at"] > at - settings.history_s, rows["oom_need"], nan).tolist()
    facts = zip(cpu.T.tolist(), memory.T.tolist(), observed_s, peaks, zip(ooms, needs, strict=True), strict=True)
    return [_estimate(*estimate, window_s=settings.memory_window_s) for estimate in facts]


def amounts(bank: Bank, probabilities: tuple[float, float, float], grain: int, margin: float, trust: Floats) -> Floats:
    """(lower, target, upper) of each row in whole grains; NaN where the row is empty."""
    low, target, high = with_margin(whole(bank.percentiles(probabilities) * grain), margin)
    bent = np.stack([with_confidence(low, trust, LOWER), target, with_confidence(high, trust, UPPER)])
    return np.where(bank.empty(), nan, bent)


def confidence(first: ArrayLike, last: ArrayLike, count: ArrayLike, interval_s: float) -> Floats:
    """Intervals of history, but no more than the samples fill at one per minute; 0 without any."""
    span = (np.asarray(last, dtype=float) - np.asarray(first, dtype=float)) / interval_s
    trust: Floats = np.nan_to_num(np.minimum(span, np.asarray(count) / (interval_s / 60.0)))
    return trust


def with_margin(base: ArrayLike, fraction: float) -> Floats:
    """So much more, itself truncated."""
    amount = np.asarray(base, dtype=float)
    return np.minimum(amount + whole(amount * fraction), MOST)


def with_confidence(base: ArrayLike, trust: ArrayLike, bend: ConfidenceMultiplier) -> Floats:
    """No history at all makes an upper bound limitless and a lower bound nothing."""
    amount = np.asarray(base, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = (1.0 + np.divide(bend.multiplier, trust)) ** bend.exponent
        return whole(np.where(amount > 0, amount * factor, 0.0))


def whole(amount: ArrayLike) -> Floats:
    """Truncated and saturated."""
    cut: Floats = np.minimum(np.trunc(np.asarray(amount, dtype=float)), MOST)
    return cut


def _estimate(
    cpu: Iterable[float],
    memory: Iterable[float],
    observed_s: float,
    peak_bytes: float,
    oom: tuple[float, float],
    window_s: float,
) -> Estimate:
    lower, target, upper = (
        Size(cpu_cores=_known(milli / CPU_GRAIN), memory_bytes=_known(size / MEMORY_GRAIN))
        for milli, size in zip(cpu, memory, strict=True)
    )
    return Estimate(
        target=target,
        lower=lower,
        upper=upper,
        observed_s=_known(observed_s) or 0.0,
        memory_window_s=window_s,
        memory_peak_bytes=_known(peak_bytes),
        oom_at=_known(oom[0]),
        oom_need_bytes=_known(oom[1]),
    )


def _known(number: float) -> float | None:
    return None if isnan(number) else number
