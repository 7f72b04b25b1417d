"""What is fed, and what must hold: TrimtabError is an answer, anything else a defect.

Each target takes bytes. Texts are taken as they are; documents are examples of ours, bent (`bent.py`).
"""

from __future__ import annotations

import asyncio
import math
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tests.fuzz import examples
from tests.fuzz.bent import Taken, bent
from tests.fuzz.examples import NOW
from tests.virtual.apiserver import Call, Reply
from tests.virtual.transport import Link
from trimtab.advisor.adopt import adopted_spec
from trimtab.core.bounds_in_force import bounds_at
from trimtab.core.decide import decide
from trimtab.core.demand import checkpoint as demand_checkpoint
from trimtab.core.demand.log import DemandLog
from trimtab.core.usage import histogram_checkpoint
from trimtab.core.usage.histograms import UsageHistograms
from trimtab.errors import TrimtabError
from trimtab.history.query_pages import read_row
from trimtab.history.source import TimeGrid
from trimtab.journal import Journal
from trimtab.kinds import Analytics, Scaler, cron, read, yaml
from trimtab.live.look import floor, memory
from trimtab.live.look.sizes import bridge_in_force, cpu_with, stuck_resizes
from trimtab.live.look.subject import Compiler
from trimtab.policy import Policy
from trimtab.quantity import format_cpu, format_duration, format_memory, parse_duration, parse_quantity
from trimtab.wire.access import Access
from trimtab.wire.decode import decode
from trimtab.wire.from_kubernetes import overloaded_at, pod_from_wire, written_sizes
from trimtab.wire.objects import Custom, WirePod
from trimtab.wire.prometheus import Prometheus
from trimtab.wire.resources import HPAS

Target = Callable[[bytes], None]
MEMORY = Path("/dev/shm")  # noqa: S108  (a disk takes longer than all the rest)


def quantities(data: bytes) -> None:
    found = parse_quantity(_text(data))
    assert math.isfinite(found)
    if 0 <= found < 1e12:
        assert math.isclose(parse_quantity(format_cpu(found)), found, rel_tol=0.01, abs_tol=0.001)
        assert math.isclose(parse_quantity(format_memory(found)), found, rel_tol=0.01, abs_tol=1)


def durations(data: bytes) -> None:
    """Of what is said, two units are."""
    found = parse_duration(_text(data))
    assert math.isfinite(found) and found >= 0
    if found < 1e9:
        assert math.isclose(parse_duration(format_duration(found)), found, rel_tol=0.04, abs_tol=1)


def crons(data: bytes) -> None:
    """Two expressions and a moment: a day of their spans lies in order, within the day."""
    start, _, end = _text(data).partition("|")
    cron.translate(start), cron.translate(end)
    if cron.times_per_day(start) + cron.times_per_day(end) > 3000:
        return
    found = cron.spans(start, end, UTC, NOW, NOW + 86400)
    assert all(opened < closed for opened, closed in found)
    assert all(before[1] < after[0] for before, after in pairwise(found))
    assert cron.active(start, end, UTC, NOW) == bool(found and found[0][0] == NOW)


def yamls(data: bytes) -> None:
    for document in yaml.documents(data):
        document.line_of("spec.metrics[0].type")


def kinds(data: bytes) -> None:
    """Whatever is admitted compiles, and decides within its bounds."""
    taken, manifests = Taken(data), examples.manifests()
    found = read(bent(manifests[taken.below(len(manifests))], taken))
    if isinstance(found, Scaler):
        compiled = found.to_policy(NOW)
        assert msgspec.json.decode(msgspec.json.encode(compiled), type=Policy) == compiled
        _decides_within_bounds(compiled, {})
    elif isinstance(found, Analytics):
        found.to_inspection()


def adopted(data: bytes) -> None:
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "shop"}
    adopted_spec(ref, _text(data))


def prometheus_json(data: bytes) -> None:
    """An answer to an instant query and to one over a range."""

    async def ask() -> None:
        access = Access("http://prometheus", transport=Link(_Says(data), "fuzz").transport)
        async with Prometheus(access) as prometheus:
            for value in await prometheus.query("x"):
                assert isinstance(value.value, float)

    asyncio.run(ask())


def range_rows(data: bytes) -> None:
    row = np.full(100, np.nan)
    read_row(data, TimeGrid(NOW, 15.0, 100), row)
    assert not np.isinf(row).any()


