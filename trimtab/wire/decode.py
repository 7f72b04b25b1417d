"""JSON decoders by type, made once: making one costs more than most of the answers it reads."""

from __future__ import annotations

from typing import Any

import msgspec

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError)  # bytes that are no text are no DecodeError of msgspec's
INVALID = (msgspec.ValidationError, UnicodeDecodeError)  # JSON, but not what it should be
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    if kind not in _decoders:
        _decoders[kind] = msgspec.json.Decoder(kind)
    return _decoders[kind]
