"""The table of docs/recommend.md: what advice would have done with the very history it came from; and what it costs.

`python benchmarks/pages/recommend.py` writes the table; a test says when it is old. With a file of the last line of
`python benchmarks/recommend.py` it writes the measured figures, too. Each load of `trimtab backtest --load
generate:SHAPE` is served by 20 pods of two cores now; Crane's advice and ours are replayed on it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from trimtab.core.advise import MeasuredWorkload, WorkloadAdvice, advise
from trimtab.core.figures import Figures
from trimtab.core.model import Pod
from trimtab.policy import Advice, Inspection, Size
from trimtab.sim.generate import SHAPES, generate
from trimtab.sim.grid import STEP_S
from trimtab.sim.prices import OBJECTIVES
from trimtab.tune.proven_advice import HISTORY_S, AdviceTerms, AdvisedCase, hpa_manifest

PAGE = Path(__file__).parents[2] / "docs/recommend.md"
BEGIN, END = "<!-- made by benchmarks/pages/recommend.py -->\n", "<!-- until here -->\n"
MEASURED = "<!-- measured by benchmarks/recommend.py -->\n"
PODS, CORES, STARTUP_S, START = 20, 2.0, 120.0, 1_700_006_400.0
LAM = OBJECTIVES["balanced"]
MINUTE = round(60 / STEP_S)
HEADER = ("load", "now: 20 pods", "Crane's HPA", "ours", "what ours is")


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
        rules, terms = Inspection(advice=Advice.BOTH, history_s=HISTORY_S), AdviceTerms(LAM, STARTUP_S)
        ours = terms.prove(rules, measured, at)
        assert isinstance(ours, WorkloadAdvice) and ours.evidence.present is not None
        theirs = crane(AdvisedCase(rules, measured, CORES, terms), measured, at)
        yield shape, figures(ours.evidence.present), theirs, figures(ours.evidence.then), words(ours)


def crane(case: AdvisedCase, measured: MeasuredWorkload, at: float) -> str:
    """Its HPA replayed, or why it has none."""
    found = advise(Inspection(), measured, at)
    if not isinstance(found, WorkloadAdvice):
        return ", ".join(str(objection.reason) for objection in found.reasons)
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": found.target_percent}}
    metrics = [{"type": "Resource", "resource": cpu}]
    spec = {"minReplicas": found.min_replicas, "maxReplicas": found.max_replicas, "metrics": metrics}
    return figures(case.replayed(hpa_manifest(measured, spec))[0])


def figures(found: Figures | None) -> str:
    return f"{found.violations:.2f} %, {found.cost:.2f}, {found.j:.2f}" if found else "as it is"


def words(found: WorkloadAdvice) -> str:
    if found.min_replicas:
        return f"{found.min_replicas} to {found.max_replicas} pods at {found.target_percent} %"
    cores = sum(size.cpu_cores or 0.0 for size in found.sizes.values())
    return f"{PODS} pods of {cores:g} cores" if cores else "stay"


def table() -> str:
    lines = [HEADER, ("---",) * len(HEADER), *rows()]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def measured(found: dict[str, Any]) -> str:
    """In seconds of CPU, which another load on the machine changes least."""
    plain, proven = found["crane"], found["proven"]
    return (
        f"On 2 cores, {found['fetched']:,} workloads x 7 days x 1 minute from a real Prometheus:\n\n"
        "| | client, s of CPU | client, MB | server, s of CPU | requests |\n| --- | --- | --- | --- | --- |\n"
        + "".join(
            f"| {what} | {run['client_cpu_s']:.0f} | {run['client_peak_mb']:.0f} | {run['server_cpu_s']:.1f} "
            f"| {run['requests']} |\n"
            for what, run in (("tuned and backtested", proven), ("`--rules crane`", plain))
        )
        + f"\nIt uses all cores. The analysis alone of {found['workloads']:,} takes {found['analysis_cpu_s']:.0f} s "
        f"of CPU and {found['peak_mb']:.0f} MB ({found['after_500_mb']:.0f} MB after the first 500).\n"
    )


def page(text: str, begin: str = BEGIN, made: str | None = None) -> str:
    """The page with its table, or another part, made anew."""
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(END)
    return before + begin + (table() if made is None else made) + END + after


if __name__ == "__main__":
    text = page(PAGE.read_text())
    if sys.argv[1:]:
        text = page(text, MEASURED, measured(json.loads(Path(sys.argv[1]).read_text().splitlines()[-1])))
    PAGE.write_text(text)
