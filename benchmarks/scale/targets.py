"""What is promised of ten thousand objects with twenty thousand pods, by the names of the figures."""

from __future__ import annotations

from typing import Any, NamedTuple


class Target(NamedTuple):
    text: str
    name: str
    most: float
    digits: int = 0

    def is_reached(self, found: dict[str, Any]) -> bool:
        return bool(found[self.name] <= self.most)


TARGETS = (
    Target("longest time from tick to tick, s", "tick_longest_interval_s", 15.3, 2),
    Target("a tick takes, p99, s", "tick_p99_s", 5.0, 2),
    Target("CPU of the operator per object and tick, ms", "operator_cpu_ms_per_object", 0.25, 3),
    Target("CPU with API server, etcd, metrics-server and Prometheus, ms", "all_cpu_ms_per_object", 1.0, 3),
    Target("memory, MB", "rss_mb", 1000.0),
    Target("writes while nothing changes", "idle_writes", 0),
    Target("GETs of single objects while nothing changes", "idle_gets", 0),
    Target("samples missing", "missing_samples", 0),
    Target("storm: from the tick to the last write, s", "storm_after_tick_s", 10.0, 1),
    Target("rollout: scalings", "rollout_scalings", 0),
    Target("restart: first whole tick after, s", "restart_s", 20.0, 1),
    Target("restart: scalings", "restart_scalings", 0),
    Target("lost leader: scalings", "leader_change_scalings", 0),
)


def holds(found: dict[str, Any]) -> dict[str, bool]:
    return {target.text: target.is_reached(found) for target in TARGETS if target.name in found}
