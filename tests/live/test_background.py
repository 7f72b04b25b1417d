"""What happens beside the ticks: whoever is slow or many holds up no other namespace."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from tests.virtual.loop import run as virtually
from trimtab.live.measure.background import Lane, TookTooLong, in_turns

LIMIT_S = 100.0


@given(
    at_once=st.integers(2, 6),
    tenants=st.lists(st.integers(1, 60), min_size=0, max_size=12),
    lasts_s=st.floats(1.0, 1e6),
    later_s=st.floats(0.0, 500.0),
)
def test_an_honest_job_begins_after_one_round_of_turns_at_the_latest(
    at_once: int, tenants: list[int], lasts_s: float, later_s: float
) -> None:
    async def run() -> None:
        lane, loop = Lane("advice", at_once, LIMIT_S), asyncio.get_running_loop()
        jobs = [number for number, many in enumerate(tenants) for _ in range(many)]
        tasks = [asyncio.create_task(lane.do(f"evil-{job}", lambda: asyncio.sleep(lasts_s))) for job in jobs]
        await asyncio.sleep(later_s)
        asked_at = loop.time()

        async def honest() -> float:
            return loop.time() - asked_at

        waited_s = await lane.do("shop", honest)
        rounds = 0 if len(tenants) <= 1 else -(-len(tenants) // at_once) + 1
        assert waited_s <= rounds * LIMIT_S + 1e-6
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(each, TookTooLong | asyncio.CancelledError | None) for each in ended)

    virtually(run())


def test_a_job_that_takes_too_long_is_ended_and_its_time_counted() -> None:
    async def run() -> None:
        lane, ended = Lane("read-back", 2, LIMIT_S), list[BaseException | object]()
        jobs = (lane.do("evil", lambda: asyncio.sleep(1e9)) for _ in range(3))
        ended += await asyncio.gather(*jobs, return_exceptions=True)
        assert [type(each) for each in ended] == [TookTooLong] * 3
        assert "others of namespace evil go first" in str(ended[0])
        assert lane.spent_s == {"evil": 3 * LIMIT_S}
        assert await lane.do("evil", lambda: asyncio.sleep(0, "free again")) == "free again"

    virtually(run())


def test_the_namespace_that_used_the_least_time_is_first() -> None:
    async def run() -> None:
        lane, order = Lane("read-back", 1, LIMIT_S), list[str]()
        await lane.do("slow", lambda: asyncio.sleep(50.0))

        async def read(own: list[str]) -> int:
            order.extend(own)
            return len(own)

        answers = await lane.for_each_namespace(["slow", "slow", "new"], lambda name: name, read)
        assert (order, [answer for _, answer in answers]) == (["new", "slow", "slow"], [1, 2])

    virtually(run())


def test_items_of_namespaces_take_turns() -> None:
    given = ["a1", "a2", "a3", "b1", "c1", "c2"]
    assert in_turns(given, lambda item: item[0]) == ["a1", "b1", "c1", "a2", "c2", "a3"]
