"""Places are shared among namespaces: a slow one keeps its share, and gives back what was cancelled."""

from __future__ import annotations

import asyncio
from collections import Counter

from trimtab.wire.budget import Turns


async def hold(turns: Turns, namespace: str, inside: Counter[str], never: asyncio.Event) -> None:
    async with turns.turn(namespace):
        inside[namespace] += 1
        await never.wait()
        inside[namespace] -= 1


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_no_namespace_gets_more_than_its_share_while_another_waits() -> None:
    async def run() -> None:
        turns, inside, never = Turns(at_once=8, share=2), Counter[str](), asyncio.Event()
        tasks = [asyncio.create_task(hold(turns, "evil", inside, never)) for _ in range(50)]
        tasks += [asyncio.create_task(hold(turns, "shop", inside, never)) for _ in range(3)]
        tasks += [asyncio.create_task(hold(turns, "", inside, never)) for _ in range(2)]
        await settle()
        assert inside == {"evil": 3, "shop": 3, "": 2}, "eight places, the last two beyond their shares"
        never.set()
        await asyncio.gather(*tasks)

    asyncio.run(run())


def test_who_is_alone_gets_all_places() -> None:
    async def run() -> None:
        turns, inside, never = Turns(at_once=8, share=2), Counter[str](), asyncio.Event()
        tasks = [asyncio.create_task(hold(turns, "shop", inside, never)) for _ in range(9)]
        await settle()
        assert inside == {"shop": 8}
        never.set()
        await asyncio.gather(*tasks)

    asyncio.run(run())


def test_places_of_the_cancelled_are_free_again() -> None:
    async def run() -> None:
        turns, inside, never = Turns(at_once=2, share=1), Counter[str](), asyncio.Event()
        for rounds in range(3):
            tasks = [asyncio.create_task(hold(turns, "evil", inside, never)) for _ in range(5)]
            for _ in range(rounds):  # before, with and after the moment of being served
                await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        inside.clear()
        tasks = [asyncio.create_task(hold(turns, name, inside, never)) for name in ("a", "b", "c")]
        await settle()
        assert sum(inside.values()) == 2
        never.set()
        await asyncio.gather(*tasks)

    asyncio.run(run())
