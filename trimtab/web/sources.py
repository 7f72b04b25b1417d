"""Where the page's figures come from: a journal file, which an operator, the demo or a backtest writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import msgspec
import numpy as np

from trimtab import __version__
from trimtab.errors import TrimtabError, Unavailable
from trimtab.journal import DAY_S, Journal
from trimtab.minutes import Minutes
from trimtab.web import advice, fleet, health, journal_history, workload
from trimtab.web.packing import CONTENT_TYPE, unpacked
from trimtab.web.query import knobs_of, name_of, number

JSON = "application/json"


class PageAnswer(NamedTuple):
    content: bytes
    type: str = CONTENT_TYPE
    status: int = 200


class PageSource(Protocol):
    """Whatever can answer the page's plain questions; `DERIVED` says which others are worked out from those."""

    def answer(self, question: str, query: Mapping[str, str]) -> PageAnswer: ...

    def version(self) -> float: ...


def answered(source: PageSource, question: str, query: Mapping[str, str]) -> PageAnswer:
    """The answer, or in its place a refusal in words; it crosses processes, which exceptions of ours cannot."""
    if question in DERIVED:
        found = answered(source, DERIVED[question], query)
        return found if found.status != HTTPStatus.OK else derived(question, found.content, query)
    return in_words(lambda: source.answer(question, query), question)


def derived(question: str, content: bytes, query: Mapping[str, str]) -> PageAnswer:
    """By the process of the dashboard: an operator only sends what it knows."""
    return in_words(lambda: _DERIVERS[question](content, query), question)


def in_words(answer: Callable[[], PageAnswer], question: str) -> PageAnswer:
    try:
        return answer()
    except UnknownQuestion:
        return refusal(HTTPStatus.NOT_FOUND, f"there is no /api/{question}")
    except TrimtabError as error:
        unreachable = isinstance(error, Unavailable)
        return refusal(HTTPStatus.BAD_GATEWAY if unreachable else HTTPStatus.UNPROCESSABLE_ENTITY, str(error))


def refusal(status: int, text: str) -> PageAnswer:
    return PageAnswer(msgspec.json.encode({"error": text}), JSON, status)


class UnknownQuestion(TrimtabError):
    """The page never asks it."""


class JournalSource:
    """Answers from a file that somebody else may be writing; each question opens it anew and changes nothing."""

    def __init__(self, path: Path, title: str, note: str = "") -> None:
        self.path, self.title, self.note = path, title, note
        self._last_fleet: tuple[float, PageAnswer] | None = None

    def answer(self, question: str, query: Mapping[str, str]) -> PageAnswer:
        if question not in self.QUESTIONS:
            raise UnknownQuestion(question)
        journal = Journal.read(self.path)
        try:
            return self.QUESTIONS[question](self, journal, query)
        finally:
            journal.close()

    def version(self) -> float:
        """Grows with whatever is written."""
        journal = Journal.read(self.path)
        try:
            span = journal.span()
        finally:
            journal.close()
        return span[1] if span else 0.0

    def _about(self, journal: Journal, query: Mapping[str, str]) -> PageAnswer:
        span = journal.span() or (0.0, 0.0)
        return _json({"title": self.title, "note": self.note, "first": span[0], "now": span[1], "version": __version__})

    def _fleet(self, journal: Journal, query: Mapping[str, str]) -> PageAnswer:
        """Made once for all who look, until there is something new."""
        version = (journal.span() or (0.0, 0.0))[1]
        if self._last_fleet is None or self._last_fleet[0] != version:
            self._last_fleet = version, PageAnswer(fleet.fleet(journal))
        return self._last_fleet[1]

    def _workload(self, journal: Journal, query: Mapping[str, str]) -> PageAnswer:
        end = number(query, "end", (journal.span() or (0.0, 0.0))[1])
        start = number(query, "start", end - 30 * DAY_S)
        return PageAnswer(workload.workload(journal, name_of(query), start, end))

    def _decision(self, journal: Journal, query: Mapping[str, str]) -> PageAnswer:
        return _json(workload.decision(journal, name_of(query), number(query, "at", 1e12)))

    def _health(self, journal: Journal, query: Mapping[str, str]) -> PageAnswer:
        return _json(health.health(journal))

    def _known(self, journal: Journal, query: Mapping[str, str]) -> PageAnswer:
        known = journal_history.known_load(journal, name_of(query), days_of(query))
        return PageAnswer(journal_history.pack_load(known))

    QUESTIONS: ClassVar = {
        "about": _about,
        "fleet": _fleet,
        "workload": _workload,
        "decision": _decision,
        "health": _health,
        "known": _known,
    }


def _whatif(content: bytes, query: Mapping[str, str]) -> PageAnswer:
    """An operator never gets here, and so never holds the simulator and its compiler in memory."""
    from trimtab.web import whatif
    from trimtab.web.sliders import present

    known = journal_history.unpack_history(content)
    return PageAnswer(whatif.answer(known, knobs_of(query, present(known))))


def _history(content: bytes, query: Mapping[str, str]) -> PageAnswer:
    return PageAnswer(journal_history.csv(journal_history.unpack_history(content)).encode(), "text/csv")


def _advice(content: bytes, query: Mapping[str, str]) -> PageAnswer:
    about, columns = unpacked(content)
    times = columns.pop("at")
    minutes = Minutes(times.astype(np.float64), {name: values.astype(np.float32) for name, values in columns.items()})
    return _json(advice.advice(name_of(query), about["unit"], minutes))


DERIVED = {"whatif": "known", "history.csv": "known", "advice": "workload"}
_DERIVERS = {"whatif": _whatif, "history.csv": _history, "advice": _advice}


def days_of(query: Mapping[str, str]) -> float:
    return number(query, "days", journal_history.DAYS, 0.05, 60.0)


def _json(content: Any) -> PageAnswer:
    return PageAnswer(msgspec.json.encode(content), JSON)


def warm(pool: ProcessPoolExecutor) -> None:
    """Load the compiled lane before the first slider moves."""
    pool.submit(_load_lane)


def _load_lane() -> None:
    from trimtab.policy import Metric, MetricKind, Policy, TotalAverage
    from trimtab.sim.cluster_spec import ClusterSpec
    from trimtab.tune.demand import Demand
    from trimtab.tune.policy_backtest import backtest

    policy = Policy(signals=(TotalAverage(metric=Metric(kind=MetricKind.EXTERNAL, name="load"), target=0.7),))
    backtest("", policy, Demand("", np.ones(480), 0.0), ClusterSpec(), 32.0)
