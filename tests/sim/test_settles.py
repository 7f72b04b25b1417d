"""Every policy, exact modes included, settles within an hour of constant load near the replicas that it needs."""

from __future__ import annotations

from math import ceil, floor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.kinds import CustomHpa, Scaler, read
from trimtab.kinds.convert import convert
from trimtab.policy import Policy
from trimtab.sim.cluster import run
from trimtab.sim.cluster_spec import ClusterSpec

Manifest = dict[str, Any]
HOUR, QUARTER, STEP_S = 240, 60, 15.0  # steps of 15 s
POD_CORES, TARGET = 0.5, 0.7
REFERENCE = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}}
BOUNDS = {"minReplicas": 1, "maxReplicas": 400}


def whole(version: str, kind: str, spec: Manifest, notes: dict[str, str] | None = None) -> Policy:
    manifest = {"apiVersion": version, "kind": kind, "metadata": {"name": "web", "annotations": notes or {}}}
    found = read(manifest | {"spec": spec})
    assert isinstance(found, Scaler)
    return found.to_policy(0.0)


def hpa(notes: dict[str, str] | None = None) -> Policy:
    spec = {"scaleTargetRef": REFERENCE, "metrics": [CPU], **BOUNDS}
    return whole("autoscaling/v2", "HorizontalPodAutoscaler", spec, notes)


def autoscaler(**spec: Any) -> Policy:
    spec = {"scaleTargetRef": REFERENCE, "metrics": [CPU], **BOUNDS, **spec}
    return whole("trimtab.dev/v1alpha1", "Autoscaler", spec)


def effective(algorithm: Manifest) -> Policy:
    prediction = {"predictionWindowSeconds": 3600, "predictionAlgorithm": algorithm}
    spec = {"scaleTargetRef": REFERENCE, "metrics": [CPU], "prediction": prediction, "scaleStrategy": "Auto", **BOUNDS}
    return whole("autoscaling.crane.io/v1alpha1", "EffectiveHorizontalPodAutoscaler", spec)


def watermarks() -> Policy:
    resource = {"name": "cpu", "highWatermark": "385m", "lowWatermark": "315m", "metricSelector": {"matchLabels": {}}}
    spec = {
        "scaleTargetRef": REFERENCE,
        "algorithm": "average",
        "tolerance": "1m",
        "metrics": [{"type": "Resource", "resource": resource}],
        **BOUNDS,
    }
    return whole("datadoghq.com/v1alpha1", "WatermarkPodAutoscaler", spec)


def replica_models(model: Manifest) -> Policy:
    spec = {"scaleTargetRef": REFERENCE, "metrics": [CPU], "models": [model], **BOUNDS}
    return whole("jamiethompson.me/v1alpha1", "PredictiveHorizontalPodAutoscaler", spec)


def keda() -> Policy:
    trigger = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "70"}}
    spec = {"scaleTargetRef": {"name": "web"}, "maxReplicaCount": 400, "triggers": [trigger]}
    manifest = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "web"}, "spec": spec}
    made = read(convert(manifest, "autoscaler").manifest)
    assert isinstance(made, Scaler)
    return made.to_policy(0.0)


def custom(exact: bool) -> Policy:
    values = {
        "target": {"deployment": "web", "namespace": "default", "value": POD_CORES * TARGET},
        "prometheus": {"url": "http://prometheus", "port": 9090, "query": "avg(q)"},
        "minReplicas": 1,
        "maxReplicas": 400,
    }
    return CustomHpa.from_values(values | ({"exact": True} if exact else {})).to_policy(0.0)


MODELS = ("linear", "seasonal", "holtWinters", "dsp", "percentile", "learned")
EXACT_MODELS = ("linear", "holtWinters", "dsp", "percentile")
POLICIES = {
    "hpa": hpa(),
    "predictive hpa": hpa({"predictive": "true"}),
    "predictive hpa, exact": hpa({"predictive": "true", "trimtab.dev/exact": "true"}),
    **{f"autoscaler, {model}": autoscaler(forecast={"model": model}) for model in MODELS},
    **{f"autoscaler, {model}, exact": autoscaler(forecast={"model": model, "exact": True}) for model in EXACT_MODELS},
    "autoscaler, objective": autoscaler(forecast={"model": "learned"}, objective={"price": 4}),
    "ehpa, dsp": effective({"algorithmType": "dsp", "dsp": {"sampleInterval": "60s", "historyLength": "7d"}}),
    "ehpa, percentile": effective(
        {
            "algorithmType": "percentile",
            "percentile": {"sampleInterval": "60s", "historyLength": "7d", "percentile": "0.99"},
        }
    ),
    "wpa": watermarks(),
    "phpa, linear": replica_models(
        {"type": "Linear", "name": "line", "linear": {"historySize": 6, "lookAhead": 10000}}
    ),
    "scaledobject": keda(),
    "custom-hpa": custom(False),
    "custom-hpa, exact": custom(True),
}


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=5, deadline=None)
@given(
    st.floats(2.0, 30.0), st.floats(0.5, 2.0), st.sampled_from([15.0, 60.0, 135.0, 300.0]), st.sampled_from([0.0, 30.0])
)
def test_constant_load_settles_within_an_hour(
    name: str, cores: float, share: float, startup_s: float, delay_s: float
) -> None:
    """The last quarter of an hour holds one number of replicas, near the load over what a pod carries at its target."""
    need = cores / (POD_CORES * TARGET)
    spec = ClusterSpec(startup_s=startup_s, metric_delay_s=delay_s, pod_capacity=POD_CORES, pod_cores=POD_CORES)
    load = np.full(HOUR + QUARTER, cores)
    found = run(POLICIES[name], load, spec, first_pods=ceil(need * share), step_s=STEP_S)
    last = found.replicas[HOUR:]
    assert len(set(last.tolist())) == 1, last.tolist()
    most = 1.5 if "percentile" in name else 1.13  # Crane's margin of 15 %, in its histogram's bins
    assert floor(need / 1.12) <= last[-1] <= ceil(need * most) + 1, f"{need:.1f} are needed"
