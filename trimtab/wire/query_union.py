"""query_union: several PromQL queries as one, and its answer as theirs: a label says whose each series is.

Whatever the queries ask for, they need nothing in common. Only what cannot reach beyond its own brackets is joined: a
query is somebody's text, and must not answer for another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol, TypeVar

from trimtab.errors import MetricsUnavailable

LABEL = "trimtab_query"
CLOSES = {")": "(", "]": "[", "}": "{"}
_TOKENS = re.compile(r""""(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`|\#[^\r\n]*|[][(){}"'`]""")


class Labelled(Protocol):
    @property
    def labels(self) -> dict[str, str]: ...


Series = TypeVar("Series", bound=Labelled)


class FailedQuery(MetricsUnavailable):
    """The server was asked and had no answer to this query; to another it may have one."""


def joinable(query: str) -> bool:
    """Its brackets are its own, and so are its strings; comments end with their line."""
    opened = []
    for token in _TOKENS.findall(query):
        if token in ('"', "'", "`"):
            return False
        if token in CLOSES.values():
            opened.append(token)
        elif token in CLOSES and (not opened or opened.pop() != CLOSES[token]):
            return False
    return bool(query.strip()) and not opened


def union(queries: Sequence[str]) -> str:
    parts = (f'label_replace((\n{query}\n), "{LABEL}", "{number}", "", "")' for number, query in enumerate(queries))
    return " or ".join(parts)


def apart(found: Sequence[Series], count: int) -> list[list[Series]]:
    """The series of each query, by its number."""
    answers: list[list[Series]] = [[] for _ in range(count)]
    numbers = {str(number): series for number, series in enumerate(answers)}
    for series in found:
        whose = numbers.get(series.labels.get(LABEL, ""))
        if whose is None:
            raise FailedQuery("the answer to several queries does not say which series is whose")
        whose.append(series)
    return answers
