"""A page whose answer would be too long comes in halves, and is the same in the end."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire.fake import Fake
from trimtab.history.query_pages import FEW_POINTS, QueryPage, query_page
from trimtab.history.source import TimeGrid
from trimtab.series import Frame
from trimtab.wire.access import Access
from trimtab.wire.prometheus import Prometheus, TooManySeries

PAGE = QueryPage("cpu", lambda labels: labels["pod"])


async def ramp(request: web.Request) -> web.StreamResponse:
    """Two series, of which every value is its time."""
    form = await request.post()
    start, end, step = (float(str(form[name])) for name in ("start", "end", "step"))
    values = [[at, repr(at)] for at in np.arange(start, end + step / 2, step).tolist()]
    result = [{"metric": {"pod": pod}, "values": values} for pod in ("a", "b")]
    return web.json_response({"status": "success", "data": {"resultType": "matrix", "result": result}})


def read(span: TimeGrid, most_bytes: int) -> Frame:
    async def run() -> Frame:
        async with Fake(ramp) as fake, Prometheus(Access(fake.url)) as prometheus:
            whole = prometheus.query_range

            async def bounded(expression: str, start: float, end: float, step_s: float) -> list[object]:
                return await whole(expression, start, end, step_s, most_bytes=most_bytes)  # type: ignore[return-value]

            prometheus.query_range = bounded  # type: ignore[method-assign, assignment]
            return await query_page(prometheus, PAGE, span)

    return asyncio.run(run())


@given(steps=st.integers(1, 900), most=st.integers(6_000, 60_000))
@settings(max_examples=25, deadline=None)
def test_a_page_is_whole_however_short_answers_must_be(steps: int, most: int) -> None:
    frame = read(TimeGrid(6000.0, 60.0, steps), most)
    wanted = 6000.0 + 60.0 * np.arange(steps)
    assert frame.names == ("a", "b") and (frame.values == wanted).all()


def test_too_many_series_are_not_asked_for_for_ever() -> None:
    with pytest.raises(TooManySeries):
        read(TimeGrid(6000.0, 60.0, 20 * FEW_POINTS), 100)
