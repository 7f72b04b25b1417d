"""The brake of a whole installation: it decides and records, and writes nothing, not even status."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.live.build import AT
from tests.live.memory_api import MemoryApi
from tests.live.shop import APPS, stock, ticker, watched
from trimtab.acts import Fate
from trimtab.journal import Journal
from trimtab.kinds.annotations import FROZEN
from trimtab.live.tell.telemetry import Telemetry


@pytest.mark.parametrize("frozen", [False, True])
def test_a_frozen_installation_writes_nothing_on_targets(tmp_path: Path, frozen: bool) -> None:
    api = MemoryApi()
    stock(api)
    api.put("/api/v1/namespaces/home", {"metadata": {"name": "home", "annotations": {FROZEN: str(frozen).lower()}}})

    async def run() -> None:
        cluster = watched(api)
        cluster.home = "home"
        api.fence = lambda: 0.0 if cluster.frozen else 10.0
        made = ticker(api, cluster, Telemetry(), tmp_path / "j.db")
        await made.tick(AT)
        await made.teller.finish()

    asyncio.run(run())
    written = [path for method, path in api.asked if method != "GET"]
    (act,) = Journal.read(tmp_path / "j.db").acts()
    assert act.decision.plan.replicas == 4
    if frozen:
        assert written == [] and act.outcome[0].fate is Fate.SHADOW
    else:
        assert written[0] == f"{APPS}/deployments/web/scale" and act.outcome[0].fate is Fate.WRITTEN
