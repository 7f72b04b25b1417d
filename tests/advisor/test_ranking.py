"""What comes first in the table, and what it is worth."""

from __future__ import annotations

import pytest

from tests.advisor.workloads import target
from trimtab.advisor.ranking import AdviceSeverity, Prices, rank, total_saved_cores
from trimtab.advisor.run import Advised, Failed
from trimtab.core.advise import Objections, WorkloadAdvice
from trimtab.core.advise.records import Evidence
from trimtab.core.figures import Figures


def outcome(name: str, cores: float, memory: float = 0.0) -> Advised:
    return Advised(target(name), WorkloadAdvice(replicas=1, saved_cores=cores, saved_bytes=memory))


def test_risks_then_savings_by_money_then_the_rest() -> None:
    outcomes = [
        Advised(target("rejected"), Objections(reasons=())),
        outcome("fits", 0.1),
        outcome("memory", 0.6, 8 * 2.0**30),
        outcome("small", 1.0),
        outcome("large", 4.0),
        Advised(target("failed"), Failed(None, "oops")),
        outcome("short", -2.0),
    ]
    ranked = rank(outcomes, Prices(cpu=0.03, memory=0.02))
    names = [one.outcome.target.name for one in ranked]
    assert names == ["short", "memory", "large", "small", "fits", "failed", "rejected"]
    assert ranked[0].severity is AdviceSeverity.RISK
    assert ranked[1].saved_a_month == pytest.approx((0.6 * 0.03 + 8 * 0.02) * 730)
    assert total_saved_cores(ranked) == pytest.approx(5.6)  # what must grow is no argument against giving back


def test_a_load_above_all_requests_is_a_risk_even_if_the_mean_is_below() -> None:
    busy = WorkloadAdvice(saved_cores=3.0, evidence=Evidence(p95_cores=11.0))  # ten pods request ten cores
    (found,) = rank([Advised(target("busy"), busy)], Prices())
    assert found.severity is AdviceSeverity.RISK


def test_without_prices_cores_decide() -> None:
    ranked = rank([outcome("b", 1.0), outcome("a", 1.0), outcome("c", 3.0)], Prices())
    assert [one.outcome.target.name for one in ranked] == ["c", "a", "b"]


def figures(violations: float) -> Figures:
    return Figures(j=1.2, violations=violations, cost=1.1, churn_per_day=0.0, cores=10.0)


@pytest.mark.parametrize(
    "violations, saved, severity",
    [
        pytest.param(61.0, 0.07, AdviceSeverity.RISK, id="the same cores at the right time"),
        pytest.param(0.9, 0.07, AdviceSeverity.FINE, id="hardly anything was short"),
        pytest.param(61.0, 4.0, AdviceSeverity.SAVING, id="what it saves comes first"),
    ],
)
def test_too_little_at_times_is_a_risk(violations: float, saved: float, severity: AdviceSeverity) -> None:
    advice = WorkloadAdvice(saved_cores=saved, evidence=Evidence(present=figures(violations), then=figures(0.02)))
    (found,) = rank([Advised(target("rigid"), advice)], Prices())
    assert found.severity is severity
