"""What J is measured by: a written objective, unless a price is given; what is not usual is said."""

from __future__ import annotations

from msgspec.structs import replace

from tests.sim.policies import on_load
from trimtab.policy import Objective
from trimtab.tune.judge import judge_of

PLAIN = on_load()
DEAR = replace(PLAIN, objective=Objective(price=128.0, service_level=0.7))


def test_without_a_word_it_is_balanced() -> None:
    assert judge_of([PLAIN]) == (Objective(), "")
    assert judge_of([PLAIN], 8.0) == (Objective(price=8.0), "")


def test_a_written_objective_judges_whoever_is_beside_it() -> None:
    judge, note = judge_of([PLAIN, DEAR])
    assert judge == DEAR.objective and note.endswith("(price 128)")


def test_a_price_that_is_given_wins_and_the_service_level_stays() -> None:
    judge, note = judge_of([DEAR], 8.0)
    assert (judge.price, judge.service_level) == (8.0, 0.7)
    assert note.startswith("judged by a price of 8, not by the objective")
