"""EffectiveHorizontalPodAutoscaler: crons, prediction, Preview."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from tests.kinds import generate
from trimtab.core.bounds_in_force import bounds_at
from trimtab.core.forecast import forecast_rows, options_of
from trimtab.core.forecast.dsp import Fft, MaxValue
from trimtab.core.model import Forecast
from trimtab.core.weighted_percentile import PercentileOptions
from trimtab.errors import InvalidObject
from trimtab.kinds import EffectiveHpa, read
from trimtab.kinds.convert import convert
from trimtab.kinds.ignored import warnings
from trimtab.kinds.prediction import DEFAULT_FIRST, DEFAULT_GROWTH, DEFAULT_MOST
from trimtab.policy import Admit, ForecastChoice, Mode, Policy
from trimtab.series import Frame

CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
NOON = 1_700_049_600.0  # 2023-11-15 12:00 UTC


def ehpa(**spec: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": "autoscaling.crane.io/v1alpha1",
        "kind": "EffectiveHorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 100} | spec,
    }


def compiled(at: float = NOON, **spec: Any) -> Policy:
    obj = read(ehpa(**spec))
    assert isinstance(obj, EffectiveHpa)
    return obj.to_policy(at)


@settings(max_examples=100, deadline=None)
@given(written=generate.EHPAS)
def test_it_comes_back_as_written_and_always_compiles(written: dict[str, Any]) -> None:
    obj = read(written)
    assert obj.manifest() == written
    assert isinstance(obj, EffectiveHpa)
    obj.to_policy(NOON)


def test_without_extras_it_is_the_hpa_it_contains() -> None:
    hpa = ehpa() | {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    assert compiled() == read(hpa).to_policy(NOON)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "targets, floor",
    [([], 2), ([1], 2), ([10], 10), ([10, 80], 80), ([200], 100)],
    ids=["none", "low", "one", "two", "max"],
)
def test_the_floor_is_the_highest_active_cron_never_below_min_nor_above_max(targets: list[int], floor: int) -> None:
    crons = [
        {"name": f"c{i}", "start": "0 9 * * *", "end": "0 15 * * *", "targetReplicas": n} for i, n in enumerate(targets)
    ]
    policy = compiled(crons=crons)
    assert bounds_at(policy.bounds, NOON).least == floor
    assert bounds_at(policy.bounds, NOON + 3 * 3600).least == 2


def test_crons_without_metrics_decide_alone() -> None:
    """Crane makes one metric of them, and no other: CPU is not looked at."""
    crons = [
        {"name": "day", "start": "0 9 * * *", "end": "0 15 * * *", "targetReplicas": 10},
        {"name": "lunch", "start": "0 11 * * *", "end": "0 13 * * *", "targetReplicas": 30},
        {"name": "low", "start": "0 11 * * *", "end": "0 20 * * *", "targetReplicas": 1},
    ]
    policy = compiled(crons=crons)
    assert policy.signals == ()
    hours = {hour: bounds_at(policy.bounds, NOON + 3600 * (hour - 12)) for hour in (8, 9, 12, 13, 15, 19)}
    wanted = {hour: (found.least, found.most) for hour, found in hours.items()}
    assert wanted == {8: (2, 2), 9: (10, 10), 12: (30, 30), 13: (10, 10), 15: (2, 2), 19: (2, 2)}
    assert (hours[12].least_from, hours[15].most_from) == ("lunch", "no schedule")
    assert compiled(crons=crons, metrics=[CPU]).signals and compiled(crons=[]).signals


def test_crons_decide_alone_while_none_of_them_is_near() -> None:
    yearly = {"name": "new year", "start": "0 0 1 1 *", "end": "0 0 2 1 *", "targetReplicas": 30}
    policy = compiled(crons=[yearly])
    assert policy.signals == ()
    assert bounds_at(policy.bounds, NOON)[:2] == (2, 2)


def test_crons_alone_stay_alone_there_and_back() -> None:
    cron = {"name": "day", "timezone": "UTC", "start": "0 9 * * *", "end": "0 15 * * *", "targetReplicas": 10}
    written = ehpa(crons=[cron])
    made = convert(written, "autoscaler")
    assert made.lost == []
    (metric,) = made.manifest["spec"]["metrics"]
    assert metric["prometheus"]["query"] == "vector(0)"
    assert convert(made.manifest, "ehpa").manifest["spec"] == written["spec"]
    assert convert(written, "hpa").loses_signal, "an HPA would follow CPU"


def test_a_cron_over_midnight_in_its_own_zone() -> None:
    night = {
        "name": "night",
        "timezone": "Asia/Shanghai",
        "start": "0 22 * * *",
        "end": "0 6 * * *",
        "targetReplicas": 9,
    }
    bounds = compiled(crons=[night]).bounds
    ten_at_night = NOON + 2 * 3600
    assert [bounds_at(bounds, ten_at_night + hours * 3600).least for hours in (-1, 0, 7, 8)] == [2, 9, 9, 2]


def test_preview_is_shadow_and_pins_what_is_asked() -> None:
    assert compiled(scaleStrategy="Preview").admit == Admit(mode=Mode.SHADOW)
    assert compiled(scaleStrategy="Preview", specificReplicas=5).admit == Admit(mode=Mode.SHADOW, pin=5)
    assert compiled(specificReplicas=5).admit == Admit(mode=Mode.AUTO)
    assert [one.path for one in warnings(read(ehpa(specificReplicas=5)))] == ["spec.specificReplicas"]


def test_a_query_in_an_annotation_is_answered_with_a_warning() -> None:
    manifest = ehpa()
    manifest["metadata"]["annotations"] = {"metric-query.autoscaling.crane.io/resource.cpu": "sum(up)"}
    (warned,) = warnings(read(manifest))
    assert warned.path == 'metadata.annotations["metric-query.autoscaling.crane.io/resource.cpu"]'


def test_prediction_becomes_an_forecast() -> None:
    dsp = {"algorithmType": "dsp", "dsp": {"sampleInterval": "60s", "historyLength": "7d"}}
    assert compiled(prediction={"predictionAlgorithm": dsp}).forecast == ForecastChoice(
        model="dsp", horizon_s=3600, options={"history_s": 7 * 86400.0}
    )
    percentile = {"algorithmType": "percentile", "percentile": {"percentile": "0.95", "marginFraction": "0.15"}}
    prediction = {"predictionWindowSeconds": 600, "predictionAlgorithm": percentile}
    assert compiled(prediction=prediction).forecast == ForecastChoice(
        model="percentile", horizon_s=600, options={"percentile": 0.95, "margin": 0.15}
    )


def test_estimators_and_histograms_are_what_the_models_are_given() -> None:
    """Each setting arrives in the model's own options, and changes what it says."""
    estimators = {
        "maxValue": [{"marginFraction": "0.5"}],
        "fft": [{"lowAmplitudeThreshold": "0.05", "highFrequencyThreshold": "0.01", "minNumOfSpectrumItems": 9}],
    }
    forecast = compiled(prediction=_prediction("dsp", {"estimators": estimators})).forecast
    assert forecast is not None
    assert options_of(forecast).estimators == (
        MaxValue(margin=0.5),
        Fft(low_amplitude=0.05, high_frequency_hz=0.01, min_items=9),
    )
    histogram = {"maxValue": "10", "bucketSize": "0.5", "halfLife": "7d", "epsilon": "0.001"}
    forecast = compiled(prediction=_prediction("percentile", {"histogram": histogram})).forecast
    assert forecast is not None
    wanted = PercentileOptions(max_value=10, bucket_size=0.5, half_life_s=7 * 86400, epsilon=0.001)
    assert options_of(forecast) == wanted
    load = Frame(("web",), 0.0, 60.0, np.full((1, 1440), 1.2))
    (found,) = forecast_rows(forecast, load, 60.0, 1440 * 60.0)
    assert isinstance(found, Forecast) and found.at_quantile(0.5) == 1.5, "the end of the bucket from 1.0 to 1.5"


