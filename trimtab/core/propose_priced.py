"""propose_priced: with an objective, the pods that each load is worth, in the place of what its target asks for.

Never fewer than the load needs now at the service level. Where a forecast is silent, the target decides, as without an
objective. While a new leader reads what the one before knew, no pod goes. Where pods use all they may have, more load
may be asked for than is measured: the price decides, but never for fewer pods than the target asks for or than there
are.
"""

from __future__ import annotations

from math import ceil

from msgspec.structs import replace

from trimtab.core.demand import demand_of, saturated
from trimtab.core.model import Forecast, Missing, Observation, Proposal, Reason, Samples
from trimtab.core.overload import Yardstick, bridge_counts, yardstick
from trimtab.core.priced import into_band, level
from trimtab.core.tuned import unbridged
from trimtab.policy import Objective, Policy, Rule, Signal

_SATURATED = Missing(
    reason=Reason.NOT_PREDICTABLE, detail="pods use all the cpu they may have: how much is asked for is not known"
)


def propose_priced(
    policy: Policy, objective: Objective, seen: Observation, proposals: list[Proposal]
) -> tuple[list[Proposal], tuple[Rule, ...]]:
    """The proposals, and the rules between them and a plan; as they were while one of the loads has no price."""
    if policy.bridge is not None and not bridge_counts(policy, seen.pods):
        objective = unbridged(objective)
    count = len(policy.signals)
    known = zip(policy.signals, seen.samples, seen.forecasts, proposals[:count], proposals[count:], strict=False)
    priced = [_priced(policy, objective, seen, *each) for each in known]
    if len(priced) == count and all(isinstance(pair, tuple) for pair in priced):
        pairs = [pair for pair in priced if isinstance(pair, tuple)]
        return [now for now, _ in pairs] + [later for _, later in pairs], objective.settle
    return proposals, policy.settle


def _priced(
    policy: Policy,
    objective: Objective,
    seen: Observation,
    signal: Signal,
    sample: Samples | Missing,
    forecast: Forecast | Missing,
    now: Proposal,
    later: Proposal,
) -> tuple[Proposal, Proposal] | Missing:
    """What one load needs now, and what it is worth by the time a pod could serve."""
    if isinstance(later.replicas, Missing) or isinstance(now.replicas, Missing):
        return Missing(reason=Reason.NOT_PREDICTABLE)
    demand, pod = demand_of(sample, seen.pods), yardstick(policy, signal, seen)
    if demand is None or isinstance(pod, Missing):
        return Missing(reason=Reason.ABSENT)
    carries = pod.request
    load = demand / carries
    need = ceil(demand / pod.level - 1e-9)
    if isinstance(forecast, Missing):  # it is being read: `later` asks for what is there
        least = max(need, now.number()) if saturated(signal, sample, seen) else need
        return replace(now, replicas=least, ratio=None, load_pods=load), later
    band = _worth(objective, forecast, pod, seen.spec_replicas)
    if saturated(signal, sample, seen):
        least = max(need, band, now.number(), seen.spec_replicas)
        return replace(now, replicas=least, ratio=None, load_pods=load), replace(later, replicas=_SATURATED)
    expected = forecast.at_quantile(0.5) / carries
    if forecast.level:
        expected = load * forecast.at_quantile(0.5) / forecast.level
    return (
        replace(now, replicas=need, ratio=None, load_pods=load),
        replace(later, replicas=band, ratio=None, load_pods=expected),
    )


def _worth(objective: Objective, forecast: Forecast, pod: Yardstick, current: int) -> int:
    """The replicas moved as little as possible into what is worth starting and what is worth keeping."""
    start = level(forecast.demand, objective.price * objective.start_share, pod.share, pod.request)
    kept = forecast.keep or forecast.demand
    return into_band(current, start, level(kept, objective.price * objective.keep_share, pod.share, pod.request))
