"""The bridge as users write it: a field, an annotation, and where it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kinds.test_autoscaler import manifest
from tests.kinds.test_effective_hpa import ehpa
from tests.kinds.test_hvpa import nested
from trimtab.errors import InvalidObject
from trimtab.kinds import Scaler, read
from trimtab.kinds.ignored import warnings
from trimtab.policy import Bridge
from trimtab.tune.search import CEILINGS

NOTE = "trimtab.dev/bridge"
RATE = {"metric": {"name": "rate"}, "target": {"type": "AverageValue", "averageValue": "20"}}
NO_CPU = [{"type": "Pods", "pods": RATE}]
HVPA = nested(weightBasedScalingIntervals=[{"vpaWeight": 50}])


def bridge_of(written: dict[str, Any]) -> Bridge | None:
    found = read(written)
    assert isinstance(found, Scaler)
    return found.to_policy(0.0).bridge


def annotated(written: dict[str, Any], value: str) -> dict[str, Any]:
    return written | {"metadata": {"name": "web", "annotations": {NOTE: value}}}


def hpa() -> dict[str, Any]:
    return manifest() | {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}


def test_left_out_is_off() -> None:
    assert [bridge_of(written) for written in (manifest(), ehpa(), HVPA)] == [None, None, None]


@pytest.mark.parametrize(("given", "factor"), [({}, 1.5), ({"maxFactor": "1.25"}, 1.25), ({"maxFactor": "1.5"}, 1.5)])
def test_a_field_of_the_autoscaler(given: dict[str, str], factor: float) -> None:
    assert bridge_of(manifest(bridge=given)) == Bridge(max_factor=factor)


@pytest.mark.parametrize("ceiling", [None, *(f"{ceiling:g}" for ceiling in CEILINGS)])
def test_its_ceiling_is_what_is_written_or_what_guards_the_service_level(ceiling: str | None) -> None:
    """Everything that tuning may choose can be written."""
    bridge = {} if ceiling is None else {"ceiling": ceiling}
    alone, priced = manifest(bridge=bridge), manifest(bridge=bridge, objective={"serviceLevel": "0.9"})
    found, guard = bridge_of(alone), bridge_of(priced)
    assert found and found.ceiling == float(ceiling or 0.75)
    assert guard and guard.ceiling == pytest.approx(float(ceiling or 0.9375 * 0.9))


def test_crons_alone_have_no_bridge_and_say_so() -> None:
    crons = [{"name": "day", "start": "0 8 * * *", "end": "0 18 * * *", "targetReplicas": 5}]
    written = annotated(ehpa(crons=crons), "1.25")
    assert bridge_of(written) is None
    assert [warned.path for warned in warnings(read(written))] == [f'metadata.annotations["{NOTE}"]']


def test_an_hvpa_without_a_signal_has_no_bridge() -> None:
    written = nested(weightBasedScalingIntervals=[{"vpaWeight": 50}])
    written["spec"]["hpa"]["deploy"] = False
    with pytest.raises(InvalidObject, match=NOTE):
        read(annotated(written, "1.25"))


@pytest.mark.parametrize("written", [ehpa(), HVPA], ids=["EffectiveHorizontalPodAutoscaler", "Hvpa"])
def test_an_annotation_of_the_others(written: dict[str, Any]) -> None:
    assert bridge_of(annotated(written, "1.25")) == Bridge(max_factor=1.25)
    assert not [warned for warned in warnings(read(annotated(written, "1.5"))) if NOTE in warned.path]
    with pytest.raises(InvalidObject, match=r"write one of: 1\.25, 1\.5"):
        read(annotated(written, "2"))


def test_an_hpa_is_refused_by_name() -> None:
    read(hpa())
    with pytest.raises(InvalidObject, match="makes the built-in controller remove pods"):
        read(annotated(hpa(), "1.5"))


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"bridge": {"maxFactor": "1.75"}}, "spec.bridge.maxFactor"),
        ({"bridge": {"maxFactor": 1.5}}, "spec.bridge.maxFactor"),
        ({"bridge": {"ceiling": "0.8"}}, "spec.bridge.ceiling"),
        ({"bridge": {}, "metrics": NO_CPU}, "add a metric on cpu"),
        ({"bridge": {}, "vertical": {"apply": "Recreate"}}, "it resizes pods in place"),
    ],
)
def test_what_cannot_be_meant_is_refused(spec: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidObject, match=why):
        read(manifest(**spec))


def test_vertical_alone_has_no_pods_to_wait_for() -> None:
    written = manifest(bridge={}, vertical={})
    del written["spec"]["maxReplicas"]
    written["spec"].pop("metrics", None)
    with pytest.raises(InvalidObject, match="set maxReplicas"):
        read(written)


def test_an_annotation_without_cpu_to_look_at_is_refused() -> None:
    with pytest.raises(InvalidObject, match="add a metric on cpu"):
        read(annotated(ehpa(metrics=NO_CPU), "1.5"))
