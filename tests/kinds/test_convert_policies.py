"""What a conversion makes compiles to the policy of its source, or every part that differs is named as a loss."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import assume, given, settings
from msgspec.structs import replace

from tests.kinds import generate
from tests.kinds.test_convert_any import EXAMPLES
from trimtab.cli import main
from trimtab.errors import InvalidInput
from trimtab.kinds import CustomHpa, Scaler, is_custom_hpa, read
from trimtab.kinds.convert import TARGETS, Lost, convert
from trimtab.kinds.schedule import schedules_alone
from trimtab.policy import RESOURCES, Policy, Vertical, Weights

NOW = 1_700_000_000.0
Manifest = dict[str, Any]
# By which words of its path a loss speaks of a part of the policy.
_WAYS = ("behavior", "scaleUp", "scaleDown")
SPEAKS_OF: dict[str, tuple[str, ...]] = {
    "signals": ("metrics", "crons", "deploy", "buckets", "tolerance", *_WAYS),
    "combine": ("metrics",),
    "absence": ("onMetricFailure", "tolerateZero"),
    "pods": ("readinessDelay", "cpuInitializationPeriod", "initialReadinessDelay"),
    "settle": ("deploy", "buckets", "ForbiddenWindowSeconds", "downscaleStabilization", *_WAYS),
    "vertical": ("vertical", "vpa"),
    "bridge": ("bridge",),
    "blend": ("blend", "buckets", "weightBasedScalingIntervals", "vertical", "exact"),
    "gates": (*_WAYS, "minCpuChange", "vertical", "ForbiddenWindowSeconds"),
    "bounds": ("schedules", "crons"),
    "admit": ("mode", "scaleStrategy", "dryRun"),
    "forecast": ("forecast", "objective", "prediction", "predictive", "models"),
    "objective": ("objective",),
    "tuning": ("tuning",),
    "replays_noop": ("target",),
}


ALONE: Manifest = {
    "apiVersion": "trimtab.dev/v1alpha1",
    "kind": "Autoscaler",
    "metadata": {"name": "web"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": 9,
        "metrics": [schedules_alone()],
    },
}


def silent(manifest: Manifest, to: str) -> dict[str, tuple[Any, Any]]:
    """The parts of the policy that a conversion changes without a word."""
    made, lost = convert(copy.deepcopy(manifest), to)
    before, after = _plain(_policy(manifest)), _plain(_policy(made))
    if not before.signals and after.signals == _policy(ALONE).signals:  # crons alone, see decision 137
        after = replace(after, signals=(), bounds=before.bounds)
    changed = [name for name in Policy.__struct_fields__ if getattr(before, name) != getattr(after, name)]
    return {name: (getattr(before, name), getattr(after, name)) for name in changed if not _named(name, lost)}


def _policy(manifest: Manifest) -> Policy:
    if is_custom_hpa(manifest):
        return CustomHpa.from_values(manifest).to_policy(NOW)
    obj = read(manifest)
    assert isinstance(obj, Scaler)
    return obj.to_policy(NOW)


def _named(part: str, lost: list[Lost]) -> bool:
    return any(word in loss.path for loss in lost for word in SPEAKS_OF[part])


def _plain(policy: Policy) -> Policy:
    """Without what cannot act: sizes that nobody sets, their gates, and weights that leave everything to replicas."""
    if not (policy.vertical is None or _sizes_nothing(policy.vertical)):
        return policy
    blend = policy.blend
    if isinstance(blend, Weights) and not any(stage.vertical_share for stage in blend.stages):
        blend = None
    gates = tuple(gate for gate in policy.gates if gate.axis not in RESOURCES)
    return replace(policy, vertical=None, gates=gates, blend=blend)


def _sizes_nothing(vertical: Vertical) -> bool:
    return all(rule.off for rule in vertical.containers) and bool(vertical.containers)


@pytest.mark.parametrize("to", [to for to in TARGETS if to != "analytics"])
@pytest.mark.parametrize(
    "manifests",
    [
        generate.HPAS,
        generate.EHPAS,
        generate.HVPAS,
        generate.VERTICAL_HVPAS,
        generate.AUTOSCALERS,
        generate.WATERMARKS,
        generate.PREDICTIVE_HPAS,
    ],
    ids=["hpa", "ehpa", "hvpa", "vertical-hvpa", "autoscaler", "wpa", "phpa"],
)
def test_no_part_of_a_policy_changes_in_silence(manifests: generate.Strategy, to: str) -> None:
    @settings(max_examples=60, deadline=None)
    @given(manifest=generate.annotated(manifests))
    def holds(manifest: Manifest) -> None:
        try:
            found = silent(manifest, to)
        except InvalidInput:
            assume(False)
            return
        assert found == {}

    holds()


def _hvpa(**spec: Any) -> Manifest:
    target = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "etcd"}
    head = {"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "Hvpa", "metadata": {"name": "etcd"}}
    return head | {"spec": {"targetRef": target} | spec}


def _scaled(kind: str, version: str, notes: Manifest | None = None, **spec: Any) -> Manifest:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    metadata = {"name": "web"} | ({"annotations": notes} if notes else {})
    spec = {"scaleTargetRef": target, "maxReplicas": 9} | spec
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("hpa", [{}, {"hpa": {"scaleUp": {"stabilizationDuration": "3m"}}}], ids=["none", "gates"])
def test_weights_without_an_hpa_stay_vertical_only(hpa: Manifest) -> None:
    """A conversion that adds maxReplicas: 1 would take two members of an etcd of three away."""
    weights = [{"vpaWeight": 100, "startReplicaCount": 1, "lastReplicaCount": 5}]
    made, lost = convert(_hvpa(vpa={}, weightBasedScalingIntervals=weights, **hpa), "autoscaler")
    assert set(made["spec"]) == {"scaleTargetRef", "vertical"}
    assert "spec.weightBasedScalingIntervals" in [loss.path for loss in lost]
    assert ("spec.hpa.scaleUp" in [loss.path for loss in lost]) == bool(hpa)


def test_buckets_without_an_hpa_keep_their_bounds_and_are_refused_for_the_signal() -> None:
    buckets = [{"replicas": {"min": 2, "max": 8}, "cpu": {"min": 1, "max": 9}}]
    result = convert(_hvpa(vpa={"deploy": True}, buckets=buckets), "autoscaler")
    assert (result.manifest["spec"]["minReplicas"], result.manifest["spec"]["maxReplicas"]) == (2, 8)
    assert result.loses_signal


def test_what_has_no_vertical_part_is_no_hvpa_that_sizes_pods() -> None:
    made, lost = convert(_scaled("HorizontalPodAutoscaler", "autoscaling/v2"), "hvpa")
    assert made["spec"]["vpa"] == {"deploy": False}
    assert lost == []


def test_exact_travels_with_the_line() -> None:
    notes = {"predictive": "true", "trimtab.dev/exact": "true"}
    hpa = _scaled("HorizontalPodAutoscaler", "autoscaling/v2", notes)
    made, lost = convert(hpa, "autoscaler")
    assert (made["spec"]["forecast"], lost) == ({"model": "linear", "exact": True}, [])
    assert "annotations" not in made["metadata"]
    assert convert(made, "hpa") == (hpa, [])


@pytest.mark.parametrize(
    ("forecast", "path"),
    [
        ({"model": "dsp", "horizon": 300, "exact": True}, "spec.forecast.exact"),
        ({"model": "seasonal", "horizon": 300}, "spec.forecast.model"),
        ({"model": "dsp", "horizon": "1500ms"}, "spec.forecast.horizon"),
    ],
)
def test_what_an_ehpa_cannot_predict_is_named(forecast: Manifest, path: str) -> None:
    written = _scaled("Autoscaler", "trimtab.dev/v1alpha1", forecast=forecast)
    assert [loss.path for loss in convert(written, "ehpa").lost] == [path]


def test_an_annotation_that_says_nothing_does_not_begin_to_act() -> None:
    notes = {"trimtab.dev/tuning": "Nightly"}
    made, _ = convert(_scaled("HorizontalPodAutoscaler", "autoscaling/v2", notes), "ehpa")
    assert "annotations" not in made["metadata"]


def test_cpu_is_written_beside_crons_which_would_decide_alone() -> None:
    schedule = {"name": "day", "start": "0 8 * * *", "end": "0 18 * * *", "minReplicas": 3}
    written = _scaled("Autoscaler", "trimtab.dev/v1alpha1", schedules=[schedule])
    made, lost = convert(written, "ehpa")
    assert (_policy(made).signals, lost) == (_policy(written).signals, [])


def test_kedas_polling_interval_names_an_option_that_there_is() -> None:
    keda = next(value for value in EXAMPLES.values() if value.get("kind") == "ScaledObject")
    spec = keda["spec"] | {"pollingInterval": 10}
    (why,) = (loss.why for loss in convert(keda | {"spec": spec}, "autoscaler").lost if "pollingInterval" in loss.path)
    option = why.partition("(")[2].removesuffix(")")
    assert option in CliRunner().invoke(main, ["run", "--help"]).output
