"""How the operator itself is doing, by what it looked at and what it notes of itself."""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.journal import HEALTH, Journal

RECENT_S = 3600.0


def health(journal: Journal) -> dict[str, Any]:
    """Ticks, what could not be measured or written, and what is held back and why, of the last hour."""
    span = journal.span()
    now = span[1] if span else 0.0
    since = now - RECENT_S
    return {
        "now": now,
        "first": span[0] if span else 0.0,
        "sizeBytes": journal.size_bytes(),
        "objects": journal.query("SELECT count(*) FROM objects")[0][0],
        "ticks": _ticks(journal),
        "fates": _pairs(journal, "SELECT fate, count(*) FROM decisions WHERE at >= ? GROUP BY fate", since),
        "modes": [list(row) for row in journal.query("SELECT mode, count(*) FROM current GROUP BY mode")],
        "silent": _objects(journal, "load IS NULL", now),
        "held": _held(journal, now),
        "refused": _refused(journal, since),
        "operator": _operator(journal),
    }


def _operator(journal: Journal) -> dict[str, Any] | None:
    """What the operator noted of itself in its last tick; a journal of a simulation has nothing of the kind."""
    text = journal.noted(HEALTH)
    found: dict[str, Any] | None = msgspec.json.decode(text) if text else None
    return found


def _ticks(journal: Journal) -> list[list[float]]:
    """When the newest ticks were, and how many objects each of them looked at."""
    rows = journal.query("SELECT at, count(*) FROM ticks GROUP BY at ORDER BY at DESC LIMIT 240")
    return [list(row) for row in reversed(rows)]


def _pairs(journal: Journal, query: str, since: float) -> list[list[Any]]:
    return [list(row) for row in journal.query(f"{query} ORDER BY 2 DESC", (since,))]


_LAST = (
    "SELECT kind, namespace, name, held FROM (SELECT *, max(at) AS last FROM ticks GROUP BY object) t"
    " JOIN objects o ON o.id = t.object"
)


def _objects(journal: Journal, condition: str, now: float) -> list[list[str]]:
    rows = journal.query(f"{_LAST} WHERE {condition} AND last >= ? LIMIT 200", (now - RECENT_S,))
    return [list(row) for row in rows]


def _held(journal: Journal, now: float) -> list[list[Any]]:
    """Which rules hold how many objects, without the times that differ between them."""
    counts: dict[str, int] = {}
    for *_, held in journal.query(f"{_LAST} WHERE held <> '' AND last >= ?", (now - RECENT_S,)):
        rule = held.split(" until ")[0].split(" (")[0].rstrip("0123456789. ")
        counts[rule] = counts.get(rule, 0) + 1
    return [[rule, count] for rule, count in sorted(counts.items(), key=lambda pair: -pair[1])]


def _refused(journal: Journal, since: float) -> list[list[Any]]:
    """Writes that did not happen, the newest first."""
    return [
        list(row)
        for row in journal.query(
            "SELECT at, kind, namespace, name, fate, said FROM decisions d JOIN objects o ON o.id = d.object"
            " WHERE at >= ? AND fate LIKE 'refused%' ORDER BY at DESC LIMIT 100",
            (since,),
        )
    ]
