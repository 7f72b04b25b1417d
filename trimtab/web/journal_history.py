"""A workload's history as the journal knows it: to judge here, to send to who judges elsewhere, to take away."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np

from trimtab.errors import NotEnoughData
from trimtab.journal import DAY_S, Journal, ObjectName
from trimtab.kinds.schedule import laid_out
from trimtab.minutes import MINUTE_S
from trimtab.policy import Policy, Utilization
from trimtab.series import Floats, Frame
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


class KnownLoad(NamedTuple):
    """The same before anything was made of it: its load by the minute, NaN where nothing was seen."""

    name: ObjectName
    policy: Policy
    start: float
    load: Floats
    capacity: float
    startup_s: float


def known_load(journal: Journal, name: ObjectName, days: float = DAYS) -> KnownLoad:
    policy, span = known_policy(journal, name), journal.span()
    end = span[1] if span else 0.0
    found = journal.minutes_of(name, end - days * DAY_S, end)
    if not len(found.times):
        raise NotEnoughData(f"{name} has no minutes in the journal yet; look again in an hour")
    load = found.columns["load"].astype(np.float64)
    capacity, startup_s = _capacity(policy, found.columns), _startup_s(journal, name)
    return KnownLoad(name, policy, float(found.times[0]), load, capacity, startup_s)


def history_of(known: KnownLoad) -> History:
    """Held over holes, with the schedules of all its time, as a backtest reads it."""
    frame = Frame((str(known.name),), known.start, MINUTE_S, known.load[None, :])
    policy = laid_out(known.policy, known.start, known.start + MINUTE_S * len(known.load))
    return History(known.name, policy, demand_of(frame, str(known.name)), known.capacity, known.startup_s)


def history(journal: Journal, name: ObjectName, days: float = DAYS) -> History:
    """Its load by the minute, held over holes, and what one of its pods carries."""
    return history_of(known_load(journal, name, days))


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


def pack_load(known: KnownLoad) -> bytes:
    """To judge it somewhere else: whoever wants to know pays for the computing."""
    about = {field: getattr(known, field) for field in KnownLoad._fields if field != "load"}
    return packed(about, {"load": known.load})


def unpack_history(content: bytes) -> History:
    about, columns = unpacked(content)
    name, policy = ObjectName(*about["name"]), msgspec.convert(about["policy"], Policy)
    load = columns["load"].astype(np.float64)
    return history_of(KnownLoad(name, policy, about["start"], load, about["capacity"], about["startup_s"]))


def csv(known: History) -> str:
    """The history that was judged, as `trimtab backtest --load` reads it."""
    values = known.demand.values[::STEPS]
    rows = (f"{known.demand.start + MINUTE_S * index:.0f},{value!r}" for index, value in enumerate(values.tolist()))
    return "\n".join(("timestamp,value", *rows, ""))
