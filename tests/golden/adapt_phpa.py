"""Adapters for phpa.json."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from math import ceil

import numpy as np
import pytest

from tests.golden.harness import Case, Excuse
from trimtab.core.combine import combined
from trimtab.core.forecast import linear
from trimtab.core.settle import rate, stabilise
from trimtab.policy import Combine, RatePolicy, Rates, Select

_PROCESS = ("No standard input", "Invalid JSON", "Invalid datetime", "no Linear configuration", "no required")


def key_of(case: Case) -> str:
    """Complaints about its sub-process' standard input and its own configuration are PHPA's internals."""
    if str(case["expected"].get("error", "")).startswith(_PROCESS):
        return "process"
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
    values = np.array([[float(one["replicas"]) for one in given["replicaHistory"]]])
    predicted = linear.predict(times, values, given["lookAhead"] / 1000, linear.Options(both_ways=True))[0]
    if "error" in case["expected"]:
        assert np.isnan(predicted)
        return
    assert ceil(predicted - 1e-9) == case["expected"]["replicas"]
    if "predictedFloat" in case["expected"]:
        assert predicted == pytest.approx(case["expected"]["predictedFloat"], abs=1e-9)


def _history(case: Case) -> tuple[tuple[float, float], ...]:
    return tuple((float(one["at"]), float(one["replicas"])) for one in case["input"]["history"])


def _kept(case: Case) -> list[tuple[float, float]]:
    return sorted((float(one["at"]), float(one["replicas"])) for one in case["expected"]["kept"])


def linear_prune(case: Case) -> None:
    """PHPA keeps newest first, we keep the order of time: the same points."""
    assert list(linear.newest(_history(case), case["input"]["config"]["historySize"])) == _kept(case)


ADAPTERS: dict[str, Callable[[Case], None]] = {
    "decide": decide,
    "behavior": behavior,
    "longestPolicyPeriod": longest_policy_period,
    "pruneToWindow": prune_to_window,
    "linearForecast": linear_forecast,
    "linearPrune": linear_prune,
}
EXCUSED: dict[str, Excuse] = {
    "process": Excuse.INTERNALS,
    "holtWintersForecast": Excuse.LATER,
    "holtWintersPrune": Excuse.LATER,
    "holtWintersStorageOrder": Excuse.LATER,
}
