"""Adapters for recordings.json: Crane's DSP on sixteen recorded loads, which are not part of this repository."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.golden import harness
from tests.golden.harness import Case
from trimtab.core.forecast import dsp
from trimtab.core.forecast.dsp import (
    DEFAULT_ESTIMATORS,
    Estimator,
    Fft,
    MaxValue,
    amplitude_floor,
    next_period,
    prediction_error,
)
from trimtab.core.weighted_percentile import rank_percentile
from trimtab.series import Floats, Series

WEEK = 604800


def _values(name: str) -> Floats:
    path = harness.RECORDINGS / Path(name).with_suffix(".parquet").name
    if not path.exists():
        pytest.skip(f"no recordings in {harness.RECORDINGS}: set TRIMTAB_TRACES to the folder above crane_dsp")
    parquet = pytest.importorskip("pyarrow.parquet")
    return np.asarray(parquet.read_table(path)["value"].to_numpy(), dtype=float)


def whole_units(values: Floats, unit_s: int, step_s: float) -> Floats:
    series = Series(np.arange(float(len(values))) * step_s, values)
    return dsp.newest_units(series, step_s, unit_s).values


def period(case: Case) -> None:
    step_s = case["input"]["sample_interval_s"]
    signal = whole_units(_values(case["input"]["csv"]), WEEK, step_s)
    found = dsp.find_period(signal, step_s)
    if "period_s" in case["expected"]:
        assert found is not None
        assert found.lag * step_s == case["expected"]["period_s"]
        return
    assert (-1 if found is None else found.lag) == case["expected"]["lag_samples"]
    assert (0.0 if found is None else found.correlation) == pytest.approx(case["expected"]["acf"], abs=6e-5)


def first_week(case: Case) -> None:
    values = _values(case["input"]["csv"])
    found = dsp.find_period(values[: 7 * 1440], 60)
    assert len(values) == case["expected"]["samples"]
    assert found is not None
    assert found.lag * 60 == case["expected"]["period_s"]


def _check_shape(found: Floats, wanted: dict[str, Any], actual: Floats) -> None:
    summary = {
        "first3": list(found[:3]),
        "idx720": found[720],
        "last": found[-1],
        "mean": found.mean(),
        "max": found.max(),
        "min": found.min(),
        "pe_vs_day8": prediction_error(actual, found),
    }
    for name, value in wanted.items():
        if name in summary:
            assert summary[name] == pytest.approx(value, abs=1e-6), name


def on_input0(case: Case) -> None:
    given, values = case["input"], _values("input0.csv")
    size = given["period_samples"]
    trained, actual = values[slice(*given["train"])], values[given["train"][1] :][:size]
    is_fft = "min_amplitude" in case["expected"]
    estimator: Estimator = Fft(margin=given["margin"]) if is_fft else MaxValue(margin=given["margin"])
    _check_shape(next_period(estimator, trained, size, 60, exact=True), case["expected"], actual)
    if isinstance(estimator, Fft):
        amplitudes = np.abs(np.fft.fft(trained)) / len(trained)
        assert amplitude_floor(estimator, amplitudes[1 : len(trained) // 2]) == case["expected"]["min_amplitude"]


def default_estimator(case: Case) -> None:
    given, values = case["input"], _values("input0.csv")
    wanted = (given["min_spectrum_items"], given["low_amplitude"], given["margin"])
    found = [
        one
        for one in DEFAULT_ESTIMATORS
        if isinstance(one, Fft) and (one.min_items, one.low_amplitude, one.margin) == wanted
    ]
    estimated = next_period(found[0], values[:10080], 1440, 60, exact=True)
    assert prediction_error(values[10080:], estimated) == pytest.approx(case["expected"]["pe"], abs=1e-8)


def best_of_defaults(case: Case) -> None:
    values, wanted = _values(case["input"]["csv"]), case["expected"]
    best = dsp.best_estimator(values, 1440, 60, dsp.DspOptions(exact=True))
    assert isinstance(best, Fft)
    chosen = (best.min_items, best.low_amplitude, best.margin)
    assert chosen == (wanted["min_spectrum_items"], wanted["low_amplitude"], wanted["margin"])
    estimated = next_period(best, values[:-1440], 1440, 60, exact=True)
    assert prediction_error(values[-1440:], estimated) == pytest.approx(wanted["pe"], abs=1e-8)


def outlier_thresholds(case: Case) -> None:
    values, wanted = _values(case["input"]["csv"]), case["expected"]
    low, high = rank_percentile(values, 0.1), rank_percentile(values, 99.9)
    assert (low, high) == pytest.approx((wanted["p0_1"], wanted["p99_9"]), abs=1e-6)
    counts = (int((values > high).sum()), int((values < low).sum()), len(values))
    assert counts == (wanted["above"], wanted["below"], wanted["n"])


ADAPTERS: dict[str, Callable[[Case], None]] = {
    "period": period,
    "first_week": first_week,
    "on_input0": on_input0,
    "default_estimator": default_estimator,
    "best_of_defaults": best_of_defaults,
    "outlier_thresholds": outlier_thresholds,
}
