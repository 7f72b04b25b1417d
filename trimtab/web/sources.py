"""Where the page's figures come from: a journal file, which an operator, the demo or a backtest writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import msgspec

from trimtab import __version__
from trimtab.errors import InvalidInput, TrimtabError, Unavailable
from trimtab.journal import DAY_S, Journal, ObjectName
from trimtab.web import fleet, workload
from trimtab.web.packing import PageTable, packed

JSON, CSV, TABLE = "application/json", "text/csv", "application/vnd.trimtab.table"
WHAT_IF_DAYS = 14.0


class NoAnswer(NamedTuple):
    """Why there is no answer, in words."""

    status: int
    text: str


Found = PageTable | dict[str, Any] | str
Answer = Found | NoAnswer


class HttpAnswer(NamedTuple):
    content: bytes
    type: str
    status: int = 200


class UnknownQuestion(TrimtabError):
    """The page never asks it."""


class PageSource(Protocol):
    """Whatever can answer the page's plain questions; `DERIVED` says which others are computed from those."""

    def answer(self, question: str, query: Mapping[str, str]) -> Found: ...

    def version(self) -> float: ...


class JournalSource:
    """Answers from a file that somebody else may be writing; each question opens it anew and changes nothing."""

    def __init__(self, path: Path, title: str, note: str = "") -> None:
        self.path, self.title, self.note = path, title, note
        self._last_fleet: tuple[float, PageTable] | None = None

    def answer(self, question: str, query: Mapping[str, str]) -> Found:
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
            return _last(journal)
        finally:
            journal.close()

    def _about(self, journal: Journal, query: Mapping[str, str]) -> Found:
        first, now = journal.span() or (0.0, 0.0)
        return {"title": self.title, "note": self.note, "first": first, "now": now, "version": __version__}

    def _fleet(self, journal: Journal, query: Mapping[str, str]) -> Found:
        """Made once for all who look, until there is something new."""
        version = _last(journal)
        if self._last_fleet is None or self._last_fleet[0] != version:
            self._last_fleet = version, fleet.fleet(journal)
        return self._last_fleet[1]

    def _hours(self, journal: Journal, query: Mapping[str, str]) -> Found:
        return fleet.last_hours(journal)

    def _workload(self, journal: Journal, query: Mapping[str, str]) -> Found:
        end = _last(journal)
        return workload.workload(journal, name_of(query), end - days_of(query) * DAY_S, end)

    def _decision(self, journal: Journal, query: Mapping[str, str]) -> Found:
        return workload.decision(journal, name_of(query), number(query, "at", 1e12))

    def _health(self, journal: Journal, query: Mapping[str, str]) -> Found:
        return fleet.health(journal)

    QUESTIONS: ClassVar = {
        "about": _about,
        "fleet": _fleet,
        "hours": _hours,
        "workload": _workload,
        "decision": _decision,
        "health": _health,
    }


def _last(journal: Journal) -> float:
    return (journal.span() or (0.0, 0.0))[1]


# --- questions whose answers are computed from the workload's own: an operator never does that, so it never holds the
# simulator and its compiler in memory -------------------------------------------------------------------------------


def _whatif(known: PageTable, query: Mapping[str, str]) -> Found:
    from trimtab.web import whatif

    history = whatif.history_of(known)
    return whatif.answer(history, _knobs(whatif.present(history), query))


def _knobs(present: Knobs, query: Mapping[str, str]) -> Knobs:
    """The positions that are named, the others as they are in force."""
    found = Knobs._make(number(query, key, getattr(present, key), *RANGES[key]) for key in Knobs._fields)
    return found._replace(least=round(found.least), most=round(found.most))


def _history(known: PageTable, query: Mapping[str, str]) -> Found:
    from trimtab.web import whatif

    return whatif.csv(whatif.history_of(known))


def _advice(known: PageTable, query: Mapping[str, str]) -> Found:
    from trimtab.web import whatif

    history = whatif.history_of(known)
    return whatif.advice(history, _knobs(whatif.present(history), query))


