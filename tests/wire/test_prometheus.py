"""Answers of metrics servers that must not be taken for values, and the ways to be let in."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from aiohttp import web

from tests.wire.fake import Fake, script
from trimtab.errors import InvalidInput, MetricsUnavailable, Refused, TrimtabError
from trimtab.wire.access import prometheus_access
from trimtab.wire.prometheus import Prometheus, SeriesValue


def vector(*values: str, **more: Any) -> web.Response:
    result = [{"metric": {"pod": str(index)}, "value": [1700000000.5, text]} for index, text in enumerate(values)]
    return web.json_response({"status": "success", "data": {"resultType": "vector", "result": result}, **more})


def ask(answer: Any, expression: str = "up", **settings: Any) -> tuple[list[SeriesValue], Fake]:
    async def run() -> tuple[list[SeriesValue], Fake]:
        async with Fake(script(answer)) as fake:
            timeout_s = settings.pop("timeout_s", 60.0)
            async with Prometheus(prometheus_access(fake.url, **settings), timeout_s=timeout_s) as prometheus:
                return await prometheus.query(expression, at=1700000000.0), fake

    return asyncio.run(run())


def test_values_as_they_are_not_numbers_included() -> None:
    samples, fake = ask(vector("1.5", "NaN", "+Inf", "-Inf", "1e-05"))
    assert [one.value for one in samples[2:]] == [math.inf, -math.inf, 1e-05]
    assert samples[0] == SeriesValue({"pod": "0"}, 1700000000.5, 1.5)
    assert math.isnan(samples[1].value)
    assert fake.requests[0].headers["Accept-Encoding"] == "identity"


def test_the_question_is_posted_with_time_and_timeout() -> None:
    async def run() -> dict[str, list[str]]:
        async with Fake(script(vector("1"))) as fake, Prometheus(prometheus_access(fake.url)) as prometheus:
            await prometheus.query('sum(x{a="b&c"})', at=1700000000.0)
            assert (fake.requests[0].method, fake.requests[0].path) == ("POST", "/api/v1/query")
            return parse_qs((await fake.requests[0].read()).decode())

    assert asyncio.run(run()) == {
        "query": ['sum(x{a="b&c"})'],
        "time": ["1700000000.000"],
        "timeout": ["30s"],
    }


def test_a_scalar_is_one_sample() -> None:
    scalar = {"status": "success", "data": {"resultType": "scalar", "result": [1700000000, "4"]}}
    assert ask(web.json_response(scalar))[0] == [SeriesValue({}, 1700000000.0, 4.0)]


def test_no_series_is_an_empty_answer_and_not_an_error() -> None:
    assert ask(vector())[0] == []


def error(status: int, kind: str, text: str) -> web.Response:
    return web.json_response({"status": "error", "errorType": kind, "error": text}, status=status)


@pytest.mark.parametrize(
    "answer, kind, said",
    [
        pytest.param(
            vector("1", warnings=["store 2 is down"]),
            MetricsUnavailable,
            "store 2 is down",
            id="warnings (Thanos)",
        ),
        pytest.param(vector("1", isPartial=True), MetricsUnavailable, "partial", id="partial (VictoriaMetrics)"),
        pytest.param(
            error(400, "bad_data", "parse error at char 3"),
            InvalidInput,
            "parse error at char 3",
            id="bad query",
        ),
        pytest.param(
            error(422, "execution", "too many samples"), MetricsUnavailable, "too many samples", id="too much"
        ),
        pytest.param(
            error(503, "timeout", "query timed out"),
            MetricsUnavailable,
            "query timed out",
            id="server's timeout",
        ),
        pytest.param(web.Response(status=401, text="no"), Refused, "check the user, token", id="401"),
        pytest.param(web.Response(status=404, text="not found"), Refused, "address of Prometheus", id="404"),
        pytest.param(
            web.Response(status=302, headers={"Location": "/login"}),
            Refused,
            "address of",
            id="login redirect",
        ),
        pytest.param(
            web.Response(text="<html>Grafana</html>"),
            MetricsUnavailable,
            "200 OK: is this the address",
            id="HTML with 200",
        ),
        pytest.param(web.Response(status=502, body=b""), MetricsUnavailable, "502", id="502"),
    ],
)
def test_what_is_no_answer(answer: web.Response, kind: type[TrimtabError], said: str) -> None:
    with pytest.raises(kind, match=said):
        ask(answer)


def test_infos_of_prometheus_3_are_not_warnings() -> None:
    assert len(ask(vector("1", infos=["metric might not be a counter"]))[0]) == 1


def test_a_native_histogram_is_named() -> None:
    item = {"metric": {}, "histogram": [1, {}]}
    body = {"status": "success", "data": {"resultType": "vector", "result": [item]}}
    with pytest.raises(InvalidInput, match="histogram_quantile"):
        ask(web.json_response(body))


def test_a_late_answer_is_none_and_the_question_is_not_repeated() -> None:
    asked: list[web.Request] = []

    async def late(request: web.Request) -> web.StreamResponse:
        asked.append(request)
        await asyncio.sleep(30)
        return vector("1")

    with pytest.raises(MetricsUnavailable, match="no answer"):
        ask(late, timeout_s=0.2)
    assert len(asked) <= 1  # none, where the connection alone took too long


def test_a_proxy_that_forbids_post_gets_get_from_then_on() -> None:
    async def only_get(request: web.Request) -> web.StreamResponse:
        return vector("1") if request.method == "GET" else web.Response(status=405)

    async def run() -> list[str]:
        async with Fake(only_get) as fake, Prometheus(prometheus_access(fake.url)) as prometheus:
            await prometheus.query("up")
            await prometheus.query("up")
            return [request.method for request in fake.requests]

    assert asyncio.run(run()) == ["POST", "GET", "GET"]


@pytest.mark.parametrize(
    "settings, header, expected",
    [
        ({"username": "u", "password": "ü"}, "Authorization", "Basic dTrDvA=="),
        ({"token": "abc"}, "Authorization", "Bearer abc"),
        ({"headers": {"X-Scope-OrgID": "team"}}, "X-Scope-OrgID", "team"),
    ],
    ids=["basic", "bearer", "Mimir's tenant"],
)
def test_the_ways_to_be_let_in(settings: dict[str, Any], header: str, expected: str) -> None:
    _, fake = ask(vector("1"), **settings)
    assert fake.requests[0].headers[header] == expected


def test_a_token_file_and_its_absence(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc\n")
    assert ask(vector("1"), token_file=str(tmp_path / "token"))[1].requests[0].headers["Authorization"] == "Bearer abc"
    with pytest.raises(InvalidInput, match="token file"):
        ask(vector("1"), token_file=str(tmp_path / "absent"))