def _prediction(algorithm: str, settings: dict[str, Any]) -> dict[str, Any]:
    return {"predictionAlgorithm": {"algorithmType": algorithm, algorithm: settings}}


@pytest.mark.parametrize(
    "histogram, path",
    [
        ({"maxValue": "100", "firstBucketSize": "1e-7", "bucketSizeGrowthRatio": "1e-7"}, "bucketSizeGrowthRatio"),
        ({"bucketSizeGrowthRatio": "1e-30"}, "bucketSizeGrowthRatio"),
        ({"firstBucketSize": "1e13"}, "firstBucketSize"),
        pytest.param({"bucketSize": "0"}, "bucketSize", id="no size at all"),
        pytest.param({"bucketSize": "0.1"}, "maxValue", id="endless"),
        pytest.param({"bucketSize": "0.001", "maxValue": "1000000"}, "bucketSize", id="a billion buckets"),
        pytest.param({"halfLife": "0s"}, "halfLife", id="nothing is remembered"),
    ],
)
def test_histograms_that_cannot_work_are_refused(histogram: dict[str, str], path: str) -> None:
    with pytest.raises(InvalidObject) as caught:
        read(ehpa(prediction=_prediction("percentile", {"histogram": histogram})))
    assert caught.value.path == f"spec.prediction.predictionAlgorithm.percentile.histogram.{path}"


