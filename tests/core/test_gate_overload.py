"""Which deaths mean that a workload is too small."""

from __future__ import annotations

import pytest

from trimtab.core.overload import evicted, oom_killed, still_matters


@pytest.mark.parametrize(
    "before, restarts, reason, counts",
    [
        pytest.param(0, 1, "OOMKilled", True, id="killed for memory"),
        pytest.param(None, 1, "OOMKilled", True, id="seen for the first time"),
        pytest.param(None, 0, "OOMKilled", False, id="not restarted yet"),
        pytest.param(3, 3, "OOMKilled", False, id="known already"),
        pytest.param(3, 4, "Error", False, id="another death"),
    ],
)
def test_oom_kill(before: int | None, restarts: int, reason: str, counts: bool) -> None:
    assert oom_killed(before, restarts, reason) is counts


@pytest.mark.parametrize(
    "before, reason, node_reason, status, counts",
    [
        pytest.param(False, "Evicted", "KubeletHasInsufficientMemory", "True", True, id="from a full node"),
        pytest.param(False, "Evicted", "KubeletHasSufficientMemory", "False", False, id="for another reason"),
        pytest.param(True, "Evicted", "KubeletHasInsufficientMemory", "True", False, id="once for each pod"),
        pytest.param(False, "Preempted", "KubeletHasInsufficientMemory", "True", False, id="not evicted"),
    ],
)
def test_eviction(before: bool, reason: str, node_reason: str, status: str, counts: bool) -> None:
    assert evicted(before, reason, node_reason, status) is counts


@pytest.mark.parametrize(
    "died_at, scaled_at, on_a_node, current_size, matters",
    [
        pytest.param(100, None, True, True, True, id="nothing was done about it yet"),
        pytest.param(100, 99, True, True, True, id="after the last scaling"),
        pytest.param(100, 100, True, True, False, id="before it"),
        pytest.param(100, 99, True, False, False, id="of a pod of another size"),
        pytest.param(100, 99, False, True, False, id="of a pod that never ran"),
    ],
)
def test_what_still_matters(
    died_at: float, scaled_at: float | None, on_a_node: bool, current_size: bool, matters: bool
) -> None:
    assert still_matters(died_at, scaled_at, on_a_node, current_size) is matters
