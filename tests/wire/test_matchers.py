"""Label matchers of --matchers and --history-matchers."""

from __future__ import annotations

import pytest

from trimtab.errors import InvalidInput
from trimtab.wire.promql import parse_matchers


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
