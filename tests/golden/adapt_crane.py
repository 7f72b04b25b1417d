"""Adapters for crane.json. A case that does not name its function is known by the place in Crane that it speaks of."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from tests.golden import adapt_crane_advise as advice
from tests.golden import adapt_recordings as recordings
from tests.golden.harness import Case, Excuse
from trimtab.core.bound import bound
from trimtab.core.bounds_in_force import bounds_at
from trimtab.core.forecast import dsp
from trimtab.core.forecast.dsp import (
    Estimator,
    Fft,
    MaxValue,
    autocorrelation,
    largest_between,
    next_period,
    prediction_error,
)
from trimtab.core.usage.bank import Bank
from trimtab.core.usage.bucket_edges import exponential, linear
from trimtab.core.usage.histogram_checkpoint import read_row, save_row
from trimtab.core.weighted_percentile import PercentileOptions, estimate, rank_percentile, weighted_percentiles
from trimtab.errors import InvalidInput, TrimtabError
from trimtab.kinds import cron, read
from trimtab.policy import Bounds, ScheduledBounds
from trimtab.quantity import parse_duration, parse_quantity
from trimtab.series import Floats, Frame, Series

WEEK, HOUR = 604800, 3600

# --- percentiles and histograms --------------------------------------------------------------------------------------


def rank_rule(case: Case) -> None:
    given = case["input"]["data"]
    if isinstance(given, str):
        first, last = (int(end) for end in given.split(".."))
        given = range(first, last + 1)
    values = np.array(list(given), dtype=float)
    if "error" in case["expected"]:
        with pytest.raises(TrimtabError):
            rank_percentile(values, case["input"]["percent"])
    else:
        assert rank_percentile(values, case["input"]["percent"]) == pytest.approx(case["expected"]["value"])


def _frame(text: str) -> Frame:
    """ "99 x 0.45 + 1 x 0.95" as one row."""
    runs = re.findall(r"(\d+) x ([\d.]+)", text)
    values = [float(value) for count, value in runs for _ in range(int(count))]
    return Frame(("x",), 0.0, 60.0, np.array([values], dtype=float).reshape(1, -1))


def weighted(case: Case) -> None:
    given, wanted = case["input"], case["expected"]
    options = PercentileOptions(
        percentile=given.get("percentile", 0.99),
        bucket_size=given.get("bucket", 0.1),
        max_value=given.get("max", 100.0),
        margin=0.15,
        exact=True,
    )
    frame = _frame(given["samples"])
    assert weighted_percentiles(frame, options)[0] == pytest.approx(wanted["percentile_value"])
    if "with_margin_0.15_milli" in wanted:
        assert int(estimate(frame, options)[0] * 1000) == wanted["with_margin_0.15_milli"]


def published_estimate(case: Case) -> None:
    """One sample in the bucket that the issue's workload lived in, and what its users saw."""
    given, wanted = case["input"], case["expected"]
    size = given.get("bucket", given.get("bucket_bytes", 0.1 if "cpu" in wanted else 104857600.0))
    end = given.get("bucket_end", given.get("bucket_end_bytes", size))
    options = PercentileOptions(bucket_size=size, max_value=1000 * size, margin=given["margin"], exact=True)
    value = estimate(Frame(("x",), 0.0, 60.0, np.array([[end - size / 2]])), options)[0]
    if "cpu" in wanted:
        assert f"{int(value * 1000)}m" == wanted["cpu"]
    else:
        assert int(value) == (wanted.get("memory_bytes") or parse_quantity(wanted["memory"]))


def _bank(samples: dict[float, float], size: float, most: float) -> Bank:
    bank = Bank(linear(most, size), 1)
    for value, weight in samples.items():
        bank.add(0, value, weight)
    return bank


def histogram_percentile(case: Case) -> None:
    bank = _bank(_weights(case, {"1": 1, "2": 2, "3": 3, "4": 4}), 1, 10)
    assert bank.percentiles([case["input"]["percentile"]])[0, 0] == case["expected"]["value"]


def _weights(case: Case, written: dict[str, float]) -> dict[float, float]:
    """The case's weight of each value; some folders only say in words what is written here."""
    samples = case["input"].get("samples")
    return {float(value): weight for value, weight in (samples if isinstance(samples, dict) else written).items()}


def empty_histogram(case: Case) -> None:
    assert _bank({}, 1, 10).percentiles([case["input"]["percentile"]])[0, 0] == case["expected"]["value"]


