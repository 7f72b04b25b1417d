"""Crane's HPA recommendation: four inspections, the formulas, and a workload whose answer is computed by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace as with_

from tests.core.build import NOW, pod
from trimtab.core.advise import MeasuredWorkload, Objections, WorkloadAdvice, advise
from trimtab.core.advise.formulas import fluctuation, least_replicas, most_replicas, on_ladder, target_percent
from trimtab.core.advise.records import _TEXTS, Against
from trimtab.core.explain.advice import because
from trimtab.policy import Advice, AdviceAlgorithm, Inspection, Size

DAY = 1440
MIDNIGHT = NOW - NOW % 86400
OPEN = Inspection(min_cpu_usage_cores=0.0, fluctuation_threshold=0.0)


def workload(cores: np.ndarray, replicas: int = 4, request: float = 1.0, **rest: object) -> MeasuredWorkload:
    base = MeasuredWorkload(
        kind="Deployment",
        namespace="shop",
        name="web",
        replicas=replicas,
        pods=tuple(pod(index) for index in range(replicas)),
        requests={"app": Size(cpu_cores=request, memory_bytes=2**30)},
        start=MIDNIGHT - 7 * 86400,
        step_s=60.0,
        cpu_cores=cores,
    )
    return replace(base, **rest)  # type: ignore[arg-type]


def office_hours() -> np.ndarray:
    """2 cores by night, 8 cores from 8 to 20 o'clock, seven days long."""
    day = np.full(DAY, 2.0)
    day[8 * 60 : 20 * 60] = 8.0
    return np.tile(day, 7)


def against(rules: Inspection, one: MeasuredWorkload) -> list[Against]:
    found = advise(rules, one, NOW)
    return [finding.reason for finding in found.reasons] if isinstance(found, Objections) else []


def test_a_diurnal_workload_by_hand() -> None:
    found = advise(OPEN, workload(office_hours(), replicas=10), NOW)
    assert isinstance(found, WorkloadAdvice)
    # 8 cores over ten pods are 0.8 cores at the 99th percentile: 80 %, capped at 75 %.
    assert found.target_percent == 75
    assert found.min_replicas == 3  # 2 / 0.75 = 2.67
    assert found.max_replicas == 33  # 8 x 3 / 0.75 = 32, and the forecast of the coming week carries a margin of 1 %
    assert found.predictable
    assert found.evidence.replicas_after == pytest.approx((3 + 11) / 2)  # ceil(2 / 0.75), ceil(8 / 0.75)
    assert found.saved_cores == pytest.approx(3.0)


@pytest.mark.parametrize(
    "algorithm, target",
    [
        pytest.param(AdviceAlgorithm.EXACT, 30, id="as Crane writes it: an idle pod needs the lowest target"),
        pytest.param(AdviceAlgorithm.CRANE, 75, id="as Crane prints it: the first bucket is 115 % of the request"),
    ],
)
def test_the_idle_nginx_of_crane(algorithm: AdviceAlgorithm, target: int) -> None:
    rules = with_(OPEN, algorithm=algorithm)
    idle = workload(np.full(7 * DAY, 0.0005), replicas=1, request=0.1)
    found = advise(rules, idle, NOW)
    assert isinstance(found, WorkloadAdvice)
    assert (found.target_percent, found.min_replicas, found.max_replicas) == (target, 2, 2)


def test_everything_that_speaks_against_is_said_at_once() -> None:
    rules = Inspection(deployment_min_replicas=5, workload_min_replicas=3)
    small = workload(np.full(7 * DAY, 0.5), replicas=2, pods=())
    assert against(rules, small) == [
        Against.LOW_REPLICAS,
        Against.LOW_REPLICAS,
        Against.NO_PODS,
        Against.LOW_USAGE,
        Against.LOW_FLUCTUATION,
    ]


