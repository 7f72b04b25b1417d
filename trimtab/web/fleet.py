"""The fleet as one table, with what today was like for each object; and how the operator itself is doing."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import numpy as np

from trimtab.acts import Fate
from trimtab.journal import DAY_S, HEALTH, Journal
from trimtab.minutes import HOUR_S
from trimtab.web.packing import Column, PageTable

RECENT_S = 3600.0  # of health
SILENT_S = 300.0  # an object nobody looked at for so long, while others were
_LAST = """
WITH last AS (SELECT object, max(at) AS at, replicas, planned, ready, load, capacity, forecast, horizon_s,
                     cpu_cores, memory_bytes, held FROM ticks GROUP BY object),
     acts AS (SELECT object, max(at) AS at, replicas, planned, fate, said FROM decisions
              WHERE fate <> 'held' GROUP BY object)
SELECT o.id, kind, namespace, name, mode, last.at, last.replicas, last.planned, last.ready, load, capacity,
       forecast, horizon_s, cpu_cores, memory_bytes, held, least, most, acts.at, acts.replicas, acts.planned,
       fate, said,
       (SELECT forecast FROM ticks e WHERE e.object = o.id AND e.at <= last.at - horizon_s ORDER BY e.at DESC LIMIT 1)
FROM objects o LEFT JOIN last ON last.object = o.id LEFT JOIN acts ON acts.object = o.id
               LEFT JOIN current c ON c.object = o.id
"""
_FOLDED = "SELECT object, sum(pod_minutes), sum(load), sum(violating) FROM hours WHERE hour >= ? GROUP BY object"
_TICKED = """
SELECT object, sum(pods), sum(load), sum(load * violated)
FROM (SELECT object, max(replicas) AS pods, avg(load) AS load, avg(load > capacity) AS violated
      FROM ticks WHERE at >= ? GROUP BY object, CAST(at / 60 AS INTEGER))
GROUP BY object
"""
_FOLDED_HOURS = "SELECT object, hour, load, violating FROM hours WHERE hour >= ?"
_TICKED_HOURS = """
SELECT object, minute / 60, sum(load), sum(load * violated)
FROM (SELECT object, CAST(at / 60 AS INTEGER) AS minute, avg(load) AS load, avg(load > capacity) AS violated
      FROM ticks WHERE at >= ? GROUP BY object, minute)
