"""How long pods take from creation to their first Ready: the horizon of every forecast (document 003).

The document means the pods that are ready; its program takes every pod with a Ready condition, whose
transition may have been to "not ready" moments after creation. `exact` follows the program; our own models
use quantiles.
"""

from __future__ import annotations

import numpy as np

from trimtab.core.model import Missing, Pod, Quantile, Reason, Startup

PROBABILITIES = (0.5, 0.9)
VALID_S = 86400.0  # start-up changes with releases, not within a day


def startup_times_s(pods: tuple[Pod, ...], exact: bool = False) -> list[float]:
    """One duration for each pod that has become ready."""
    known = [pod for pod in pods if pod.created_at is not None and pod.ready_since is not None]
    counted = [pod for pod in known if pod.ready or (exact and pod.ready is not None)]
    return [max(0.0, (pod.ready_since or 0.0) - (pod.created_at or 0.0)) for pod in counted]


def mean_startup_s(pods: tuple[Pod, ...], exact: bool = False) -> float:
    """Document 003's horizon; no pod that counts means 0."""
    times = startup_times_s(pods, exact)
    return float(np.mean(times)) if times else 0.0


def startup(times_s: list[float], at: float) -> Startup | Missing:
    """Quantiles over start-up times, each recorded once, at a pod's first Ready."""
    if not times_s:
        return Missing(reason=Reason.NO_READY_PODS, detail="no pod has been seen becoming ready")
    values = np.quantile(np.array(times_s), PROBABILITIES)
    quantiles = tuple(Quantile(p, float(v)) for p, v in zip(PROBABILITIES, values, strict=True))
    return Startup(made_at=at, expires_at=at + VALID_S, quantiles=quantiles, pods=len(times_s))
