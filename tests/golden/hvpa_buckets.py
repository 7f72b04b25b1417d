"""Vectors of hvpa.json on HVPA buckets: stories, edges, gaps and the tables of its successor."""

from __future__ import annotations

import pytest

from tests.golden.harness import Case
from tests.golden.hvpa_scene import FREE, amounts, margin, one_container, smallest
from trimtab.core.blend import blend
from trimtab.core.blend.buckets import BucketContext, sized
from trimtab.core.blend.ladder import Rung, ladder, replicas_for
from trimtab.core.blend.ladder import margin as ladder_margin
from trimtab.core.blend.replica import ReplicaNeed, proportional, total
from trimtab.core.gate import min_change
from trimtab.core.model import (
    ContainerSize,
    RuleName,
    Step,
)
from trimtab.policy import (
    Axis,
    Bucket,
    Buckets,
    BucketSizing,
    Direction,
    Margin,
    Margins,
    Size,
)
from trimtab.quantity import parse_quantity

NO_OVERLAP = Margins()
RESOLVED_STEPS = [0.5, 737.5e6]
RESOLVED_EDGES = [1, 2, 3, 8]


def bucket(replicas: list[int], cpu_m: list[float] | None = None, memory: list[float] | None = None) -> Bucket:
    nothing: list[float | None] = [None, None]
    cpu, mem = [*cpu_m] if cpu_m else nothing, [*memory] if memory else nothing
    return Bucket(
        replicas_min=replicas[0],
        replicas_max=replicas[1],
        least=Size(cpu_cores=None if cpu[0] is None else cpu[0] / 1000, memory_bytes=mem[0]),
        most=Size(cpu_cores=None if cpu[1] is None else cpu[1] / 1000, memory_bytes=mem[1]),
    )


def linear(*buckets: Bucket, sizing: BucketSizing = BucketSizing.GUARDED) -> Buckets:
    return Buckets(buckets=buckets, sizing=sizing, overlap=Margins())


def rungs_m(rule: Buckets, least: float = 0.0) -> list[Rung]:
    """The CPU ladder in millicores."""
    return [one._replace(low=one.low * 1000, high=one.high * 1000) for one in ladder(rule, Axis.CPU, least)]