@pytest.mark.parametrize(
    "change, reason",
    [
        pytest.param({"kind": "DaemonSet"}, Against.UNSUPPORTED_KIND, id="a DaemonSet"),
        pytest.param({"pods": ()}, Against.NO_PODS, id="zero pods"),
        pytest.param({"pods": (pod(0, ready=False),)}, Against.NO_AVAILABLE_PODS, id="no pod is ready"),
        pytest.param(
            {"pods": (pod(0), pod(1, phase="Pending"), pod(2, phase="Failed"))}, Against.LOW_AVAILABILITY, id="a third"
        ),
        pytest.param({"cpu_cores": np.full(DAY, np.nan)}, Against.NO_HISTORY, id="no history"),
        pytest.param({"requests": {"app": Size()}}, Against.NO_REQUEST, id="no request"),
        pytest.param(
            {"requests": {"app": Size(cpu_cores=1.0), "proxy": Size()}}, Against.NO_REQUEST, id="a sidecar without one"
        ),
    ],
)
def test_each_reason_against(change: dict[str, Any], reason: Against) -> None:
    assert against(OPEN, workload(office_hours(), **change)) == [reason]


def test_of_a_daemon_set_only_the_requests_are_advised_on() -> None:
    samples: dict[str, Any] = {
        "container_cpu": {"app": np.full(99, 0.5)},
        "container_memory": {"app": np.full(99, 2.0**28)},
    }
    daemon = workload(office_hours(), kind="DaemonSet", **samples)
    assert against(with_(OPEN, advice=Advice.REPLICAS), daemon) == [Against.UNSUPPORTED_KIND]
    found = advise(with_(OPEN, advice=Advice.RESOURCE), daemon, NOW)
    assert isinstance(found, WorkloadAdvice) and found.sizes["app"].cpu_cores == pytest.approx(0.575)


def test_every_reason_has_its_sentence() -> None:
    assert set(_TEXTS) == set(Against)
    found = advise(OPEN, workload(office_hours(), requests={"proxy": Size()}), NOW)
    assert isinstance(found, Objections)
    assert found.text == "container proxy has no CPU request to compare its usage with: give it one"


def test_unpredictable_workloads_are_refused_only_on_demand() -> None:
    flat = workload(np.full(7 * DAY, 4.0))
    calm = advise(OPEN, flat, NOW)
    assert isinstance(calm, WorkloadAdvice) and not calm.predictable and calm.evidence.prediction
    assert against(with_(OPEN, must_be_predictable=True), flat) == [Against.NOT_PREDICTABLE]


def test_an_existing_hpa_is_inherited_unless_switched_off() -> None:
    qps = {"type": "Pods", "pods": {"metric": {"name": "qps"}}}
    one = workload(office_hours(), metrics=(qps,), behavior={"scaleDown": {"stabilizationWindowSeconds": 60}})
    inherited = advise(OPEN, one, NOW)
    alone = advise(with_(OPEN, reference_hpa=False), one, NOW)
    assert isinstance(inherited, WorkloadAdvice) and isinstance(alone, WorkloadAdvice)
    assert inherited.metrics == (qps,) and inherited.behavior is not None
    assert alone.metrics == () and alone.behavior is None


def test_pods_without_samples_are_not_taken_for_idle_ones() -> None:
    half = workload(office_hours(), replicas=4, unmeasured=("pod-2", "pod-3"))
    found = advise(OPEN, half, NOW)
    assert isinstance(found, Objections)
    assert found.text.startswith("only 2 of 4 running pods have samples") and "pod-2" in found.text


def test_the_evidence_holds_what_charts_need() -> None:
    found = advise(OPEN, workload(office_hours(), replicas=10), NOW)
    assert isinstance(found, WorkloadAdvice)
    assert found.evidence.hourly_medians == tuple(8.0 if 8 <= hour < 20 else 2.0 for hour in range(24))
    assert len(found.evidence.forecast) == 7 * 24
    assert max(found.evidence.forecast) == pytest.approx(8.0, rel=0.05)


def test_a_history_with_gaps_says_so() -> None:
    torn = office_hours()
    torn[: 3 * DAY] = np.nan
    found = advise(OPEN, workload(torn, replicas=10), NOW)
    assert isinstance(found, WorkloadAdvice)
    assert found.evidence.coverage == pytest.approx(4 / 7)
    assert "only 57% of 7 days have samples" in "; ".join(because(OPEN, found))
    whole = advise(OPEN, workload(office_hours(), replicas=10), NOW)
    assert isinstance(whole, WorkloadAdvice) and "samples" not in "; ".join(because(OPEN, whole))


