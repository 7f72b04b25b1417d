"""What objects say about themselves, in the words their users know."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.live.build import AT, custom, spec, subject
from trimtab.core.decide import decide
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
from trimtab.live.look.kept import Kept, Wrote
from trimtab.live.look.subject import Subject
from trimtab.live.look.world import Target
from trimtab.live.tell import conditions
from trimtab.live.tell.status import Said, hvpa, rfc3339
from trimtab.policy import Size
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


def said_by(one: Subject, replicas: int, memory: Memory = Memory(), kept: Kept = Kept()) -> dict[str, Any]:  # noqa: B008
    """The status of an Hvpa whose container should grow, at so many replicas without a metric."""
    seen = Observation(at=AT, spec_replicas=replicas, status_replicas=replicas, sizes=SMALL, usage=NEEDS)
    made = {
        "spec": {"selector": {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "x", "operator": "Exists"}]}}
    }
    target = Target(DEPLOYMENTS, "shop", "web", "d", "7", replicas, replicas, msgspec.convert(made, WireWorkload))
    return hvpa(Said(one, seen, memory, decide(one.policy, seen, memory), kept, (), target))


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
    kept = Kept(core=Memory(up_at=AT - 60), wrote=Wrote(was=2, replicas=3, at=AT - 60), sizes=LARGE)
    assert said_by(an_hvpa(), 3, kept=kept)["lastScaling"] == {
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
    one = subject(custom(spec=spec(prediction=prediction)), EHPAS)
    seen = Observation(at=AT, spec_replicas=2, status_replicas=2, forecasts=forecasts)
    decision = decide(one.policy, seen, Memory())
    found = conditions.of_decision(one, seen, Kept(), decision, "idle", None)["PredictionReady"]
    assert (found.status, found.reason) == (status, reason)
    if not status:
        assert "not predictable (no period)" in found.message


@pytest.mark.parametrize("outcome, said", [("written", True), ("shadow", None), ("refused: no", None)])
def test_only_a_zero_that_was_written_is_said_to_be_ours(outcome: str, said: bool | None) -> None:
    queue = {"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "5"}}}
    one = subject(
        custom(spec=spec(metrics=[queue], minReplicas=0, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}}))
    )
    seen = Observation(at=AT, spec_replicas=1, status_replicas=1, samples=(TotalSample(value=0.0, at=AT),))
    decision = decide(one.policy, seen, Memory())
    assert decision.change is not None and decision.change.replicas == 0
    found = conditions.of_decision(one, seen, Kept(), decision, outcome, None)
    assert (found["ScaledToZero"].status if "ScaledToZero" in found else None) is said


def test_fields_that_mean_nothing_here_are_named() -> None:
    named = an_hvpa(replicas=3)
    seen = Observation(at=AT, spec_replicas=2, status_replicas=2)
    found = conditions.of_decision(named, seen, Kept(), decide(named.policy, seen, Memory()), "idle", None)["Ready"]
    assert (found.status, found.reason) == (True, "FieldsIgnored") and "spec.replicas: " in found.message
    plain = an_hvpa()
    found = conditions.of_decision(plain, seen, Kept(), decide(plain.policy, seen, Memory()), "idle", None)["Ready"]
    assert (found.status, found.reason) == (True, "Running")
