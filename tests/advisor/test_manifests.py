"""Advice as manifests that the kinds accept, and as the text Crane prints."""

from __future__ import annotations

from typing import get_args

import pytest
import yaml

from tests.advisor.workloads import END, target
from trimtab.advisor.manifests import Shape, manifest, recommended_value
from trimtab.core.advise import WorkloadAdvice
from trimtab.errors import InvalidInput
from trimtab.kinds import Autoscaler, EffectiveHpa, Hpa, read
from trimtab.policy import Advice, Size

PRINTED = """maxReplicas: 2
metrics:
- resource:
    name: cpu
    target:
      averageUtilization: 75
      type: Utilization
  type: Resource
minReplicas: 2
"""
QUEUE = {"type": "External", "external": {"metric": {"name": "jobs"}, "target": {"type": "Value", "value": "7"}}}
FOUND = WorkloadAdvice(min_replicas=2, max_replicas=2, target_percent=75)
RICH = WorkloadAdvice(
    min_replicas=3,
    max_replicas=33,
    target_percent=60,
    predictable=True,
    metrics=(QUEUE,),
    behavior={"scaleDown": {"stabilizationWindowSeconds": 77}},
)
SIZES = WorkloadAdvice(sizes={"app": Size(cpu_cores=0.25, memory_bytes=2.0**28)})


def test_the_value_is_printed_as_in_crane() -> None:
    assert recommended_value(Advice.HPA, FOUND) == PRINTED


def test_the_value_of_the_other_kinds() -> None:
    sizes = yaml.safe_load(recommended_value(Advice.RESOURCE, SIZES))
    assert sizes == {"containers": [{"containerName": "app", "target": {"cpu": "250m", "memory": "256Mi"}}]}
    replicas = yaml.safe_load(recommended_value(Advice.REPLICAS, WorkloadAdvice(replicas=6)))
    assert replicas == {"replicasRecommendation": {"replicas": 6}}


@pytest.mark.parametrize("shape, kind", [("hpa", Hpa), ("ehpa", EffectiveHpa), ("autoscaler", Autoscaler)])
def test_manifests_are_what_the_kinds_read(shape: Shape, kind: type) -> None:
    found = read(manifest(shape, Advice.HPA, target("web"), RICH))
    assert isinstance(found, kind)
    policy = found.to_policy(END)  # type: ignore[attr-defined]
    assert (policy.bounds.min_replicas, policy.bounds.max_replicas) == (3, 33)
    assert len(policy.signals) == 2 and policy.signals[0].percent == 60
    assert (policy.forecast is not None) == (shape != "hpa")
    assert found.target.name == "web"  # type: ignore[attr-defined]


def test_an_effective_hpa_only_previews() -> None:
    assert manifest("ehpa", Advice.HPA, target("web"), FOUND)["spec"]["scaleStrategy"] == "Preview"


def test_patches_hold_only_what_changes() -> None:
    sizes = manifest("patch", Advice.RESOURCE, target("web"), SIZES)
    requests = {"cpu": "250m", "memory": "256Mi"}
    assert sizes["spec"] == {
        "template": {"spec": {"containers": [{"name": "app", "resources": {"requests": requests}}]}}
    }
    replicas = manifest("patch", Advice.REPLICAS, target("web"), WorkloadAdvice(replicas=6))
    assert replicas["spec"] == {"replicas": 6}


def test_a_patch_writes_a_sidecar_where_it_stands() -> None:
    found = WorkloadAdvice(sizes={"app": Size(cpu_cores=0.25), "proxy": Size(cpu_cores=0.1)})
    made = manifest("patch", Advice.RESOURCE, target("web", sidecars=("proxy",)), found)
    pod = made["spec"]["template"]["spec"]
    assert [container["name"] for container in pod["containers"]] == ["app"]
    assert [container["name"] for container in pod["initContainers"]] == ["proxy"]


def test_shapes_that_do_not_fit_say_which_do() -> None:
    with pytest.raises(InvalidInput, match="--as hpa, ehpa or autoscaler"):
        manifest("patch", Advice.HPA, target("web"), FOUND)
    for shape in set(get_args(Shape)) - {"patch"}:
        with pytest.raises(InvalidInput, match="--as patch"):
            manifest(shape, Advice.RESOURCE, target("web"), SIZES)