@pytest.mark.parametrize(
    "dsp, path", [({"sampleInterval": "61m"}, "sampleInterval"), ({"historyLength": "47h"}, "historyLength")]
)
def test_dsp_settings_that_cannot_work_are_refused(dsp: dict[str, str], path: str) -> None:
    algorithm = {"algorithmType": "dsp", "dsp": dsp}
    with pytest.raises(InvalidObject) as caught:
        read(ehpa(prediction={"predictionAlgorithm": algorithm}))
    assert caught.value.path == f"spec.prediction.predictionAlgorithm.dsp.{path}"


@pytest.mark.parametrize(
    "crons, path",
    [
        ([("c", "XXX", "0 0 ? * *", "0 6 ? * *")], "spec.crons[0].timezone"),
        ([("c", "UTC", "", "0 6 ? * *")], "spec.crons[0].start"),
        ([("c", "UTC", "0 0 ? * *", "")], "spec.crons[0].end"),
        ([("c", "UTC", "0 0 ? * *", "0 6 ? * *"), ("c", "UTC", "0 6 ? * *", "0 9 ? * *")], "spec.crons"),
        ([("c", "UTC", "0 0 ? * *", "0 6 ? * *"), ("C", "UTC", "0 0 ? * *", "0 6 ? * *")], "spec.crons"),
    ],
)
def test_crons_that_cannot_be_meant_are_refused(crons: list[tuple[str, ...]], path: str) -> None:
    written = [
        {"name": name, "timezone": zone, "start": start, "end": end, "targetReplicas": 3}
        for name, zone, start, end in crons
    ]
    with pytest.raises(InvalidObject) as caught:
        read(ehpa(crons=written))
    assert caught.value.path == path


def test_growing_buckets_win_over_those_of_one_size_as_upstream_reads_them() -> None:
    """As Crane's own pages print a histogram: with every field there is, and an epsilon of 1e-10."""
    histogram = {"maxValue": "10000.0", "epsilon": "1e-10", "halfLife": "12h", "bucketSize": "10"}
    growing = histogram | {"firstBucketSize": "40", "bucketSizeGrowthRatio": "1.5"}
    for written, equal in ((histogram, 10.0), (growing, None)):
        forecast = compiled(prediction=_prediction("percentile", {"histogram": written})).forecast
        assert isinstance(forecast, ForecastChoice)
        assert (forecast.options.get("bucket_size"), forecast.options["epsilon"]) == (equal, 1e-10)
    obj = read(ehpa(prediction=_prediction("percentile", {"histogram": growing})))
    path = "spec.prediction.predictionAlgorithm.percentile.histogram.bucketSize"
    assert path in [warned.path for warned in warnings(obj)]


def test_the_buckets_that_are_counted_are_the_models() -> None:
    usual = PercentileOptions()
    assert (usual.max_value, usual.first_bucket_size, usual.growth) == (DEFAULT_MOST, DEFAULT_FIRST, DEFAULT_GROWTH)