def test_hours_are_those_of_the_zone() -> None:
    """Two hours east of UTC the shop opens at ten; the medians move with the clock."""
    times = MIDNIGHT - 7 * 86400 + 60.0 * np.arange(7 * DAY)
    east = workload(office_hours(), hours=(times + 7200) // 3600 % 24)
    assert east.medians.tolist() == [8.0 if 10 <= hour < 22 else 2.0 for hour in range(24)]


def test_requests_of_each_container() -> None:
    cpu, memory = np.linspace(0, 1, 101), np.linspace(0, 2**30, 101)
    one = workload(office_hours(), container_cpu={"app": cpu}, container_memory={"app": memory})
    rules = with_(OPEN, advice=Advice.RESOURCE)
    found = advise(rules, one, NOW)
    assert isinstance(found, WorkloadAdvice)
    assert found.sizes["app"].cpu_cores == pytest.approx(0.99 * 1.15, abs=0.001)
    killed = advise(rules, replace(one, oom_bytes={"app": 4 * 2**30}), NOW)
    assert isinstance(killed, WorkloadAdvice)
    assert killed.sizes["app"].memory_bytes == 4916 * 2**20  # 4 GiB x 1.2 are 4915.2 MiB
    ladder = ((2.0, 4.0 * 2**30), (1.0, 2.0**30))
    stepped = advise(with_(rules, size_ladder=ladder), one, NOW)
    assert isinstance(stepped, WorkloadAdvice) and stepped.sizes["app"] == Size(cpu_cores=2.0, memory_bytes=4.0 * 2**30)


def test_replicas_follow_the_larger_of_cpu_and_memory() -> None:
    rules = with_(OPEN, advice=Advice.REPLICAS)
    by_cpu = advise(rules, workload(np.full(DAY, 3.0)), NOW)
    by_memory = advise(rules, workload(np.full(DAY, 3.0), memory_bytes=np.full(DAY, 10 * 2.0**30)), NOW)
    assert isinstance(by_cpu, WorkloadAdvice) and by_cpu.replicas == 6
    assert isinstance(by_memory, WorkloadAdvice) and by_memory.replicas == 20


def test_formulas() -> None:
    assert target_percent(0.6, 1.0, 30, 75) == 60
    assert target_percent(0.601, 1.0, 30, 75) == 61  # always up
    assert least_replicas(0.0, 1.0, 0.75, 0) == 1
    assert most_replicas(1.0, 1.0, 0.5, 3.0, 20) == 20  # never below minReplicas
    assert fluctuation(0.0, 1.0) == 10.0
    assert on_ladder(3.0, 1.0, ((2.0, 9.0),)) == (3.0, 1.0)


def opposite_peaks(**more: Any) -> MeasuredWorkload:
    """Ten pods of two containers, one busy before noon, the other after it: each pod always uses one core of two."""
    hours = np.arange(7 * 1440) // 60 % 24
    morning = np.where(hours < 12, 0.9, 0.1)
    size = Size(cpu_cores=1.0, memory_bytes=2.0**30)
    used = {"a": np.tile(morning, 10), "b": np.tile(1.0 - morning, 10)} | more
    return workload(np.full(7 * 1440, 10.0), replicas=10, requests={"a": size, "b": size}, container_cpu=used)


def test_the_percentile_of_a_pod_is_that_of_its_containers_together() -> None:
    found = advise(OPEN, opposite_peaks(), NOW)
    assert isinstance(found, WorkloadAdvice)
    assert (found.target_percent, found.max_replicas) == (50, 30)


def test_cranes_algorithm_adds_up_the_percentiles_of_the_containers() -> None:
    found = advise(with_(OPEN, algorithm=AdviceAlgorithm.CRANE), opposite_peaks(), NOW)
    assert isinstance(found, WorkloadAdvice) and found.target_percent == 75


def test_moments_at_which_a_container_was_not_measured_do_not_count() -> None:
    """Half a pod would look like an idle one."""
    holes = np.where(np.arange(70 * 1440) % 7 == 0, np.nan, np.tile(opposite_peaks().container_cpu["a"][:10080], 10))
    found = advise(OPEN, opposite_peaks(a=holes), NOW)
    assert isinstance(found, WorkloadAdvice) and found.target_percent == 50
