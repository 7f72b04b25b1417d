"""What a pod asks for, as Kubernetes adds it up."""

from __future__ import annotations

import pytest

from trimtab.core.model import Pod
from trimtab.core.requests import ContainerRequest, pod_request, with_requests
from trimtab.errors import InvalidInput
from trimtab.policy import Size

APP = ContainerRequest(name="app", request=Size(cpu_cores=0.5, memory_bytes=1e9))
LOG = ContainerRequest(name="log", request=Size(cpu_cores=0.1, memory_bytes=2e8))
BARE = ContainerRequest(name="bare", request=Size(memory_bytes=1e8))
SETUP = ContainerRequest(name="setup", request=Size(cpu_cores=4.0, memory_bytes=4e9), init=True)
MESH = ContainerRequest(name="mesh", request=Size(cpu_cores=0.2, memory_bytes=1e8), init=True, restartable=True)


@pytest.mark.parametrize(
    "containers, pod_level, name, wanted",
    [
        pytest.param([APP, LOG], None, "", (0.6, 1.2e9), id="the sum"),
        pytest.param([APP, SETUP], None, "", (0.5, 1e9), id="an init container is gone when the pod serves"),
        pytest.param([APP, MESH], None, "", (0.7, 1.1e9), id="a sidecar stays"),
        pytest.param([APP, BARE], None, "", (None, 1.1e9), id="one missing request hides that sum only"),
        pytest.param([APP, BARE], Size(cpu_cores=2.0), "", (2.0, 1.1e9), id="the pod's own request wins"),
        pytest.param([APP, LOG], Size(cpu_cores=2.0), "log", (0.1, 2e8), id="a named container alone"),
        pytest.param([APP, MESH], None, "mesh", (0.2, 1e8), id="a named sidecar"),
        pytest.param([], None, "", (None, None), id="a pod without containers asks for nothing known"),
    ],
)
def test_pod_request(
    containers: list[ContainerRequest],
    pod_level: Size | None,
    name: str,
    wanted: tuple[float | None, float | None],
) -> None:
    found = pod_request(containers, pod_level, name)
    assert (found.cpu_cores, found.memory_bytes) == pytest.approx(wanted)


@pytest.mark.parametrize("name", ["nobody", "setup"])
def test_an_unknown_container_is_named(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name}.*it has: app, log"):
        pod_request([APP, LOG, SETUP], None, name)


def test_a_pod_is_filled_with_its_requests_and_whom_to_blame() -> None:
    pod = with_requests(Pod(name="web-1"), [APP, BARE, SETUP])
    assert pod.requests == Size(memory_bytes=1.1e9)
    assert pod.containers == {"app": APP.request, "bare": BARE.request}
    assert pod.no_request == "bare"
    assert with_requests(Pod(name="web-1"), [APP, BARE], Size(cpu_cores=1.0)).no_request == ""
