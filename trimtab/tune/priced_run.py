"""The priced policy on a demand, as the operator would run it: one forecast serves every price and every bridge."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from trimtab.core.forecast.learned.net import shipped_weights
from trimtab.policy import Bridge, Objective, PricedBand
from trimtab.series import Floats
from trimtab.sim.grid import DAY_STEPS, delay_steps
from trimtab.sim.priced_levels import PricedLevels, band_path, priced_levels
from trimtab.sim.resize_in_place import shown_load
from trimtab.sim.score import Counts, Days, measure
from trimtab.tune.candidate_runs import CandidateRuns

# From 1 to 128 for a start, two to sixteen times that for keeping.
BANDS = tuple(PricedBand(start=2.0**start, keep=2.0 ** (start + more)) for start in range(8) for more in range(1, 5))
PRICES = tuple(sorted({price for band in BANDS for price in (band.start, band.keep)}))


class PricedRuns:
    """Bounds, rates and windows that are written beside an objective bind here too."""

    def __init__(self, runs: CandidateRuns, objective: Objective, bands: Sequence[PricedBand] = BANDS) -> None:
        self.runs, self.objective, self.bands = runs, objective, (_own(objective), *bands)
        self._paths: dict[PricedBand, Counts] = {}

    def days(self, band: PricedBand | None, bridge: Bridge | None) -> Days:
        """With a band; None: the objective's own."""
        runs, path = self.runs, self._path(band or self.bands[0])
        return measure(
            runs.load,
            path,
            delay_steps(runs.cluster.startup_s),
            DAY_STEPS,
            runs.cluster.level_share,
            bridge,
            self._shown,
        )

    def _path(self, band: PricedBand) -> Counts:
        if band not in self._paths:
            start, keep = (self._prices.index(price) for price in (band.start, band.keep))
            levels, runs = self._levels, self.runs
            self._paths[band] = band_path(
                levels.start[start],
                levels.keep[keep],
                runs.first_pods,
                runs.policy.bounds,
                self.objective.settle,
                runs.by_step,
            )
        return self._paths[band]

    @cached_property
    def _prices(self) -> tuple[float, ...]:
        return tuple(dict.fromkeys(price for band in self.bands for price in (band.start, band.keep)))

    @cached_property
    def _levels(self) -> PricedLevels:
        runs = self.runs
        return priced_levels(
            runs.load, runs.cluster.startup_s, shipped_weights(), self._prices, self.objective.service_level
        )

    @cached_property
    def _shown(self) -> Floats:
        return shown_load(self.runs.load)


def _own(objective: Objective) -> PricedBand:
    """What the objective itself asks for."""
    return PricedBand(start=objective.price * objective.start_share, keep=objective.price * objective.keep_share)
