"""The benchmark on generated traces: rows, the family, summaries; and that no contender looks ahead."""

from __future__ import annotations

import numpy as np
import pytest

from trimtab.bench.baselines import hpa
from trimtab.bench.contenders import CONTENDERS, Runs, check_names, rows_from, rows_of
from trimtab.bench.families import CALM, Disturbance, families_of
from trimtab.bench.protocol import Load
from trimtab.bench.summary import BenchRow, geometric_mean, interval, summarise
from trimtab.core.forecast.learned.net import shipped_weights
from trimtab.core.tuned import settings_of
from trimtab.errors import InvalidInput
from trimtab.policy import Bridge
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.generate import LoadShape, generate
from trimtab.sim.grid import DAY_STEPS
from trimtab.sim.sliding_windows import trailing_mean
from trimtab.tune.search import reactive_settings


def made(days: int = 6, seed: int = 1, name: str = "made") -> Load:
    steps = np.arange(days * DAY_STEPS)
    noise = np.random.default_rng(seed).standard_normal(len(steps))
    values = np.maximum(0, (16 + 12 * np.sin(steps * 2 * np.pi / DAY_STEPS)) * (1 + 0.05 * noise))
    return Load(name, values, trailing_mean(values, 4))


def test_the_family_has_135_members_and_hpa_is_one() -> None:
    family = reactive_settings(hpa(), ClusterSpec())
    assert len(family) == len(set(family)) == 135 and settings_of(hpa()) in family


class Brief(Load):
    """Two days of which the second is scored: what becomes of longer ones is for `test_baselines.py` and `many`."""

    @property
    def warmup_days(self) -> int:
        return 1


def assert_judged(load: Load, name: str) -> None:
    (row,) = rows_of(load, [name], [120.0], [32.0])
    assert row.policy == name
    resizes = name in ("capacity", "hvpa-weights")
    assert row.j > (0.9 if resizes else 1.0), "the optimum is of pods of one size, which only these may leave"


@pytest.mark.parametrize("name", CONTENDERS)
def test_every_contender_runs(name: str) -> None:
    assert_judged(Brief(*made(days=2)), name)


@pytest.mark.many
@pytest.mark.parametrize("name", CONTENDERS)
def test_every_contender_runs_past_the_warm_up_of_the_protocol(name: str) -> None:
    assert_judged(made(days=4), name)


def test_retuning_beats_the_default_and_never_the_optimum() -> None:
    rows = {row.policy: row for row in rows_of(made(), ["hpa-default", "hpa-rolling"], [120.0], [32.0])}
    default, retuned = rows["hpa-default"], rows["hpa-rolling"]
    assert 1.0 < retuned.j < 0.98 * default.j
    assert retuned.regret == pytest.approx(retuned.j - 1)
    assert retuned.j_oracle == default.j_oracle > 0


def test_a_forecast_helps_where_start_up_is_slow_and_the_bridge_more() -> None:
    values = generate(LoadShape(peak=24, valley=0.15, steep=3.5, noise=0.05, days=8))
    load = Load("office", values, trailing_mean(values, 4))
    rows = {row.policy: row for row in rows_of(load, ["hpa-rolling", "trimtab", "trimtab-bridge"], [600.0], [32.0])}
    assert rows["trimtab"].j < 0.97 * rows["hpa-rolling"].j
    assert rows["trimtab-bridge"].j <= rows["trimtab"].j


def row(policy: str, trace: str, j: float) -> BenchRow:
    return BenchRow(trace, 120.0, 32.0, policy, 1.2, 3.0, 40.0, 20.0, 0.0, j, 1000.0, j - 1)


def test_a_summary_is_by_trace_and_against_the_default() -> None:
    rows = [row("hpa-default", "a", 2.0), row("hpa-default", "b", 4.0), row("x", "a", 1.0), row("x", "b", 8.0)]
    default, other = summarise(rows)
    assert default.j == pytest.approx(8**0.5)
    assert other.j == pytest.approx(8**0.5)
    assert other.change == pytest.approx(0.0)
    assert (other.wins, other.traces, other.worst, other.worst_trace) == (1, 2, 8.0, "b")
    assert rows[0].plain()["lambda"] == 32.0


def test_the_interval_holds_the_mean_and_shrinks_with_traces() -> None:
    few = np.random.default_rng(1).uniform(1, 3, 8)
    many = np.tile(few, 16)
    low, high = interval(few)
    assert low < geometric_mean(few) < high
    assert interval(many)[1] - interval(many)[0] < (high - low) / 2


def test_an_unknown_contender_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"hpa-magic.*hpa-default, hpa-default-bridge"):
        check_names(["hpa-default", "hpa-magic"])


DISTURBANCES = [
    pytest.param(Disturbance(late_s=60.0), id="samples a minute late"),
    pytest.param(Disturbance(startup_factor=1.3), id="start-up 30 % longer than measured"),
    pytest.param(Disturbance(refused=0.1), id="a tenth of the resizes refused"),
]


def test_what_is_believed_may_come_from_calm_runs() -> None:
    late, names, startups_s = Disturbance(late_s=60.0), ["hpa-rolling-bridge"], [120.0]
    calm = Runs(made(), ["hpa-default", *names], startups_s, CALM, shipped_weights())
    given = rows_from(Runs(made(), names, startups_s, late, shipped_weights(), calm), names, startups_s, [32.0])
    assert given == rows_of(made(), names, startups_s, [32.0], late)


@pytest.mark.parametrize("disturbance", DISTURBANCES)
def test_disturbance_lets_more_load_meet_too_few_pods(disturbance: Disturbance) -> None:
    bridges, hours = (Bridge(ceiling=0.75),), np.arange(4 * DAY_STEPS) // (DAY_STEPS // 24)
    jumps = Load("jumps", values := np.where(hours % 2, 24.0, 6.0), trailing_mean(values, 4))
    calm, disturbed = (
        families_of(jumps, [120.0], shipped_weights(), bridges, (), disturbance=each).of(120.0, bridges, ())
        for each in (CALM, disturbance)
    )
    assert sum(days.violating.sum() for days in disturbed) > sum(days.violating.sum() for days in calm)


@pytest.mark.parametrize("name", ["hpa-rolling", "trimtab-bridge"])
def test_the_retuned_policy_looks_at_earlier_days_only(name: str) -> None:
    load, day = made(), 4
    values = load.values.copy()
    values[day * DAY_STEPS :] = np.random.default_rng(7).uniform(0, 60, len(values) - day * DAY_STEPS)
    changed = Load(load.name, values, trailing_mean(values, 4))
    before, after = (
        Runs(seen, [name], [120.0], CALM, shipped_weights()).days(name, 120.0, 32.0) for seen in (load, changed)
    )
    for column, other in zip(before, after, strict=True):
        assert (column[:day] == other[:day]).all()
    assert (before.pods[day:] != after.pods[day:]).any()
