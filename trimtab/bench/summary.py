"""The rows of the benchmark, and the figures that a comparison may rest on.

Geometric means over traces (the trace is the unit), a bootstrap over traces for the interval, wins, the worst trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from trimtab.series import Floats

DEFAULT, RETUNED = "hpa-default", "hpa-rolling"


class BenchRow(NamedTuple):
    """One contender on one trace; cost, j and regret are relative to the optimum, violations in percent of the load."""

    trace: str
    init_s: float
    lam: float
    policy: str
    cost: float
    violations: float
    churn_per_day: float
    starts_per_day: float
    resizes_per_pod_day: float
    j: float
    j_oracle: float
    regret: float

    def plain(self) -> dict[str, Any]:
        return _plain(self._asdict())


class BenchSummary(NamedTuple):
    """One contender over all traces; `change` and `wins` are against default HPA."""

    init_s: float
    lam: float
    policy: str
    traces: int
    j: float
    low: float
    high: float
    cost: float
    violations: float
    change: float | None
    wins: int | None
    worst: float
    worst_trace: str
    churn: float | None  # of default HPA's
    to_retuned: float | None  # J to that of HPA retuned every night, geometric mean
    worst_to_retuned: float | None
    resizes: float  # of one pod in place per day, the median over traces

    def plain(self) -> dict[str, Any]:
        return _plain(self._asdict())


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    """For JSON, where `lambda` may be called by its name."""
    return {"lambda" if name == "lam" else name: value for name, value in record.items()}


def summarise(rows: Sequence[BenchRow]) -> list[BenchSummary]:
    groups: dict[tuple[float, float, str], dict[str, BenchRow]] = {}
    for row in rows:
        groups.setdefault((row.init_s, row.lam, row.policy), {})[row.trace] = row
    return [
        _summary(key, group, groups.get((key[0], key[1], DEFAULT)), groups.get((key[0], key[1], RETUNED)))
        for key, group in groups.items()
    ]


def _summary(
    key: tuple[float, float, str],
    group: dict[str, BenchRow],
    default: dict[str, BenchRow] | None,
    retuned: dict[str, BenchRow] | None,
) -> BenchSummary:
    j = np.array([row.j for row in group.values()])
    low, high = interval(j)
    worst = max(group.values(), key=lambda row: row.j)
    ratios = np.array([row.j / retuned[name].j for name, row in group.items()]) if retuned else None
    compared = [(row, default[name]) for name, row in group.items()] if default else []
    return BenchSummary(
        *key,
        traces=len(group),
        j=geometric_mean(j),
        low=low,
        high=high,
        cost=geometric_mean(np.array([row.cost for row in group.values()])),
        violations=float(np.mean([row.violations for row in group.values()])),
        change=geometric_mean(np.array([row.j / base.j for row, base in compared])) - 1 if compared else None,
        wins=sum(row.j < base.j for row, base in compared) if compared else None,
        worst=worst.j,
        worst_trace=worst.trace,
        churn=geometric_mean(np.array([_churn_ratio(row, base) for row, base in compared])) if compared else None,
        to_retuned=None if ratios is None else geometric_mean(ratios),
        worst_to_retuned=None if ratios is None else float(ratios.max()),
        resizes=float(np.median([row.resizes_per_pod_day for row in group.values()])),
    )


def _churn_ratio(row: BenchRow, base: BenchRow) -> float:
    """Churn in proportion; one pod per day is the least that counts, or a quiet trace would rule the mean."""
    return max(row.churn_per_day, 1.0) / max(base.churn_per_day, 1.0)


def geometric_mean(values: Floats) -> float:
    return float(np.exp(np.log(values).mean()))


def interval(values: Floats, draws: int = 2000) -> tuple[float, float]:
    """95 % of the geometric means of traces drawn again with replacement."""
    picks = np.random.default_rng(0).integers(len(values), size=(draws, len(values)))
    low, high = np.quantile(np.exp(np.log(values)[picks].mean(axis=1)), [0.025, 0.975])
    return float(low), float(high)
