"""Hvpa: HVPA's flat form, the nested form, HVPA buckets."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings

from tests.kinds import generate
from trimtab.errors import InvalidInput, InvalidObject
from trimtab.kinds import Hvpa, read
from trimtab.kinds.hvpa import clock_s
from trimtab.kinds.ignored import warnings
from trimtab.kinds.yaml import documents
from trimtab.policy import (
    Axis,
    Bucket,
    Buckets,
    BucketSizing,
    Direction,
    Gap,
    Limits,
    MaintenanceWindow,
    Margin,
    Margins,
    MinChange,
    Policy,
    Rest,
    Size,
    Stage,
    Update,
    UpdateMode,
    Utilization,
    Weights,
)

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def hvpa(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling.k8s.io/v1alpha1",
        "kind": "Hvpa",
        "metadata": {"name": "web"},
        "spec": {"targetRef": TARGET} | spec,
    }


def nested(hpa: dict[str, Any] | None = None, vpa: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    template = {"template": {"spec": {"minReplicas": 1, "maxReplicas": 4}}}
    return hvpa(hpa=template | (hpa or {}), vpa=vpa or {}, **spec)


def compiled(manifest: dict[str, Any]) -> Policy:
    obj = read(manifest)
    assert isinstance(obj, Hvpa)
    return obj.to_policy(0.0)


@settings(max_examples=150, deadline=None)
@given(written=generate.HVPAS)
def test_it_comes_back_as_written_and_always_compiles(written: dict[str, Any]) -> None:
    assert read(written).manifest() == written
    assert compiled(written).vertical is not None


def test_weights_are_fractions_in_the_flat_form_and_percent_in_the_nested_one() -> None:
    flat = hvpa(hpaTemplate={"maxReplicas": 4}, weightBasedScalingIntervals=[{"vpaWeight": 0.6}])
    percent = nested(weightBasedScalingIntervals=[{"vpaWeight": 60}])
    stages = Weights(stages=(Stage(vertical_share=0.6, first=1, last=4, until_least=True, until_most=True),))
    assert compiled(flat).blend == compiled(percent).blend == stages


@pytest.mark.parametrize("weight, form", [(60, "flat"), (0.6, "nested"), (101, "nested"), (-1, "flat")])
def test_a_weight_of_the_other_form_is_refused(weight: float, form: str) -> None:
    intervals: dict[str, Any] = {"weightBasedScalingIntervals": [{"vpaWeight": weight}]}
    manifest = hvpa(hpaTemplate={"maxReplicas": 4}, **intervals) if form == "flat" else nested(**intervals)
    with pytest.raises(InvalidObject, match=r"spec\.weightBasedScalingIntervals"):
        read(manifest)


def test_the_flat_form_has_the_same_gates_in_both_directions() -> None:
    policy = compiled(
        hvpa(
            hpaTemplate={"maxReplicas": 4},
            scaleUpStabilizationWindow="2m",
            minCpuChange={"value": "200m", "percentage": 70},
            weightBasedScalingIntervals=[{"vpaWeight": 0}],
        )
    )
    up = [gate for gate in policy.gates if gate.direction is Direction.UP]
    assert up == [
        Rest(axis=Axis.REPLICAS, direction=Direction.UP, window_s=120),
        Rest(axis=Axis.CPU, direction=Direction.UP, window_s=120),
        MinChange(axis=Axis.CPU, direction=Direction.UP, value=0.2, percent=70),
        Rest(axis=Axis.MEMORY, direction=Direction.UP, window_s=120),
        MinChange(axis=Axis.MEMORY, direction=Direction.UP, value=200e6),
    ]


def test_gates_stand_in_the_order_in_which_the_program_blames_them() -> None:
    side = {
        "updatePolicy": {"updateMode": "MaintenanceWindow"},
        "stabilizationDuration": "5m",
        "minChange": {"cpu": {"percentage": 10}},
    }
    policy = compiled(
        nested(
            hpa={"scaleUp": side},
            vpa={"scaleUp": side, "scaleDown": {"updatePolicy": {"updateMode": "Off"}}},
            maintenanceTimeWindow={"begin": "220000+0100", "end": "230000+0100"},
            weightBasedScalingIntervals=[{"vpaWeight": 50}],
        )
    )
    window = MaintenanceWindow(begin_s=21 * 3600, end_s=22 * 3600)
    up, down = Direction.UP, Direction.DOWN
    assert policy.gates[:2] == (
        Update(axis=Axis.REPLICAS, direction=up, mode=UpdateMode.WINDOW, window=window),
        Rest(axis=Axis.REPLICAS, direction=up, window_s=300),
    )
    assert [gate for gate in policy.gates if gate.axis is Axis.CPU] == [
        Rest(axis=Axis.CPU, direction=up, window_s=300),
        Update(axis=Axis.CPU, direction=up, mode=UpdateMode.WINDOW, window=window),
        MinChange(axis=Axis.CPU, direction=up, percent=10),
        Update(axis=Axis.CPU, direction=down, mode=UpdateMode.OFF),
        MinChange(axis=Axis.CPU, direction=down, value=0.2),
    ]


def test_buckets_of_hvpa_buckets_story_2() -> None:
    first = {"replicas": {"min": 1, "max": 1}, "cpu": {"min": 0, "max": "1000m"}, "memory": {"min": 0, "max": "2G"}}
    second = {
        "replicas": {"min": 2, "max": 8},
        "cpu": {"min": 1, "max": "9000m"},
        "memory": {"min": "2G", "max": "20G"},
    }
    policy = compiled(hvpa(hpa={"deploy": False}, vpa={}, buckets=[first, second]))
    assert policy.signals == ()
    assert (policy.bounds.min_replicas, policy.bounds.max_replicas) == (1, 8)
    assert policy.blend == Buckets(
        buckets=(
            Bucket(
                replicas_min=1,
                replicas_max=1,
                least=Size(cpu_cores=0, memory_bytes=0),
                most=Size(cpu_cores=1, memory_bytes=2e9),
            ),
            Bucket(
                replicas_min=2,
                replicas_max=8,
                least=Size(cpu_cores=1, memory_bytes=2e9),
                most=Size(cpu_cores=9, memory_bytes=20e9),
            ),
        )
    )


def test_base_usage_belongs_to_buckets() -> None:
    bucket = {"replicas": {"min": 1, "max": 3}, "cpu": {"min": "1", "max": "2"}}
    base = {"cpu": {"value": "100m", "percentage": 5}, "memory": {"value": "1G"}}
    found = compiled(nested(buckets=[bucket], baseResourcesPerReplica=base)).blend
    assert isinstance(found, Buckets)
    assert found.base == Margins(cpu=Margin(percent=5, value=0.1), memory=Margin(value=1e9))
    with pytest.raises(InvalidObject, match="it belongs to buckets"):
        read(nested(weightBasedScalingIntervals=[{"vpaWeight": 50}], baseResourcesPerReplica=base))


def test_fields_of_hvpa_v2_are_refused_by_name() -> None:
    with pytest.raises(InvalidObject, match="of hvpa-v2; write buckets"):
        read(nested(scaleIntervals=[{"maxCpu": "1", "maxMemory": "1G", "maxReplicas": 3}]))


@pytest.mark.parametrize(
    "said, sizing, percent, grows",
    [
        pytest.param(
            {}, BucketSizing.GUARDED, 10.0, False, id="004: guarded, 10 % of hysteresis and the last maximum held"
        ),
        pytest.param(
            {"sizing": "MaxOfVpaAndShare"}, BucketSizing.MAX_OF_VPA_AND_SHARE, 10.0, False, id="004: the rule of thumb"
        ),
        pytest.param({"overlapPercent": 0}, BucketSizing.GUARDED, 0.0, False, id="004: divided linearly, nothing else"),
        pytest.param(
            {"growPastLast": True}, BucketSizing.GUARDED, 10.0, True, id="004: past the last maximum by choice"
        ),
    ],
)
def test_what_an_hvpa_says_of_its_buckets(
    said: dict[str, Any], sizing: BucketSizing, percent: float, grows: bool
) -> None:
    bucket = {"replicas": {"min": 1, "max": 3}, "cpu": {"min": "1", "max": "2"}}
    found = compiled(nested(buckets=[bucket], **said)).blend
    assert isinstance(found, Buckets)
    assert (found.sizing, found.overlap.cpu, found.grow_past_last) == (sizing, Margin(percent=percent), grows)
    for name, value in said.items():
        with pytest.raises(InvalidObject, match=f"spec.{name}: .*it belongs to buckets"):
            read(nested(weightBasedScalingIntervals=[{"vpaWeight": 50}], **{name: value}))


def test_the_released_program_can_be_asked_for() -> None:
    manifest = nested(weightBasedScalingIntervals=[{"vpaWeight": 50}])
    assert not compiled(manifest).blend.exact  # type: ignore[union-attr]
    manifest["metadata"]["annotations"] = {"trimtab.dev/exact": "true"}
    assert compiled(manifest).blend.exact  # type: ignore[union-attr]
    manifest["metadata"]["annotations"] = {"trimtab.dev/exact": "yes"}
    with pytest.raises(InvalidObject, match='write "true" or "false"'):
        read(manifest)


def test_a_misspelt_annotation_of_ours_is_answered_with_a_warning() -> None:
    manifest = nested(weightBasedScalingIntervals=[{"vpaWeight": 50}])
    manifest["metadata"]["annotations"] = {"trimtab.dev/exact": "true", "trimtab.dev/pause": "true", "team": "a"}
    (warned,) = warnings(read(manifest))
    assert warned.path == 'metadata.annotations["trimtab.dev/pause"]' and "trimtab.dev/paused" in warned.why


def test_metrics_of_v2beta1_are_read() -> None:
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 120}}]
    template = {"template": {"spec": {"maxReplicas": 4, "metrics": metrics}}}
    assert compiled(hvpa(hpa=template, vpa={}, buckets=_ONE)).signals[0].percent == 120  # type: ignore[union-attr]


def test_limits_keep_their_distance() -> None:
    gaps = {"cpu": {"value": "1", "percentage": 50}, "memory": {"percentage": 0}}
    vertical = compiled(nested(vpa={"limitsRequestsGapScaleParams": gaps}, buckets=_ONE)).vertical
    assert vertical is not None
    assert vertical.limits == Limits(cpu=Gap(percent=50, value=1.0), memory=None)


def test_a_vertical_half_that_is_not_deployed_sizes_nothing() -> None:
    vertical = compiled(nested(vpa={"deploy": False}, buckets=_ONE)).vertical
    assert vertical is not None
    assert [rule.off for rule in vertical.containers] == [True]


def _with_least(replicas: int) -> dict[str, Any]:
    return nested(hpa={"template": {"spec": {"maxReplicas": 2, "minReplicas": replicas}}})


_ONE = [{"replicas": {"min": 1, "max": 4}, "cpu": {"min": "1", "max": "2"}}]


@pytest.mark.parametrize(
    "manifest, path",
    [
        pytest.param(nested(buckets=_ONE, weightBasedScalingIntervals=[{"vpaWeight": 1}]), "spec.buckets", id="both"),
        pytest.param(hvpa(hpaTemplate={"maxReplicas": 2}, hpa={}), "spec", id="both forms"),
        pytest.param(hvpa(), "spec", id="neither form"),
        pytest.param(
            nested(weightBasedScalingIntervals=[{"vpaWeight": 1, "startReplicaCount": 3, "lastReplicaCount": 2}]),
            "spec.weightBasedScalingIntervals[0].startReplicaCount",
            id="start above last",
        ),
        pytest.param(nested(buckets=[*_ONE, *_ONE]), "spec.buckets", id="buckets share replicas"),
        pytest.param(_with_least(0), "spec.hpa.template.spec.minReplicas", id="minReplicas 0"),
        pytest.param(_with_least(3), "spec.hpa.template.spec.minReplicas", id="maxReplicas below minReplicas"),
        pytest.param(
            nested(hpa={"scaleUp": {"updatePolicy": {"updateMode": "Recreate"}}}),
            "spec.hpa.scaleUp.updatePolicy.updateMode",
            id="unknown updateMode",
        ),
        pytest.param(
            nested(hpa={"scaleUp": {"stabilizationDuration": "3x"}}), "spec.hpa.scaleUp.stabilizationDuration", id="3x"
        ),
        pytest.param(
            nested(vpa={"scaleUp": {"minChange": {"cpu": {"value": "abc"}}}}),
            "spec.vpa.scaleUp.minChange.cpu.value",
            id="not a quantity",
        ),
        pytest.param(
            nested(vpa={"scaleUp": {"minChange": {"memory": {"percentage": -1}}}}),
            "spec.vpa.scaleUp.minChange.memory.percentage",
            id="negative percentage",
        ),
        pytest.param(
            nested(maintenanceTimeWindow={"begin": "foo", "end": "010101+0000"}),
            "spec.maintenanceTimeWindow.begin",
            id="begin foo",
        ),
        pytest.param(
            nested(hpa={"scaleUp": {"updatePolicy": {"updateMode": "MaintenanceWindow"}}}),
            "spec.maintenanceTimeWindow",
            id="a mode without its window",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_path(manifest: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidObject) as caught:
        read(manifest)
    assert caught.value.path == path


ELIDED = """
apiVersion: autoscaling.k8s.io/v1alpha1
kind: Hvpa
metadata: {{name: web}}
spec:
  weightBasedScalingIntervals:
    - vpaWeight: 1
      startReplicaCount: 1
      lastReplicaCount: 1
  hpaTemplate:{first}
    .
    .
    .