def out_of_bounds(case: Case) -> None:
    written = {"0.1": 0.1, "0.2": 0.2}
    if "1.0" in case["input"]["samples"]:
        written |= {"0.0": 0.1, "1.0": 0.2}
    found = _bank(_weights(case, written), 0.1, 1.0).percentiles([case["input"]["percentile"]])[0, 0]
    assert found == pytest.approx(case["expected"]["value"])


def bucket_options(case: Case) -> None:
    given, wanted = case["input"], case["expected"]
    if "bucket" in given:
        buckets = linear(given["max"], given["bucket"])
    else:
        buckets = exponential(given["max"], given["first_bucket"], given["ratio"])
        assert buckets.starts == pytest.approx(wanted["starts"])
    assert len(buckets) == wanted["num_buckets"]
    for name, value in wanted.items():
        if name.startswith("bucket_of_"):
            assert buckets.find(float(name.removeprefix("bucket_of_"))) == value
        if name.startswith("start_"):
            assert buckets.starts[int(name.removeprefix("start_"))] == pytest.approx(value)


def _decaying(case: Case, written: list[list[float]]) -> Bank:
    """Values, weights and hours of the case, or those written here where it only has them in words."""
    bank = Bank(linear(10.0, 1.0), 1, half_life_s=HOUR)
    for value, weight, hours in case["input"].get("samples", written):
        bank.add(0, value, weight, hours * HOUR)
    return bank


def decaying_percentile(case: Case) -> None:
    bank = _decaying(case, [[n, n, n] for n in (1, 2, 3, 4)])
    assert bank.percentiles([case["input"]["percentile"]])[0, 0] == case["expected"]["value"]


def simple_decay(case: Case) -> None:
    bank = _decaying(case, [[2, 1000, 0], [1, 1, 20]])
    assert list(bank.percentiles(case["input"]["percentiles"])[:, 0]) == case["expected"]["values"]


def longterm_decay(case: Case) -> None:
    bank = _decaying(case, [[2, 1, 0], [1, 1, 101]])
    assert bank.percentiles([case["input"]["percentile"]])[0, 0] == case["expected"]["value"]


def checkpoint_saved(case: Case) -> None:
    saved = save_row(_bank(_weights(case, {}), 1, 10), 0)
    assert saved["totalWeight"] == case["expected"]["total"]
    assert list(saved["bucketWeights"].values()) == case["expected"]["weights"]


def checkpoint_loaded(case: Case) -> None:
    given, bank = case["input"], _bank({}, 1, 10)
    bank.put(0, *read_row(bank, {"bucketWeights": given["weights"], "totalWeight": given["total"]}))
    assert list(bank.weights[0, :2]) == [case["expected"]["bucket0"], case["expected"]["bucket1"]]


# --- DSP -------------------------------------------------------------------------------------------------------------


def estimate_signal(case: Case) -> None:
    given = case["input"]
    estimator: Estimator = MaxValue(margin=given["margin"])
    if "min_items" in given:
        known = {"max_items": given.get("max_items", 100)} | {"low_amplitude": given["low_amplitude"]}
        estimator = Fft(min_items=given["min_items"], margin=given["margin"], **known)
    signal, step_s = np.array(given["samples"], dtype=float), given.get("sample_interval_s", 60)
    found = next_period(estimator, signal, given["period_samples"], step_s, exact=True)
    assert found == pytest.approx(np.array(case["expected"]["samples"]), abs=2e-6)


def mirrored_half(case: Case) -> None:
    """Upstream halves the weak slow tone; exact repeats it, the default does not."""
    given, t = case["input"], np.arange(2880)
    signal = 5 + 3 * np.cos(2 * np.pi * 2 * t / 2880) + 0.4 * np.cos(2 * np.pi * 6 * t / 2880)
    estimator = Fft(min_items=given["min_items"], max_items=given["max_items"], low_amplitude=given["low_amplitude"])
    for exact, wanted in ((True, "crane_value_at_first_predicted_sample"), (False, "true_value")):
        found = next_period(estimator, signal, given["period_samples"], 60, exact)
        assert found[0] == pytest.approx(case["expected"][wanted], abs=1e-9)


def circular_correlation(case: Case) -> None:
    x = np.arange(1000) / 1000
    signal = sum((np.sin(2 * np.pi * 5 * h * x) / h for h in (1, 3, 5, 7)), np.zeros(1000))
    found = autocorrelation(signal)
    assert found[case["input"]["lag"]] == pytest.approx(np.array(case["expected"]["acf"]), abs=1e-9)


