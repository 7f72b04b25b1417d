"""Tables on their way to the page: a JSON header, then each column of numbers as little-endian floats.

"TTP1", the header's length as a 32-bit integer, the header, the columns; header and columns end at multiples of eight.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import pack, unpack_from
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.errors import InvalidInput

MAGIC = b"TTP1"
Column = NDArray[np.floating[Any]] | NDArray[np.integer[Any]]


class PageTable(NamedTuple):
    """Columns of numbers, and `about` them any JSON."""

    about: dict[str, Any]
    columns: Mapping[str, Column]


def packed(table: PageTable) -> bytes:
    """Times keep their 64 bits, every other column has 32."""
    floats = {name: _floats(column) for name, column in table.columns.items()}
    listed = [{"name": name, "bits": column.itemsize * 8, "length": len(column)} for name, column in floats.items()]
    header = _padded(msgspec.json.encode({"about": table.about, "columns": listed}, enc_hook=float), b" ")
    content = b"".join(_padded(column.tobytes(), b"\0") for column in floats.values())
    return MAGIC + pack("<I", len(header)) + header + content


def unpacked(content: bytes) -> PageTable:
    """The table that `packed` was given."""
    if content[:4] != MAGIC:
        raise InvalidInput("answer", content[:20], "this is no table of trimtab: do both sides have the same version?")
    (length,) = unpack_from("<I", content, 4)
    header, place, columns = msgspec.json.decode(content[8 : 8 + length]), 8 + length, {}
    for column in header["columns"]:
        columns[column["name"]] = np.frombuffer(content, f"<f{column['bits'] // 8}", column["length"], place)
        place += -(-column["length"] * column["bits"] // 64) * 8
    return PageTable(header["about"], columns)


def _floats(column: Column) -> NDArray[np.floating[Any]]:
    return column.astype("<f8" if column.dtype == np.float64 else "<f4", copy=False)


def _padded(content: bytes, filler: bytes) -> bytes:
    return content + filler * (-len(content) % 8)
