"""Tuning as users write it: a field, an annotation, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kinds.test_autoscaler import manifest
from tests.kinds.test_effective_hpa import ehpa
from tests.kinds.test_hvpa import nested
from trimtab.errors import InvalidObject
from trimtab.kinds import Scaler, read
from trimtab.kinds.convert import convert
from trimtab.kinds.ignored import warnings
from trimtab.policy import Tuning, TuningLimits, TuningMode, TuningRange

NOTE = "trimtab.dev/tuning"
HVPA = nested(weightBasedScalingIntervals=[{"vpaWeight": 50}])


def tuning_of(written: dict[str, Any]) -> Tuning:
    found = read(written)
    assert isinstance(found, Scaler)
    return found.to_policy(0.0).tuning


def annotated(written: dict[str, Any], value: str) -> dict[str, Any]:
    return written | {"metadata": {"name": "web", "annotations": {NOTE: value}}}


def test_left_out_is_off() -> None:
    assert [tuning_of(written).mode for written in (manifest(), ehpa(), HVPA)] == [TuningMode.OFF] * 3


def test_a_field_of_the_autoscaler() -> None:
    limits = {
        "target": {"min": 50},
        "tolerance": {"max": "0.05"},
        "stabilizationWindowSeconds": {"min": 60, "max": 600},
    }
    written = manifest(tuning={"mode": "Nightly", "limits": limits, "timezone": "Europe/Berlin"})
    assert tuning_of(written) == Tuning(
        mode=TuningMode.NIGHTLY,
        limits=TuningLimits(
            target=TuningRange(least=50.0),
            tolerance=TuningRange(most=0.05),
            window_s=TuningRange(least=60.0, most=600.0),
        ),
        timezone="Europe/Berlin",
    )


def test_limits_include_their_ends() -> None:
    limits = TuningRange(least=50.0, most=80.0)
    assert [value in limits for value in (49.9, 50.0, 80.0, 80.1)] == [False, True, True, False]
    assert 1e9 in TuningRange()


def test_on_an_hvpa_it_could_never_act_and_is_refused() -> None:
    with pytest.raises(InvalidObject, match="an Hvpa cannot be tuned"):
        read(annotated(HVPA, "Advise"))


def test_an_annotation_of_an_ehpa() -> None:
    written = ehpa()
    assert tuning_of(annotated(written, "Advise")) == Tuning(mode=TuningMode.ADVISE)
    assert not [warned for warned in warnings(read(annotated(written, "Advise"))) if NOTE in warned.path]
    with pytest.raises(InvalidObject, match="write one of: Advise, Nightly"):
        read(annotated(written, "Weekly"))


def test_on_an_hpa_it_is_not_read_and_that_is_said() -> None:
    written = manifest() | {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    assert [warned for warned in warnings(read(annotated(written, "Nightly"))) if NOTE in warned.path]


@pytest.mark.parametrize(
    ("tuning", "why"),
    [
        ({}, "spec.tuning.mode"),
        ({"mode": "Off"}, "spec.tuning.mode"),
        ({"mode": "Advise", "timezone": "Mars/Olympus"}, "IANA"),
        ({"mode": "Advise", "limits": {"target": {"min": 80, "max": 50}}}, "must not be above max"),
        ({"mode": "Advise", "limits": {"tolerance": {"min": "0.2", "max": "0.1"}}}, "must not be above max"),
        ({"mode": "Advise", "limits": {"stabilizationWindowSeconds": {"min": 9, "max": 8}}}, "must not be above max"),
        ({"mode": "Advise", "limits": {"window": {}}}, "spec.tuning.limits.window"),
    ],
)
def test_what_cannot_be_meant_is_refused(tuning: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidObject, match=why):
        read(manifest(tuning=tuning))


def test_a_conversion_carries_the_bridge_and_tuning_both_ways() -> None:
    written = manifest(bridge={"maxFactor": "1.25"}, tuning={"mode": "Advise"})
    there = convert(written, "ehpa")
    assert there.manifest["metadata"]["annotations"] == {"trimtab.dev/bridge": "1.25", NOTE: "Advise"}
    back = convert(there.manifest, "autoscaler")
    assert back.manifest["spec"]["bridge"] == {"maxFactor": "1.25"}
    assert back.manifest["spec"]["tuning"] == {"mode": "Advise"}
    assert "annotations" not in back.manifest["metadata"]


def test_a_conversion_says_what_it_cannot_carry() -> None:
    limits = {"target": {"min": 50}}
    lost = convert(manifest(tuning={"mode": "Nightly", "limits": limits}, objective={}), "ehpa").lost
    assert {loss.path for loss in lost} >= {"spec.tuning.limits", "spec.objective"}


def test_an_hvpa_made_of_a_tuned_autoscaler_names_the_loss() -> None:
    made, lost = convert(manifest(tuning={"mode": "Advise"}), "hvpa")
    assert "spec.tuning" in [loss.path for loss in lost]
    read(made)
