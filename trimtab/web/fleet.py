"""The fleet as one table: every object of a journal with its last tick, its last change and what today was like."""

from __future__ import annotations

from typing import Any

import numpy as np

from trimtab.acts import Fate
from trimtab.journal import DAY_S, Journal
from trimtab.minutes import HOUR_S
from trimtab.web.packing import packed

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
_TEXT = ("kind", "namespace", "name", "mode", "held", "fate", "said", "problem")
_NUMBERS = (
    "at",
    "replicas",
    "planned",
    "ready",
    "load",
    "capacity",
    "forecast",
    "horizon",
    "cpu",
    "memory",
    "least",
    "most",
    "changedAt",
    "changedFrom",
    "changedTo",
    "expected",
    "podHours",
    "violations",
    "severity",
)


def fleet(journal: Journal) -> bytes:
    """Text columns in the header, numbers behind it; `severity` sorts problems first."""
    span = journal.span()
    now = span[1] if span else 0.0
    midnight = now // DAY_S * DAY_S
    days = _today(journal, midnight)
    rows = [_row(row, days.get(row[0], (0.0, 0.0, 0.0)), now) for row in journal.query(_LAST)]
    columns = {
        name: np.array([np.nan if row[name] is None else row[name] for row in rows], dtype=_type(name))
        for name in _NUMBERS
    }
    text = {name: [row[name] or "" for row in rows] for name in _TEXT}
    return packed({"now": now, "midnight": midnight, "count": len(rows), "text": text}, columns)


def _type(name: str) -> str:
    return "f8" if name in ("at", "changedAt", "memory") else "f4"


def _today(journal: Journal, midnight: float) -> dict[int, tuple[float, float, float]]:
    """Pod-minutes, load-minutes and violating ones of each object since midnight."""
    found: dict[int, tuple[float, float, float]] = {}
    for query, since in ((_FOLDED, midnight // HOUR_S), (_TICKED, midnight)):
        for identity, *sums in journal.query(query, (since,)):
            old = found.get(identity, (0.0, 0.0, 0.0))
            found[identity] = (old[0] + (sums[0] or 0.0), old[1] + (sums[1] or 0.0), old[2] + (sums[2] or 0.0))
    return found


def _row(row: tuple[Any, ...], today: tuple[float, float, float], now: float) -> dict[str, Any]:
    names = (
        "kind namespace name mode at replicas planned ready load capacity forecast horizon cpu memory held least most"
        " changedAt changedFrom changedTo fate said expected"
    )
    found = dict(zip(names.split(), row[1:], strict=True))
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
        return 1, "violations"
    return 0, ""
