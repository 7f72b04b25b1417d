"""How far ahead a forecast looks: what the policy says, else the start-up time of nine pods of ten.

Predictive HPA's own line looks one mean start-up time ahead, over the pods that there are.
"""

from __future__ import annotations

from trimtab.core.model import Observation
from trimtab.core.startup import mean_startup_s, usual_startup_s
from trimtab.policy import ForecastChoice


def horizon_s(choice: ForecastChoice, seen: Observation) -> float:
    if choice.horizon_s is not None:
        return choice.horizon_s
    if choice.exact and choice.model == "linear":
        return mean_startup_s(seen.pods, exact=True)
    return usual_startup_s(seen)