DERIVED: dict[str, Callable[[PageTable, Mapping[str, str]], Found]] = {
    "whatif": _whatif,
    "history.csv": _history,
    "advice": _advice,
}


def base_query(query: Mapping[str, str]) -> dict[str, str]:
    """The question about the workload that a derived one is answered from: it stays the same while sliders move."""
    return {"days": str(WHAT_IF_DAYS)} | {key: text for key, text in query.items() if key not in Knobs._fields}


def answered(source: PageSource, question: str, query: Mapping[str, str]) -> Answer:
    if question not in DERIVED:
        return in_words(lambda: source.answer(question, query), question)
    known = in_words(lambda: source.answer("workload", base_query(query)), question)
    return derived(question, known, query)


def derived(question: str, known: Answer, query: Mapping[str, str]) -> Answer:
    """Compute an answer, in the dashboard's process or in one of its own."""
    return in_words(lambda: DERIVED[question](known, query), question) if isinstance(known, PageTable) else known


def in_words(answer: Callable[[], Found], question: str) -> Answer:
    """The answer, or a refusal, which crosses processes as exceptions of ours cannot."""
    try:
        return answer()
    except UnknownQuestion:
        return NoAnswer(HTTPStatus.NOT_FOUND, f"there is no /api/{question}")
    except Unavailable as error:
        return NoAnswer(HTTPStatus.BAD_GATEWAY, str(error))
    except TrimtabError as error:
        return NoAnswer(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))


def encoded(answer: Answer) -> HttpAnswer:
    if isinstance(answer, NoAnswer):
        return HttpAnswer(msgspec.json.encode({"error": answer.text}), JSON, answer.status)
    if isinstance(answer, PageTable):
        return HttpAnswer(packed(answer), TABLE)
    return (
        HttpAnswer(answer.encode(), CSV) if isinstance(answer, str) else HttpAnswer(msgspec.json.encode(answer), JSON)
    )


# --- what a request asks for: every refusal names the parameter, its value and the fix -------------------------------

MOST_REPLICAS = 100_000
RANGES = {
    "target": (0.01, 1.5),
    "tolerance": (0.0, 1.0),
    "up_window_s": (0.0, 3600.0),
    "down_window_s": (0.0, 3600.0),
    "least": (0, MOST_REPLICAS),
    "most": (1, MOST_REPLICAS),
    "startup_s": (0.0, 7200.0),
    "price": (0.001, 1e6),
    "bridge": (1.0, 2.0),
    "ceiling": (0.01, 0.99),
    "priced": (0.0, 1.0),
}


class Knobs(NamedTuple):
    """What the page's sliders hold; `target` is the share of what one pod carries."""

    target: float
    tolerance: float
    up_window_s: float
    down_window_s: float
    least: int
    most: int
    startup_s: float
    price: float  # pod-minutes you would pay to avoid one pod-minute of overloaded traffic
    bridge: float  # how many times their written CPU ready pods may have; 1 is no bridge
    ceiling: float  # the share of its written CPU at which a ready pod grows
    priced: float  # 1: the objective that is written steers, 0: the target


def name_of(query: Mapping[str, str]) -> ObjectName:
    missing = next((field for field in ObjectName._fields if not query.get(field)), None)
    if missing:
        raise InvalidInput(missing, "missing", "say kind, namespace and name of the object")
    return ObjectName(query["kind"], query["namespace"], query["name"])


def days_of(query: Mapping[str, str]) -> float:
    return number(query, "days", 30.0, 0.05, 60.0)


def number(query: Mapping[str, str], key: str, default: float, low: float = -1e12, high: float = 1e12) -> float:
    text = query.get(key)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        raise InvalidInput(key, text[:40], "give a number") from None
    if not (isfinite(value) and low <= value <= high):
        raise InvalidInput(key, text[:40], f"give a number from {low:g} to {high:g}")
    return value
