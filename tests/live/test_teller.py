"""What ticks have to say: the newest word of each, in the background, whatever fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from trimtab.errors import NotLeading, Refused
from trimtab.live.tell.teller import Teller
from trimtab.ticks import ObjectName

WEB, EVIL = ObjectName("Autoscaler", "shop", "web"), ObjectName("Autoscaler", "evil", "web")


def saying(heard: list[str], text: str, error: Exception | None = None) -> Callable[[], Awaitable[None]]:
    async def say() -> None:
        await asyncio.sleep(0)
        if error is not None:
            raise error
        heard.append(text)

    return say


def test_only_the_newest_word_of_each_is_said_and_failures_stop_nobody() -> None:
    heard: list[str] = []

    async def run() -> None:
        teller = Teller()
        for number in range(100):
            teller.later(WEB, "busy", saying(heard, f"word {number}"))
        for number, error in enumerate((Refused("no"), NotLeading("lost"), ZeroDivisionError("bug"))):
            teller.later(WEB, f"bad-{number}", saying(heard, "never", error))
        teller.later(WEB, "calm", saying(heard, "calm"))
        await teller.finish()

    asyncio.run(run())
    assert heard == ["word 99", "calm"]


def test_what_is_dropped_is_not_said_though_its_turn_comes() -> None:
    heard: list[str] = []

    async def run() -> None:
        teller = Teller()
        for word in ("gone", "calm"):
            teller.later(WEB, word, saying(heard, word))
        teller.begin()
        teller.drop("gone")
        await teller.finish()

    asyncio.run(run())
    assert heard == ["calm"]


def test_a_tick_does_not_wait_for_what_is_said() -> None:
    async def run() -> None:
        teller, never = Teller(), asyncio.Event()

        async def stuck() -> None:
            await never.wait()

        teller.later(WEB, "stuck", stuck)
        teller.begin()
        await asyncio.sleep(0)
        teller.later(WEB, "next", stuck)
        teller.begin()  # returns at once, though the first has not been said
        await teller.close()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_namespace_whose_words_are_stuck_keeps_nobody_elses_waiting() -> None:
    heard: list[str] = []

    async def run() -> None:
        teller, never = Teller(), asyncio.Event()

        async def stuck() -> None:
            await never.wait()

        for number in range(100):
            teller.later(EVIL, f"stuck-{number}", stuck)
        for number in range(100):
            teller.later(WEB, f"fine-{number}", saying(heard, "fine"))
        teller.begin()
        while len(heard) < 100:
            await asyncio.sleep(0)
        await teller.close()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_what_cannot_be_told_names_its_object_and_is_said_less_and_less_often(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        teller = Teller()
        for _ in range(120):
            teller.later(WEB, "web", saying([], "never", Refused("403 forbidden")))
            await teller.finish()

    asyncio.run(run())
    said = [record.getMessage() for record in caplog.records]
    text = "Autoscaler shop/web: it cannot be told: 403 forbidden"
    assert said == [text, f"{text} (10 times)", f"{text} (100 times)"]
