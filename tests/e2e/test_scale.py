"""The benchmark of a mixed fleet, with two hundred objects: what must hold whatever the machine is.

On a control plane of its own: a cluster-wide operator would serve other tests' objects, too.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.live import prepare, run
from benchmarks.scale.fleet import Fleet
from tests.bed import Bed


@pytest.mark.e2e
@pytest.mark.disruptive
@pytest.mark.timeout(1800)
def test_a_fleet_through_calm_storm_rollout_restart_and_loss_of_its_leader(tmp_path: Path) -> None:
    fleet = Fleet.of(objects=200, namespaces=10, pods_each=1, mixed=True)
    with Bed.start() as bed:
        prepare(bed, fleet, mixed=True)
        phases = run(bed, fleet, ticks=2, folder=tmp_path, mixed=True)
        found = {name: value for phase in phases for name, value in phase.items()}
    assert (found["idle_writes"], found["idle_gets"]) == (0, 0), "nothing is asked or written while nothing changes"
    assert found["missing_samples"] == 0, "every query has its answer, though a namespace's go together"
    assert found["storm_objects"] == 20
    scalings = [found[f"{what}_scalings"] for what in ("rollout", "restart", "leader_change")]
    assert scalings == [0, 0, 0], "the load has not changed"
