"""What a pod says of its bridge: which factor, of which containers, and what was written under it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.core.model import ContainerSize
from trimtab.policy import Size
from trimtab.wire.from_kubernetes import (
    as_written,
    carries,
    factor_on,
    grown,
    has_sizes,
    manager_of,
    pod_from_wire,
    written_sizes,
)
from trimtab.wire.objects import WirePod

RESTARTS = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]


def container(name: str = "app", cpu: str = "500m", **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}, "limits": {"cpu": cpu}}} | more


def pod(*managers: str, containers: list[dict[str, Any]] | None = None, **spec: Any) -> WirePod:
    meta = {"name": "a", "managedFields": [{"manager": name, "fieldsV1": {"f:spec": {}}} for name in managers]}
    return msgspec.convert({"metadata": meta, "spec": {"containers": containers or [container()]} | spec}, WirePod)


@pytest.mark.parametrize(
    ("managers", "factor"),
    [
        ((), 1.0),
        (("kubelet", "trimtab"), 1.0),
        (("kubelet", "trimtab-bridge-1.25"), 1.25),
        (("trimtab-bridge-1.25", "kubelet", "trimtab-bridge-1.5"), 1.5),
        (("trimtab-bridge-0.1",), 1.0),
        (("trimtab-bridge-1e9",), 1.0),
        (("trimtab-bridge-nan",), 1.0),
        (("trimtab-bridge-",), 1.0),
    ],
)
def test_the_field_manager_names_the_factor(managers: tuple[str, ...], factor: float) -> None:
    assert factor_on(pod(*managers)) == factor


@pytest.mark.parametrize(
    ("bridged", "written", "factor"),
    [("12:00:00", "12:05:00", 1.0), ("12:05:00", "12:00:00", 1.5), ("12:00:00", "12:00:00", 1.0)],
)
def test_of_our_names_the_one_that_wrote_last_speaks(bridged: str, written: str, factor: float) -> None:
    """The API server keeps the row of a bridge that wrote memory, too, when its cpu is taken back."""
    moments = {"trimtab": written, "trimtab-bridge-1.5": bridged, "kubelet": "12:09:00"}
    rows = [{"manager": name, "time": f"2026-01-01T{moment}Z"} for name, moment in moments.items()]
    meta = {"name": "a", "managedFields": rows}
    assert factor_on(msgspec.convert({"metadata": meta, "spec": {"containers": [container()]}}, WirePod)) == factor


def test_a_written_size_is_no_bridge() -> None:
    assert [manager_of(factor) for factor in (1.0, 1.25, 1.5)] == [
        "trimtab",
        "trimtab-bridge-1.25",
        "trimtab-bridge-1.5",
    ]


@given(
    request=st.integers(1, 200_000),
    more=st.integers(0, 1000),
    factor=st.sampled_from([1.25, 1.5]),
    memory=st.floats(1e6, 1e12),
)
def test_what_is_grown_comes_back_to_the_millicore(request: int, more: int, factor: float, memory: float) -> None:
    size = ContainerSize(
        requests=Size(cpu_cores=request / 1000, memory_bytes=memory),
        limits=Size(cpu_cores=(request + more) / 1000, memory_bytes=memory),
    )
    large = grown(size, factor)
    assert as_written(large, factor) == size
    assert large.requests.memory_bytes == large.limits.memory_bytes == memory, "never memory"
    assert large.requests.cpu_cores is not None and large.limits.cpu_cores is not None
    assert request / 1000 <= large.requests.cpu_cores <= request / 1000 * factor + 0.001
    assert (large.requests == large.limits) == (size.requests == size.limits), "the QoS class stays"


def test_utilisation_is_counted_against_the_written_request() -> None:
    bridged = pod("trimtab-bridge-1.5", containers=[container(cpu="750m"), container("sidecar", "150m")])
    assert pod_from_wire(bridged).requests.cpu_cores == pytest.approx(0.6)
    assert pod_from_wire(bridged).containers["app"] == Size(cpu_cores=0.5, memory_bytes=2.0**30)
    assert has_sizes(bridged, {"app": ContainerSize(requests=Size(cpu_cores=0.5))})


def test_containers_that_a_resize_restarts_are_left_out() -> None:
    mixed = pod("trimtab-bridge-1.25", containers=[container(cpu="625m"), container("old", resizePolicy=RESTARTS)])
    assert [one.name for one in carries(mixed)] == ["app"]
    assert {name: size.requests.cpu_cores for name, size in written_sizes(mixed).items()} == {"app": 0.5, "old": 0.5}


def test_neither_pods_without_requests_nor_those_with_requests_as_a_whole_grow() -> None:
    assert carries(pod(containers=[{"name": "app"}])) == []
    assert carries(pod(resources={"requests": {"cpu": "1"}})) == []
