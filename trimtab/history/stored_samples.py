"""Pages from stored samples: what remote read sends is decoded, turned into rates and laid into rows in batches.

A batch is about a million samples, so memory does not grow with pods, and the next one comes in meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing

import numpy as np

from trimtab.errors import MetricsUnavailable
from trimtab.history import gorilla, promql
from trimtab.history.query_pages import SERIES_PER_PAGE, QueryPage, StoredQuery
from trimtab.history.source import TimeGrid
from trimtab.series import Floats, Frame
from trimtab.wire.prometheus import Prometheus
from trimtab.wire.remote_read import Frames, SeriesChunks, parse_matchers, read_request

PIECE_BYTES = 1 << 21  # enough for a thread to be worth its while
BATCH = 1_000_000  # samples, or points of the grid
BLOCK = 200_000  # points that are evaluated at once: what stays in a processor's cache takes half the time
SAMPLES_PER_POINT = 10  # of a full page: with more of them the server is faster, and sends far less


class TooManySamples(MetricsUnavailable):
    """Pages like this one are for the server to add up."""


async def read_stored(prometheus: Prometheus, page: QueryPage, span: TimeGrid) -> Frame:
    """The page as its query would give it; raises where it cannot be had this way, or should not be."""
    assert page.stored is not None
    reach_s = page.stored.rate_s or promql.LOOKBACK_MS / 1000
    start_ms, end_ms = round((span.start - reach_s) * 1000), round(span.last * 1000)
    request = read_request(parse_matchers(page.stored.matchers), start_ms, end_ms)
    reader = _Reader(page, page.stored, span)
    async with aclosing(prometheus.remote_read(request)) as pieces:
        async for piece in _joined(pieces):
            await asyncio.to_thread(reader.take, piece)  # the loop goes on receiving meanwhile
    await asyncio.to_thread(reader.end)
    return reader.frame()


async def _joined(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    held, size = [], 0
    async for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= PIECE_BYTES:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


class _Reader:
    """One page on its way from bytes to rows."""

    def __init__(self, page: QueryPage, stored: StoredQuery, span: TimeGrid) -> None:
        self._page, self._stored, self._span, self._frames = page, stored, span, Frames()
        self._waiting: list[tuple[str, SeriesChunks]] = []  # with their rows' names
        self._samples = 0  # in those that wait
        self._points = 0  # in those before them: samples, or points of the grid where those are more
        self._rows: dict[str, Floats] = {}

    def take(self, data: bytes) -> None:
        for part in self._frames.feed(data):
            self._add(part)

    def end(self) -> None:
        self._frames.end()
        self._lay()

    def frame(self) -> Frame:
        values = np.stack(list(self._rows.values())) if self._rows else np.empty((0, self._span.steps))
        return Frame(tuple(self._rows), self._span.start, self._span.step_s, values)

    def _add(self, part: SeriesChunks) -> None:
        name = self._page.name(self._stored.relabel(part.labels))
        if name is None:
            return
        if self._waiting and part.labels == self._waiting[-1][1].labels:
            self._waiting[-1][1].chunks.extend(part.chunks)
        else:
            if self._size() >= BATCH:
                self._lay()
            self._waiting.append((name, part))
        self._samples += sum(map(gorilla.count, part.chunks))
        most = SAMPLES_PER_POINT * SERIES_PER_PAGE * self._span.steps
        if self._points + self._size() > most:
            raise TooManySamples(f"more than {most} samples for one page")

    def _size(self) -> int:
        return max(self._samples, len(self._waiting) * self._span.steps)

    def _lay(self) -> None:
        self._points += self._size()
        samples = _decode([part for _, part in self._waiting])
        for (name, _), row in zip(self._waiting, self._evaluate(samples), strict=True):
            self._rows[name] = self._page.fold(self._rows[name], row) if name in self._rows else row
        self._waiting, self._samples = [], 0

    def _evaluate(self, samples: promql.StoredSamples) -> Iterator[Floats]:
        rate_s, rows = self._stored.rate_s, max(1, BLOCK // self._span.steps)
        for first in range(0, len(samples.counts), rows):
            some = samples.some(first, first + rows)
            values = promql.rate(some, self._span, rate_s) if rate_s else promql.value(some, self._span)
            values[~np.isfinite(values)] = np.nan
            yield from values


def _decode(parts: list[SeriesChunks]) -> promql.StoredSamples:
    decoded = gorilla.decode([chunk for part in parts for chunk in part.chunks])
    series = np.repeat(np.arange(len(parts)), [len(part.chunks) for part in parts])
    counts = np.bincount(series, weights=decoded.counts, minlength=len(parts)).astype(np.int64)
    return promql.in_order(promql.StoredSamples(decoded.times_ms, decoded.values, counts))
