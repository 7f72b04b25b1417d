"""JSON into types. Decoders are made once each: making one costs more than most of the answers it reads.

Whatever is wrong with a text is a MsgspecError, and so is what the `kept` of a type refuses to keep. What somebody has
nested deeper than anything we read becomes null: it costs its own object a field, and nobody a list or a watch.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

DEEPEST = 100
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    found = _decoders.get(kind)  # one look: to hash a generic type takes as long as to read a small object
    if found is None:
        found = _decoders[kind] = msgspec.json.Decoder(kind, dec_hook=_kept)
    return found


def _kept(kind: Any, plain: Any) -> Any:
    return kind.kept(plain)


def decode(text: bytes | msgspec.Raw, kind: Any) -> Any:
    try:
        return _decode(text, kind)
    except UnicodeDecodeError as error:  # no error of msgspec's own
        raise msgspec.DecodeError(str(error)) from error


def _decode(text: bytes | msgspec.Raw, kind: Any) -> Any:
    try:
        return decoder(kind).decode(text)
    except RecursionError:
        return decoder(kind).decode(shallow(bytes(text)))


def shallow(text: bytes, deepest: int = DEEPEST) -> bytes:
    """The same JSON with null for whatever is nested deeper."""
    kept, depth, since = list[bytes](), 0, 0
    for found in _BRACKETS.finditer(text):
        if found[0] in (b"[", b"{"):
            depth += 1
            if depth == deepest + 1:
                kept += [text[since : found.start()], b"null"]
        elif found[0] in (b"]", b"}"):
            if depth == deepest + 1:
                since = found.end()
            depth -= 1
    return b"".join([*kept, text[since:]])
