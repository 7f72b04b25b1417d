"""What the target of an object allows: DaemonSets are only advised, a JVM keeps its memory."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.live.build import custom, spec, subject
from trimtab.errors import InvalidInput
from trimtab.live.look.cluster import ScaleTarget
from trimtab.live.look.sizes import fit_to_target
from trimtab.policy import Apply
from trimtab.wire.objects import WireWorkload
from trimtab.wire.resources import DAEMON_SETS, DEPLOYMENTS, Resource

VERTICAL = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent"}, "vertical": {}}


def target(resource: Resource, image: str = "agent:1") -> ScaleTarget:
    made = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}}
    return ScaleTarget(resource, "shop", "agent", "d", "7", 1, 1, msgspec.convert(made, WireWorkload))


def test_a_daemon_set_is_only_advised() -> None:
    one = subject(custom(spec=VERTICAL))
    on_nodes = fit_to_target(one, target(DAEMON_SETS)).policy.vertical
    elsewhere = fit_to_target(one, target(DEPLOYMENTS)).policy.vertical
    assert on_nodes is not None and on_nodes.apply is Apply.NEVER
    assert elsewhere is not None and elsewhere.apply is Apply.IN_PLACE


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(spec(), id="replicas"),
        pytest.param(VERTICAL | {"minReplicas": 3}, id="a floor"),
        pytest.param(spec(vertical={}), id="both axes"),
    ],
)
def test_a_daemon_set_has_no_replicas_to_move(written: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="one pod per node"):
        fit_to_target(subject(custom(spec=written)), target(DAEMON_SETS))


@pytest.mark.parametrize("image, memory", [("eclipse-temurin:21", True), ("shop/java-api:3", True), ("nginx", False)])
def test_memory_of_a_jvm_image_is_not_lowered(image: str, memory: bool) -> None:
    found = fit_to_target(subject(custom(spec=VERTICAL)), target(DEPLOYMENTS, image)).policy.vertical
    assert found is not None and found.keep_memory is memory
