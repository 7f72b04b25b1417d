"""docs/architecture.md walks one CPU sample to a patched scale: every hop exists, and a tick takes them in order."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from pkgutil import resolve_name
from types import FrameType

from tests.live.build import AT
from tests.live.memory_api import MemoryApi
from tests.live.shop import APPS, stock, ticker, watched
from trimtab.live.tell.telemetry import Telemetry

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
MOST = 25


def hops() -> list[str]:
    section = PAGE.read_text().partition("## One CPU sample")[2].partition("\n## ")[0]
    return re.findall(r"^\d+\. `([\w.]+)`", section, re.MULTILINE)


def calls_of_a_tick() -> list[str]:
    """Functions of ours, in the order of their first call."""
    api, called = MemoryApi(), dict[str, None]()
    stock(api, cores=0.25)

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_globals.get("__name__", "").startswith("trimtab."):
            called.setdefault(f"{frame.f_globals['__name__']}.{frame.f_code.co_qualname}")

    async def run() -> None:
        made = ticker(api, watched(api), Telemetry())
        sys.setprofile(note)
        try:
            await made.tick(AT)
        finally:
            sys.setprofile(None)

    asyncio.run(run())
    assert api.objects[f"{APPS}/deployments/web"]["spec"]["replicas"] == 4
    return list(called)


def test_the_walk_is_short_and_every_hop_exists() -> None:
    assert 10 < len(hops()) <= MOST
    assert all(callable(resolve_name(hop)) for hop in hops())


def test_a_tick_takes_every_hop_in_this_order() -> None:
    called = calls_of_a_tick()
    assert [hop for hop in hops() if hop not in called] == []
    assert sorted(hops(), key=called.index) == hops()


def test_every_module_that_the_page_names_exists() -> None:
    text, root = PAGE.read_text(), PAGE.parents[1] / "trimtab"
    table = re.findall(r"^\| `(\w+)/` \| .* \| (.*) \|$", text, re.MULTILINE)
    named = [f"live/{room}/{module}.py" for room, modules in table for module in re.findall(r"`(\w+)`", modules)]
    named += re.findall(r"`((?:core|live)/[\w/]+\.py)`", text)
    assert len(named) > 30
    assert [path for path in named if not (root / path).exists()] == []
