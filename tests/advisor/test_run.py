"""One round over many workloads: in chunks, each with its own outcome."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from msgspec.structs import replace as with_

from tests.advisor.workloads import END, OPEN, STEPS, WINDOW, Remembered, office_hours, target
from trimtab.advisor.run import CHUNK, Advised, Failed, advise_all, chunked, hourly
from trimtab.advisor.targets import AdvisedTarget
from trimtab.advisor.workloads import hours_in
from trimtab.core.advise import Objections, WorkloadAdvice
from trimtab.core.advise.records import Against
from trimtab.errors import MetricsUnavailable
from trimtab.policy import Advice, Inspection, Size


def advise(rules: Inspection, targets: list[AdvisedTarget], source: Remembered) -> list[Advised]:
    async def run() -> list[Advised]:
        return [one async for some in advise_all(rules, targets, source, WINDOW, END) for one in some]

    return asyncio.run(run())


def reasons(outcome: Advised) -> list[str]:
    assert isinstance(outcome.result, Objections), outcome.result
    return [str(one.reason) for one in outcome.result.reasons]


def test_a_diurnal_workload_by_hand() -> None:
    (found,) = advise(OPEN, [target("web")], Remembered({"shop/Deployment/web": office_hours()}))
    assert isinstance(found.result, WorkloadAdvice)
    # 80 % of a core each, capped at 75; 2 / 0.75 = 2.67; 8 x 3 / 0.75 = 32, and the forecast lies 1 % above the past
    assert (found.result.target_percent, found.result.min_replicas, found.result.max_replicas) == (75, 3, 33)
    assert len(found.usage) == 168 and found.usage[:9] == (2.0,) * 8 + (8.0,)


def test_the_target_comes_from_single_pods() -> None:
    """One pod of two does all the work: its percentile decides, not the mean of both."""
    rows = {"shop/Deployment/web": office_hours(0.3, 0.6)}
    rows |= {
        "shop/Deployment/web/app/web-0": office_hours(0.3, 0.6),
        "shop/Deployment/web/app/web-1": np.zeros(STEPS),
        "shop/Deployment/web/injected/web-0": np.full(STEPS, 9.0),  # not in the template: no request to compare with
    }
    (found,) = advise(OPEN, [target("web", replicas=2)], Remembered(rows))
    assert isinstance(found.result, WorkloadAdvice) and found.result.target_percent == 60


def test_each_workload_has_its_own_outcome() -> None:
    rows = {f"shop/Deployment/{name}": office_hours() for name in ("good", "bare", "torn", "none", "half", "daemon")}
    rows |= {f"shop/Deployment/half/app/half-{index}": office_hours() for index in range(4)}
    rows["shop/Deployment/torn"] = np.full(STEPS, np.nan)
    sidecar = {"app": Size(cpu_cores=1.0), "proxy": Size()}
    targets = [
        target("good"),
        target("bare", cpu=None),
        target("side", requests=sidecar, row="shop/Deployment/good"),
        target("torn"),
        target("missing"),
        target("none", replicas=0),
        target("half"),
        replace(target("daemon"), kind="DaemonSet"),
    ]
    found = {one.target.name: one for one in advise(OPEN, targets, Remembered(rows))}
    assert isinstance(found["good"].result, WorkloadAdvice)
    assert reasons(found["bare"]) == [Against.NO_REQUEST]
    assert "container proxy" in found["side"].result.text  # type: ignore[union-attr]
    assert reasons(found["torn"]) == reasons(found["missing"]) == [Against.NO_HISTORY]
    assert reasons(found["none"]) == [Against.LOW_REPLICAS, Against.LOW_REPLICAS, Against.NO_PODS]
    assert reasons(found["half"]) == [Against.PARTIAL_HISTORY]
    assert reasons(found["daemon"]) == [Against.UNSUPPORTED_KIND]


def test_a_workload_that_breaks_us_costs_only_itself() -> None:
    broken = replace(target("odd"), pods=(None,))  # type: ignore[arg-type]
    rows = {f"shop/Deployment/{name}": office_hours() for name in ("odd", "good")}
    odd, good = advise(OPEN, [broken, target("good")], Remembered(rows))
    assert isinstance(odd.result, Failed) and odd.result.reason == "InternalError"
    assert isinstance(good.result, WorkloadAdvice)


def test_a_chunk_that_cannot_be_fetched_costs_only_itself() -> None:
    targets = [target(f"web-{index}") for index in range(2 * CHUNK)]
    rows = {one.key: office_hours() for one in targets}
    source = Remembered(rows, broken=frozenset({targets[0].key}))
    found = advise(with_(OPEN, advice=Advice.REPLICAS), targets, source)
    assert {type(one.result) for one in found[:CHUNK]} == {Failed}
    assert {type(one.result) for one in found[CHUNK:]} == {WorkloadAdvice}
    assert len(source.asked) == 4  # two selections a chunk, whatever its number of containers


def test_large_workloads_come_in_smaller_chunks() -> None:
    """A chunk holds at most 1,000 rows of minutes: pods count a fifth for an HPA, twice for requests."""
    large = [target(f"web-{index}", replicas=490) for index in range(30)]
    assert {len(chunk) for chunk in chunked(large, OPEN)} == {10}
    assert {len(chunk) for chunk in chunked(large, with_(OPEN, advice=Advice.RESOURCE))} == {1}
    assert {len(chunk) for chunk in chunked(large * 10, with_(OPEN, advice=Advice.REPLICAS))} == {CHUNK}
    assert [one for chunk in chunked(large, OPEN) for one in chunk] == large
    assert len(chunked([target("huge", replicas=9999)], OPEN)) == 1  # one alone is never divided


def test_a_source_that_is_gone_is_one_error() -> None:
    with pytest.raises(MetricsUnavailable, match="503"):
        advise(OPEN, [target("web")], Remembered({}, broken=frozenset({"shop/Deployment/web"})))


def test_hours_of_a_zone_follow_its_summer_time() -> None:
    """Berlin on the last Sunday of October 2023: 03:00 becomes 02:00 at 01:00 UTC."""
    hours = hours_in("Europe/Berlin", 1_698_537_600.0, 3600.0, 4)  # 2023-10-29 00:00 UTC
    assert hours.tolist() == [2.0, 2.0, 3.0, 4.0]
    assert hours_in("Asia/Kolkata", 1_698_537_600.0, 1800.0, 3).tolist() == [5.0, 6.0, 6.0]
    assert hours_in("UTC", 1_698_537_600.0, 1800.0, 3).tolist() == [0.0, 0.0, 1.0]


def test_hours_without_samples_are_holes() -> None:
    values = np.concatenate([np.full(60, 1.0), np.full(60, np.nan), np.full(30, 3.0), np.full(30, np.nan)])
    first, hole, part = hourly(values, 60.0)
    assert first == 1.0 and np.isnan(hole) and part == 3.0
