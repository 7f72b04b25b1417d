"""A workload's history as the journal knows it: to judge here, to send to who judges elsewhere, to take away."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np

from trimtab.errors import NotEnoughData
from trimtab.journal import DAY_S, Journal, ObjectName
from trimtab.minutes import MINUTE_S
from trimtab.policy import Policy, Utilization
from trimtab.series import Frame
from trimtab.sim.grid import STEP_S
from trimtab.tune.demand import Demand, demand_of, pod_capacity
from trimtab.web.packing import packed, unpacked
from trimtab.web.workload import known_policy

DAYS = 14.0
STEPS = round(MINUTE_S / STEP_S)  # of a backtest in a minute


class History(NamedTuple):
    """A workload as the journal knows it."""

    name: ObjectName
    policy: Policy
    demand: Demand
    capacity: float  # of one pod at 100 %, in the unit of the load
    startup_s: float


def history(journal: Journal, name: ObjectName, days: float = DAYS) -> History:
    """Its load by the minute, held over holes, and what one of its pods carries."""
    policy, span = known_policy(journal, name), journal.span()
    end = span[1] if span else 0.0
    found = journal.minutes_of(name, end - days * DAY_S, end)
    if not len(found.times):
        raise NotEnoughData(f"{name} has no minutes in the journal yet; look again in an hour")
    frame = Frame((str(name),), float(found.times[0]), MINUTE_S, found.columns["load"].astype(np.float64)[None, :])
    return History(
        name, policy, demand_of(frame, str(name)), _capacity(policy, found.columns), _startup_s(journal, name)
    )


def _capacity(policy: Policy, columns: dict[str, Any]) -> float:
    """From the pods' requests where the target is a share of them, else from the target itself."""
    if policy.signals and isinstance(policy.signals[0], Utilization):
        requests = columns["cpu_cores" if policy.signals[0].metric.name == "cpu" else "memory_bytes"]
        known = requests[np.isfinite(requests)]
        if not len(known):
            raise NotEnoughData("the journal does not know what one pod requests, so that a share of it says nothing")
        return float(known[-1])
    return pod_capacity(policy, None)[0]


def _startup_s(journal: Journal, name: ObjectName) -> float:
    last = list(journal.acts(name.namespace, name.name, last=1))
    quantiles = getattr(last[0].seen.startup, "quantiles", ()) if last else ()
    return float(quantiles[-1].value) if quantiles else 120.0


def pack_history(known: History) -> bytes:
    """A history to judge somewhere else."""
    about = {
        "name": known.name,
        "policy": known.policy,
        "start": known.demand.start,
        "notes": known.demand.notes,
        "capacity": known.capacity,
        "startup_s": known.startup_s,
    }
    return packed(about, {"load": known.demand.values[::STEPS]})


def unpack_history(content: bytes) -> History:
    about, columns = unpacked(content)
    values = np.repeat(columns["load"].astype(np.float64), STEPS)
    name = ObjectName(*about["name"])
    demand = Demand(str(name), values, about["start"], tuple(about["notes"]))
    return History(name, msgspec.convert(about["policy"], Policy), demand, about["capacity"], about["startup_s"])


def csv(known: History) -> str:
    """The history that was judged, as `trimtab backtest --load` reads it."""
    values = known.demand.values[::STEPS]
    rows = (f"{known.demand.start + MINUTE_S * index:.0f},{value!r}" for index, value in enumerate(values.tolist()))
    return "\n".join(("timestamp,value", *rows, ""))
