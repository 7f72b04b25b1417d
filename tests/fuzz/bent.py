"""Documents bent by bytes: which node, and what stands there instead. Coverage steers the bytes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

NASTY: tuple[Any, ...] = (
    None, True, 0, -1, 1, 2**31, 2**63, 1e308, -1e308, 0.1, float("inf"), float("nan"), "", "0", "-1", "1e400", "NaN",
    "9" * 400, "1h", "-1h", "300000h", "*/1 * * * *", "2026-02-30T25:00:00Z", "9999-12-31T23:59:59Z", "../../x", "a\nb",
    "\u2028", [], {}, [[]], [{}], {"": None}, {"is": "Memory"}, [None], ["x"] * 70,
)  # fmt: skip


class Taken:
    """Takes bytes one after the other; after the last there are zeros."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 0

    def below(self, most: int) -> int:
        wide = 1 if most <= 256 else 2
        taken = self.data[self.place : self.place + wide]
        self.place += wide
        return int.from_bytes(taken, "big") % most if most else 0

    def __bool__(self) -> bool:
        return self.place < len(self.data)

    def rest(self) -> bytes:
        return self.data[self.place :]


def bent(document: Any, taken: Taken, most: int = 6) -> Any:
    """Some nodes replaced, doubled, moved or removed."""
    found = copy.deepcopy(document)
    for _ in range(most):
        places = list(_places(found))
        if not taken or not places:
            return found
        holder, key = places[taken.below(len(places))]
        _bend(holder, key, taken, places)
    return found


def _bend(holder: Any, key: Any, taken: Taken, places: list[tuple[Any, Any]]) -> None:
    how = taken.below(4)
    if how == 0 and isinstance(holder, dict):
        del holder[key]
    elif how == 1:
        other, name = places[taken.below(len(places))]
        holder[key] = copy.deepcopy(other[name])
    elif how == 2 and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[key]))
    else:
        holder[key] = copy.deepcopy(NASTY[taken.below(len(NASTY))])


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Everywhere that something may be put: who holds it, and by which key."""
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        yield node, key
        yield from _places(node[key])
