"""What happens to a fleet: nothing, a storm, a rolling restart, an operator that is started again or lost."""

from __future__ import annotations

import time
from bisect import bisect
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from benchmarks.scale.control_plane import OPERATOR
from benchmarks.scale.fleet import CORES, Fleet, patch, rollouts, set_load, statuses
from benchmarks.scale.measure import (
    TICK_S,
    DefaultRun,
    Requests,
    Spending,
    received_bytes,
    rss_mb,
    seconds_until,
    spread,
)
from tests.bed import Bed, eventually
from tests.live.running import replicas

TICK_SECONDS = "trimtab_tick_seconds_total"


def await_quiet(bed: Bed, running: DefaultRun, fleet: Fleet) -> None:
    """All objects served, and two ticks without a write but checkpoints."""

    def quiet() -> bool:
        asked = Requests(bed.audit_log, OPERATOR)
        running.await_ticks(fleet.members[-1], 2)
        return not asked.writes()

    limit_s = 300 + len(fleet.members) / 10
    served = lambda: running.number("trimtab_objects") == len(fleet.members)  # noqa: E731
    eventually(served, limit_s, f"{len(fleet.members)} objects served", every_s=2)
    eventually(quiet, limit_s, "ticks without a write")


def steady(bed: Bed, running: DefaultRun, fleet: Fleet, count: int) -> dict[str, Any]:
    """Nothing changes."""
    first, objects = fleet.members[0], len(fleet.members)
    at = running.await_ticks(first, 1)[-1:]
    asked, busy = Requests(bed.audit_log, OPERATOR), running.number(TICK_SECONDS)
    before, received = Spending.now(bed, running.pid), received_bytes(running.pid)
    at += running.await_ticks(first, count)
    received = received_bytes(running.pid) - received
    spent, events = Spending.now(bed, running.pid), asked.so_far(until=time.time())
    done = len(at) - 1
    found = spent.since(before, done)
    return found | {
        "tick_interval_s": (at[-1] - at[0]) / done,
        "tick_longest_interval_s": max(later - earlier for earlier, later in pairwise(at)),
        "tick_took_s": (running.number(TICK_SECONDS) - busy) / done,
        "operator_cpu_ms_per_object": 1000 * found["operator_cpu_s"] / objects,
        "all_cpu_ms_per_object": 1000 * sum(found.values()) / objects,
        "rss_mb": rss_mb(running.pid),
        "received_bytes": received / done,
        "missing_samples": running.missing(),
        "idle_writes": len(asked.writes()),
        "idle_gets": sum(1 for event in events if event["verb"] == "get" and event["objectRef"].get("name")),
        "idle_requests_per_tick": len(events) / done,
    }


def tick_times(running: DefaultRun, fleet: Fleet, count: int) -> dict[str, Any]:
    """Each asks the operator for all its metrics, which costs: apart from `steady`."""
    took = []
    for _ in range(count):
        running.await_ticks(fleet.members[-1], 1)
        took.append(running.number("trimtab_tick_duration_seconds"))
    return spread("tick", took)


