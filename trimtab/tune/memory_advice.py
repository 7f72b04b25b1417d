"""Memory requests for pods that may carry more work than they do now: lowered only as far as that allows."""

from __future__ import annotations

from math import ceil

import numpy as np

from trimtab.core.advise import MeasuredWorkload
from trimtab.core.advise.formulas import after_oom
from trimtab.policy import Inspection
from trimtab.quantity import MIB

LEAST_CHANGE = 0.05  # of the request: less is not worth a restart


def memory_sizes(rules: Inspection, workload: MeasuredWorkload, busier: float) -> dict[str, float]:
    """New requests in bytes by container, of those that should change: the highest usage with a margin on top."""
    found: dict[str, float] = {}
    for name, size in workload.requests.items():
        used = workload.container_memory.get(name)
        if used is None or not np.any(np.isfinite(used)):
            continue
        need = _need(rules, float(np.nanmax(used)), workload.oom_bytes.get(name))
        new = _new_request(need, need * busier, size.memory_bytes)
        if new is not None:
            found[name] = ceil(new / MIB) * float(MIB)
    return found


def _need(rules: Inspection, highest: float, oom_bytes: float | None) -> float:
    return after_oom(highest * (1 + rules.request_margin), oom_bytes, rules.oom_bump_ratio)


def _new_request(need: float, busy_need: float, present: float | None) -> float | None:
    """What pods use now is needed in any case; what they might use is only a reason not to lower."""
    if not present or need > present:
        return need
    return busy_need if busy_need < (1 - LEAST_CHANGE) * present else None
