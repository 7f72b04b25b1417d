"""Advice on both axes: what is advised did better on the workload's own history, and nothing contradicts itself."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trimtab.core.advise import MeasuredWorkload, Objections, WorkloadAdvice
from trimtab.core.figures import Figures
from trimtab.core.model import Pod
from trimtab.policy import Advice, Inspection, Size
from trimtab.quantity import MIB
from trimtab.series import Floats
from trimtab.tune.proven_advice import TOLERABLE, AdviceTerms

RULES = Inspection(advice=Advice.BOTH)
TERMS = AdviceTerms(lam=24.0, startup_s=120.0)
START = 1_700_006_400.0  # a midnight


def days(count: float = 3.0) -> Floats:
    return np.arange(round(count * 1440), dtype=np.float64) / 1440


def daily(low: float, high: float, count: float = 3.0) -> Floats:
    waves: Floats = low + (high - low) * (0.5 - 0.5 * np.cos(2 * np.pi * days(count)))
    return waves


def workload(cores: Floats, replicas: int = 20, request: float = 1.0, **rest: Any) -> MeasuredWorkload:
    pods = tuple(Pod(name=f"web-{number}", started_at=0.0, ready_since=0.0) for number in range(replicas))
    given: dict[str, Any] = {"kind": "Deployment", "requests": {"app": Size(cpu_cores=request)}} | rest
    return MeasuredWorkload(
        namespace="shop", name="web", replicas=replicas, pods=pods, start=START, step_s=60.0, cpu_cores=cores, **given
    )


def proven(found: MeasuredWorkload) -> WorkloadAdvice:
    advice = TERMS.prove(RULES, found, START + 3 * 86400)
    assert isinstance(advice, WorkloadAdvice), advice
    return advice


def now_and_then(advice: WorkloadAdvice) -> tuple[Figures, Figures]:
    now, then = advice.evidence.present, advice.evidence.then
    assert now is not None and then is not None
    return now, then


def hpa(percent: int, least: int = 2, most: int = 40) -> dict[str, Any]:
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}}
    return {"minReplicas": least, "maxReplicas": most, "metrics": [{"type": "Resource", "resource": cpu}]}


def test_twenty_pods_that_peak_at_eight_cores_get_an_hpa() -> None:
    advice = proven(workload(daily(1.0, 8.0)))
    now, then = now_and_then(advice)
    assert advice.min_replicas == 2 and (advice.max_replicas or 0) >= 10
    assert then.j < now.j and then.cores < now.cores / 2 and then.violations <= TOLERABLE
    assert advice.saved_cores == pytest.approx(now.cores - then.cores)


def test_a_target_never_comes_with_another_cpu_request() -> None:
    for cores in (daily(1.0, 8.0), daily(6.0, 6.0), daily(0.001, 0.002)):
        advice = proven(workload(cores))
        resized = any(size.cpu_cores is not None for size in advice.sizes.values())
        assert not (advice.min_replicas is not None and resized)
        assert advice.min_replicas is not None or resized


def test_an_idle_workload_keeps_its_pods_and_gives_back_their_cores() -> None:
    advice = proven(workload(daily(0.001, 0.002)))
    assert advice.min_replicas is None and advice.sizes["app"].cpu_cores == 0.01


@pytest.mark.parametrize("kind, replicas", [("StatefulSet", 3), ("DaemonSet", 5), ("Deployment", 1)])
def test_what_may_not_be_able_to_run_more_often_is_only_resized(kind: str, replicas: int) -> None:
    advice = proven(workload(daily(0.2, 1.0), replicas, 2.0, kind=kind))
    assert advice.min_replicas is None and advice.sizes["app"].cpu_cores


def test_an_hpa_whose_target_is_too_high_is_tuned_and_keeps_its_request() -> None:
    advice = proven(workload(daily(2.0, 16.0, 8.0), hpa=hpa(95)))
    now, then = now_and_then(advice)
    assert now.violations > 1.0 and then.violations <= TOLERABLE and then.j < now.j
    assert (advice.target_percent or 100) < 95 and advice.max_replicas == 40 and not advice.sizes


def test_what_would_not_be_better_is_not_advised() -> None:
    before = proven(workload(daily(2.0, 16.0, 8.0), hpa=hpa(95)))
    tuned = hpa(before.target_percent or 0) | {"behavior": before.behavior}
    advice = proven(workload(daily(2.0, 16.0, 8.0), hpa=tuned))
    assert (advice.min_replicas, advice.target_percent, advice.sizes) == (None, None, {})
    assert advice.evidence.then is None and advice.saved_cores == 0.0


def test_the_figures_are_those_of_the_manifest_that_is_written() -> None:
    """The advised HPA, replayed as the present one, has the very figures that were promised."""
    advice = proven(workload(daily(1.0, 8.0)))
    _, promised = now_and_then(advice)
    spec = hpa(advice.target_percent or 0, advice.min_replicas or 0, advice.max_replicas or 0)
    again = proven(workload(daily(1.0, 8.0), hpa=spec | {"behavior": advice.behavior}))
    assert again.evidence.present == promised


def test_memory_is_lowered_only_as_far_as_busier_pods_allow() -> None:
    size = Size(cpu_cores=1.0, memory_bytes=4096.0 * MIB)
    used = {"app": np.full(100, 1000.0 * MIB)}
    resized = proven(workload(daily(6.0, 6.0), requests={"app": size}, container_memory=used))
    assert resized.sizes["app"].memory_bytes == 1150 * MIB
    scaled = proven(workload(daily(1.0, 8.0), requests={"app": size}, container_memory=used))
    busier = (scaled.target_percent or 0) / 100 / (8.0 / 20)
    assert 1150 < (scaled.sizes["app"].memory_bytes or 0) / MIB <= 1150 * busier + 20


def test_memory_that_pods_use_is_always_requested() -> None:
    size = Size(cpu_cores=1.0, memory_bytes=512.0 * MIB)
    used = {"app": np.full(100, 1000.0 * MIB)}
    for cores in (daily(6.0, 6.0), daily(1.0, 8.0)):
        assert (
            proven(workload(cores, requests={"app": size}, container_memory=used)).sizes["app"].memory_bytes
            == 1150 * MIB
        )


@pytest.mark.parametrize(
    "found, reason",
    [
        pytest.param(workload(daily(1.0, 1.0, 1.5)), "TooLittleHistory", id="a day and a half"),
        pytest.param(workload(np.full(4000, np.nan)), "NoHistory", id="no sample"),
        pytest.param(workload(daily(1, 8), request=0.0), "NoRequest", id="no request"),
        pytest.param(
            workload(daily(1, 8), hpa={"maxReplicas": 9, "metrics": [{"type": "External"}]}),
            "ScaledOtherwise",
            id="an HPA on a queue",
        ),
    ],
)
def test_what_speaks_against_advice(found: MeasuredWorkload, reason: str) -> None:
    said = TERMS.prove(RULES, found, START + 3 * 86400)
    assert isinstance(said, Objections) and reason in [str(one.reason) for one in said.reasons]


def test_a_busy_monday_of_last_week_counts() -> None:
    """Two weeks are looked at: what only the older one had shapes the bounds."""
    load = np.where((days(14) >= 1) & (days(14) < 2), 4.0, 1.0) * daily(1.0, 4.0, 14)
    advice = proven(workload(load))
    assert (advice.max_replicas or 0) * (advice.target_percent or 0) / 100 >= load.max()


def test_the_table_of_the_documentation_is_as_the_code_is() -> None:
    path = Path(__file__).parents[2] / "benchmarks/pages/recommend.py"
    spec = importlib.util.spec_from_file_location("recommend_page", path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    written = made.PAGE.read_text()
    assert made.page(written) == written, "run `python benchmarks/pages/recommend.py`, then commit it"
