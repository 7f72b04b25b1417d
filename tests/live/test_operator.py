"""When the operator ticks; what it does then is shown on the real control plane."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from trimtab.core.model import Event
from trimtab.core.settle import rate
from trimtab.live.operator import next_due
from trimtab.policy import RatePolicy, Rates


@pytest.mark.parametrize(
    ("now", "due"),
    [
        pytest.param(101.0, 115.0, id="woken and finished late: the next tick keeps its place"),
        pytest.param(20.0, 35.0, id="the clock was set back: nobody waits for it"),
        pytest.param(160.0, 160.0, id="three periods missed: one tick now, none to make up for them"),
    ],
)
def test_ticks_keep_their_places(now: float, due: float) -> None:
    assert next_due(100.0, 15.0, now) == due


@pytest.mark.parametrize("period_s", [5.0, 15.0])
def test_a_rate_of_one_period_lets_every_tick_step(period_s: float) -> None:
    """Were ticks dated by when they woke, a tick woken less late than the one before would find its rate used up."""
    late_s = random.Random(1)
    rates = Rates(policies=(RatePolicy(percent=True, value=100, period_s=period_s),))
    due, current = 1_794_804_097.1546931, 1
    grown: tuple[Event, ...] = ()
    for _ in range(20):
        most = rate.up_limit(rates, current, grown, (), due)
        assert most == 2 * current
        grown, current = rate.remember(grown, due, most - current, period_s), most
        due = next_due(due, period_s, now=due + late_s.uniform(0.0, 0.9 * period_s))


def test_an_operator_holds_neither_the_simulator_nor_its_compiler() -> None:
    code = (
        "import sys; import trimtab.live.operator, trimtab.web.operator\n"
        "import trimtab.web.sources, trimtab.cli.night_process\n"
        "print(*{'numba', 'scipy', 'pyarrow', 'rich', 'trimtab.sim.score', 'trimtab.web.whatif'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [], "70 MB that no tick needs"
