"""KEDA's queue triggers as Backlog metrics, where the exporter says what arrives, what waits and how long one takes.

A trigger knows a number of messages per pod and nothing else, so parts of the Backlog metric are assumed; the ledger
names them. A queue whose exporter has no service time stays what it was, and the ledger names what is missing.
"""

from __future__ import annotations

from typing import Any

from trimtab.kinds.foreign import Manifest
from trimtab.kinds.ledger import Ledger
from trimtab.kinds.queues import QueueQueries, queue_behind
from trimtab.quantity import parse_quantity

_WAIT = "60s"
_FIRST_SERVICE_TIME = "1s"


def follow_arrivals(spec: Manifest, ledger: Ledger) -> None:
    """Replace metrics of the length of a queue by Backlog metrics, in place."""
    for index, metric in enumerate(spec.get("metrics", ())):
        length = metric.get("prometheus", {})
        queue = queue_behind(length["query"]) if "averageValue" in length.get("target", {}) else None
        if queue is None or length["query"].startswith("vector("):  # a formula over triggers
            continue
        one = length["query"].startswith(("max(", "avg("))  # of several queues
        path = ledger.source_of(f"spec.metrics[{index}]")
        if one or not (queue.arrivals and queue.service_time):
            ledger.lose(path, f"{queue.why}. It is kept, for {_missing(one)}: {queue.fix}")
            continue
        backlog = _backlog(length, queue)
        activation = (
            "; the activation threshold is left out: one item starts a pod" if "> bool" in length["query"] else ""
        )
        spec["metrics"][index] = {"type": "Backlog", "backlog": backlog}
        ledger.lose(
            path,
            f"{queue.why}, so a Backlog metric follows what arrives: concurrency {backlog['concurrency']} is the"
            f" trigger's target; waitBelow {_WAIT}, and serviceTime {_FIRST_SERVICE_TIME} until it can be measured, are"
            f" assumed{activation}",
        )


def _missing(one: bool) -> str:
    return "it is one of several queues" if one else "its exporter does not say how long an item takes"


def _backlog(length: dict[str, Any], queue: QueueQueries) -> dict[str, Any]:
    named = {"name": length["name"]} if "name" in length else {}
    return {
        **named,
        "arrivals": {"query": queue.arrivals},
        "waiting": {"query": queue.waiting},
        "serviceTimeQuery": {"query": queue.service_time},
        "serviceTime": _FIRST_SERVICE_TIME,
        "concurrency": max(1, int(parse_quantity(length["target"]["averageValue"]))),
        "waitBelow": _WAIT,
    }
