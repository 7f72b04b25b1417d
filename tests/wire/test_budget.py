"""Whose request goes first while the budget is empty: by priority, and no namespace waits for all of another."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.virtual import loop
from trimtab.wire.budget import FAIR_TURN, Budget, Priority

Wish = tuple[str, Priority]
wishes = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(Priority)), max_size=60)


def served(*asked: Wish, per_s: float = 10.0) -> list[Wish]:
    """The order in which requests that were made at the same moment leave, none of them at once."""

    async def run() -> list[Wish]:
        budget, order = Budget(per_s=per_s, burst=1.0), []

        async def request(wish: Wish) -> None:
            await budget.take(*wish)
            order.append(wish)

        await budget.take()  # the burst
        await asyncio.gather(*map(request, asked))
        assert budget.spent == 1 + len(asked)
        assert loop.now() == pytest.approx(len(asked) / per_s)
        return order

    return loop.run(run())


@pytest.mark.parametrize("crowd", [Priority.SCALE, Priority.STATUS, Priority.EVENT])
@pytest.mark.parametrize("mine", [Priority.SCALE, Priority.STATUS, Priority.EVENT])
def test_a_thousand_requests_of_one_namespace_delay_another_by_a_couple(crowd: Priority, mine: Priority) -> None:
    order = served(*[("crowd", crowd)] * 1000, ("other", mine))
    assert order.index(("other", mine)) <= FAIR_TURN


def test_within_a_namespace_priority_decides_and_then_the_order_of_arrival() -> None:
    asked = [("a", priority) for priority in reversed(Priority)]
    assert served(*asked) == sorted(asked)


@settings(max_examples=100, deadline=None)
@given(wishes)
def test_a_scale_waits_for_scales_and_for_fair_turns_only(others: list[Wish]) -> None:
    order = served(*others, ("z", Priority.SCALE))
    scales = sum(priority is Priority.SCALE for _, priority in others)
    before = order[: order.index(("z", Priority.SCALE))]
    assert len(before) <= (scales + 1) * FAIR_TURN / (FAIR_TURN - 1) + 1


@settings(max_examples=100, deadline=None)
@given(wishes, st.sampled_from(Priority))
def test_nobody_waits_longer_than_a_few_rounds(others: list[Wish], mine: Priority) -> None:
    order = served(*others, ("z", mine))
    namespaces = len({namespace for namespace, _ in others}) + 1
    assert order.index(("z", mine)) <= FAIR_TURN * namespaces
    assert sorted(order) == sorted([*others, ("z", mine)])


def test_a_request_that_was_given_up_costs_nothing() -> None:
    async def run() -> None:
        budget = Budget(per_s=10.0, burst=1.0)
        await budget.take()
        given_up = asyncio.create_task(budget.take("a"))
        await asyncio.sleep(0)
        given_up.cancel()
        await budget.take("b")
        assert loop.now() == pytest.approx(0.1)
        assert budget.spent == 2

    loop.run(run())


def test_a_full_bucket_lets_a_burst_through_at_once_and_no_more() -> None:
    async def run() -> None:
        budget = Budget(per_s=50.0, burst=100.0)
        await asyncio.sleep(3600)
        await asyncio.gather(*(budget.take() for _ in range(150)))
        assert loop.now() == pytest.approx(3601.0)
        assert budget.waited_s > 0

    loop.run(run())
