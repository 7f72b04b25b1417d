"""What tuning promises of a manifest is what a backtest says of it, to the digit: as it is written, and as it comes
out."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import asdict, replace

from trimtab.core.figures import Figures
from trimtab.core.tuned import settings_of
from trimtab.kinds import Scaler, read
from trimtab.policy import Policy
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.generate import SHAPES, LoadShape, generate
from trimtab.tune.case import Case
from trimtab.tune.demand import Demand
from trimtab.tune.manifest import tunable_manifest, with_new_settings, writable_space
from trimtab.tune.search import search

Manifest = dict[str, Any]
CLUSTER = ClusterSpec(startup_s=600)
OURS, CRANE = (
    ("trimtab.dev/v1alpha1", "Autoscaler"),
    ("autoscaling.crane.io/v1alpha1", "EffectiveHorizontalPodAutoscaler"),
)
KUBERNETES = ("autoscaling/v2", "HorizontalPodAutoscaler")
WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def cpu(percent: int = 70, **more: str) -> Manifest:
    kind = "containerResource" if more else "resource"
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": kind[0].upper() + kind[1:], kind: {"name": "cpu", "target": target, **more}}


def manifest(named: tuple[str, str] = OURS, *, annotations: Manifest | None = None, **spec: Any) -> Manifest:
    bounds = {"scaleTargetRef": WEB, "minReplicas": 2, "maxReplicas": 60}
    metadata = {"name": "web", "annotations": annotations or {}}
    return {
        "apiVersion": named[0],
        "kind": named[1],
        "metadata": metadata,
        "spec": bounds | {"metrics": [cpu()]} | spec,
    }


def policy_of(written: Manifest) -> Policy:
    kind = read(written)
    assert isinstance(kind, Scaler)
    return kind.to_policy(0.0)


TOLERANCES = {"scaleUp": {"tolerance": "0.02"}, "scaleDown": {"tolerance": "0.2"}}
SLOWLY = {
    "scaleUp": {"stabilizationWindowSeconds": 60, "policies": [{"type": "Percent", "value": 50, "periodSeconds": 60}]},
    "scaleDown": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]},
}
QUERY = {
    "type": "Prometheus",
    "prometheus": {"query": "sum(load)", "target": {"type": "AverageValue", "averageValue": "0.7"}},
}
OFFICE = [{"name": "o", "timezone": "UTC", "start": "0 8 * * *", "end": "0 18 * * *", "minReplicas": 20}]


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(manifest(), id="nothing but a target"),
        pytest.param(manifest(metrics=[cpu(57)]), id="a target that is none of the candidates"),
        pytest.param(manifest(metrics=[cpu(container="web")]), id="one container"),
        pytest.param(manifest(metrics=[QUERY]), id="a query"),
        pytest.param(manifest(behavior=TOLERANCES), id="another tolerance in each direction"),
        pytest.param(manifest(behavior=SLOWLY), id="written rates"),
        pytest.param(manifest(bridge={"maxFactor": "1.25", "ceiling": "0.7"}), id="a bridge"),
        pytest.param(manifest(schedules=OFFICE), id="a schedule"),
        pytest.param(manifest(KUBERNETES), id="HPA"),
        pytest.param(manifest(CRANE, scaleStrategy="Auto"), id="EHPA"),
        pytest.param(manifest(CRANE, annotations={"trimtab.dev/bridge": "1.5"}), id="EHPA with a bridge"),
    ],
)
def test_the_figures_of_tuning_are_those_of_a_backtest(written: Manifest) -> None:
    load = Demand("office", generate(LoadShape(**{**SHAPES["office"].__dict__, "days": 2})), 0.0)
    policy = policy_of(written)
    case = Case(load, policy, CLUSTER, 32.0)
    found = search(case, writable_space(str(written["kind"]), policy, CLUSTER))
    new = with_new_settings(tunable_manifest(written), found.was, found.now).manifest if found.changed else written
    assert about(found.before) == about(case.outcome("was").figures)
    assert about(found.after) == about(case.with_policy(policy_of(new)).outcome("now").figures)


def about(figures: Figures) -> dict[str, float]:
    """Every figure as it is printed and some digits more."""
    return {name: float(f"{value:.9g}") for name, value in asdict(figures).items()}


def test_a_bridge_alone_leaves_everything_else_as_it_is_written() -> None:
    written = manifest(behavior=TOLERANCES)
    was = settings_of(policy_of(written))
    new = with_new_settings(tunable_manifest(written), was, replace(was, ceiling=0.75)).manifest
    assert new["spec"] == written["spec"] | {"bridge": {"maxFactor": "1.5", "ceiling": "0.75"}}
