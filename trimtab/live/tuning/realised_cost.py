"""lived: what each workload's last day has cost in earnest, to be compared with what a backtest promised."""

from __future__ import annotations

from typing import NamedTuple

from trimtab.core.demand import demand_of
from trimtab.core.model import Missing
from trimtab.core.nights import LivedDay
from trimtab.core.overload import yardstick
from trimtab.live.object_tick import ObjectTick
from trimtab.policy import Policy

STEP_S = 15.0  # the unit of time that a backtest counts in
LONGEST_GAP_S = 600.0  # what lies between two ticks farther apart was not seen
SEEN = 0.8  # of a day: with less of it nothing is said


class _Tally(NamedTuple):
    """Since the last night."""

    at: float
    pods: int
    resizes: int
    seen_s: float = 0.0
    day: LivedDay = LivedDay(pods=0.0, violating=0.0, starts=0.0, resized=0.0)


class LivedDays:
    def __init__(self) -> None:
        self._tallies: dict[str, _Tally] = {}

    def note(self, tick: ObjectTick, written: Policy) -> None:
        """One tick: the time since the one before was spent with the pods of then."""
        uid, pods, resizes = tick.subject.uid, tick.decision.plan.replicas, tick.after.bridge_resizes
        known = self._tallies.get(uid)
        if known is None:
            self._tallies[uid] = _Tally(tick.seen.at, pods, resizes)
            return
        spent_s = tick.seen.at - known.at
        seen = 0.0 < spent_s <= LONGEST_GAP_S and not _blind(tick)
        steps = spent_s / STEP_S if seen else 0.0
        day, extra = known.day, _bridged(tick)
        self._tallies[uid] = _Tally(
            tick.seen.at,
            pods,
            resizes,
            known.seen_s + (spent_s if seen else 0.0),
            LivedDay(
                pods=day.pods + steps * (tick.seen.status_replicas + extra),
                violating=day.violating + steps * _violating(tick, written, extra),
                starts=day.starts + max(0, pods - known.pods),
                resized=day.resized + max(0, resizes - known.resizes),
            ),
        )

    def day(self, uid: str) -> LivedDay | None:
        """Since the last night, where most of it was seen."""
        known = self._tallies.get(uid)
        return known.day if known and known.seen_s >= SEEN * 86400.0 else None

    def begin_day(self, uid: str) -> None:
        self._tallies.pop(uid, None)

    def forget(self, uids: set[str]) -> None:
        """Keep only these."""
        self._tallies = {uid: tally for uid, tally in self._tallies.items() if uid in uids}


def _bridged(tick: ObjectTick) -> float:
    """Pods' worth of cpu beyond the written size."""
    return tick.bridged.pods * (tick.memory.core.bridge - 1.0)


def _blind(tick: ObjectTick) -> bool:
    """Without a sample nobody knows the load: a backtest does not score such times either."""
    return not tick.seen.samples or isinstance(tick.seen.samples[0], Missing)


def _violating(tick: ObjectTick, written: Policy, extra: float) -> float:
    """The load of now, in pods, where ready pods are overloaded; else nothing."""
    pod = yardstick(written, written.signals[0], tick.seen) if written.signals else None
    demand = demand_of(tick.seen.samples[0], tick.seen.pods) if tick.seen.samples else None
    if demand is None or pod is None or isinstance(pod, Missing):
        return 0.0
    ready = sum(1 for each in tick.seen.pods if each.ready and not each.deleting)
    return demand / pod.request if demand > pod.level * (ready + extra) else 0.0
