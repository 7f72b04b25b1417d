"""Tables on their way to the page: a JSON header, then each column of numbers as little-endian floats.

"TTP1", the header's length as a 32-bit integer, the header, the columns; header and columns end at multiples of eight.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import pack
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

MAGIC = b"TTP1"
CONTENT_TYPE = "application/vnd.trimtab.table"
Column = NDArray[np.floating[Any]] | NDArray[np.integer[Any]]


def packed(about: Mapping[str, Any], columns: Mapping[str, Column]) -> bytes:
    """`about` is any JSON; columns keep 64 bits where they have them (times), else 32."""
    made = {name: _floats(column) for name, column in columns.items()}
    listed = [{"name": name, "bits": column.itemsize * 8, "length": len(column)} for name, column in made.items()]
    header = _padded(msgspec.json.encode({"about": about, "columns": listed}, enc_hook=float), b" ")
    return MAGIC + pack("<I", len(header)) + header + b"".join(_padded(one.tobytes(), b"\0") for one in made.values())


def _floats(column: Column) -> NDArray[np.floating[Any]]:
    return column.astype("<f8" if column.dtype == np.float64 else "<f4", copy=False)


def _padded(content: bytes, filler: bytes) -> bytes:
    return content + filler * (-len(content) % 8)