def story1_caps(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    rungs = rungs_m(linear(bucket(given["replicas"], given["cpu_m"])))
    assert {str(one.replicas): one.high for one in rungs} == pytest.approx(expected["per_replica_cap_m"])
    assert {str(one.replicas): one.replicas * one.high for one in rungs} == pytest.approx(expected["total_cap_m"])
    cores = [replicas_for(rungs, first * 1000, 0) for first in expected["figure_first_total_cores"]]
    assert cores == [one.replicas for one in rungs]
    assert [one.replicas * one.high / 1000 for one in rungs] == pytest.approx(expected["figure_last_total_cores"])


def story1_example(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    of = bucket(given["bucket"]["replicas"], given["bucket"]["cpu_m"])
    ask = one_container(
        given["currentReplicas"], given["hpaDesiredReplicas"], given["current_cpu_m"], given["vpaTarget_cpu_m"]
    )
    need = ReplicaNeed(present=given["current_cpu_m"], target=given["vpaTarget_cpu_m"], least=0, most=1e9)
    assert total(need, ask, Axis.CPU) == expected.get("total_m", expected.get("total_by_vpa_m"))
    if "total_by_hpa_m" in expected:
        assert total(need._replace(target=0), ask, Axis.CPU) == expected["total_by_hpa_m"]
        assert total(need, ask._replace(speaks_for=frozenset()), Axis.CPU) == expected["total_by_vpa_m"]
    plan = blend(linear(of), FREE, ask, [])
    assert plan.replicas == expected.get("replicas", expected.get("replicas_story1_bucket"))
    assert amounts(plan.sizes["app"].requests)["cpu"] == expected["cpu_share_m"]
    if "cpu_with_max_rule_m" in expected:  # the cap wins over the rule of thumb
        steps: list[Step] = []
        plan = blend(linear(of, sizing=BucketSizing.MAX_OF_VPA_AND_SHARE), FREE, ask, steps)
        assert amounts(plan.sizes["app"].requests)["cpu"] == expected["cpu_cap_at_3_m"]
        capped = next(step for step in steps if step.rule is RuleName.CAPPED_BY_BUCKET)
        assert round(capped.before * 1000) == expected["cpu_with_max_rule_m"]


def boundaries(case: Case) -> None:
    """Above the last cap: the last replica count."""
    given = case["input"]
    of = given["bucket"]
    rungs = rungs_m(linear(bucket(of["replicas"], of["cpu_m"])))
    found = [replicas_for(rungs, float(one), 0) for one in given["totals_m"]]
    assert found == [of["replicas"][1] if one is None else one for one in case["expected"]["replicas"]]


def strict_edges(case: Case) -> None:
    """Upper edges are inclusive, as the figure shows; the first code put each edge one replica up."""
    given = case["input"]
    rungs = rungs_m(linear(bucket(given["bucket"]["replicas"], given["bucket"]["cpu_m"])))
    assert [replicas_for(rungs, float(one), 0) for one in given["totals_m"]] == RESOLVED_EDGES


def story1_memory(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    rungs = ladder(linear(bucket(given["replicas"], memory=given["memory_bytes"])), Axis.MEMORY, 0.0)
    assert {str(one.replicas): one.high for one in rungs} == pytest.approx(expected["per_replica_cap_bytes"])
    assert rungs[1].high - rungs[0].high == pytest.approx(expected["step_bytes"])


def membership(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    of = given["bucket"]
    rule = linear(bucket(of["replicas"], [v * 1000 for v in of["cpu"]], [v * 1e9 for v in of["memory_G"]]))
    cpu, memory = ladder(rule, Axis.CPU, 0.0), ladder(rule, Axis.MEMORY, 0.0)
    ends = [(rungs[0].low * rungs[0].replicas, rungs[-1].high * rungs[-1].replicas) for rungs in (cpu, memory)]
    assert ends[0] == pytest.approx(tuple(expected["total_cpu"]))
    assert ends[1] == pytest.approx(tuple(one * 1e9 for one in expected["total_memory_G"]))
    totals = [config["replicas"] * config.get("cpu", config.get("memory_G")) for config in given["configs"]]
    inside = [ends[0][0] <= totals[0] <= ends[0][1], ends[1][0] <= totals[1] * 1e9 <= ends[1][1]]
    assert (totals, inside) == (expected["config_totals"], expected["member"])


def base_usage(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    current, replicas = given["currentReplicas"], given["bucketReplicas"]
    ask = one_container(current, current, 0, 0)._replace(
        sizes={"app": ContainerSize(requests=Size(memory_bytes=given["current_G"] * 1e9))},
        targets={"app": Size(memory_bytes=given["vpaTarget_G"] * 1e9)},
    )
    # A bucket that holds 12G in three replicas: caps of 3G, 6G... would do; it caps three replicas at 9G.
    of = bucket([1, 8], memory=[0, 16e9])
    shared = blend(linear(of, sizing=BucketSizing.SHARE), FREE, ask, [])
    assert shared.replicas == replicas
    assert shared.sizes["app"].requests.memory_bytes == expected["share_G"] * 1e9
    assert shared.replicas * expected["share_G"] == expected["total_recommended_G"]
    for sizing in (BucketSizing.GUARDED, BucketSizing.MAX_OF_VPA_AND_SHARE):
        plan = blend(linear(of, sizing=sizing), FREE, ask, [])
        assert plan.sizes["app"].requests.memory_bytes == expected["size_with_mitigation_G"] * 1e9
        assert plan.replicas * expected["size_with_mitigation_G"] == expected["total_with_mitigation_G"]


def gaps_close(case: Case) -> None:
    """Buckets leave totals to nobody; ours begin where the one before ended."""
    given, expected = case["input"], case["expected"]
    rule = linear(
        *(bucket(one["replicas"], one["cpu_m"], [v * 1e9 for v in one["memory_G"]]) for one in given["buckets"])
    )
    rungs = rungs_m(rule)
    seam = next(one for one in rungs if one.replicas == given["buckets"][1]["replicas"][0])
    last = [one["replicas"][1] for one in given["buckets"]]
    ends = [one.replicas * one.high for one in rungs if one.replicas in last]
    assert ends == pytest.approx([one[1] for one in expected["bucket_totals_cpu_m"]])
    assert seam.low * seam.replicas == pytest.approx(expected["uncovered_cpu_m"][0])
    middle = sum(expected["uncovered_cpu_m"]) / 2
    assert replicas_for(rungs, middle, 0) == seam.replicas
    if "contiguous_start_per_replica_cpu_m" in expected:
        assert seam.low == pytest.approx(expected["contiguous_start_per_replica_cpu_m"])
        memory = ladder(rule, Axis.MEMORY, 0.0)[1]
        assert memory.low == pytest.approx(expected["contiguous_start_per_replica_memory_G"] * 1e9)


def containers(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    targets = {name: one / 1000 for name, one in given["vpaTargets_m"].items()}
    share = given["pod_cpu_share_m"] / 1000
    need = ReplicaNeed(present=share, target=sum(targets.values()), least=0.0, most=1e9)
    scene = BucketContext(current=1, replicas=1, growing=True, overloaded=False, uncapped=False)
    for sizing, wanted in ((BucketSizing.SHARE, "proportional_m"), (BucketSizing.MAX_OF_VPA_AND_SHARE, "after_max_m")):
        split = proportional(sized(sizing, share, need, scene), targets, 0.001)
        assert {name: one * 1000 for name, one in split.items()} == pytest.approx(expected[wanted])


def either(case: Case) -> None:
    """The larger of value and percentage for margins, the smaller one for the smallest change."""
    given = case["input"]
    params = {"value": given["value"], "percentage": given["percentage"]}
    smaller, larger = smallest(Axis.CPU, Direction.UP, params), margin(params)
    found = [
        ladder_margin(larger, one["ref_m"] / 1000)
        if one["choose"] == "max"
        else min_change.threshold(smaller, one["ref_m"] / 1000)
        for one in given["cases"]
    ]
    assert [round(one * 1000) for one in found] == case["expected"]["result_m"]


def counts_both_ends(case: Case) -> None:
    """From 1 to 4 are four replica counts, hence four steps; a draft made it three."""
    given = case["input"]
    least, most = given["min"], given["max"]
    cpu = [1000 * parse_quantity(one.get("cpu", "0")) for one in (least, most)]
    memory = [parse_quantity(one["memory"]) for one in (least, most)]
    rule = linear(bucket([given["minReplicas"], given["maxReplicas"]], cpu, memory))
    found = [ladder(rule, axis, 0.0) for axis in (Axis.CPU, Axis.MEMORY)]
    assert [rungs[1].high - rungs[0].high for rungs in found] == pytest.approx(RESOLVED_STEPS)


def _table(per_replica: dict[str, list[float]], overlap: Margins = NO_OVERLAP) -> Buckets:
    """Cores and GiB of each replica count, one bucket each."""
    return Buckets(
        buckets=tuple(
            Bucket(replicas_min=int(r), replicas_max=int(r), most=Size(cpu_cores=cpu, memory_bytes=gi * 2**30))
            for r, (cpu, gi) in per_replica.items()
        ),
        overlap=overlap,
    )


def disagree(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    rule = _table(given["per_replica"])
    by_cpu = replicas_for(ladder(rule, Axis.CPU, 0.0), given["total_cpu"], 0)
    by_memory = replicas_for(ladder(rule, Axis.MEMORY, 0.0), given["total_mem_Gi"] * 2**30, 0)
    assert (by_cpu, by_memory) == (expected["by_cpu"], expected["by_mem"])
    ask = one_container(1, 1, 0, 0)._replace(
        sizes={"app": ContainerSize(requests=Size(cpu_cores=0.1, memory_bytes=2**20))},
        targets={"app": Size(cpu_cores=given["total_cpu"], memory_bytes=given["total_mem_Gi"] * 2**30)},
    )
    plan = blend(rule, FREE, ask, [])
    assert plan.replicas == expected["replicas"]
    assert plan.sizes["app"].requests.cpu_cores == expected["cpu_per_replica"]
    memory = plan.sizes["app"].requests.memory_bytes
    assert memory is not None
    assert memory / 2**30 == pytest.approx(expected["mem_per_replica_Gi"], rel=1e-6)


def effective_totals(case: Case) -> None:
    rule = _table(case["input"]["per_replica_max"])
    cpu = [one.replicas * one.high for one in ladder(rule, Axis.CPU, 0.0)]
    memory = [one.replicas * one.high / 2**30 for one in ladder(rule, Axis.MEMORY, 0.0)]
    assert cpu == pytest.approx(case["expected"]["total_max_cpu"])
    assert memory == pytest.approx(case["expected"]["total_max_mem_Gi"])


def overlap30(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    per_replica = {
        str(r): [cpu / r, gi / r]
        for r, (cpu, gi) in enumerate(zip(given["total_max_cpu"], given["total_max_mem_Gi"], strict=True), start=1)
    }
    overlap = Margin(percent=given["overlap_percent"])
    rule = _table(per_replica, Margins(cpu=overlap, memory=overlap))
    cpu = ladder(rule, Axis.CPU, given["minAllowed"][0])
    memory = ladder(rule, Axis.MEMORY, given["minAllowed"][1] * 2**30)
    assert [one.low * one.replicas for one in cpu] == pytest.approx(expected["scale_down_total_cpu"])
    assert [one.low * one.replicas / 2**30 for one in memory] == pytest.approx(expected["scale_down_total_mem_Gi"])
    assert [one.low for one in cpu] == pytest.approx(expected["scale_down_per_pod_cpu"], abs=1e-3)
    assert [one.low / 2**30 for one in memory] == pytest.approx(expected["scale_down_per_pod_mem_Gi"], abs=1e-3)


def explicit_minimum(case: Case) -> None:
    """A minimum below the seam is the edge at which replicas are removed."""
    given, expected = case["input"], case["expected"]
    most = [0.5, 1, 2, 4, 8]  # the caps of the same document's table
    rule = Buckets(
        buckets=tuple(
            Bucket(replicas_min=r, replicas_max=r, least=Size(cpu_cores=low), most=Size(cpu_cores=high))
            for r, (low, high) in enumerate(zip(given["per_pod_down_cpu"], most, strict=True), start=1)
        ),
        overlap=Margins(),
    )
    found = [one.low * one.replicas for one in ladder(rule, Axis.CPU, 0.0)]
    assert found == pytest.approx(expected["total_down_cpu"])
