"""Label matchers as PromQL writes them, such as 'cluster="a",job=~"kubelet|cadvisor"'."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from trimtab.errors import InvalidInput

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
