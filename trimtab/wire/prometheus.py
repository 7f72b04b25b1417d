"""Prometheus' HTTP API, which Thanos, Mimir and VictoriaMetrics speak too: instant and range queries.

An answer with warnings or marked as partial is no answer: the sum of half the pods looks like a fallen load. Nor is
one with more series or bytes than were asked for: a tenant's selector may match every series there is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

import msgspec

from trimtab.errors import InvalidInput, MetricsUnavailable, Refused, quoted, without_credentials
from trimtab.promql import FailedQuery, apart, union
from trimtab.wire.access import Access
from trimtab.wire.budget import Budget
from trimtab.wire.decode import decode
from trimtab.wire.http import Answer, Http, OverHttp, Request

T = TypeVar("T")
NOTHING: Mapping[str, str] = {}  # never changed
FORM = "application/x-www-form-urlencoded"
MOST_SERIES, INSTANT_BYTES = 1000, 2**20  # of an instant query, from which one series each is expected
RANGE_SERIES, RANGE_BYTES = 10_000, 48 * 2**20  # of a range: 100 series of 11,000 points have 36 MiB
LABELS_BYTES = 32 * 2**20  # of the labels of series: 100,000 pods
ONE_SERIES_BYTES = 2**20  # of a range of one series: 15 days by the minute


class SeriesValue(msgspec.Struct, frozen=True):
    """One value of one series; NaN and infinities are passed on for the caller to judge."""

    labels: dict[str, str]
    at: float
    value: float


class RangeSeries(msgspec.Struct, frozen=True):
    """One series of a range answer; `values` is still JSON: [[seconds, "number"], ...]."""

    metric: dict[str, str] = {}
    values: msgspec.Raw = msgspec.Raw(b"[]")


class VectorItem(msgspec.Struct, frozen=True):
    metric: dict[str, str] = {}
    value: tuple[float, str] | None = None  # absent for a native histogram


class Data(msgspec.Struct, Generic[T], frozen=True, rename="camel"):
    result: T
    result_type: str = ""


class Envelope(msgspec.Struct, Generic[T], frozen=True, rename="camel"):
    status: str
    data: T | None = None
    error_type: str = ""
    error: str = ""
    warnings: list[str] | None = None
    is_partial: bool = False  # VictoriaMetrics


class TooManySeries(FailedQuery):
    """More series or bytes than anything we ask for."""


class IncompleteAnswer(FailedQuery):
    """An answer that says itself that something is missing."""


class Prometheus(OverHttp):
    """One server. Requests are counted in `counts` and paid from `budget`, like those to the API server."""

    def __init__(self, access: Access, budget: Budget | None = None, timeout_s: float = 30.0) -> None:
        self.access, self.timeout_s = access, timeout_s
        self._here = without_credentials(access.url)
        # The server is told the same limit, so that it stops working for us when we have stopped waiting.
        self.http = Http(access, MetricsUnavailable, TooManySeries, budget, timeout_s)
        self.counts, self.budget = self.http.counts, self.http.budget
        self._post = True

    async def query(
        self,
        expression: str,
        at: float | None = None,
        *,
        lookback_s: float | None = None,
        extra: Mapping[str, str] = NOTHING,
    ) -> list[SeriesValue]:
        """The value of an expression now (or `at`), one sample per series; a scalar is one without labels.

        `lookback_s` is how old a sample may be; Prometheus itself would accept five minutes. `extra` is for what stands
        before it, such as a prom-label-proxy.
        """
        params = {**extra, "query": expression} | ({} if at is None else {"time": f"{at:.3f}"})
        params |= {} if lookback_s is None else {"lookback_delta": f"{lookback_s:g}s"}
        data = await self._ask("query", params, expression, Data[msgspec.Raw], INSTANT_BYTES)
        if data.result_type == "scalar":
            when, text = self._decode(data.result, tuple[float, str])
            return [SeriesValue({}, when, self._number(text))]
        if data.result_type != "vector":
            raise InvalidInput(
                "query", expression, f"its answer is a {data.result_type}, but one value per series is needed"
            )
        items: list[VectorItem] = self._decode(data.result, list[VectorItem])
        if len(items) > MOST_SERIES:
            raise TooManySeries(f"{len(items):,} series: wrap the query in sum() or max()")
        return [self._sample(item, expression) for item in items]

    async def query_together(
        self, expressions: Sequence[str], *, lookback_s: float | None = None, extra: Mapping[str, str] = NOTHING
    ) -> list[list[SeriesValue]]:
        """The values of each now, by one request; InvalidInput or FailedQuery where one of them spoils it for all."""
        found = await self.query(union(expressions), lookback_s=lookback_s, extra=extra)
        return apart(found, len(expressions))

    async def query_range(
        self,
        expression: str,
        start: float,
        end: float,
        step_s: float,
        extra: Mapping[str, str] = NOTHING,
        most_bytes: int = RANGE_BYTES,
    ) -> list[RangeSeries]:
        """The expression at start, start + step, ... end (inclusive); the values are left to be parsed."""
        span = {"start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step_s:g}"}
        params = {**extra, "query": expression, **span}
        return (await self._ask("query_range", params, expression, Data[list[RangeSeries]], most_bytes)).result

    async def series(self, selector: str, start: float, end: float) -> list[dict[str, str]]:
        """The labels of all series that existed between start and end: the index answers, no sample is read."""
        span = {"match[]": selector, "start": f"{start:.3f}", "end": f"{end:.3f}"}
        return await self._ask("series", span, selector, list[dict[str, str]], LABELS_BYTES)

    async def _ask(self, what: str, params: Mapping[str, str], expression: str, kind: type[T], most_bytes: int) -> T:
        answer = await self._send(what, {**params, "timeout": f"{self.timeout_s:g}s"}, most_bytes)
        if answer.body.count(b'"metric":') > RANGE_SERIES:  # before anything is made of them
            raise TooManySeries(f"more than {RANGE_SERIES:,} series: wrap the query in sum() or max()")
        envelope = self._envelope(answer, expression, kind)
        if envelope.warnings or envelope.is_partial:
            said = quoted("; ".join(envelope.warnings or ["marked as partial"]))
            raise IncompleteAnswer(f"{self._here}: an incomplete answer counts as none: {said}")
        if envelope.data is None:
            raise MetricsUnavailable(f"{self._here}: an answer without data")
        return envelope.data

    async def _send(self, what: str, params: Mapping[str, str], most_bytes: int) -> Answer:
        """By POST, because queries outgrow URLs; by GET where a proxy in between forbids it."""
        path = f"/api/v1/{what}"
        if self._post:
            body = urlencode(params).encode()
            answer = await self.http.send(Request("get", what, "POST", path, None, body, FORM, most_bytes=most_bytes))
            if answer.status not in (HTTPStatus.FORBIDDEN, HTTPStatus.METHOD_NOT_ALLOWED):
                return answer
        again = await self.http.send(Request("get", what, "GET", path, params, most_bytes=most_bytes))
        if again.status == HTTPStatus.OK:
            self._post = False
        return again

    def _envelope(self, answer: Answer, expression: str, kind: type[T]) -> Envelope[T]:
        """Decoded in one pass: an answer may be tens of megabytes."""
        try:
            envelope: Envelope[T] = decode(answer.body, Envelope[kind])  # type: ignore[valid-type]
        except msgspec.MsgspecError as error:
            raise self._refusal(answer) from error
        if envelope.status == "success" and answer.status == HTTPStatus.OK:
            return envelope
        if envelope.error_type == "bad_data":
            raise InvalidInput("query", expression, f"{self._here} does not accept it: {quoted(envelope.error)}")
        raise self._refusal(answer)

    def _refusal(self, answer: Answer) -> Exception:
        here = f"{self._here}: {answer.status} {answer.said}"
        if answer.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return Refused(f"{here}: check the user, token or headers configured for Prometheus", answer.status)
        whose = "is this the address of Prometheus? (Mimir's ends with /prometheus)"
        if 300 <= answer.status < 400 or answer.status == HTTPStatus.NOT_FOUND:
            return Refused(f"{here}: {whose}", answer.status)
        if answer.status == HTTPStatus.UNPROCESSABLE_ENTITY:
            return FailedQuery(here)
        return MetricsUnavailable(f"{here}: {whose}" if answer.status == HTTPStatus.OK else here)

    def _sample(self, item: VectorItem, expression: str) -> SeriesValue:
        if item.value is None:
            raise InvalidInput(
                "query", expression, "its answer is a native histogram: wrap it in histogram_quantile() or the like"
            )
        return SeriesValue(item.metric, item.value[0], self._number(item.value[1]))

    def _number(self, text: str) -> float:
        try:
            return float(text)
        except ValueError as error:
            raise MetricsUnavailable(f"{self._here}: an answer that cannot be read: {quoted(text)}") from error

    def _decode(self, body: msgspec.Raw, kind: Any) -> Any:
        try:
            return decode(body, kind)
        except msgspec.MsgspecError as error:
            raise MetricsUnavailable(f"{self._here}: an answer that cannot be read: {error}") from error