def journal_rows(data: bytes) -> None:
    """One text of a row is bent: reading says so, and writing goes on."""
    taken = Taken(data)
    table, column = COLUMNS[taken.below(len(COLUMNS))]
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        path = Path(folder, "journal.db")
        path.write_bytes(examples.journal())
        with closing(sqlite3.connect(path)) as db, db:
            text = db.execute(f"SELECT {column} FROM {table}").fetchone()[0]  # noqa: S608  (names of ours)
            db.execute(f"UPDATE {table} SET {column} = ?", (_bent_text(text, taken),))  # noqa: S608
        with closing(Journal(path)) as journal:
            journal.prune(NOW)
            journal.write([examples.act()])
            for act in journal.acts():
                decide(act.policy, act.seen, act.memory)


def statuses(data: bytes) -> None:
    """What a tenant may write is read without an error, and moves nothing out of its bounds."""
    _decides_within_bounds(examples.policy(), bent(examples.status(), Taken(data)))


def config_maps(data: bytes) -> None:
    """Checkpoints of usage and demand: refused, or what is known stays a number."""
    taken = Taken(data)
    if taken.below(2):
        log = DemandLog()
        demand_checkpoint.load(log, {"cpu": "x"}, _json(bent(examples.demand(), taken)))
        values = log.recent("x", NOW, 3600.0).values if "x" in log else np.empty(0)
        assert not np.isinf(values).any()
        return
    book = UsageHistograms()
    with suppress(OverflowError):  # of a number; the operator starts afresh then, too
        histogram_checkpoint.load(book, "uid", "main", bent(examples.usage_checkpoint(), taken))
        assert np.isfinite(book.cpu.totals).all()


def pods(data: bytes) -> None:
    """A tenant's pod, which nobody asks before it is looked at: its facts, sizes, kills and bridge."""
    with suppress(msgspec.MsgspecError):  # left out of its list
        pod = decode(_json(bent(examples.pod(), Taken(data))), WirePod)
        (
            pod_from_wire(pod),
            written_sizes(pod),
            overloaded_at(pod, written_sizes(pod)),
            stuck_resizes([pod]),
            bridge_in_force([pod]),
        )
        assert all(size.requests.memory_bytes is None for size in cpu_with(pod, 1.5).values())


def predictive_hpas(data: bytes) -> None:
    """A tenant's HPA with annotations that may or may not be ours: the floor of its user is a number."""
    hpa, taken = examples.predictive_hpa(), Taken(data)
    with suppress(msgspec.MsgspecError):
        found = decode(_json(hpa | {"metadata": bent(hpa["metadata"], taken)}), Custom)
        floor.speaks_of_forecasts(found), floor.owner(found)
        assert floor.read(found).original >= 0
        assert Compiler().subject(HPAS, found, True, NOW).policy.bounds.min_replicas >= 0


COLUMNS = (("policies", "text"), *(("decisions", name) for name in ("seen", "memory", "decision", "outcome")))
TARGETS: dict[str, Target] = {
    target.__name__: target
    for target in (
        quantities,
        durations,
        crons,
        yamls,
        kinds,
        adopted,
        prometheus_json,
        range_rows,
        journal_rows,
        statuses,
        config_maps,
        pods,
        predictive_hpas,
    )
}


def feed(target: Target, data: bytes) -> None:
    """What `make fuzz` and the kept inputs both do."""
    with suppress(TrimtabError):
        target(data)


class _Says:
    """A server with one answer."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    def handle(self, call: Call) -> Reply:
        return Reply(200, self.body)


def _decides_within_bounds(policy: Policy, status: dict[str, Any]) -> None:
    seen = examples.observation(policy.signals)
    known = memory.read(status, NOW, seen.spec_replicas)
    decision = decide(policy, seen, known.core)
    bounds = bounds_at(policy.bounds, NOW)
    if decision.change is not None and decision.change.replicas is not None and policy.admit.pin is None:
        assert bounds.least <= decision.change.replicas <= bounds.most
    msgspec.json.encode(memory.written(known))


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _json(document: Any) -> bytes:
    try:
        return msgspec.json.encode(document)
    except (UnicodeEncodeError, msgspec.MsgspecError):  # what no JSON can say
        return b"{}"


def _bent_text(text: str, taken: Taken) -> str:
    """Its document bent, or the text cut and written over."""
    if taken.below(2):
        return _json(bent(msgspec.json.decode(text), taken)).decode()
    place = taken.below(len(text))
    return text[:place] + taken.rest().decode(errors="replace")
