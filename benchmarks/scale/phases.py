"""What happens to a fleet: nothing, a storm, a rolling restart, an operator that is started again or lost."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

from benchmarks.scale.fleet import CORES, Fleet, in_namespaces, ready, set_load
from benchmarks.scale.measure import (
    OPERATOR,
    WRITES,
    DefaultRun,
    Spending,
    requests,
    rss_mb,
    scalings,
    seconds_until,
    spread,
)
from tests.bed import Bed, eventually


def await_quiet(bed: Bed, running: DefaultRun, fleet: Fleet) -> None:
    """All objects served, and two ticks without a write but checkpoints."""

    def quiet() -> bool:
        since = time.time()
        running.await_ticks(fleet.members[-1], 2)
        return not any(_is_write(event) for event in requests(bed, OPERATOR, since))

    limit_s = 300 + len(fleet.members) / 10
    served = lambda: running.number("trimtab_objects") == len(fleet.members)  # noqa: E731
    eventually(served, limit_s, f"{len(fleet.members)} objects served", every_s=2)
    eventually(quiet, limit_s, "ticks without a write")


def steady(bed: Bed, running: DefaultRun, fleet: Fleet, count: int) -> dict[str, Any]:
    """Nothing changes."""
    first, objects = fleet.members[0], len(fleet.members)
    running.await_ticks(first, 1)
    since, looked, busy = time.time(), len(running.ticks(first)), running.number("trimtab_tick_seconds_total")
    before = Spending.now(bed, running.pid)
    running.await_ticks(first, count)
    spent, until = Spending.now(bed, running.pid), time.time()
    at = running.ticks(first)[looked - 1 :]
    done = len(at) - 1
    asked = list(requests(bed, OPERATOR, since, until))
    found = spent.since(before, done)
    return found | {
        "tick_interval_s": (at[-1] - at[0]) / done,
        "tick_longest_interval_s": max(later - earlier for earlier, later in pairwise(at)),
        "tick_took_s": (running.number("trimtab_tick_seconds_total") - busy) / done,
        "operator_cpu_ms_per_object": 1000 * found["operator_cpu_s"] / objects,
        "all_cpu_ms_per_object": 1000 * sum(found.values()) / objects,
        "rss_mb": rss_mb(running.pid),
        "idle_writes": sum(1 for event in asked if _is_write(event)),
        "idle_gets": sum(1 for event in asked if event["verb"] == "get" and event["objectRef"].get("name")),
        "idle_requests_per_tick": len(asked) / done,
    }


def _is_write(event: dict[str, Any]) -> bool:
    return event["verb"] in WRITES and event["objectRef"]["resource"] != "configmaps"  # checkpoints have their own time


def tick_times(running: DefaultRun, fleet: Fleet, count: int) -> dict[str, Any]:
    """Each asks the operator for all its metrics, which costs: apart from `steady`."""
    took = []
    for _ in range(count):
        running.await_ticks(fleet.members[-1], 1)
        took.append(running.number("trimtab_tick_duration_seconds"))
    return spread("tick", took)


def storm(bed: Bed, fleet: Fleet, user: str = OPERATOR, every: int = 10) -> dict[str, Any]:
    """The load of a tenth doubles: from the metric's change to the patched scale of each, and from first to last."""
    chosen = fleet.by_cpu(every)
    began, changed = time.time(), dict[tuple[str, str], float]()
    for member in chosen:
        set_load(bed, [member], 2 * CORES * fleet.pods_each)
        changed[member.key] = time.time()
    scaled = lambda: dict(scalings(bed, user, began))  # noqa: E731
    all_scaled = lambda: scaled().keys() >= changed.keys()  # noqa: E731
    eventually(all_scaled, 300 + len(chosen), f"{len(chosen)} scaled by {user}", every_s=2)
    first: dict[tuple[str, str], float] = {}
    for key, at in scalings(bed, user, began):
        if key in changed:
            first.setdefault(key, at)
    waited = [first[key] - at for key, at in changed.items()]
    return {
        "storm_objects": len(chosen),
        "storm_writing_s": max(first.values()) - min(first.values()),
        **spread("storm", waited),
        "storm_longest_s": max(waited),
    }


def calm(bed: Bed, fleet: Fleet, every: int = 10) -> None:
    """Back to what it was, by hand: nobody waits for the stabilisation window."""
    set_load(bed, fleet.by_cpu(every), CORES * fleet.pods_each)
    in_namespaces(bed, fleet.by_cpu(every), "scale", f"--replicas={fleet.pods_each}")
    eventually(lambda: ready(bed) == fleet.pods, 600, "as many pods as before", every_s=3)


def rolling_restart(bed: Bed, running: DefaultRun, fleet: Fleet, every: int = 5) -> dict[str, Any]:
    """A fifth of the pods is replaced: nothing may be scaled for that."""
    chosen = fleet.members[::every]
    since, before, looked = time.time(), Spending.now(bed, running.pid), len(running.ticks(fleet.members[0]))
    in_namespaces(bed, chosen, "rollout", "restart")
    restarted = seconds_until(lambda: _rolled_out(bed, fleet), 900, "all rolled out")
    running.await_ticks(fleet.members[0], 2)
    done = len(running.ticks(fleet.members[0])) - looked
    return {
        "rollout_deployments": len(chosen),
        "rollout_s": restarted,
        "rollout_operator_cpu_s": Spending.now(bed, running.pid).since(before, done)["operator_cpu_s"],
        "rollout_scalings": len(scalings(bed, OPERATOR, since)),
    }


def _rolled_out(bed: Bed, fleet: Fleet) -> bool:
    template = "{{range .items}}{{with .status}}{{.updatedReplicas}}/{{.replicas}} {{end}}{{end}}"
    counts = [pair.split("/") for pair in bed.kubectl("get", "deploy", "-A", "-o", f"go-template={template}").split()]
    return all(updated == whole == str(fleet.pods_each) for updated, whole in counts)


def restart(bed: Bed, running: DefaultRun, fleet: Fleet) -> dict[str, Any]:
    """Ended and started again: until the first tick that looks at every object."""
    running.stop(120)
    since = time.time()
    running.start()
    last = fleet.members[-1]
    whole = lambda: [at for at in running.ticks(last) if at > since]  # noqa: E731
    took = seconds_until(whole, 600, "a whole tick after the restart")
    running.await_ticks(last, 2)
    return {"restart_s": took, "restart_scalings": len(scalings(bed, OPERATOR, since))}


def leader_change(bed: Bed, running: DefaultRun, standby: DefaultRun, fleet: Fleet) -> dict[str, Any]:
    """The leader is killed: until the other has looked at every object."""
    last = fleet.members[-1]
    with standby:
        ready_to = lambda: standby.get("/readyz").startswith("ok")  # noqa: E731
        eventually(ready_to, 600, "the stand-by follows everything", every_s=1)
        assert not standby.ticks(last), "it stands by"
        since = time.time()
        running.kill()
        took = seconds_until(lambda: standby.ticks(last), 600, "a whole tick of the new leader")
        standby.await_ticks(last, 2)
        found = {"leader_change_s": took, "leader_change_scalings": len(scalings(bed, OPERATOR, since))}
        found["leader_change_lease_s"] = 15.0
    return found
