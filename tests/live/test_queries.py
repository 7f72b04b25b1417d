"""A namespace's queries are one request, until one of them spoils it: then that one is asked alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from aiohttp import web

from tests.live.build import AT
from tests.virtual.metrics import JOINED
from tests.wire.fake import Fake
from trimtab.core.model import Missing, Reason, Samples, TotalSample
from trimtab.live.measure.gather import Gather, Wanted
from trimtab.live.measure.queries import ALONE_S, MOST, MOST_CHARACTERS, Queries, QueryBatch, QueryBatchAnswer, Question
from trimtab.live.measure.readings import Answer, Reading
from trimtab.live.measure.tenancy import QueryTenancy
from trimtab.policy import Metric, MetricKind, Total
from trimtab.promql import LABEL
from trimtab.wire.access import Access
from trimtab.wire.prometheus import Prometheus


def wanted(namespace: str, *queries: str) -> list[Wanted]:
    metrics = [Metric(kind=MetricKind.PROMETHEUS, query=query) for query in queries]
    return [Wanted(namespace, (Total(metric=metric, target=10),), ()) for metric in metrics]


class Server:
    """Knows `NAME NUMBER`; `bad` is no query, `partial` warns, `everything` matches too many series."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.forms: list[dict[str, Any]] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        form = dict(await request.post())
        self.forms.append(form)
        joined = JOINED.findall(str(form["query"]))
        queries = [text for text, _ in joined] or [str(form["query"])]
        self.asked.append(queries)
        if "bad" in queries:
            return web.json_response({"status": "error", "errorType": "bad_data", "error": "parse error"}, status=400)
        rows = [
            {"metric": {LABEL: number} if number else {}, "value": [time.time(), text.split()[1]]}
            for text, number in joined or [(queries[0], "")]
            if " " in text
        ]
        if "everything" in queries:
            rows += [{"metric": {LABEL: "0", "pod": str(number)}, "value": [0.0, "1"]} for number in range(30_000)]
        warned = {"warnings": ["half of it"]} if "partial" in queries else {}
        return web.json_response({"status": "success", "data": {"resultType": "vector", "result": rows}, **warned})


def ticks(
    *each: Sequence[Wanted],
    every_s: float = 15.0,
    tenancy: QueryTenancy = QueryTenancy(),  # noqa: B008
) -> tuple[list[list[Samples | Missing]], Server]:
    """What each tick gathers, and the server with what it was asked."""
    server = Server()

    async def run() -> list[list[Samples | Missing]]:
        async with Fake(server.answer) as fake:
            kube, prometheus = fake.kube(), Prometheus(Access(fake.url))
            gather, found = Gather(kube, prometheus, tenancy=tenancy), []
            now = time.time()
            for number, asked in enumerate(each):
                gathered = await gather.gather(asked, now + every_s * number)
                found.append([samples[0] for samples in gathered.samples])
            gather.close()
            await kube.close()
            await prometheus.close()
            return found

    return asyncio.run(run()), server


def values(samples: Sequence[Samples | Missing]) -> list[float | Reason | None]:
    return [
        found.value if isinstance(found, TotalSample) else found.reason if isinstance(found, Missing) else None
        for found in samples
    ]


def test_a_namespaces_queries_are_one_request_and_each_has_its_own_answer() -> None:
    found, server = ticks(wanted("shop", "a 1", "b 2", "nothing", "c 3"))
    assert values(found[0]) == [1.0, 2.0, Reason.ABSENT, 3.0]
    assert server.asked == [["a 1", "b 2", "nothing", "c 3"]]


def test_namespaces_are_never_joined() -> None:
    _, server = ticks([*wanted("shop", "a 1", "b 2"), *wanted("bank", "c 3", "d 4")])
    assert sorted(server.asked) == [["a 1", "b 2"], ["c 3", "d 4"]]


def test_a_query_of_several_namespaces_goes_with_nobodys() -> None:
    _, server = ticks([*wanted("shop", "a 1", "b 2", "c 3"), *wanted("bank", "a 1")])
    assert sorted(server.asked) == [["a 1"], ["b 2", "c 3"]]


