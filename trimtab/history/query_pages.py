"""Range queries in pages: about 100 series each, two in flight, at most 11,000 points per query, never gzipped.

One query of everything drives Prometheus to gigabytes; ten pages, two at a time, are faster and cost it little.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

import msgspec
import numpy as np

from trimtab.errors import MetricsUnavailable
from trimtab.history.source import TimeGrid
from trimtab.series import Floats, Frame
from trimtab.wire.prometheus import Prometheus, RangeSeries, TooManySeries

SERIES_PER_PAGE = 100
PAGES_IN_FLIGHT = 2
POINTS_PER_QUERY = 11_000  # Prometheus refuses more
FEW_POINTS = 100  # an answer with fewer is not halved: its series are too many

Fold = Callable[[Floats, Floats], Floats]


def total(left: Floats, right: Floats) -> Floats:
    """The sum, in which a hole counts as nothing, but two holes stay a hole."""
    both: Floats = np.nansum([left, right], axis=0)
    both[np.isnan(left) & np.isnan(right)] = np.nan
    return both


def largest(left: Floats, right: Floats) -> Floats:
    both: Floats = np.fmax(left, right)
    return both


class QueryPage(NamedTuple):
    """One query: how its series are named (None: not wanted), and what becomes of two with the same name."""

    expression: str
    name: Callable[[Mapping[str, str]], str | None]
    fold: Fold = total


Read = Callable[[QueryPage, TimeGrid], Awaitable[Frame]]


async def read_pages(read: Read, pages: Iterable[QueryPage], span: TimeGrid) -> AsyncIterator[Frame]:
    """The answers in order, with the next one already on its way; pages without data are left out."""
    waiting = iter(pages)
    running = [asyncio.ensure_future(read(page, span)) for page in _first(waiting, PAGES_IN_FLIGHT)]
    try:
        while running:
            frame = await running.pop(0)
            running += [asyncio.ensure_future(read(page, span)) for page in _first(waiting, 1)]
            if frame.names:
                yield frame
            del frame  # it is the caller's now; holding it here would keep a third page in memory
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def query_page(prometheus: Prometheus, page: QueryPage, span: TimeGrid) -> Frame:
    """One page, however many queries its range needs: an answer that is too long is asked for in two halves."""
    rows: dict[str, Floats] = {}
    waiting = deque(parts(span))
    while waiting:
        part = waiting.popleft()
        try:
            series = await prometheus.query_range(page.expression, part.start, part.last, part.step_s)
        except TooManySeries:
            if part.steps < FEW_POINTS:
                raise
            waiting.extendleft(reversed(halves(part)))
            continue
        await asyncio.to_thread(_add_rows, series, page, part, span, rows)  # the loop goes on receiving meanwhile
    values = np.stack(list(rows.values())) if rows else np.empty((0, span.steps))
    return Frame(tuple(rows), span.start, span.step_s, values)


def parts(span: TimeGrid) -> Iterator[TimeGrid]:
    """The range in pieces of at most 11,000 points."""
    for first in range(0, span.steps, POINTS_PER_QUERY):
        steps = min(POINTS_PER_QUERY, span.steps - first)
        yield TimeGrid(span.start + first * span.step_s, span.step_s, steps)


def halves(span: TimeGrid) -> tuple[TimeGrid, TimeGrid]:
    first = span.steps // 2
    start = span.start + first * span.step_s
    return TimeGrid(span.start, span.step_s, first), TimeGrid(start, span.step_s, span.steps - first)


def _add_rows(
    series: list[RangeSeries], page: QueryPage, part: TimeGrid, span: TimeGrid, rows: dict[str, Floats]
) -> None:
    for found in series:
        name = page.name(found.metric)
        if name is None:
            continue
        row = np.full(span.steps, np.nan)
        first = round((part.start - span.start) / span.step_s)
        read_row(bytes(found.values), part, row[first : first + part.steps])
        rows[name] = page.fold(rows[name], row) if name in rows else row


def _first(pages: Iterator[QueryPage], count: int) -> list[QueryPage]:
    return list(islice(pages, count))


_flat = msgspec.json.Decoder(list[float])
_pairs = msgspec.json.Decoder(list[tuple[float, float]], strict=False)  # slower, but it knows "NaN"


def read_row(raw: bytes, span: TimeGrid, row: Floats) -> None:
    """Put each sample into the step it is nearest to; what is not finite, or not on the grid, stays a hole."""
    pairs = read_pairs(raw)
    index = np.rint((pairs[:, 0] - span.start) / span.step_s).astype(np.intp)
    good = (index >= 0) & (index < span.steps) & np.isfinite(pairs[:, 1])
    row[index[good]] = pairs[good, 1]


def read_pairs(raw: bytes) -> Floats:
    """Time and value of each sample."""
    try:
        return np.array(_flat.decode(b"[" + raw.translate(None, b'[]"') + b"]"), dtype=np.float64).reshape(-1, 2)
    except (msgspec.MsgspecError, ValueError):
        pass
    try:
        spelled = raw.replace(b'"+Inf"', b'"inf"')  # the one spelling of Prometheus that msgspec does not know
        return np.array(_pairs.decode(spelled), dtype=np.float64).reshape(-1, 2)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise MetricsUnavailable(f"the metrics server sent samples that cannot be read: {error}") from error
