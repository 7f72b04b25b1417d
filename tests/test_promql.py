"""PromQL from typed parts: values stay values, and none of several queries reaches beyond its brackets."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from trimtab.errors import InvalidInput
from trimtab.promql import LABEL, FailedQuery, apart, joinable, parse_matchers, union


class Series(NamedTuple):
    labels: dict[str, str]
    value: float = 1.0


FINE = ("sum(x)", 'x{a="("}', "x{a='\\')'}", "x # )", "`)`", 'rate(x{a=~".*\\\\"}[5m])', "a\nor\nb", "{a='x'}")
OPEN = (
    "x # \r) or (y",
    "sum(x",
    "x)",
    "a) or (b",
    'x{a="',
    "x{a='}",
    "`x",
    "(]",
    "",
    "  ",
    '"a\nb"',
    "sum(x)) or ((y)",
)


@pytest.mark.parametrize("query", FINE)
def test_what_keeps_to_itself_is_joined(query: str) -> None:
    assert joinable(query)


@pytest.mark.parametrize("query", OPEN)
def test_what_would_reach_beyond_its_brackets_is_not(query: str) -> None:
    assert not joinable(query)


def test_a_comment_ends_before_the_bracket_that_closes_its_query() -> None:
    assert union(["x # all", "y"]) == (
        f'label_replace((\nx # all\n), "{LABEL}", "0", "", "") or label_replace((\ny\n), "{LABEL}", "1", "", "")'
    )


def test_each_gets_its_own_series() -> None:
    first, second, third = (Series({LABEL: number, "pod": "a"}) for number in ("0", "2", "2"))
    assert apart([second, first, third], 3) == [[first], [], [second, third]]


@pytest.mark.parametrize("labels", [{}, {LABEL: "3"}, {LABEL: "-1"}, {LABEL: "x"}])
def test_a_series_that_is_nobodys_makes_it_no_answer(labels: dict[str, str]) -> None:
    with pytest.raises(FailedQuery, match="whose"):
        apart([Series(labels)], 3)


@pytest.mark.parametrize("text", ["", 'a="b"', 'a="b",c!="", d =~ "x|y.*",e!~"é"', 'a="b",'])
def test_matchers(text: str) -> None:
    expected = {"a": ("=", "b"), "c": ("!=", ""), "d": ("=~", "x|y.*"), "e": ("!~", "é")}
    matchers = parse_matchers(text)
    assert all(expected[matcher.label] == (matcher.operator, matcher.value) for matcher in matchers)
    assert len(matchers) == text.count('"') // 2


@pytest.mark.parametrize("text", ['a="b\\"c"', "a='b'", "a=`b`", 'a=="b"', 'a="b" c="d"', '"a.b"="c"', "a"])
def test_unusual_matchers_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_matchers(text)
