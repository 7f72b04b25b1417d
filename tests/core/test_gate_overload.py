"""Which deaths mean that a workload is too small."""

from __future__ import annotations

import pytest

from trimtab.core.overload import still_matters


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
