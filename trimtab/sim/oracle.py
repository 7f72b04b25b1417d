"""The clairvoyant optimum: the cheapest replicas that never violate, known only in hindsight.

Pods bill from creation and serve after L steps, so the k-th pod is kept through gaps of at most L steps and otherwise
created L steps before it is needed: optimum = sum over t of max(d_t .. d_{t+L}).
"""

from __future__ import annotations

import numpy as np

from trimtab.policy import SLO
from trimtab.series import Floats
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.grid import delay_steps
from trimtab.sim.queue import fewest_pods
from trimtab.sim.score import Counts
from trimtab.sim.sliding_windows import forward_max


def pods_needed(load: Floats, least: int, slo: float = SLO) -> Counts:
    """The fewest ready pods that serve each step within the service level."""
    return np.maximum(least, np.ceil(load / slo - 1e-9)).astype(np.int32)


def optimum(needed: Counts, delay: int) -> Counts:
    """The billed pods of the clairvoyant run at each step, where pods start in `delay` steps."""
    return forward_max(needed, delay)


def optimum_on(cluster: ClusterSpec, load: Floats, least: int = 1) -> Floats:
    """Return the optimum of a cluster at each step; of a queue, a lower bound of it."""
    delay = delay_steps(cluster.startup_s)
    if cluster.queue:
        return fewest_pods(load, cluster.queue.wait_s, delay, least)
    pods = optimum(pods_needed(load, least, cluster.level_share), delay).astype(np.float64)
    return pods if cluster.memory_load is None else _with_used_memory(cluster, pods)


def _with_used_memory(cluster: ClusterSpec, pods: Floats) -> Floats:
    """Half of what a pod is billed for is memory: the cheapest run reserves what is used and no more."""
    assert cluster.memory_load is not None
    used_bytes = cluster.base_memory_bytes * pods + cluster.memory_load[: len(pods)]
    return (pods + np.minimum(pods, used_bytes / cluster.pod_memory_bytes)) / 2.0
