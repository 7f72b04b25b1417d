"""Label matchers as PromQL writes them, such as 'cluster="a",job=~"kubelet|cadvisor"'."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, TypeVar

from trimtab.errors import InvalidInput, MetricsUnavailable

MATCHER = re.compile(r'\s*([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*"([^"\\]*)"\s*(?:,|$)', re.ASCII)


class Matcher(NamedTuple):
    label: str
    operator: Literal["=", "!=", "=~", "!~"]
    value: str


def parse_matchers(text: str, path: str = "matchers") -> list[Matcher]:
    """Parse a comma-separated list of matchers; escapes and other quotes are refused.

    The error names `path`, the option or field that holds the text.
    """
    matchers, position = [], 0
    while position < len(text):
        match = MATCHER.match(text, position)
        if match is None:
            raise InvalidInput(path, text[position:], 'write them as label="value",label=~"a|b"')
        matchers.append(Matcher(*match.groups()))  # type: ignore[arg-type]
        position = match.end()
    return matchers


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
