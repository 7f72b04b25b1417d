"""Watermarks and predictive HPAs: read with their own defaults, meaning what they mean there, and converted."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from trimtab.errors import InvalidInput
from trimtab.kinds import Scaler, read
from trimtab.kinds.convert import convert
from trimtab.kinds.ignored import warnings
from trimtab.policy import Cooldown, Delay, Mode, Policy, Rate, Stabilise, Total, TotalAverage, Velocity, Watermark

NOW = 1_700_000_000.0
Manifest = dict[str, Any]
WPA = """
apiVersion: datadoghq.com/v1alpha1
kind: WatermarkPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 9
  minAvailableReplicaPercentage: 60
  metrics:
  - {type: External, external: {metricName: latency, highWatermark: 400m, lowWatermark: 100m}}
"""
PHPA = """
apiVersion: jamiethompson.me/v1alpha1
kind: PredictiveHorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 9
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}
  models:
  - {type: Linear, name: line, linear: {historySize: 6, lookAhead: 10000}}
"""
PLAIN = {"type": "Linear", "name": "line", "linear": {"historySize": 6, "lookAhead": 10000}}


def policy(manifest: Manifest) -> Policy:
    obj = read(manifest)
    assert isinstance(obj, Scaler)
    return obj.to_policy(NOW)


def changed(text: str, **spec: Any) -> Manifest:
    manifest: Manifest = yaml.safe_load(text)
    manifest["spec"] |= spec
    return manifest


def test_a_watermark_autoscaler_has_its_own_defaults() -> None:
    made = policy(changed(WPA))
    (signal,) = made.signals
    assert isinstance(signal, Watermark)
    assert (signal.low, signal.high, signal.tolerance, signal.average) == (0.1, 0.4, 0.1, False)
    assert signal.min_available_percent == 60
    assert made.settle == (Velocity(), Delay(), Cooldown(up_s=60, down_s=300, any_direction=True))
    assert made.absence.zero_is_missing
    assert policy(changed(WPA, dryRun=True)).admit.mode is Mode.SHADOW


@pytest.mark.parametrize(
    "change, path",
    [
        ({"minReplicas": 10}, "spec.minReplicas"),
        ({"metrics": []}, "spec.metrics"),
        (
            {"metrics": [{"type": "External", "external": {"metricName": "x"}}]},
            "spec.metrics[0].external.highWatermark",
        ),
        (
            {"metrics": [{"type": "External", "external": {"metricName": "x", "highWatermark": 1, "lowWatermark": 2}}]},
            "spec.metrics[0].external.lowWatermark",
        ),
    ],
)
def test_what_watermarks_cannot_mean_is_refused(change: Manifest, path: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(changed(WPA, **change))
    assert caught.value.path == path


@pytest.mark.parametrize("algorithm, kind", [("absolute", Total), ("average", TotalAverage)])
def test_watermarks_become_a_target_with_a_quiet_zone(algorithm: str, kind: type) -> None:
    made, lost = convert(changed(WPA, algorithm=algorithm, scaleDownLimitFactor=0), "autoscaler")
    (signal,) = policy(made).signals
    assert isinstance(signal, kind)
    assert isinstance(signal, Total | TotalAverage)
    assert (signal.target, signal.tolerance.up, signal.tolerance.down) == (0.4, 0.1, 0.775)
    behavior = made["spec"]["behavior"]
    assert (behavior["scaleUp"]["cooldownSeconds"], behavior["scaleDown"]["selectPolicy"]) == (60, "Disabled")
    assert {loss.path for loss in lost} == {
        "spec.metrics[0].external.lowWatermark",
        "spec.upscaleForbiddenWindowSeconds",
        "spec.tolerateZero",
        "spec.minAvailableReplicaPercentage",
    }


def test_a_mark_for_the_sum_of_a_resource_is_a_lost_signal() -> None:
    resource = {"name": "cpu", "highWatermark": "8", "lowWatermark": "4"}
    manifest = changed(WPA, metrics=[{"type": "Resource", "resource": resource}])
    assert convert(manifest, "autoscaler").loses_signal
    manifest["spec"]["algorithm"] = "average"
    assert not convert(manifest, "autoscaler").loses_signal


def test_a_predictive_hpa_is_an_hpa_with_a_forecast() -> None:
    made = policy(changed(PHPA, tolerance=0.2, downscaleStabilization=60))
    assert made.forecast is not None
    assert (made.forecast.model, made.forecast.horizon_s, made.forecast.options["history_size"]) == ("linear", 10.0, 6)
    stabilise, rate = made.settle
    assert isinstance(stabilise, Stabilise)
    assert isinstance(rate, Rate)
    assert (stabilise.down_s, rate.up.policies[0].period_s) == (60.0, 60)
    assert made.signals[0].tolerance.up == 0.2  # type: ignore[union-attr]


@pytest.mark.parametrize("behavior", [None, {}, {"scaleDown": {"stabilizationWindowSeconds": 0}}])
def test_a_predictive_hpa_keeps_the_rates_of_a_minute_where_behavior_is_silent(behavior: Manifest | None) -> None:
    """Its controller fills in 60 s for each direction that is not written, where HPA fills in 15 s."""
    manifest = changed(PHPA, behavior=behavior)
    before, after = policy(manifest), policy(convert(manifest, "autoscaler").manifest)
    assert before.settle == after.settle
    _, rate = after.settle
    assert isinstance(rate, Rate)
    assert [(one.value, one.period_s) for one in (*rate.up.policies, *rate.down.policies)] == [
        (4, 60),
        (100, 60),
        (100, 60),
    ]


def test_both_look_as_far_ahead_as_before() -> None:
    linear = {"type": "Linear", "name": "line", "linear": {"historySize": 6, "lookAhead": 1500}}
    season = {"trend": "add", "seasonal": "add", "seasonalPeriods": 5760, "storedSeasons": 4}
    models = [linear, {"type": "HoltWinters", "name": "hw", "holtWinters": season}]
    for model in models:
        manifest = changed(PHPA, models=[model])
        before, after = policy(manifest), policy(convert(manifest, "autoscaler").manifest)
        assert before.forecast is not None and after.forecast is not None
        assert before.forecast.horizon_s == after.forecast.horizon_s


@pytest.mark.parametrize(
    "spec, path",
    [
        ({"syncPeriod": 10000}, "spec.syncPeriod"),
        ({"behavior": {}, "downscaleStabilization": 60}, "spec.downscaleStabilization"),
        ({"downscaleStabilization": 7200}, "spec.downscaleStabilization"),
        (
            {"models": [{"type": "Linear", "name": "a", "linear": {"historySize": 6, "lookAhead": 7_200_000}}]},
            "spec.models[0].linear.lookAhead",
        ),
        (
            {
                "models": [
                    {"type": "Linear", "name": "a", "perSyncPeriod": 4, "linear": {"historySize": 6, "lookAhead": 1}}
                ]
            },
            "spec.models[0].perSyncPeriod",
        ),
    ],
)
def test_what_a_predictive_hpa_loses_is_named(spec: Manifest, path: str) -> None:
    assert path in [loss.path for loss in convert(changed(PHPA, **spec), "autoscaler").lost]


def test_what_watermarks_lose_is_named() -> None:
    selector = {"matchLabels": {"app": "web"}}
    metrics = [
        {"type": "Resource", "resource": {"name": "cpu", "highWatermark": 4, "metricSelector": selector}},
        {"type": "External", "external": {"metricName": "rps", "highWatermark": 9, "lowWatermark": 3}},
    ]
    manifest = changed(WPA, algorithm="average", metrics=metrics, scaleUpLimitFactor="12.5")
    manifest["spec"] |= {"upscaleDelayAboveWatermarkSeconds": 4000, "downscaleDelayBelowWatermarkSeconds": 4000}
    manifest["metadata"]["annotations"] = {"wpa.datadoghq.com/lifecycle-control.enabled": "true"}
    made, lost = convert(manifest, "autoscaler")
    assert "annotations" not in made["metadata"]
    assert {loss.path for loss in lost} >= {
        'metadata.annotations["wpa.datadoghq.com/lifecycle-control.enabled"]',
        "spec.metrics",
        "spec.metrics[0].resource.metricSelector",
        "spec.metrics[0].resource.lowWatermark",
        "spec.scaleUpLimitFactor",
        "spec.upscaleDelayAboveWatermarkSeconds",
        "spec.downscaleDelayBelowWatermarkSeconds",
    }


def test_a_predictive_hpa_converts_and_names_what_it_cannot() -> None:
    season = {"trend": "add", "seasonal": "add", "seasonalPeriods": 240, "storedSeasons": 4, "alpha": 0.9}
    models = [*changed(PHPA)["spec"]["models"], {"type": "HoltWinters", "name": "hw", "holtWinters": season}]
    made, lost = convert(changed(PHPA, models=models, decisionType="mean", tolerance=0.2), "autoscaler")
    assert made["spec"]["forecast"] == {"model": "linear", "horizon": 10}
    assert made["spec"]["behavior"]["scaleUp"]["tolerance"] == 0.2
    assert {loss.path for loss in lost} == {
        "spec.decisionType",
        "spec.models[1]",
        "spec.models[1].holtWinters.storedSeasons",
        "spec.models[0].linear.historySize",
        "spec.cpuInitializationPeriod",
    }
    made, lost = convert(changed(PHPA, models=models[1:]), "autoscaler")
    assert made["spec"]["forecast"]["model"] == "holtWinters"
    assert "spec.models[0].holtWinters.seasonalPeriods" in [loss.path for loss in lost]


def test_a_model_without_its_settings_is_refused() -> None:
    with pytest.raises(InvalidInput, match="whichever type names"):
        read(changed(PHPA, models=[{"type": "HoltWinters", "name": "hw"}]))


def test_what_nobody_acts_on_is_said_where_it_is_linted() -> None:
    season = {"trend": "add", "seasonal": "add", "seasonalPeriods": 6, "storedSeasons": 4, "dampedTrend": True}
    models = [{"type": "HoltWinters", "name": "hw", "perSyncPeriod": 2, "holtWinters": season}, PLAIN]
    spec = {"models": models, "decisionType": "mean", "behavior": {}, "downscaleStabilization": 60}
    assert {warned.path for warned in warnings(read(changed(PHPA, **spec)))} == {
        "spec.decisionType",
        "spec.downscaleStabilization",
        "spec.models[1]",
        "spec.models[0].perSyncPeriod",
        "spec.models[0].holtWinters.seasonalPeriods",
        "spec.models[0].holtWinters.storedSeasons",
        "spec.models[0].holtWinters.dampedTrend",
    }
    resource = {"name": "cpu", "highWatermark": 4, "metricSelector": {"matchLabels": {"app": "web"}}}
    watermarks = read(changed(WPA, metrics=[{"type": "Resource", "resource": resource}]))
    assert [warned.path for warned in warnings(watermarks)] == ["spec.metrics[0].resource.metricSelector"]


def test_a_misspelt_coefficient_is_refused_with_the_right_name() -> None:
    season = {"trend": "add", "seasonal": "add", "seasonalPeriods": 6, "storedSeasons": 4, "alhpa": 0.9}
    with pytest.raises(InvalidInput, match="did you mean alpha"):
        read(changed(PHPA, models=[{"type": "HoltWinters", "name": "hw", "holtWinters": season}]))


def test_a_misspelt_annotation_is_told_what_was_meant() -> None:
    manifest = changed(PHPA)
    manifest["metadata"]["annotations"] = {"trimtab.dev/pause": "true"}
    assert ["did you mean trimtab.dev/paused?" in warned.why for warned in warnings(read(manifest))] == [True]
