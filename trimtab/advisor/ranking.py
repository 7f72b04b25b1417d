"""worth: what advice is worth and which comes first: risks, then savings by money and cores, then the rest."""

from __future__ import annotations

import enum
from typing import NamedTuple

from trimtab.advisor.run import Advised, Failed
from trimtab.core.advise import Objections, WorkloadAdvice
from trimtab.quantity import GIB

HOURS_A_MONTH = 730.0
LEAST_SHARE = 0.05  # of the cores requested now: less is not worth a change
LEAST_CORES = 0.01
LEAST_RELIEF = 1.0  # percent of the load


class AdviceSeverity(enum.IntEnum):
    """In the order of the table."""

    RISK = 0  # it has less than advised, at times too little, or its load is more than it requests at all
    SAVING = 1
    FINE = 2
    FAILED = 3
    REJECTED = 4


class Prices(NamedTuple):
    """Of one core, and of one GiB, for an hour."""

    cpu: float = 0.0
    memory: float = 0.0

    def a_month(self, cores: float, size_bytes: float) -> float:
        return (cores * self.cpu + size_bytes / GIB * self.memory) * HOURS_A_MONTH


class Ranked(NamedTuple):
    outcome: Advised
    severity: AdviceSeverity
    saved_cores: float
    saved_bytes: float
    saved_a_month: float


def rank(outcomes: list[Advised], prices: Prices) -> list[Ranked]:
    """What matters most first; ties by name, so that two runs print the same."""
    ranked = [_ranked(outcome, prices) for outcome in outcomes]
    return sorted(
        ranked,
        key=lambda one: (one.severity, -abs(one.saved_a_month), -abs(one.saved_cores), one.outcome.target.key),
    )


def _ranked(outcome: Advised, prices: Prices) -> Ranked:
    result = outcome.result
    if isinstance(result, Objections):
        return Ranked(outcome, AdviceSeverity.REJECTED, 0.0, 0.0, 0.0)
    if isinstance(result, Failed):
        return Ranked(outcome, AdviceSeverity.FAILED, 0.0, 0.0, 0.0)
    cores, size_bytes = result.saved_cores, result.saved_bytes
    return Ranked(outcome, severity(outcome, result), cores, size_bytes, prices.a_month(cores, size_bytes))


def severity(outcome: Advised, result: WorkloadAdvice) -> AdviceSeverity:
    sizes = outcome.target.requests.values()
    cores = outcome.target.replicas * sum(size.cpu_cores or 0.0 for size in sizes)
    memory = outcome.target.replicas * sum(size.memory_bytes or 0.0 for size in sizes)
    shares = [result.saved_cores / max(cores, LEAST_CORES), result.saved_bytes / max(memory, 1.0)]
    if min(shares) < -LEAST_SHARE or (result.evidence.p95_cores or 0.0) > cores:
        return AdviceSeverity.RISK
    if max(shares) > LEAST_SHARE:
        return AdviceSeverity.SAVING
    return AdviceSeverity.RISK if relief(result) > LEAST_RELIEF else AdviceSeverity.FINE


def relief(result: WorkloadAdvice) -> float:
    """Percent of the load that met too little capacity, and would not have."""
    present, then = result.evidence.present, result.evidence.then
    return present.violations - then.violations if present and then else 0.0


def summary(ranked: list[Ranked]) -> str:
    """What it comes to for the whole fleet: "12 workloads: 2 at risk, 4 waste 6.10 cores (133 a month), 6 fit"."""
    counts = {kind: sum(one.severity is kind for one in ranked) for kind in AdviceSeverity}
    saving = [one for one in ranked if one.severity is AdviceSeverity.SAVING]
    money = sum(one.saved_a_month for one in saving)
    wasted = f"{total_saved_cores(ranked):,.2f} cores"
    size_bytes = sum(max(0.0, one.saved_bytes) for one in saving)
    wasted += f" and {size_bytes / GIB:,.1f} GiB" if size_bytes >= GIB / 10 else ""
    parts = {
        AdviceSeverity.RISK: "{} at risk",
        AdviceSeverity.SAVING: f"{{}} could give back {wasted}" + (f" ({money:,.0f} a month)" if money else ""),
        AdviceSeverity.FINE: "{} fit",
        AdviceSeverity.FAILED: "{} could not be judged",
        AdviceSeverity.REJECTED: "{} without a recommendation",
    }
    named = [text.format(counts[kind]) for kind, text in parts.items() if counts[kind]]
    return f"{len(ranked):,} workload{'' if len(ranked) == 1 else 's'}: {', '.join(named) or 'none'}"


def total_saved_cores(ranked: list[Ranked]) -> float:
    """What could be given back; workloads that need more are no argument against it."""
    return sum(
        advised.saved_cores
        for advised in ranked
        if advised.severity is AdviceSeverity.SAVING and advised.saved_cores > 0
    )
