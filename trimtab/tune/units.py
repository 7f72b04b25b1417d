"""Units of a load: a policy on CPU needs cores, and a history may count millicores, percent or requests."""

from __future__ import annotations

import enum

import numpy as np

from trimtab.core.overload import Yardstick
from trimtab.errors import InvalidInput
from trimtab.tune.demand import Demand
from trimtab.tune.judge import PodTerms

PROOF = 5.0  # times what all pods together can use
LEAST_BUSY = 0.01  # of all pods


class LoadUnit(enum.StrEnum):
    CORES = "cores"
    MILLICORES = "millicores"
    PERCENT = "percent"  # 100 is one core
    RPS = "rps"  # requests per second, of which --pod-capacity says how many one pod can carry


_PER_CORE = {LoadUnit.CORES: 1.0, LoadUnit.MILLICORES: 1000.0, LoadUnit.PERCENT: 100.0}


def in_cores(demand: Demand, unit: LoadUnit, pod: Yardstick, terms: PodTerms) -> tuple[Demand, PodTerms]:
    """The load in cores, and the capacity of a pod as well.

    A pod that serves as many requests as it can uses all of its limit; without a limit, all of its request.
    """
    if not pod.in_cores:
        raise InvalidInput("--unit", str(unit), "the load is in the unit of the policy's target: leave it out")
    if unit is not LoadUnit.RPS:
        return demand._replace(values=demand.values / _PER_CORE[unit]), terms
    if terms.capacity is None:
        raise InvalidInput("--unit", "rps", "say with --pod-capacity how many requests per second one pod can carry")
    full = pod.limit or pod.request
    cores = demand.values * (full / terms.capacity)
    return demand._replace(values=cores), terms._replace(capacity=full)


def check_cores(demand: Demand, pod: Yardstick, most_pods: int, where: str, proven: bool, burst: float) -> str:
    """Refuse a load that cannot be cores, where manifests prove it; else a warning, or nothing."""
    if not pod.in_cores:
        return ""
    most = most_pods * (pod.limit or burst * pod.request)
    lowest, p99 = (float(value) for value in np.quantile(demand.values, (0.01, 0.99)))
    if p99 <= most:
        return ""
    value = f"99 % of the time up to {p99:,.4g} cores, where {most_pods:,} pods can use {most:,.4g}"
    fix = f"is it in {_likely(p99, most)}? Say --unit millicores, percent (100 is one core), rps or cores"
    if proven and (p99 >= PROOF * most or lowest > most):
        raise InvalidInput(where, value, fix)
    return f"{where}: {value}; {fix}"


def _likely(load: float, most: float) -> str:
    """The units in which so much keeps some pods busy, and not more than there may be."""
    units = LoadUnit.MILLICORES, LoadUnit.PERCENT
    found = [unit for unit in units if LEAST_BUSY * most <= load / _PER_CORE[unit] <= most]
    return " or ".join(found) or LoadUnit.RPS