"""


def test_dots_where_hvpa_weights_leaves_something_out_are_refused_with_their_place() -> None:
    (document,) = documents(ELIDED.format(first=""))
    with pytest.raises(InvalidObject) as caught:
        read(document.value)
    assert "spec.hpaTemplate" in [problem.path for problem in caught.value.problems]
    (document,) = documents(ELIDED.format(first="\n    minReplicas: 1\n    maxReplicas: 10"))
    assert document.error is not None and str(document.error).startswith("line 14: ")


def test_a_target_above_100_percent_is_the_remedy_against_hpa_domination() -> None:
    cpu = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 150}},
    }
    template = {"template": {"spec": {"maxReplicas": 4, "metrics": [cpu]}}}
    (signal,) = compiled(nested(hpa=template, buckets=_ONE)).signals
    assert isinstance(signal, Utilization) and signal.percent == 150


def test_unquoted_off_gets_the_hint() -> None:
    with pytest.raises(InvalidObject, match="quote it: YAML reads an unquoted Off"):
        read(nested(hpa={"scaleUp": {"updatePolicy": {"updateMode": False}}}))


def test_overlapping_stages_are_taken_in_the_order_written() -> None:
    stages = [
        {"vpaWeight": 60, "startReplicaCount": 3, "lastReplicaCount": 7},
        {"vpaWeight": 0, "startReplicaCount": 7, "lastReplicaCount": 10},
    ]
    blend = compiled(nested(weightBasedScalingIntervals=stages)).blend
    assert isinstance(blend, Weights)
    assert [stage.first for stage in blend.stages] == [3, 7]


def test_two_spellings_of_the_minimum_are_one_too_many() -> None:
    policy = {"containerName": "app", "MinAllowed": {"cpu": "1"}}
    template = {"resourcePolicy": {"containerPolicies": [policy]}}
    base = {
        "hpaTemplate": {"maxReplicas": 2},
        "vpaTemplate": template,
        "weightBasedScalingIntervals": [{"vpaWeight": 1}],
    }
    rule = compiled(hvpa(**base)).vertical
    assert rule is not None
    assert rule.containers[0].least == Size(cpu_cores=1)
    twice = copy.deepcopy(base)
    twice["vpaTemplate"]["resourcePolicy"]["containerPolicies"][0]["minAllowed"] = {"cpu": "1"}  # type: ignore[index]
    with pytest.raises(InvalidObject, match="write minAllowed once"):
        read(hvpa(**twice))


def test_fields_that_mean_nothing_here_are_answered_with_a_warning() -> None:
    manifest = nested(hpa={"selector": {"matchLabels": {"a": "b"}}}, buckets=_ONE, replicas=3)
    assert [warned.path for warned in warnings(read(manifest))] == ["spec.replicas", "spec.hpa.selector"]


@pytest.mark.parametrize(
    "text, clock", [("160554+0200", (14, 5, 54)), ("003000+0100", (23, 30, 0)), ("233000-0100", (0, 30, 0))]
)
def test_clock_times_are_utc(text: str, clock: tuple[int, int, int]) -> None:
    assert clock_s(text) == clock[0] * 3600 + clock[1] * 60 + clock[2]


@pytest.mark.parametrize(
    "text", ["250554+0200", "167254+0200", "160597+0200", "foo", "160554", "160554 0200", "16:05:54+0"]
)
def test_clock_times_that_do_not_exist(text: str) -> None:
    with pytest.raises(InvalidInput):
        clock_s(text)