def test_a_label_proxy_is_told_whose_queries_they_are() -> None:
    both = [*wanted("shop", "a 1", "b 2"), *wanted("bank", "a 1", "b 2")]
    found, server = ticks(both, tenancy=QueryTenancy("label-proxy"))
    assert values(found[0]) == [1.0, 2.0, 1.0, 2.0]
    assert sorted(form["namespace"] for form in server.forms) == ["bank", "shop"]


def test_a_namespace_that_may_not_ask_asks_nothing() -> None:
    found, server = ticks(wanted("shop", "a 1", "b 2"), tenancy=QueryTenancy("by-label"))
    assert values(found[0]) == [Reason.NOT_ALLOWED] * 2 and server.asked == []


def test_no_request_grows_beyond_what_servers_take() -> None:
    many = [f"q{number} {number}" for number in range(2 * MOST + 1)]
    long = [f"{letter * (MOST_CHARACTERS // 2 - 10)} 1" for letter in "abc"]
    found, server = ticks([*wanted("shop", *many), *wanted("bank", *long)])
    assert values(found[0]) == [*map(float, range(2 * MOST + 1)), 1.0, 1.0, 1.0]
    assert sorted(len(asked) for asked in server.asked) == [1, 1, 2, MOST, MOST]


def test_one_that_is_no_query_costs_the_others_nothing_and_is_asked_alone_from_then_on() -> None:
    asked = wanted("shop", "a 1", "bad", "b 2", "c 3")
    found, server = ticks(asked, asked)
    for samples in found:
        assert values(samples) == [1.0, Reason.UNSUPPORTED, 2.0, 3.0]
    second = server.asked[-3:]
    assert ["bad"] in second and ["b 2", "c 3"] in second, "with whom it failed last is alone, too"


def test_one_whose_answer_is_incomplete_spoils_nobody_elses() -> None:
    found, _ = ticks(wanted("shop", "a 1", "partial", "b 2"))
    assert values(found[0]) == [1.0, Reason.PARTIAL, 2.0]


def test_one_that_matches_every_series_spoils_nobody_elses() -> None:
    found, _ = ticks(wanted("shop", "a 1", "everything", "b 2"))
    assert values(found[0]) == [1.0, Reason.AMBIGUOUS, 2.0]


def test_what_would_answer_for_others_is_asked_alone() -> None:
    evil = f'a 1), "{LABEL}", "1", "", "") or label_replace((b 2'
    _, server = ticks(wanted("shop", evil, "b 2", "c 3"))
    assert ["b 2", "c 3"] in server.asked and len(server.asked) == 2


def test_who_was_in_a_late_batch_is_asked_alone_from_then_on() -> None:
    queries = Queries(Prometheus(Access("http://unused")), QueryTenancy(), 120.0)
    asked = {queries.question("shop", text): "shop" for text in ("a 1", "slow", "b 2")}
    late = Missing(reason=Reason.UNREACHABLE)
    together = queries.joined(asked, (), AT)
    assert list(together) == [QueryBatch(tuple(asked))]
    assert queries.apart(dict.fromkeys(together, late), AT) == dict.fromkeys(asked, late)
    assert queries.joined(asked, (), AT + 15) == asked
    answers: dict[Question | QueryBatch, Answer | QueryBatchAnswer | Missing] = {
        question: late if question.query == "slow" else Reading(1.0, AT) for question in asked
    }
    assert queries.apart(answers, AT + 15) == answers
    again = queries.joined(asked, (), AT + ALONE_S)
    assert [len(each.questions) if isinstance(each, QueryBatch) else each.query for each in again] == ["slow", 2]


def test_who_does_well_alone_is_joined_again() -> None:
    asked = wanted("shop", "a 1", "bad", "b 2", "c 3")
    fixed = wanted("shop", "a 1", "d 4", "b 2", "c 3")
    _, server = ticks(asked, fixed, every_s=ALONE_S + 1)
    assert server.asked[-1] == ["a 1", "d 4", "b 2", "c 3"]
