"""Several clusters behind one Prometheus: the operator reads the past of its own, in every place that reads it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import numpy as np
import pytest

from tests.live.build import AT
from tests.live.memory_api import MemoryApi
from tests.live.test_past_demand import APP, CPU, MEMORY, QUERY, tick
from tests.live.test_rebuild import QUICK, until_found
from tests.live.two_clusters import BYTES, CORES, TwoClusters
from tests.virtual.apiserver import ADMIN
from tests.virtual.transport import Link
from tests.wire.fake import Fake
from trimtab.advisor.targets import AdvisedTarget
from trimtab.core.demand import keys_of
from trimtab.core.usage import usages
from trimtab.live.operator import Operator
from trimtab.live.settings import OperatorSettings
from trimtab.policy import Advice, Inspection
from trimtab.promql import parse_matchers
from trimtab.wire.access import Access

OURS = 'cluster="a"'
TARGET = AdvisedTarget("apps/v1", "Deployment", "shop", "web", 1, {}, ())
each_setting = pytest.mark.parametrize(
    "matchers, clusters",
    [pytest.param(OURS, "a", id="narrowed"), pytest.param("", "ab", id="everything there is")],
)


def operated(matchers: str, check: Callable[[Operator, TwoClusters], Awaitable[None]]) -> None:
    """From the setting on: an operator that forgets to hand it to one of its readers is noticed."""

    async def run() -> None:
        server = TwoClusters(AT)
        async with Fake(server) as fake:
            access = Access("http://in-memory", transport=Link(MemoryApi(), ADMIN).transport)
            operator = Operator(
                access, Access(fake.url), OperatorSettings(history_matchers=parse_matchers(matchers), usage=QUICK)
            )
            async with operator.advisor.following(), operator.kube:
                await check(operator, server)
        assert server.queried

    asyncio.run(run())


@each_setting
def test_demand_before_now(matchers: str, clusters: str) -> None:
    first = tick("seasonal", CPU, MEMORY, APP, QUERY)
    cores, size = sum(CORES[one] for one in clusters), sum(BYTES[one] for one in clusters)

    async def check(operator: Operator, server: TwoClusters) -> None:
        past = operator.forecasts.past
        assert past is not None
        past.follow([first], AT)
        await past.finished()
        found = past.demand.log.frame(keys_of(first.subject.uid, first.subject.policy), AT, 300.0).values
        assert np.isfinite(found).any(axis=1).all()
        np.testing.assert_allclose(np.nanmedian(found, axis=1), [cores, size, cores, 100.0], rtol=1e-3)
        assert "sum(orders)" in server.queried, "a query in an object is asked as it is written"

    operated(matchers, check)


@each_setting
def test_usage_before_now(matchers: str, clusters: str) -> None:
    async def check(operator: Operator, server: TwoClusters) -> None:
        rebuild = operator.ticker.usage.rebuild
        assert rebuild is not None
        found = await until_found(rebuild, AT)
        estimate = usages(found.book, AT)["uid-web"].containers["app"]
        assert estimate.memory_peak_bytes == max(BYTES[one] for one in clusters)
        most = max(CORES[one] for one in clusters)
        assert most < (estimate.target.cpu_cores or 0) < 1.4 * most

    operated(matchers, check)


@each_setting
def test_advice(matchers: str, clusters: str) -> None:
    async def check(operator: Operator, server: TwoClusters) -> None:
        rules = Inspection(advice=Advice.REPLICAS, history_s=86400.0)
        (advised,) = await operator.advisor._outcomes(rules, [TARGET], AT)
        assert len(advised.usage) == 24
        np.testing.assert_allclose(advised.usage, sum(CORES[one] for one in clusters), rtol=1e-3)

    operated(matchers, check)
