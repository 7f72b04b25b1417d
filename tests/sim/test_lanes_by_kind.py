"""Whatever kind a policy is written as, and in whatever mode: where the lane takes it, it does as decide() does."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.sim.test_numba_engine import first_difference
from trimtab.kinds import CustomHpa, Scaler, read
from trimtab.kinds.convert import convert
from trimtab.policy import Policy
from trimtab.sim.program import uncovered

REFERENCE = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
Manifest = dict[str, Any]

targets = st.sampled_from(["1", "700m", "3"])
thresholds = st.sampled_from(["1", "0.7", "3"])  # KEDA's are plain numbers
UNTIL = "1970-01-01T00:05:00Z"
notes: st.SearchStrategy[dict[str, str]] = st.sampled_from(
    [
        {},
        {},
        {},
        {"trimtab.dev/pin": "7"},
        {"trimtab.dev/pin": "7", "trimtab.dev/pin-until": UNTIL},
        {"trimtab.dev/paused": "true"},
        {"trimtab.dev/paused-until": UNTIL},
    ]
)
rates = st.fixed_dictionaries(
    {"type": st.sampled_from(["Pods", "Percent"]), "value": st.integers(1, 100), "periodSeconds": st.integers(1, 90)}
)
directions = st.fixed_dictionaries(
    {},
    optional={
        "stabilizationWindowSeconds": st.sampled_from([0, 15, 40, 300]),
        "selectPolicy": st.sampled_from(["Max", "Min", "Disabled"]),
        "policies": st.lists(rates, min_size=1, max_size=3),
        "tolerance": st.sampled_from(["0", "50m", "0.2"]),
    },
)
behaviors = st.fixed_dictionaries({}, optional={"scaleUp": directions, "scaleDown": directions})
factors = st.fixed_dictionaries(
    {},
    optional={
        "cooldownSeconds": st.sampled_from([0, 30, 100]),
        "minFactor": st.sampled_from([0, 0.1, 0.5]),
        "maxFactor": st.sampled_from([0.2, 0.5, 1]),
    },
)
crons = st.sampled_from([("0 0 * * *", "2 0 * * *"), ("3 0 * * *", "30 0 * * *")])


@st.composite
def horizontal(draw: st.DrawFn) -> Manifest:
    """What HPA, EffectiveHPA and Autoscaler have in common."""
    least = draw(st.integers(1, 4))
    target = {"type": "AverageValue", "averageValue": draw(targets)}
    spec: Manifest = {
        "scaleTargetRef": REFERENCE,
        "minReplicas": least,
        "maxReplicas": least + draw(st.sampled_from([0, 4, 40])),
        "metrics": [{"type": "External", "external": {"metric": {"name": "q"}, "target": target}}],
    }
    if draw(st.booleans()):
        spec["behavior"] = draw(behaviors)
    return spec


def whole(version: str, kind: str, spec: Manifest, notes: dict[str, str]) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "web", "annotations": notes}, "spec": spec}


@st.composite
def autoscalers(draw: st.DrawFn) -> Manifest:
    spec = draw(horizontal()) | {"mode": draw(st.sampled_from(["Auto", "Auto", "Shadow", "Shadow", "Paused"]))}
    if draw(st.booleans()):
        start, end = draw(crons)
        bound = draw(st.sampled_from([{"minReplicas": 6}, {"maxReplicas": 5}]))
        spec["schedules"] = [{"name": "night", "start": start, "end": end} | bound]
    if draw(st.booleans()):
        behavior = dict(spec.get("behavior", {}))
        for side in ("scaleUp", "scaleDown"):
            behavior[side] = behavior.get(side, {}) | draw(factors)
        spec["behavior"] = behavior
    if draw(st.booleans()):
        spec["forecast"] = {"model": "linear", "horizon": draw(st.sampled_from(["1m", "10m"]))}
    return whole("trimtab.dev/v1alpha1", "Autoscaler", spec, draw(notes))


@st.composite
def effective(draw: st.DrawFn) -> Manifest:
    spec = draw(horizontal()) | {"scaleStrategy": draw(st.sampled_from(["Auto", "Preview"]))}
    if spec["scaleStrategy"] == "Preview" and draw(st.booleans()):
        spec["specificReplicas"] = 5
    if draw(st.booleans()):
        start, end = draw(crons)
        spec["crons"] = [{"name": "night", "start": start, "end": end, "targetReplicas": 6}]
    return whole("autoscaling.crane.io/v1alpha1", "EffectiveHorizontalPodAutoscaler", spec, draw(notes))


@st.composite
def scaled_objects(draw: st.DrawFn) -> Manifest:
    trigger = {"serverAddress": "http://prometheus", "query": "sum(q)", "threshold": draw(thresholds)}
    spec = {
        "scaleTargetRef": {"name": "web"},
        "minReplicaCount": draw(st.sampled_from([1, 2, 3, 0])),
        "maxReplicaCount": 30,
        "triggers": [{"type": "prometheus", "metadata": trigger}],
    }
    manifest = whole("keda.sh/v1alpha1", "ScaledObject", spec, {})
    return convert(manifest, "autoscaler").manifest


@st.composite
def custom(draw: st.DrawFn) -> Policy:
    return CustomHpa.from_values(
        {
            "target": {"deployment": "web", "namespace": "default", "value": draw(st.sampled_from([1, 3]))},
            "prometheus": {"url": "http://prometheus", "port": 9090, "query": "sum(q)"},
            "minReplicas": draw(st.integers(1, 3)),
            "maxReplicas": 30,
            "dryRun": draw(st.booleans()),
        }
    ).to_policy(0.0)


def compiled(manifest: Manifest) -> Policy:
    kind = read(manifest)
    assert isinstance(kind, Scaler)
    return kind.to_policy(0.0)


hpas = st.builds(
    lambda version, spec, noted: whole(version, "HorizontalPodAutoscaler", spec, noted),
    st.sampled_from(["autoscaling/v2", "autoscaling/v2beta2"]),
    horizontal(),
    notes,
)
policies = st.one_of(autoscalers(), effective(), hpas, scaled_objects()).map(compiled) | custom()
loads = st.lists(st.floats(0, 60) | st.integers(0, 45).map(float), min_size=1, max_size=60).map(np.array)


@settings(max_examples=250, deadline=None)
@given(policies, loads, st.integers(1, 30))
def test_both_lanes_agree_on_every_policy_that_both_take(policy: Policy, load: Any, first_pods: int) -> None:
    why = uncovered(policy)
    event(why or "both lanes")
    if not why:
        assert first_difference(policy, load, first_pods) == ""
