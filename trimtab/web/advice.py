"""What Crane's rules say of a workload whose CPU the journal has watched, with the evidence for pictures."""

from __future__ import annotations

from typing import Any

import numpy as np

from trimtab.advisor.report import plain
from trimtab.advisor.run import Advised
from trimtab.advisor.targets import AdvisedTarget
from trimtab.advisor.worth import Prices, rank
from trimtab.core.advise import advise as advise_workload
from trimtab.core.advise.recommend import hourly_means
from trimtab.core.advise.records import MeasuredWorkload
from trimtab.core.model import Pod
from trimtab.errors import NotEnoughData
from trimtab.journal import DAY_S, ObjectName
from trimtab.minutes import MINUTE_S
from trimtab.policy import Advice, Inspection, Size
from trimtab.web.packing import Column, PageTable
from trimtab.web.report import advice as as_pictures

WEEK_S = 7 * DAY_S
BY_RULES = "Crane's rules, on the last week, as `trimtab recommend --rules crane` has them"


def advice(known: PageTable) -> dict[str, Any]:
    """Its last week, inspected and judged by the code of `trimtab recommend --rules crane`.

    The command's own default replays the history under many settings, which a page that somebody waits for cannot.
    """
    name, unit, times = ObjectName(**known.about["name"]), known.about["unit"], known.columns["at"]
    if unit != "cores":
        raise NotEnoughData(
            f"advice rests on CPU usage, and {name} is scaled by {unit or 'nothing'}: what-if judges it by its own"
            " metric, `trimtab recommend` by its usage in Prometheus"
        )
    if not len(times):
        raise NotEnoughData(f"{name} has no minutes in the journal yet; look again in an hour")
    end = float(times[-1]) + MINUTE_S
    week = times >= end - WEEK_S
    found = {column: values[week] for column, values in known.columns.items()}
    rules, workload = Inspection(advice=Advice.HPA), _measured(name, found)
    result = advise_workload(rules, workload, end)
    hours = hourly_means(workload.cpu_cores, MINUTE_S)
    (ranked,) = rank([Advised(_target(name, workload), result, workload.start, hours)], Prices())
    pictures = as_pictures(plain(rules, ranked))
    return pictures | {"because": [BY_RULES, *pictures["because"]]}


def _measured(name: ObjectName, columns: dict[str, Column]) -> MeasuredWorkload:
    size = Size(cpu_cores=_last(columns["cpu_cores"]), memory_bytes=_last(columns["memory_bytes"]))
    ready, replicas = int(_last(columns["ready"]) or 0), int(_last(columns["replicas"]) or 0)
    return MeasuredWorkload(
        kind=name.kind,
        namespace=name.namespace,
        name=name.name,
        replicas=replicas,
        pods=tuple(Pod(name=f"{name.name}-{number}", ready_since=0.0, requests=size) for number in range(ready)),
        requests={name.name: size},
        start=float(columns["at"][0]),
        step_s=MINUTE_S,
        cpu_cores=columns["load"].astype(np.float64),
    )


def _last(values: Column) -> float | None:
    known = values[np.isfinite(values)]
    return float(known[-1]) if len(known) else None


def _target(name: ObjectName, workload: MeasuredWorkload) -> AdvisedTarget:
    return AdvisedTarget(
        api_version="",
        kind=name.kind,
        namespace=name.namespace,
        name=name.name,
        replicas=workload.replicas,
        requests=workload.requests,
        pods=workload.pods,
    )
