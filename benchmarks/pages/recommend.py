"""The table of docs/recommend.md: what advice would have done with the very history it came from.

`python benchmarks/pages/recommend.py` writes it; a test says when it is old. Each load of `trimtab backtest --load
generate:SHAPE` is served by 20 pods of two cores now; document 000's advice and ours are replayed on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from trimtab.core.advise import MeasuredWorkload, WorkloadAdvice, advise
from trimtab.core.advise.records import ReplayFigures
from trimtab.core.model import Pod
from trimtab.policy import Advice, Inspection, Size
from trimtab.sim.generate import SHAPES, generate
from trimtab.sim.grid import STEP_S
from trimtab.sim.prices import OBJECTIVES
from trimtab.tune.plans import Case, case_of
from trimtab.tune.proven_advice import HISTORY_S, AdviceTerms

PAGE = Path(__file__).parents[2] / "docs/recommend.md"
BEGIN, END = "<!-- made by benchmarks/pages/recommend.py -->\n", "<!-- until here -->\n"
PODS, CORES, STARTUP_S, START = 20, 2.0, 120.0, 1_700_006_400.0
LAM = OBJECTIVES["balanced"]
MINUTE = round(60 / STEP_S)
HEADER = ("load", "now: 20 pods", "document 000's HPA", "ours", "what ours is")


def workload(shape: str) -> MeasuredWorkload:
    cores = generate(SHAPES[shape])
    minutes = cores[: len(cores) // MINUTE * MINUTE].reshape(-1, MINUTE).mean(axis=1)
    pods = tuple(Pod(name=f"web-{index}", started_at=START, ready_since=START) for index in range(PODS))
    requests = {"app": Size(cpu_cores=CORES, memory_bytes=2.0**30)}
    return MeasuredWorkload("Deployment", "shop", shape, PODS, pods, requests, START, 60.0, minutes.astype(np.float64))


def rows() -> Iterator[tuple[str, ...]]:
    for shape in SHAPES:
        measured = workload(shape)
        at = START + 60.0 * len(measured.cpu_cores)
        case = case_of(measured, CORES, LAM, STARTUP_S)
        ours = AdviceTerms(LAM, STARTUP_S).prove(Inspection(advice=Advice.BOTH, history_s=HISTORY_S), measured, at)
        assert isinstance(ours, WorkloadAdvice) and ours.evidence.present is not None
        theirs = document_000(case, measured, at)
        yield shape, figures(ours.evidence.present), theirs, figures(ours.evidence.then), words(ours)


def document_000(case: Case, measured: MeasuredWorkload, at: float) -> str:
    """Its HPA replayed, or why it has none."""
    found = advise(Inspection(), measured, at)
    if not isinstance(found, WorkloadAdvice):
        return ", ".join(str(objection.reason) for objection in found.reasons)
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": found.target_percent}}
    metrics = [{"type": "Resource", "resource": cpu}]
    spec = {"minReplicas": found.min_replicas, "maxReplicas": found.max_replicas, "metrics": metrics}
    (days,) = case.replay([case.policy(spec)])
    return figures(case.judged(days, CORES))


def figures(found: ReplayFigures | None) -> str:
    return f"{found.violations:.2f} %, {found.cost:.2f}, {found.j:.2f}" if found else "as it is"


def words(found: WorkloadAdvice) -> str:
    if found.min_replicas:
        return f"{found.min_replicas} to {found.max_replicas} pods at {found.target_percent} %"
    cores = sum(size.cpu_cores or 0.0 for size in found.sizes.values())
    return f"{PODS} pods of {cores:g} cores" if cores else "stay"


def table() -> str:
    lines = [HEADER, ("---",) * len(HEADER), *rows()]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def page(text: str) -> str:
    """The page with its table made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + table() + END + after


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