def storm(bed: Bed, fleet: Fleet, user: str = OPERATOR, meanwhile: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """The load of a tenth doubles at once: from then to the first patched scale of each."""
    chosen, asked = fleet.tenth(), Requests(bed.audit_log, user)
    set_load(bed, chosen, 2 * CORES * fleet.pods_each)
    changed_at, wanted = time.time(), {member.key for member in chosen}

    def all_scaled() -> bool:
        meanwhile()
        return _scaled(bed, asked, fleet.pods_each).keys() >= wanted

    eventually(all_scaled, 300 + len(chosen), f"{len(chosen)} scaled by {user}", every_s=2)
    first = _scaled(bed, asked, fleet.pods_each)
    waited = [first[key] - changed_at for key in wanted]
    return {
        "storm_objects": len(chosen),
        "storm_writing_s": max(waited) - min(waited),
        **spread("storm", waited),
        "storm_longest_s": max(waited),
        "storm_unanswered": len(asked.unanswered()),
    }


def _scaled(bed: Bed, asked: Requests, before: int) -> dict[tuple[str, str], float]:
    """When each was scaled first. Where no answer says so, its Deployment does: then, by the last try."""
    first: dict[tuple[str, str], float] = {}
    for key, at in asked.scalings():
        first.setdefault(key, at)
    unsure = {key: at for key, at in asked.unanswered() if key not in first}
    return first | {key: at for key, at in unsure.items() if replicas(bed, *key) > before}


def storm_within_ticks(bed: Bed, running: DefaultRun, fleet: Fleet) -> dict[str, Any]:
    """A storm until nothing is scaled any more: how long after its tick each write left, and what it cost."""
    first, asked, before = fleet.members[0], Requests(bed.audit_log, OPERATOR), Spending.now(bed, running.pid)
    ticks, written = set[float](), 0
    note = lambda: ticks.update(running.ticks(first, asked.began))  # noqa: E731  (they are folded away now and then)
    found = storm(bed, fleet, meanwhile=note)
    while written < len(asked.scalings()):
        written = len(asked.scalings())
        ticks.update(running.await_ticks(first, 2))
        note()
    began = sorted(ticks)
    after = [scaling.at - began[bisect(began, scaling.at) - 1] for scaling in asked.scalings() + asked.unanswered()]
    spent = Spending.now(bed, running.pid).since(before, len(began))
    return found | {
        "storm_scalings": len(after),
        "storm_after_tick_s": max(after),
        "storm_longest_interval_s": max(later - earlier for earlier, later in pairwise(began)),
        **{f"storm_{part}": cpu_s for part, cpu_s in spent.items()},
    }


def calm(bed: Bed, fleet: Fleet) -> None:
    """Back to what it was, by hand: while nobody scales it."""
    set_load(bed, fleet.tenth(), CORES * fleet.pods_each)
    patch(bed, fleet.tenth(), {"spec": {"replicas": fleet.pods_each}}, "scale")
    await_rollouts(bed)


def await_rollouts(bed: Bed) -> None:
    eventually(lambda: all(found.is_done for found in rollouts(bed)), 1800, "all rolled out", every_s=3)


def rolling_restart(bed: Bed, running: DefaultRun, fleet: Fleet, every: int = 5) -> dict[str, Any]:
    """A fifth of the pods is replaced: nothing may be scaled for that."""
    chosen, asked, before = fleet.members[::every], Requests(bed.audit_log, OPERATOR), Spending.now(bed, running.pid)
    patch(bed, chosen, {"spec": {"template": {"metadata": {"annotations": {"restarted": str(asked.began)}}}}})
    await_rollouts(bed)
    took = time.time() - asked.began
    running.await_ticks(fleet.members[0], 2)
    done = (time.time() - asked.began) / TICK_S
    return {
        "rollout_deployments": len(chosen),
        "rollout_s": took,
        "rollout_operator_cpu_s": Spending.now(bed, running.pid).since(before, done)["operator_cpu_s"],
        "rollout_scalings": len(asked.scalings()),
    }


def restart(bed: Bed, running: DefaultRun, fleet: Fleet) -> dict[str, Any]:
    """Ended and started again: until the first tick that looks at every object, and until nothing is to be said."""
    await_quiet(bed, running, fleet)  # what the phase before has left to say is not forgotten by a restart
    before = statuses(bed)
    running.stop(120)
    asked = Requests(bed.audit_log, OPERATOR)
    running.start()
    last = fleet.members[-1]
    took = seconds_until(lambda: running.ticks(last, asked.began), 600, "a whole tick after the restart")
    await_quiet(bed, running, fleet)
    written, after = [event["at"] - asked.began for event in asked.writes()], statuses(bed)
    differ = {key: _difference(said, after[key]) for key, said in before.items() if after[key] != said}
    return {
        "restart_s": took,
        "restart_scalings": len(asked.scalings()),
        "restart_writes": len(written),
        "restart_settled_s": max(took, *written, 0.0),
        "restart_forgotten": len(differ),
        "restart_differences": [f"{'/'.join(key)}: {said}" for key, said in list(differ.items())[:10]],
    }


def _difference(before: dict[str, Any], after: dict[str, Any]) -> str:
    changed = [name for name in before | after if before.get(name) != after.get(name)]
    return "; ".join(f"{name}: {before.get(name)} became {after.get(name)}" for name in changed)


def leader_change(bed: Bed, running: DefaultRun, standby: DefaultRun, fleet: Fleet) -> dict[str, Any]:
    """The leader is killed: until the other has looked at every object."""
    last = fleet.members[-1]
    with standby:
        ready_to = lambda: standby.get("/readyz").startswith("ok")  # noqa: E731
        eventually(ready_to, 600, "the stand-by follows everything", every_s=1)
        assert not standby.ticks(last), "it stands by"
        asked = Requests(bed.audit_log, OPERATOR)
        running.kill()
        took = seconds_until(lambda: standby.ticks(last), 600, "a whole tick of the new leader")
        standby.await_ticks(last, 2)
        found = {"leader_change_s": took, "leader_change_scalings": len(asked.scalings())}
        found["leader_change_lease_s"] = 15.0
    return found
