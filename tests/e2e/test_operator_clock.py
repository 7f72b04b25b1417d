"""An operator on a node whose clock is wrong, on a real control plane: it scales, and names the clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.live.running import Running, autoscaler, conditions, install_crds, replicas

pytestmark = pytest.mark.e2e
WRONG = "import time; right = time.time; time.time = lambda: right() + {by_s}; from trimtab.cli import main; main()"


@pytest.mark.parametrize("by_s", [600, -600])
def test_it_scales_by_the_time_of_the_api_server(bed: Bed, namespace: str, tmp_path: Path, by_s: int) -> None:
    install_crds(bed)
    bed.load(namespace, "web", cores=0.9)
    bed.apply(deployment(namespace, "web", replicas=1, cpu="250m"), autoscaler(namespace, maxReplicas=4))
    running = Running(bed, namespace, tmp_path)
    running.command[2] = WRONG.format(by_s=by_s)
    running.start()
    try:
        way = "ahead of" if by_s > 0 else "behind"
        said = f"the clock of the operator's node is 600 s {way} the API server's"
        eventually(lambda: _holds(said, running.get("/readyz")), 120, "readyz names the clock")
        eventually(lambda: _equal(replicas(bed, namespace), 4), 180, "samples are fresh by the API server's time")
        eventually(lambda: _equal(conditions(bed, namespace)["Ready"]["reason"], "ClockWrong"), 60)
        assert 'trimtab_clock_ahead_seconds{of="operator"}' in running.get("/metrics")
    finally:
        running.stop()


def _holds(words: str, text: str) -> str:
    assert words in text, text
    return text


def _equal(found: object, wanted: object) -> bool:
    assert found == wanted, found
    return True
