"""A simulated workload in a journal: its acts replay clean, and its looks have the bridge that the simulation had."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from trimtab.journal import Journal, ObjectName
from trimtab.journal_replay import replay
from trimtab.policy import SLO, Bounds, Bridge, Metric, MetricKind, Policy, Rate, Stabilise, Utilization
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.tune.recording import record

CPU = Utilization(metric=Metric(kind=MetricKind.RESOURCE, name="cpu"), percent=70)


def test_a_bridge_is_in_the_looks_and_not_in_the_acts(tmp_path: Path) -> None:
    policy = Policy(signals=(CPU,), settle=(Stabilise(), Rate()), bounds=Bounds(2, 40), bridge=Bridge())
    load = np.concatenate((np.full(80, 7.0), np.full(160, 11.0)))
    journal = Journal(tmp_path / "j.db")
    name, cluster = ObjectName("Autoscaler", "shop", "web"), ClusterSpec(startup_s=600)
    ticks = record(journal, name, policy, load, cluster, first_pods=10, start=1_760_000_400.0)
    journal.close()
    factors = [tick.bridge for tick in ticks]
    assert factors[70] == 1.0 and max(factor for factor in factors if factor is not None) == 1.5
    for tick in ticks:
        assert tick.bridge is not None and tick.capacity == SLO * tick.ready * tick.bridge
    found = replay(tmp_path / "j.db")
    assert found.checked > 0 and found.differences == ()
