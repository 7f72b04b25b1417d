"""Vectors of hvpa.json on the bucket programs: hvpa-v2 and its predecessor."""

from __future__ import annotations

from typing import Any

import pytest

from tests.golden.harness import Case
from tests.golden.hvpa_buckets import bucket, linear
from tests.golden.hvpa_gates import AS_WRITTEN
from tests.golden.hvpa_scene import AT, FREE, decided, gap, gates_of, margin, one_container, size
from trimtab.core.blend import AxisWishes, blend
from trimtab.core.blend.buckets import shrinks
from trimtab.core.blend.ladder import ladder, replicas_for
from trimtab.core.blend.replica import ReplicaNeed
from trimtab.core.gate import gate
from trimtab.core.model import (
    ContainerSize,
    Memory,
    Observation,
    Plan,
)
from trimtab.policy import (
    Axis,
    Bucket,
    Buckets,
    BucketSizing,
    ContainerRule,
    Limits,
    Margins,
    Size,
    Vertical,
)


def intervals(given: dict[str, Any], **more: Any) -> Buckets:
    first, found = given.get("hpaMinReplicas", 1), []
    for one in given["scaleIntervals"]:
        most = Size(cpu_cores=one["maxCpu_m"] / 1000, memory_bytes=one["maxMemory_bytes"])
        found.append(Bucket(replicas_min=first, replicas_max=one["maxReplicas"], most=most))
        first = one["maxReplicas"] + 1
    overlaps = given.get("overlap") or {}
    overlap = Margins(cpu=margin(overlaps.get("cpu")), memory=margin(overlaps.get("memory")))
    return Buckets(buckets=tuple(found), overlap=overlap, grow_past_last=True, **more)  # hvpa-v2 does


def effective(case: Case) -> None:
    """Edges are rounded to whole millicores and millibytes there, and not at all here."""
    given = case["input"]
    rule, least = intervals(given), size(given["minAllowed"])
    assert least.cpu_cores is not None and least.memory_bytes is not None
    cpu, memory = ladder(rule, Axis.CPU, least.cpu_cores), ladder(rule, Axis.MEMORY, least.memory_bytes)
    for at, one in enumerate(case["expected"]["intervals"]):
        assert cpu[at].replicas == one["replicas"]
        assert [cpu[at].low * 1000, cpu[at].high * 1000] == pytest.approx(one["cpu_m"], abs=1)
        wanted = one.get("memory_bytes") or [value / 1000 for value in one["memory_millibytes"]]
        assert [memory[at].low, memory[at].high] == pytest.approx(wanted, abs=1)


def bucket_scenario(case: Case) -> None:
    """One decision: buckets, limits and gates. Without an HPA only vertical totals count."""
    given = case["input"]
    second = case["id"].startswith("v2")
    bases = given.get("baseResourcesPerReplica") or {}
    base = Margins(cpu=margin(bases.get("cpu")), memory=margin(bases.get("memory")))
    sizing = BucketSizing.NEVER_SHRINK if second else BucketSizing.MAX_OF_VPA_AND_SHARE
    gaps = given.get("limitsRequestsGap") or {}
    rule = ContainerRule(least=size(given.get("minAllowed")), most=size(given.get("maxAllowed")))
    limits = Limits(cpu=gap(gaps.get("cpu")), memory=gap(gaps.get("memory")))
    assert given["hpaDesired"] is None
    ask = AxisWishes(
        current=given["currentReplicas"],
        wanted=given["currentReplicas"],
        sizes={"app": ContainerSize(requests=size(given["current_requests"]), limits=size(given["current_limits"]))},
        targets={"app": size(given["vpaTarget"])},
        min_replicas=1,
        max_replicas=given["scaleIntervals"][-1]["maxReplicas"],
        overloaded=False,
        speaks_for=frozenset(),
    )
    vertical = Vertical(containers=(rule,), limits=limits, floor=Size())
    decided(intervals(given, sizing=sizing, base=base), vertical, ask, gates_of(given), case)


