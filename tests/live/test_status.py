"""What objects say about themselves, in the words their users know."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.live.build import AT, custom, object_tick, spec, subject
from trimtab.acts import AxisOutcome, Fate
from trimtab.core.decide import decide
from trimtab.core.explain import DecisionCondition
from trimtab.core.model import (
    ContainerSize,
    Estimate,
    Forecast,
    Memory,
    Missing,
    Observation,
    Quantile,
    Reason,
    TotalSample,
    UsageEstimates,
)
from trimtab.live.look.cluster import ScaleTarget
from trimtab.live.look.memory import ObjectMemory, ReplicasWritten
from trimtab.live.look.subject import Subject
from trimtab.live.tell import conditions
from trimtab.live.tell.status import hvpa
from trimtab.policy import Size
from trimtab.wire.from_kubernetes import rfc3339
from trimtab.wire.objects import WireWorkload
from trimtab.wire.resources import DEPLOYMENTS, Resource

HVPAS = Resource("autoscaling.k8s.io", "v1alpha1", "hvpas", "Hvpa")
EHPAS = Resource(
    "autoscaling.crane.io", "v1alpha1", "effectivehorizontalpodautoscalers", "EffectiveHorizontalPodAutoscaler"
)
SMALL = {"app": ContainerSize(requests=Size(cpu_cores=0.1, memory_bytes=2.0**28))}
LARGE = {"app": ContainerSize(requests=Size(cpu_cores=0.5, memory_bytes=2.0**28))}
NEEDS = UsageEstimates(
    made_at=AT,
    expires_at=AT + 60,
    containers={"app": Estimate(target=LARGE["app"].requests, observed_s=1e6, memory_peak_bytes=2.0**27)},
)


def an_hvpa(**more: Any) -> Subject:
    """Horizontal up to two replicas, then half and half."""
    stages = [{"vpaWeight": 0, "lastReplicaCount": 2}, {"vpaWeight": 0.5, "startReplicaCount": 3}]
    written = {
        "targetRef": spec()["scaleTargetRef"],
        "hpaTemplate": {"maxReplicas": 9},
        "weightBasedScalingIntervals": stages,
    }
    return subject(custom(spec=written | more), HVPAS)


def said_by(about: Subject, replicas: int, memory: Memory = Memory(), after: ObjectMemory = ObjectMemory()) -> Any:  # noqa: B008
    """The status of an Hvpa whose container should grow, at so many replicas without a metric."""
    seen = Observation(at=AT, spec_replicas=replicas, status_replicas=replicas, sizes=SMALL, usage=NEEDS)
    made = {
        "spec": {"selector": {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "x", "operator": "Exists"}]}}
    }
    target = ScaleTarget(DEPLOYMENTS, "shop", "web", "d", "7", replicas, replicas, msgspec.convert(made, WireWorkload))
    return hvpa(object_tick(about, seen, ObjectMemory(core=memory), after=after, target=target))


def conditions_of(about: Subject, seen: Observation, *outcome: AxisOutcome) -> dict[str, DecisionCondition]:
    found = conditions.of_tick(object_tick(about, seen, outcome=outcome))
    return {condition.type: condition for condition in found}


@pytest.mark.parametrize("replicas, weights", [(2, (100, 0)), (3, (50, 50))])
def test_an_hvpa_says_which_weights_hold_and_which_pods_it_means(replicas: int, weights: tuple[int, int]) -> None:
    status = said_by(an_hvpa(), replicas)
    assert (status["hpaWeight"], status["vpaWeight"]) == weights
    assert status["targetSelector"] == "app=web,x" and status["replicas"] == replicas


def test_an_hvpa_says_what_is_blocked_and_why() -> None:
    (entry,) = said_by(an_hvpa(), 2)["lastBlockedScaling"]
    wanted = {"containerResources": [{"container": "app", "cpu": "500m"}]}
    assert entry == {"reason": "Weight", "scalingStatus": {"vpaStatus": wanted}}
    resting = said_by(an_hvpa(scaleUpStabilizationWindow="10m"), 3, Memory(up_at=AT - 60))
    assert [one["reason"] for one in resting["lastBlockedScaling"]] == ["StabilizationWindow"]
    assert "lastBlockedScaling" not in said_by(an_hvpa(), 3)


def test_an_hvpa_says_what_its_last_scaling_was() -> None:
    assert "lastScaling" not in said_by(an_hvpa(), 3)
    memory = ObjectMemory(core=Memory(up_at=AT - 60), wrote=ReplicasWritten(was=2, replicas=3, at=AT - 60), sizes=LARGE)
    assert said_by(an_hvpa(), 3, after=memory)["lastScaling"] == {
        "lastScaleTime": rfc3339(AT - 60),
        "hpaStatus": {"currentReplicas": 2, "desiredReplicas": 3},
        "vpaStatus": {"containerResources": [{"container": "app", "cpu": "500m", "memory": "256Mi"}]},
    }


GOOD = Forecast(made_at=AT, expires_at=AT + 60, demand=(Quantile(0.5, 1.0),), model="dsp")
SILENT = Missing(reason=Reason.NOT_PREDICTABLE, detail="no period")


@pytest.mark.parametrize(
    "forecasts, status, reason",
    [
        pytest.param((GOOD, GOOD), True, "PredictSucceed", id="all"),
        pytest.param((GOOD, SILENT), False, "PredictPartial", id="some"),
        pytest.param((SILENT,), False, "PredictFailed", id="none"),
    ],
)
def test_whether_a_prediction_can_be_used(forecasts: Any, status: bool, reason: str) -> None:
    prediction = {"predictionAlgorithm": {"algorithmType": "dsp"}}
    about = subject(custom(spec=spec(prediction=prediction)), EHPAS)
    seen = Observation(at=AT, spec_replicas=2, status_replicas=2, forecasts=forecasts)
    found = conditions_of(about, seen)["PredictionReady"]
    assert (found.status, found.reason) == (status, reason)
    if not status:
        assert "not predictable (no period)" in found.message


@pytest.mark.parametrize("fate, said", [(Fate.WRITTEN, True), (Fate.SHADOW, None), (Fate.REFUSED, None)])
def test_only_a_zero_that_was_written_is_said_to_be_ours(fate: Fate, said: bool | None) -> None:
    queue = {"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "5"}}}
    about = subject(
        custom(spec=spec(metrics=[queue], minReplicas=0, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}}))
    )
    seen = Observation(at=AT, spec_replicas=1, status_replicas=1, samples=(TotalSample(value=0.0, at=AT),))
    decision = decide(about.policy, seen, Memory())
    assert decision.change is not None and decision.change.replicas == 0
    found = conditions_of(about, seen, AxisOutcome(axis="replicas", fate=fate))
    assert (found["ScaledToZero"].status if "ScaledToZero" in found else None) is said


def test_replicas_that_were_written_do_not_hide_sizes_that_were_refused() -> None:
    seen = Observation(at=AT, spec_replicas=2, status_replicas=2, sizes=SMALL, usage=NEEDS)
    written = AxisOutcome(axis="replicas", fate=Fate.WRITTEN)
    refused = AxisOutcome(axis="sizes", fate=Fate.REFUSED, reason="exceeded quota: team")
    found = conditions_of(an_hvpa(), seen, written, refused)["AbleToScale"]
    assert (found.status, found.reason, found.message) == (False, "FailedUpdateScale", "exceeded quota: team")


def test_fields_that_mean_nothing_here_are_named() -> None:
    seen = Observation(at=AT, spec_replicas=2, status_replicas=2)
    found = conditions_of(an_hvpa(replicas=3), seen)["Ready"]
    assert (found.status, found.reason) == (True, "FieldsIgnored") and "spec.replicas: " in found.message
    found = conditions_of(an_hvpa(), seen)["Ready"]
    assert (found.status, found.reason) == (True, "Running")
