"""The families that nightly retuning chooses from, simulated once for all contenders, prices and start-up times.

Every candidate is a policy of the operator, run by its code on what a view shows of the load. A policy believes what it
was told: the load as it is seen and the start-up time as it was measured. What happens may differ (`Disturbance`): then
candidates are chosen by what is believed and judged by what happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from trimtab.bench.baselines import CPU, hpa
from trimtab.bench.protocol import Load
from trimtab.core.forecast.learned.net import NetWeights
from trimtab.core.tuned import tuned
from trimtab.policy import Bridge, ForecastChoice, Objective, Policy, TotalAverage, Utilization
from trimtab.sim.cluster_spec import METRIC_DELAY_S, ClusterSpec
from trimtab.sim.grid import MEAN_S, STEP_S
from trimtab.sim.score import Days
from trimtab.sim.simulate import Simulation
from trimtab.tune.search import BANDS, reactive_settings

Bridges = tuple[Bridge | None, ...]
Family = list[Days]


class View(NamedTuple):
    """How a policy sees the load at the end of a step."""

    mean_s: float = MEAN_S  # metrics are means of so long ...
    delay_s: float = METRIC_DELAY_S  # ... and so late
    cpu: bool = False  # they are the CPU of pods as a share of their requests


VIEWS = {"operator": View(), "fresh": View(mean_s=STEP_S), "ideal": View(delay_s=0.0)}
OPERATOR = VIEWS["operator"]


class Disturbance(NamedTuple):
    """What is otherwise than a policy believes."""

    late_s: float = 0.0  # samples are so much older
    startup_factor: float = 1.0  # pods take this many times as long as was measured
    refused: float = 0.0  # the share of resizes that nodes refuse


CALM = Disturbance()


class Families(NamedTuple):
    """Every candidate's days, by start-up time and bridge."""

    reactive: dict[tuple[float, Bridge | None], Family]
    priced: dict[tuple[float, Bridge | None], Family]

    def of(self, startup_s: float, reactive: Bridges, priced: Bridges) -> Family:
        """One family of candidates; the order breaks ties."""
        found = [days for bridge in reactive for days in self.reactive[startup_s, bridge]]
        return found + [days for bridge in priced for days in self.priced[startup_s, bridge]]


def cluster_of(view: View, startup_s: float, disturbance: Disturbance = CALM) -> ClusterSpec:
    return ClusterSpec(
        startup_s=startup_s * disturbance.startup_factor,
        mean_s=view.mean_s,
        metric_delay_s=view.delay_s + disturbance.late_s,
    )


def families_of(
    load: Load,
    startups_s: Sequence[float],
    weights: NetWeights,
    reactive: Bridges,
    priced: Bridges,
    view: View = OPERATOR,
    disturbance: Disturbance = CALM,
) -> Families:
    """Both families with all of these bridges."""
    found = Families({}, {})
    by_target = [tuned(hpa(), settings) for settings in reactive_settings(hpa(), ClusterSpec())]
    for startup_s in startups_s:
        simulation = Simulation(
            load.values,
            cluster_of(view, startup_s, disturbance),
            first_pods=load.first_pods,
            start=load.start,
            weights=weights,
            refused=disturbance.refused,
        )
        groups = (found.reactive, reactive, by_target), (found.priced, priced, by_price(startup_s))
        for family, bridges, policies in groups:
            wanted = [_seen_by(view, replace(policy, bridge=bridge)) for bridge in bridges for policy in policies]
            days = [day for day in simulation.days(wanted) if day is not None]
            for number, bridge in enumerate(bridges):
                family[startup_s, bridge] = days[number * len(policies) : (number + 1) * len(policies)]
    return found


def by_price(startup_s: float) -> list[Policy]:
    """The objective at every pair of prices that a night tries."""
    ahead = ForecastChoice(model="learned", horizon_s=startup_s)
    return [
        replace(hpa(), objective=Objective(price=1.0, start_share=band.start, keep_share=band.keep), forecast=ahead)
        for band in BANDS
    ]


def _seen_by(view: View, policy: Policy) -> Policy:
    """The same by CPU, where a view shows that; a price looks at what all pods use, which is their load."""
    if not view.cpu or policy.objective is not None:
        return policy
    signal = policy.signals[0]
    assert isinstance(signal, TotalAverage)
    percent = Utilization(metric=CPU, percent=round(100.0 * signal.target), tolerance=signal.tolerance)
    return replace(policy, signals=(percent,))