WHERE load IS NOT NULL GROUP BY object, minute / 60
"""
DAY_HOURS = 24
_TEXT = ("kind", "namespace", "name", "mode", "held", "fate", "said", "problem")
_FIELD_NAMES = (
    "id kind namespace name mode at replicas planned ready load capacity forecast horizon cpu memory held least most"
    " changedAt changedFrom changedTo fate said expected"
)
_FIELDS = tuple(_FIELD_NAMES.split())
_LONG = ("id", "at", "changedAt", "memory")  # in 64 bits


def fleet(journal: Journal) -> PageTable:
    """Every object with its last tick and change, text in the header; `severity` sorts problems first."""
    now = (journal.span() or (0.0, 0.0))[1]
    midnight = now // DAY_S * DAY_S
    days = _today(journal, midnight)
    rows = [_row(row, days.get(row[0], (0.0, 0.0, 0.0)), now) for row in journal.query(_LAST)]
    numbers = [*(name for name in _FIELDS if name not in _TEXT), "podHours", "violations", "severity"]
    columns: dict[str, Column] = {
        name: np.array(
            [np.nan if row[name] is None else row[name] for row in rows], dtype="f8" if name in _LONG else "f4"
        )
        for name in numbers
    }
    text = {name: [row[name] or "" for row in rows] for name in _TEXT}
    return PageTable({"now": now, "midnight": midnight, "count": len(rows), "text": text}, columns)


def last_hours(journal: Journal) -> PageTable:
    """Load and the overloaded share of it, hour by hour over the last day: one run of values for each object."""
    now = (journal.span() or (0.0, 0.0))[1]
    first = int(now // HOUR_S) - DAY_HOURS + 1
    ids = [identity for (identity,) in journal.query("SELECT id FROM objects ORDER BY id")]
    place = {identity: number for number, identity in enumerate(ids)}
    sums = np.zeros((2, len(ids), DAY_HOURS))
    for query, since in ((_FOLDED_HOURS, first), (_TICKED_HOURS, first * HOUR_S)):
        for identity, hour, *values in journal.query(query, (since,)):
            sums[:, place[identity], hour - first] += values
    load, overloaded = sums
    share = np.divide(overloaded, load, out=np.zeros(load.shape), where=load > 0)
    minutes = np.append(np.full(DAY_HOURS - 1, 60.0), max(1.0, now % HOUR_S / 60.0))  # the last hour has only begun
    mean = np.where(load > 0, load / minutes, np.nan)
    columns = {"load": mean.astype("f4").ravel(), "overloaded": share.astype("f4").ravel()}
    return PageTable({"hours": DAY_HOURS}, {"id": np.array(ids, dtype="f8"), **columns})


def _today(journal: Journal, midnight: float) -> dict[int, tuple[float, float, float]]:
    """Pod-minutes, load-minutes and violating ones of each object since midnight."""
    found: dict[int, tuple[float, float, float]] = {}
    for query, since in ((_FOLDED, midnight // HOUR_S), (_TICKED, midnight)):
        for identity, *sums in journal.query(query, (since,)):
            old = found.get(identity, (0.0, 0.0, 0.0))
            found[identity] = (old[0] + (sums[0] or 0.0), old[1] + (sums[1] or 0.0), old[2] + (sums[2] or 0.0))
    return found


def _row(row: tuple[Any, ...], today: tuple[float, float, float], now: float) -> dict[str, Any]:
    found = dict(zip(_FIELDS, row, strict=True))
    pods, load, violating = today
    found |= {"podHours": pods / 60, "violations": 100 * violating / load if load else 0.0}
    severity, problem = _problem(found, now)
    return found | {"severity": severity, "problem": problem}


def _problem(row: dict[str, Any], now: float) -> tuple[int, str]:
    """What a person should look at first, and how urgent it is: 3 hurts now, 2 may soon, 1 is worth a look."""
    if row["at"] is None or now - row["at"] > SILENT_S:
        return 1, "not seen lately"
    if row["load"] is None:
        return 3, "no metrics"
    if row["capacity"] is not None and row["load"] > row["capacity"]:
        return 3, "over capacity"
    if str(row["fate"]).startswith(Fate.REFUSED):
        return 2, f"last change {row['fate']}"
    if row["most"] is not None and row["replicas"] >= row["most"]:
        return 2, "at maxReplicas"
    if row["violations"] > 1.0:
        return 1, "overloaded today"
    return 0, ""


_LAST_TICKS = (
    "SELECT kind, namespace, name, held FROM (SELECT *, max(at) AS last FROM ticks GROUP BY object) t"
    " JOIN objects o ON o.id = t.object WHERE last >= ?"
)


def health(journal: Journal) -> dict[str, Any]:
    """Ticks, what could not be measured or written, and what is held back and why, of the last hour."""
    first, now = journal.span() or (0.0, 0.0)
    since, noted = (now - RECENT_S,), journal.noted(HEALTH)
    return {
        "now": now,
        "first": first,
        "sizeBytes": journal.size_bytes(),
        "objects": journal.query("SELECT count(*) FROM objects")[0][0],
        # when the newest ticks were, and how many objects each of them looked at
        "ticks": journal.query("SELECT at, count(*) FROM ticks GROUP BY at ORDER BY at DESC LIMIT 240")[::-1],
        "fates": journal.query(
            "SELECT fate, count(*) FROM decisions WHERE at >= ? GROUP BY fate ORDER BY 2 DESC", since
        ),
        "modes": journal.query("SELECT mode, count(*) FROM current GROUP BY mode"),
        "silent": journal.query(f"{_LAST_TICKS} AND load IS NULL LIMIT 200", since),
        "held": _held(journal.query(f"{_LAST_TICKS} AND held <> ''", since)),
        "refused": journal.query(
            "SELECT at, kind, namespace, name, fate, said FROM decisions d JOIN objects o ON o.id = d.object"
            " WHERE at >= ? AND fate LIKE 'refused%' ORDER BY at DESC LIMIT 100",
            since,
        ),
        # what the operator noted of itself in its last tick; the journal of a simulation has no such note
        "operator": msgspec.json.decode(noted) if noted else None,
    }


def _held(rows: list[tuple[Any, ...]]) -> list[tuple[str, int]]:
    """Which rules hold how many objects, without the times that differ between them."""
    return Counter(row[3].split(" until ")[0].split(" (")[0].rstrip("0123456789. ") for row in rows).most_common()
