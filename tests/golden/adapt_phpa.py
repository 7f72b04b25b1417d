"""Adapters for phpa.json."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from math import ceil

import numpy as np
import pytest

from tests.core.holt_winters import predict
from tests.golden.harness import Case, Excuse
from trimtab.core.combine import combined
from trimtab.core.forecast import linear
from trimtab.core.forecast.holt_winters import ComponentType, HoltWintersOptions, start_state
from trimtab.core.model import Missing
from trimtab.core.settle import rate, stabilise
from trimtab.errors import TrimtabError
from trimtab.policy import Combine, RatePolicy, Rates, Select
from trimtab.series import Series

_PROCESS = ("No standard input", "Invalid JSON", "Invalid datetime", "no Linear configuration", "no required")


def key_of(case: Case) -> str:
    """Complaints about its sub-process' standard input and its own configuration are PHPA's internals."""
    if str(case["expected"].get("error", "")).startswith(_PROCESS):
        return "process"
    if "initializationMethod" in case["input"] and case["input"]["initializationMethod"] != "estimated":
        return "start values"  # no kind of ours asks for others than the default ones
    return str(case["fn"])


def decide(case: Case) -> None:
    wishes = [float(one) for one in case["input"]["predictedReplicas"]]
    assert combined(wishes, Combine(case["input"]["decisionType"])) == case["expected"]["replicas"]


def _rates(rules: Case | None) -> Rates:
    policies = (rules or {}).get("policies") or []
    return Rates(
        select=Select((rules or {}).get("selectPolicy", "Max")),
        policies=tuple(
            RatePolicy(percent=one["type"] == "Percent", value=one["value"], period_s=one["periodSeconds"])
            for one in policies
        ),
    )


def behavior(case: Case) -> None:
    given = case["input"]
    current, wanted = given["currentReplicas"], given["targetReplicas"]
    low = min([wanted, *given["scaleUpStabilizationHistory"]])
    high = max([wanted, *given["scaleDownStabilizationHistory"]])
    settled = int(stabilise.into(current, low, high))
    grown, shrunk = (
        tuple((-float(one["secondsAgo"]), one["change"]) for one in given[key])
        for key in ("scaleUpEvents", "scaleDownEvents")
    )
    if settled > current:
        settled = min(settled, rate.up_limit(_rates(given["scaleUp"]), current, grown, shrunk, 0.0))
    elif settled < current:
        settled = max(settled, rate.down_limit(_rates(given["scaleDown"]), current, grown, shrunk, 0.0))
    assert min(max(settled, given["minReplicas"]), given["maxReplicas"]) == case["expected"]["replicas"]


def longest_policy_period(case: Case) -> None:
    assert rate.longest_period(_rates(case["input"]["rules"])) == case["expected"]["seconds"]


def prune_to_window(case: Case) -> None:
    given = case["input"]
    cutoff = given["now"] - given["windowSeconds"]
    kept = [one for one in given["history"] if rate.changed(((one["at"], one["replicas"]),), cutoff)]
    assert kept == case["expected"]["kept"]


def _time(text: str) -> float:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()


def linear_forecast(case: Case) -> None:
    given = case["input"]
    at = _time(given["currentTime"]) if "currentTime" in given else 0.0
    times = np.array([_time(one["time"]) - at if "time" in one else 0.0 for one in given["replicaHistory"]])
    values = np.array([float(one["replicas"]) for one in given["replicaHistory"]])
    if "error" in case["expected"]:
        assert isinstance(linear.forecast_recent([Series(times, values)], 60.0, at)[0], Missing)
        return
    slope, intercept = linear.fit_line(times, values)
    predicted = intercept + slope * given["lookAhead"] / 1000
    assert ceil(predicted - 1e-9) == case["expected"]["replicas"]
    if "predictedFloat" in case["expected"]:
        assert predicted == pytest.approx(case["expected"]["predictedFloat"], abs=1e-9)


def _history(case: Case) -> tuple[tuple[float, float], ...]:
    return tuple((float(one["at"]), float(one["replicas"])) for one in case["input"]["history"])


def _kept(case: Case) -> list[tuple[float, float]]:
    return sorted((float(one["at"]), float(one["replicas"])) for one in case["expected"]["kept"])


def linear_prune(case: Case) -> None:
    """PHPA keeps newest first, we keep the order of time: the same points."""
    times, values = (np.array(column) for column in zip(*sorted(_history(case)), strict=True))
    options = linear.LinearOptions(history_size=case["input"]["config"]["historySize"])
    kept = linear.recent_of(Series(times, values), times[-1], 60.0, options)
    assert list(zip(kept.times.tolist(), kept.values.tolist(), strict=True)) == _kept(case)


def _options(given: Case) -> HoltWintersOptions:
    return HoltWintersOptions(
        alpha=given["alpha"],
        beta=given["beta"],
        gamma=given["gamma"],
        trend=_shape(given["trend"]),
        seasonal=_shape(given["seasonal"]),
        exact=True,
    )


def _shape(text: str) -> ComponentType:
    return ComponentType({"additive": "add", "multiplicative": "mul"}.get(text, text))


def _series(values: list[float]) -> np.ndarray:
    return np.array([values], dtype=float)


def holt_winters_forecast(case: Case) -> None:
    given, wanted = case["input"], case["expected"]
    series, season = _series(given["series"]), given["seasonalPeriods"]
    if "error" in wanted:
        with pytest.raises(TrimtabError):
            predict(series, season, 1, _options(given))
        return
    options = _options(given)
    found = predict(series, season, 3, options)[0]
    assert ceil(found[0] - 1e-9) == wanted["replicas"]
    reference = wanted.get("statsmodels_0_14_0", {})
    if "forecast" in reference:
        assert found == pytest.approx(np.array(reference["forecast"]), abs=1e-8)
    if "initialLevel" in reference:
        start = start_state(series, season, options.trend, options.seasonal)
        level, trend = float(np.squeeze(start.level)), float(np.squeeze(start.trend))
        assert (level, trend) == pytest.approx((reference["initialLevel"], reference["initialTrend"]), abs=1e-8)
        assert np.squeeze(start.seasons) == pytest.approx(np.array(reference["initialSeasonals"]), abs=1e-8)


def storage_order(case: Case) -> None:
    """PHPA feeds the series backwards; ours runs in the order of time, whatever order it was stored in."""
    given, wanted = case["input"], case["expected"]
    for order, key in (("chronological", "forecastChronological"), ("orderFedByPhpa", "forecastPhpaOrder")):
        found = predict(_series(given[order]), given["seasonalPeriods"], 1, _options(given))[0, 0]
        assert found == pytest.approx(wanted[key], abs=1e-8)


ADAPTERS: dict[str, Callable[[Case], None]] = {
    "decide": decide,
    "behavior": behavior,
    "longestPolicyPeriod": longest_policy_period,
    "pruneToWindow": prune_to_window,
    "linearForecast": linear_forecast,
    "linearPrune": linear_prune,
    "holtWintersForecast": holt_winters_forecast,
    "holtWintersStorageOrder": storage_order,
}
EXCUSED: dict[str, Excuse] = {
    "process": Excuse.INTERNALS,
    "holtWintersPrune": Excuse.INTERNALS,
    "start values": Excuse.INTERNALS,
}
