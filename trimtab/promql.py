"""PromQL from typed parts: what a label holds stays inside its quotes, whoever wrote it.

A selector is a metric and matchers, such as cpu{cluster="a",job=~"kubelet|cadvisor"}. Several queries go together as
one, where none of them reaches beyond its own brackets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Protocol, TypeVar

from trimtab.errors import InvalidInput, MetricsUnavailable

MATCHER = re.compile(r'\s*([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*"([^"\\]*)"\s*(?:,|$)', re.ASCII)
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")


class Matcher(NamedTuple):
    """One condition on a label; its text is escaped, so any value is only a value."""

    label: str
    operator: Literal["=", "!=", "=~", "!~"]
    value: str

    def __str__(self) -> str:
        return f"{self.label}{self.operator}{quote(self.value)}"


Matchers = tuple[Matcher, ...]


def quote(value: str) -> str:
    """A string of PromQL. Control characters are escaped as JSON escapes them, which PromQL reads alike."""
    return json.dumps(value, ensure_ascii=False)


def escape(text: str) -> str:
    """A pattern (RE2) that matches this text alone."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def either(texts: Iterable[str]) -> str:
    """A pattern that matches each of these texts and nothing else."""
    return "|".join(map(escape, texts))


def among(label: str, values: Iterable[str]) -> Matcher:
    """The label has one of these values."""
    return Matcher(label, "=~", either(sorted(set(values))))


def selector(metric: str, matchers: Iterable[Matcher]) -> str:
    return f"{metric}{{{','.join(map(str, matchers))}}}"


def parse_matchers(text: str, path: str = "matchers") -> Matchers:
    """Parse a comma-separated list of matchers; escapes and other quotes are refused.

    The error names `path`, the option or field that holds the text.
    """
    matchers, position = list[Matcher](), 0
    while position < len(text):
        match = MATCHER.match(text, position)
        if match is None:
            raise InvalidInput(path, text[position:], 'write them as label="value",label=~"a|b"')
        matchers.append(Matcher(*match.groups()))  # type: ignore[arg-type]
        position = match.end()
    return tuple(matchers)


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