def no_recommendation(case: Case) -> None:
    """A recommendation that does not count moves nothing; here it is not an error of the object."""
    ask = one_container(2, 2, 100, 100)._replace(targets={}, speaks_for=frozenset())
    plan = blend(linear(bucket([1, 3], [0, 1000])), FREE, ask, [])
    changed = plan.sizes != ask.sizes or plan.replicas != ask.current
    assert changed == case["expected"].get("resourceChange", False)


def smallest_of_both(case: Case) -> None:
    """Held only if both are too small: what one resource moves takes the other along."""
    given = case["input"]
    present, new = given["totals_current"], given["totals_new"]
    params = {"cpu": {"value": "100m", "percentage": 80}, "memory": {"value": "100M", "percentage": 80}}
    for one, blocked in zip(new, case["expected"]["blocked"], strict=True):
        before = {"app": ContainerSize(requests=size({"cpu": present["cpu_m"], "memory": present["mem_M"] * 1e6}))}
        after = {"app": ContainerSize(requests=size({"cpu": one["cpu_m"], "memory": one["mem_M"] * 1e6}))}
        seen = Observation(at=AT, spec_replicas=1, status_replicas=1, sizes=before)
        gates = gates_of({"minChange": params})
        plan = gate(gates, seen, Memory(), Plan(replicas=1, sizes=after, joint=True), [])
        assert plan.sizes == (before if blocked else after)


def direction(case: Case) -> None:
    found = []
    for one in case["input"]["cases"]:
        needs = {axis: ReplicaNeed(present=10.0, target=10.0, least=0.0, most=1e9) for axis in (Axis.CPU, Axis.MEMORY)}
        totals = {Axis.CPU: 10.0 + one["cpu"], Axis.MEMORY: 10.0 + one["mem"]}
        found.append("down" if shrinks(needs, totals, 1) else "up")
    assert found == case["expected"]["direction"]


def piggyback(case: Case) -> None:
    """Sizes that are only too small a change, or too soon, go along with a plan that happens anyway."""
    given, expected = case["input"], case["expected"]
    small, large = ContainerSize(requests=Size(cpu_cores=1.0)), ContainerSize(requests=Size(cpu_cores=2.0))
    before = dict.fromkeys(given["containers"], small)
    for name, reason in given["containers"].items():
        if reason == "changes":
            continue
        seen = Observation(at=AT, spec_replicas=1, status_replicas=1, sizes={"a": small, name: small})
        # The container under test moves CPU, the one that changes anyway memory, so that a gate meets one of them.
        after = {"a": ContainerSize(requests=Size(cpu_cores=1.0, memory_bytes=1e9)), name: large}
        gates = (AS_WRITTEN[reason](Axis.CPU),)
        plan = gate(gates, seen, Memory(up_at=AT), Plan(replicas=1, sizes=after, joint=True), [])
        assert (plan.sizes[name] == large) == (name in expected["changed"])
        assert (plan.sizes[name] == before[name]) == (name in expected["stillBlocked"])


def out_of_range(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    rule = intervals(given)
    target = size(given["vpaTarget"])
    assert target.cpu_cores is not None and target.memory_bytes is not None
    cpu, memory = ladder(rule, Axis.CPU, 0.0), ladder(rule, Axis.MEMORY, 0.0)
    totals = target.cpu_cores * given["currentReplicas"], target.memory_bytes * given["currentReplicas"]
    assert (totals[0] * 1000, totals[1] / 1e9) == (expected["totals"]["cpu_m"], expected["totals"]["memory_G"])
    assert cpu[-1].high * cpu[-1].replicas * 1000 == pytest.approx(expected["last_total_cap"]["cpu_m"])
    found = [replicas_for(cpu, totals[0], 9), replicas_for(memory, totals[1], 9)]
    assert found == [expected["sensible_replicas"]] * 2