def preprocess(case: Case) -> None:
    given, wanted = case["input"], case["expected"]
    if "samples_in" in given:
        times = np.arange(given["samples_in"]) * 60.0
        kept = dsp.newest_units(Series(times, times), 60, given["unit_s"])
        assert (len(kept), kept.times[-1]) == (wanted["samples"], times[-1])
        return
    minutes, values = (np.array(column) for column in zip(*given["points_min_before_end"], strict=True))
    found = dsp.clean(Series(minutes * 60.0, values), given["interval_s"], given["unit_s"])
    assert len(found) == wanted["samples"]
    assert (found.values[0], found.values[-1]) == (wanted["first"], wanted["last"])
    assert np.diff(found.values) == pytest.approx(wanted["step_value"])
    assert set(np.diff(found.times)) == {wanted["step_s"]}


def outliers(case: Case) -> None:
    given = case["input"]
    values = np.random.default_rng(7).uniform(0, 1, given["n"])
    for index, value in given["spikes"].items():
        values[int(index)] = value
    found = dsp.without_outliers(values)
    for index in case["expected"]["equals_previous"]:
        assert found[index] == found[index - 1] != values[index]


def truncate(case: Case) -> None:
    given, wanted = case["input"], case["expected"]
    found = recordings.whole_units(np.zeros(given["samples"]), int(parse_duration(given["unit"])), 60)
    assert len(found) == wanted["samples"] == wanted["periods"] * WEEK / 60


def config_limits(case: Case) -> None:
    step_s, history_s = (parse_duration(case["input"][key]) for key in ("sampleInterval", "historyLength"))
    if not case["expected"]["error"]:
        dsp.check(step_s, history_s)
        return
    with pytest.raises(InvalidInput):
        dsp.check(step_s, history_s)


def window_maximum(case: Case) -> None:
    given = case["input"]
    times, values = (np.array(column, dtype=float) for column in zip(*given["samples"], strict=True))
    found = largest_between(times, values, given["now"], given["now"] + given["window_s"])
    assert found == case["expected"]["max"]


# --- accuracy --------------------------------------------------------------------------------------------------------


def _signal(given: Any) -> Floats:
    """A list, or "y", "1.1y", "0.9y" of y = sin(4 pi x) + 3, x = 0, 0.01 ... 0.99."""
    if isinstance(given, list):
        return np.array(given, dtype=float)
    factor = 1.0 if given.startswith("y") else float(given.removesuffix("y"))
    return factor * (np.sin(4 * np.pi * np.arange(100) / 100) + 3)


def accuracy(case: Case) -> None:
    given, wanted = case["input"], case["expected"]
    if "x" in given:
        assert prediction_error(np.ones(1), np.array([1.0 - given["x"]])) == pytest.approx(wanted["value"])
        return
    actual, predicted = _signal(given["actual"]), _signal(given["predicted"])
    if "mae" in wanted:
        near_zero = prediction_error(np.append(actual, 0.0), np.append(predicted, 0.0))
        assert near_zero * (len(actual) + 1) / len(actual) == pytest.approx(wanted["mae"])
    else:
        assert prediction_error(actual, predicted) == pytest.approx(wanted["pe"])


# --- cron ------------------------------------------------------------------------------------------------------------


