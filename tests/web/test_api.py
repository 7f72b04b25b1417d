"""The server's answers: equal to the journal's, refused in words, for this machine alone."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.web.conftest import Shop, serving
from tests.web.recorded import HOSTILE, START
from trimtab.errors import TrimtabError
from trimtab.journal import Journal, ObjectName
from trimtab.web.packing import Column, PageTable, packed, unpacked
from trimtab.web.sources import DERIVED, JournalSource, NoAnswer, answered, encoded

WEB = ObjectName("Autoscaler", "shop", "web")


def ask(address: str, path: str, method: str = "GET", **headers: str) -> HTTPResponse:
    """The first what-if may have to be compiled, on a busy machine."""
    connection = HTTPConnection(address.removeprefix("http://"), timeout=600)
    connection.request(method, path, headers=headers)
    return connection.getresponse()


def table(shop: Shop, question: str, query: dict[str, str]) -> PageTable:
    found = JournalSource(shop.path, "shop").answer(question, query)
    assert isinstance(found, PageTable)
    return found


def plain(shop: Shop, question: str, query: dict[str, str]) -> Any:
    """As it is sent."""
    return json.loads(encoded(JournalSource(shop.path, "shop").answer(question, query)).content)


def test_a_table_comes_out_as_it_went_in() -> None:
    columns: dict[str, Column] = {
        "at": np.arange(3, dtype=np.float64) + 0.1,
        "pods": np.array([1, 2, 3]),
        "one": np.array([7.5], dtype=np.float32),
    }
    about, found = unpacked(packed(PageTable({"text": ["é", "<"]}, columns)))
    assert about == {"text": ["é", "<"]}
    assert found["at"].tolist() == columns["at"].tolist() and found["pods"].tolist() == [1, 2, 3]
    assert found["one"].tolist() == [7.5]


def test_the_fleet_equals_the_journal(shop: Shop) -> None:
    about, columns = table(shop, "fleet", {})
    for row, name in enumerate(zip(*(about["text"][part] for part in ObjectName._fields), strict=True)):
        last, minutes = shop.ticks[ObjectName(*name)][-1], Journal.read(shop.path).minutes_of(ObjectName(*name), 0, 9e9)
        assert (columns["replicas"][row], columns["ready"][row]) == (last.replicas, last.ready)
        assert columns["load"][row] == pytest.approx(last.load or np.nan, rel=1e-6, nan_ok=True)
        assert columns["podHours"][row] == pytest.approx(float(minutes.columns["replicas"].sum()) / 60, rel=1e-6)
        load = np.nan_to_num(minutes.columns["load"].astype(float))
        violating = float((load * np.nan_to_num(minutes.columns["violated"].astype(float))).sum())
        assert columns["violations"][row] == pytest.approx(
            100 * violating / load.sum(), rel=1e-2
        )  # ticks that are no minutes yet


def test_the_last_hours_are_those_of_the_minutes(shop: Shop) -> None:
    fleet, columns = table(shop, "fleet", {})
    about, found = table(shop, "hours", {})
    end = Journal.read(shop.path).span()[1] // 3600 * 3600  # type: ignore[index]
    assert found["id"].tolist() == sorted(columns["id"].tolist()) and about["hours"] == 24
    for row, name in enumerate(zip(*(fleet["text"][part] for part in ObjectName._fields), strict=True)):
        minutes = Journal.read(shop.path).minutes_of(ObjectName(*name), end - 3600.0, end - 60.0)
        place = found["id"].tolist().index(columns["id"][row]) * 24 + 22  # the last whole hour
        load = np.nan_to_num(minutes.columns["load"].astype(float))
        assert np.nan_to_num(found["load"][place]) == pytest.approx(load.sum() / 60, rel=1e-2)


def test_problems_are_named(shop: Shop) -> None:
    about, columns = table(shop, "fleet", {})
    said = dict(
        zip(about["text"]["name"], zip(about["text"]["problem"], columns["severity"], strict=True), strict=True)
    )
    assert said[HOSTILE] == ("no metrics", 3)
    assert said["cache"][1] <= 1


def test_every_change_of_the_journal_is_a_mark_with_its_explanation(shop: Shop) -> None:
    acts = list(Journal.read(shop.path).acts("shop", "web"))
    about, columns = table(shop, "workload", WEB._asdict())
    assert [mark["at"] for mark in about["changes"]] == [act.seen.at for act in acts]
    assert len(columns["at"]) == len(columns["load"]) and about["unit"] == "requests"
    found = plain(shop, "decision", WEB._asdict() | {"at": str(acts[3].seen.at)})
    assert found["at"] == acts[3].seen.at and found["sentence"] == about["changes"][3]["said"]
    assert found["rows"][0][0] == "requests" and found["outcome"] == "replicas written"


def test_health_says_what_is_silent_and_held(shop: Shop) -> None:
    found = plain(shop, "health", {})
    assert [row[2] for row in found["silent"]] == [HOSTILE]
    assert found["objects"] == 5 and found["ticks"][-1][1] == 5
    assert dict(map(tuple, found["modes"])) == {"Auto": 4, "Shadow": 1}


def test_documents_carry_the_policy_and_nothing_inline(address: str) -> None:
    response = ask(address, "/")
    text = response.read().decode()
    policy = response.headers["Content-Security-Policy"]
    assert response.status == 200 and "script-src 'self'" in policy and "unsafe" not in policy
    assert "default-src 'none'" in policy and response.headers["X-Content-Type-Options"] == "nosniff"
    assert '<script src="/page.js">' in text and "<style" not in text


@pytest.mark.parametrize(
    "headers, method, status",
    [
        pytest.param({"Host": "evil.example"}, "GET", 403, id="a name that was made to point here"),
        pytest.param({"Sec-Fetch-Site": "cross-site"}, "GET", 403, id="another site"),
        pytest.param({}, "POST", 405, id="a write"),
        pytest.param({}, "GET", 200, id="ourselves"),
    ],
)
def test_only_this_machine_may_only_read(address: str, headers: dict[str, str], method: str, status: int) -> None:
    response = ask(address, "/api/about", method, **headers)
    assert response.status == status
    assert response.headers["Cross-Origin-Resource-Policy"] == "same-origin"


@pytest.mark.parametrize(
    "path, said",
    [
        pytest.param("/api/nothing", "no /api/nothing", id="question"),
        pytest.param("/api/workload?kind=Autoscaler", "say kind, namespace and name", id="half a name"),
        pytest.param("/api/workload?kind=A&namespace=b&name=c", "knows nothing of it", id="unknown object"),
        pytest.param(f"/api/whatif?{urlencode(WEB._asdict())}&target=lots", "give a number", id="no number"),
        pytest.param(f"/api/whatif?{urlencode(WEB._asdict())}&least=9&most=3", "maxReplicas (3)", id="crossed bounds"),
    ],
)
def test_refusals_say_what_to_do(address: str, path: str, said: str) -> None:
    response = ask(address, path)
    assert 400 <= response.status < 500 and said in json.loads(response.read())["error"]


def test_news_arrive_as_events(shop: Shop, copy: Path) -> None:
    with serving(copy) as address:
        response = ask(address, "/api/events")
        assert response.headers["Content-Type"] == "text/event-stream"
        first = float(response.readline().decode().removeprefix("data: "))
        last = shop.ticks[WEB][-1]
        journal = Journal(copy)
        journal.write([], [last._replace(at=last.at + 15)])
        journal.close()
        response.readline()
        assert float(response.readline().decode().removeprefix("data: ")) == first + 15
        response.close()


names = st.sampled_from([*ObjectName._fields, "at", "start", "end", "days", "target", "least", "most", "price", "x"])
values = st.one_of(st.text(max_size=12), st.floats().map(str), st.sampled_from(["Autoscaler", "shop", "web", "-1"]))


@given(
    question=st.sampled_from([*JournalSource.QUESTIONS, *DERIVED, ""]),
    query=st.dictionaries(names, values, max_size=6),
    whole=st.booleans(),
)
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_question_is_answered_or_refused_in_words(
    shop: Shop, question: str, query: dict[str, str], whole: bool
) -> None:
    found = answered(JournalSource(shop.path, "shop"), question, query | (WEB._asdict() if whole else {}))
    sent = encoded(found)
    assert sent.content and sent.status in (200, 404, 422)
    assert not isinstance(found, NoAnswer) or json.loads(sent.content) == {"error": found.text}


@pytest.fixture(params=["truncated", "corrupt", "newer", "text", "locked"])
def broken(request: pytest.FixtureRequest, copy: Path) -> Iterator[tuple[Path, str]]:
    said = {"newer": "version 99", "locked": "try again"}.get(request.param, "journal")
    content = copy.read_bytes()
    holder = None
    if request.param == "truncated":
        copy.write_bytes(content[: len(content) // 3])
    elif request.param == "corrupt":
        copy.write_bytes(content[:100] + b"\x00" * 8000 + content[8100:])
    elif request.param == "newer":
        db = sqlite3.connect(copy)
        db.executescript("PRAGMA user_version = 99")
        db.close()
    elif request.param == "text":
        copy.write_text("this is no journal" * 100)
    else:
        holder = sqlite3.connect(copy, isolation_level=None)
        holder.executescript("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE")
    yield copy, said
    if holder is not None:
        holder.close()


def test_a_broken_journal_is_said_and_left_as_it_is(broken: tuple[Path, str]) -> None:
    path, said = broken
    before = path.read_bytes()
    with pytest.raises(TrimtabError, match=said):
        JournalSource(path, "x").answer("fleet", {})
    assert path.read_bytes() == before


def test_the_history_begins_where_it_was_recorded(shop: Shop) -> None:
    rows = str(answered(JournalSource(shop.path, "x"), "history.csv", WEB._asdict())).splitlines()
    assert rows[0] == "timestamp,value" and float(rows[1].split(",")[0]) == START
