"""Where the documents of a text begin: at YAML's separators, or wherever the next value of JSON does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

_SEPARATOR = re.compile(r"^---(?=\s|$)", re.MULTILINE)


def parts(text: str) -> Iterator[tuple[int, str]]:
    """Each document with the line on which it begins."""
    starts = _json_starts(text) or _yaml_starts(text)
    line = 1
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        part = text[start:end]
        if part.strip():
            yield line, part
        line += part.count("\n")


def _yaml_starts(text: str) -> list[int]:
    """A `---` at the start of a line can be nothing else."""
    return [0, *(match.start() for match in _SEPARATOR.finditer(text) if match.start())]


def _json_starts(text: str) -> list[int]:
    """Of objects that stand one after the other, as `jq .items[]` writes them and kubectl takes them; else none."""
    starts, at = [], _past_space(text, 0)
    while text[at : at + 1] == "{":
        starts.append(at)
        try:
            at = _past_space(text, json.JSONDecoder().raw_decode(text, at)[1])
        except (ValueError, RecursionError):
            return []
    return [0, *starts[1:]] if at == len(text) else []


def _past_space(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t", "\r", "\n"):
        at += 1
    return at
