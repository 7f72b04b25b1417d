"""A late answer is Missing for who asked; it is asked again beside the ticks, and used when it comes.

Under a clock that moves only when everybody waits: no answer is late by chance.
"""

from __future__ import annotations

import asyncio

from tests.live.memory_api import MemoryApi
from tests.virtual.loop import run as virtually
from trimtab.core.model import Missing, Reason
from trimtab.live.advice import KINDS
from trimtab.live.look.cluster import WatchedCluster
from trimtab.live.measure.background import Lanes
from trimtab.live.measure.bounded_queries import IN_BACKGROUND, BoundedQueries, patience
from trimtab.wire.budget import AT_ONCE
from trimtab.wire.http import CONNECTIONS

PATIENCE_S = 5.0


class Source:
    """Answers with the question and the tick's time, as soon as its gate is open."""

    def __init__(self) -> None:
        self.gates: dict[str, asyncio.Event] = {}
        self.asked: list[str] = []

    async def ask(self, question: str, at: float) -> str:
        self.asked.append(question)
        if gate := self.gates.get(question):
            await gate.wait()
        return f"{question} at {at:g}"


def test_the_late_one_is_missing_and_the_others_are_answered() -> None:
    async def run() -> None:
        source = Source()
        asking = BoundedQueries[str, str](source.ask, PATIENCE_S)
        source.gates["slow"] = asyncio.Event()
        questions = {"slow": "evil", "quick": "shop"}
        found = await asking.answers(questions, 1.0)
        assert found["quick"] == "quick at 1"
        late = found["slow"]
        assert isinstance(late, Missing) and late.reason is Reason.UNREACHABLE and "within 5 s" in late.detail
        assert (asking.late, asking.asked["shop"]) == ({"evil": 1}, 1)
        found = await asking.answers(questions, 2.0)
        assert isinstance(found["slow"], Missing) and source.asked.count("slow") == 2, "one is under way already"
        source.gates["slow"].set()
        while not all(task.done() for task in asking._slow.values()):
            await asyncio.sleep(0)
        found = await asking.answers(questions, 3.0)
        assert found["slow"] == "slow at 1", "what was asked then, of that time"
        asking.close()

    virtually(run())


def test_what_nobody_asks_any_more_is_given_up_and_its_count_forgotten() -> None:
    async def run() -> None:
        source = Source()
        asking = BoundedQueries[str, str](source.ask, PATIENCE_S)
        source.gates["slow"] = asyncio.Event()
        await asking.answers({"slow": "evil"}, 1.0)
        (task,) = asking._slow.values()
        await asking.answers({"quick": "shop"}, 2.0)
        await asyncio.wait([task])
        assert task.cancelled() and (asking.late, asking.asked) == ({}, {"shop": 1})

    virtually(run())


def test_any_number_of_slow_questions_of_one_namespace_leaves_room_for_the_others() -> None:
    async def run() -> None:
        source = Source()
        asking = BoundedQueries[str, str](source.ask, PATIENCE_S)
        slow = {f"slow-{number}": "evil" for number in range(10 * AT_ONCE)}
        source.gates = {question: asyncio.Event() for question in slow}
        for at in (1.0, 2.0, 3.0):  # in the tick in which they are new, and in those after
            found = await asking.answers(slow | {f"quick-{at}-{number}": "shop" for number in range(50)}, at)
            assert all(isinstance(found[question], Missing) for question in slow)
            assert sum(not isinstance(answer, Missing) for answer in found.values()) == 50
        asking.close()

    virtually(run())


def test_a_tick_waits_a_third_of_its_period() -> None:
    assert (patience(15.0), patience(1.0)) == (5.0, 2.0)


def test_all_that_may_be_under_way_at_once_has_a_connection() -> None:
    """Watches, a tick's questions and those beside it, writes, and what is told: whoever is slow holds up no write."""
    watches = len(WatchedCluster(MemoryApi().kube()).feeds) + len(KINDS)
    beside = sum(lane.at_once for lane in Lanes.new())
    assert watches + 3 * AT_ONCE + IN_BACKGROUND + beside < CONNECTIONS
