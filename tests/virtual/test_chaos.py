"""Twenty seeds of trouble; `make chaos` runs as many as it is given."""

from __future__ import annotations

import pytest

from tests.virtual.chaos.run import run


@pytest.mark.parametrize("seed", range(20))
def test_every_invariant_holds(seed: int) -> None:
    found = run(seed)
    assert not found.wrong, f"{found.wrong}; replay it: python -m tests.virtual.chaos --seeds 1 --first {seed}"