def cron_active(case: Case) -> None:
    given, wanted = case["input"], case["expected"]
    now = given["now"] if "-" in given["now"] else f"2022-02-17 {given['now']}:00"
    at = datetime.strptime(now, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()
    # One upstream test wants the end inside the window, and cannot fail; the code leaves it out, and so do we.
    expected = wanted.get("active", wanted.get("code_gives_active"))
    assert cron.active(given["start"], given["end"], cron.zone_of(None), at) is expected


def cron_floor(case: Case) -> None:
    """A cron target is a floor while its window is open."""
    given = case["input"]
    spans = tuple(
        ScheduledBounds(name=str(index), start=0.0, end=10.0, min_replicas=target)
        for index, target in enumerate(given["active_targets"])
    )
    bounds = Bounds(min_replicas=given["min_replicas"], max_replicas=1000, spans=spans)
    assert bounds_at(bounds, 5.0).least == case["expected"]["metric"]


def cron_zone(case: Case) -> None:
    """Resolved: "Local" is UTC, as the documents say, and an unknown zone is refused instead of becoming UTC."""
    name, wanted = case["input"]["timezone"], case["expected"]["location"]
    if name == "unknown":
        with pytest.raises(InvalidInput, match="timezone not valid"):
            cron.zone_of(name)
        return
    assert str(cron.zone_of(name)) == ("UTC" if wanted == "Local" else wanted)


def cron_admission(case: Case) -> None:
    names = ("name", "timezone", "start", "end")
    crons = [dict(zip(names, texts, strict=True)) | {"targetReplicas": 1} for texts in case["input"]["crons"]]
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    manifest = {
        "apiVersion": "autoscaling.crane.io/v1alpha1",
        "kind": "EffectiveHorizontalPodAutoscaler",
        "metadata": {"name": "ehpa"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 5, "crons": crons},
    }
    if not case["expected"]["error"]:
        read(manifest)
        return
    with pytest.raises(InvalidInput):
        read(manifest)


def cron_beats_tolerance(case: Case) -> None:
    """Resolved: upstream's 22 stays for HPA's tolerance; our floor is a bound, so 24 are 24."""
    given = case["input"]
    span = ScheduledBounds(name="office", start=0.0, end=10.0, min_replicas=given["cron_target"])
    limits = bounds_at(Bounds(min_replicas=1, max_replicas=100, spans=(span,)), 5.0)
    assert bound(given["current_replicas"], limits, []) == given["cron_target"]


# The first of these that occurs in the source of a case is its key.
PLACES: dict[str, Callable[[Case], None]] = {
    "montanaflynn": rank_rule,
    "TestDecayingHistogramPercentiles": decaying_percentile,
    "TestSimpleDecay": simple_decay,
    "TestLongtermDecay": longterm_decay,
    "TestPercentilesEmptyHistogram": empty_histogram,
    "TestPercentileOutOfBounds": out_of_bounds,
    "TestPercentiles": histogram_percentile,
    "TestLinearHistogramOptions": bucket_options,
    "TestExponentialHistogramOptions": bucket_options,
    "TestHistogramSaveToCheckpoint": checkpoint_saved,
    "TestHistogramLoadFromCheckpoint": checkpoint_loaded,
    "issue #515": published_estimate,
    "pkg/prediction/percentile": weighted,
    "TestSignal_FindPeriod": recordings.period,
    "TestSignal_Truncate": truncate,
    "dsp/test_data": recordings.period,
    "TestFftEstimator": recordings.first_week,
    "fft on input0": recordings.on_input0,
    "maxValue on input0": recordings.on_input0,
    "default estimators on input0": recordings.default_estimator,
    "bestEstimator on input0": recordings.best_of_defaults,
    "mirror-half": mirrored_half,
    "estimators.go fft": estimate_signal,
    "estimators.go maxValue": estimate_signal,
    "TestAutoCorrelation": circular_correlation,
    "TestPreProcessTimeSeries": preprocess,
    "TestRemoveExtremeOutliers": outliers,
    "removeExtremeOutliers on input14": recordings.outlier_thresholds,
    "makeInternalConfig": config_limits,
    "accuracy": accuracy,
    "cron_trigger": cron_active,
    "GetCronExternalMetrics": cron_floor,
    "TestGetCronScaleLocation": cron_zone,
    "TestValidateCronSpecs": cron_admission,
    "issue #836": cron_beats_tolerance,
    **advice.PLACES,
    **advice.RESOLVED,
}
EXCUSED: dict[str, Excuse] = {
    **advice.INTERNALS,
    **dict.fromkeys((*advice.RESOLVED, "TestGetCronScaleLocation", "issue #836"), Excuse.RESOLVED),
    "aggregate_signals": Excuse.INTERNALS,  # who asked for which query
    "TestMetricSelector_String": Excuse.INTERNALS,  # the key of its query cache
    "TestEHPACronMetricName": Excuse.INTERNALS,  # the name of an external metric we do not publish
    "TestSignal_*": Excuse.INTERNALS,  # a normalisation that no prediction uses
}
ADAPTERS: dict[str, Callable[[Case], None]] = {
    "window maximum": window_maximum,
    **PLACES,
    **{check.__name__: check for check in (*PLACES.values(), window_maximum)},
}


def key_of(case: Case) -> str:
    if "fn" in case:
        return str(case["fn"])
    if "max over [now, now+window]" in case["what"]:
        return "window maximum"
    return next((place for place in (*PLACES, *EXCUSED) if place in case["source"]), "unknown")
