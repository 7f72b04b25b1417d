"""What must hold whatever happens: each checker looks by itself, after every step, and says what it saw."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol

from tests.virtual.apiserver import Audited
from tests.virtual.chaos.scenario import (
    BLIND,
    RATE_S,
    SETTLED_S,
    WINDOW_S,
    Honest,
    Scenario,
    last_fault_s,
)
from tests.virtual.cluster import Cluster
from tests.virtual.faults import BadMetrics, SpoiledMetrics, Spoiling
from trimtab.journal import replay

TICK_S = 15.0
TOLERATED = 1.12  # HPA's tolerance, and whole percents
LAG_S = 90.0  # until a mean of the last minute tells of a new load
JOURNAL_BYTES = 4 * 2**20
REQUESTS_PER_STEP = 1500  # of 30 s
OWN_PLACES = ("/leases", "/events", "/configmaps")


class News(NamedTuple):
    """What was asked since the last look, and when that was."""

    calls: list[Audited]
    now_s: float


class Checker(Protocol):
    """Gives what is wrong."""

    def look(self, cluster: Cluster, news: News) -> Iterator[str]: ...


class Scaling(NamedTuple):
    at_s: float
    was: int
    replicas: int


class Bounds:
    """Every number that is written lies between minReplicas and maxReplicas."""

    def __init__(self, given: Scenario) -> None:
        self.honest = given.honest

    def look(self, cluster: Cluster, news: News) -> Iterator[str]:
        for honest in self.honest:
            for call in _scales(news.calls, honest.name):
                replicas = call.body["spec"]["replicas"]
                if not honest.least <= replicas <= honest.most:
                    yield f"{honest.name}: {replicas} written, outside {honest.least}..{honest.most}"


class OneWriter:
    """Only who holds the lease writes."""

    def __init__(self, given: Scenario) -> None:
        self._holder = ""

    def look(self, cluster: Cluster, news: News) -> Iterator[str]:
        for call in news.calls:
            if "/leases" in call.path:
                if call.status in (200, 201) and call.body:
                    self._holder = call.body["spec"]["holderIdentity"]
            elif _writes(call) and call.who != self._holder:
                yield f"{call.who} wrote {call.path} while the lease was of {self._holder or 'nobody'}"


class Decreases:
    """None on missing, stale or partial data; none before its window is over; none faster than its rate allows.

    All three by the true load, whatever the operator believes, over restarts, new leaders and clock steps.
    """

    def __init__(self, given: Scenario) -> None:
        self.given = given
        self._size: dict[str, int] = {}
        self._scalings: dict[str, list[Scaling]] = {honest.name: [] for honest in given.honest}

    def look(self, cluster: Cluster, news: News) -> Iterator[str]:
        for honest in self.given.honest:
            for call in _scales(news.calls, honest.name):
                was = self._size.get(honest.name, FIRST_REPLICAS)
                scaling = Scaling(call.at - cluster.start, was, call.body["spec"]["replicas"])
                self._size[honest.name] = scaling.replicas
                if scaling.replicas < was:
                    self._scalings[honest.name].append(scaling)
                    yield from self._blind(honest, scaling)
                    yield from self._early(honest, scaling)
                    yield from self._fast(honest, scaling)

    def _blind(self, honest: Honest, scaling: Scaling) -> Iterator[str]:
        for fault in self.given.faults:
            blind = (isinstance(fault, BadMetrics) and fault.kind in BLIND) or (
                isinstance(fault, SpoiledMetrics) and fault.kind is Spoiling.FUTURE
            )
            inside = fault.start_s + TICK_S < scaling.at_s < fault.end_s
            if blind and inside and getattr(fault, "workload", "") in ("", honest.name):
                yield f"{honest.name}: {_text(scaling)} on data that is {fault}"

    def _early(self, honest: Honest, scaling: Scaling) -> Iterator[str]:
        """The highest need within the window, where nothing hid it."""
        start = int(scaling.at_s - WINDOW_S + LAG_S)
        known = [at_s for at_s in range(max(0, start), int(scaling.at_s - LAG_S), 15) if self._calm(at_s)]
        busy = max((honest.load(at_s) for at_s in known), default=0.0) * 100 / honest.percent
        if min(busy, honest.most) > TOLERATED * scaling.replicas:
            yield f"{honest.name}: {_text(scaling)} although {busy:.1f} were needed within the last {WINDOW_S:g} s"

    def _calm(self, at_s: float) -> bool:
        return not any(fault.start_s - 60 <= at_s < fault.end_s + 180 for fault in self.given.faults)

    def _fast(self, honest: Honest, scaling: Scaling) -> Iterator[str]:
        """Up to a tick: acts bear the time at which their tick was due, and may have left later."""
        recent = [each for each in self._scalings[honest.name] if each.at_s > scaling.at_s - RATE_S + TICK_S]
        removed = sum(each.was - each.replicas for each in recent)
        if removed > honest.removed:
            yield f"{honest.name}: {_text(scaling)}: {removed} removed within {RATE_S:g} s, {honest.removed} allowed"


class Settles:
    """After the last fault every honest object gets what it needs within a bounded time, and stays there."""

    def __init__(self, given: Scenario) -> None:
        self.given, self.due_s = given, last_fault_s(given.faults) + SETTLED_S

    def look(self, cluster: Cluster, news: News) -> Iterator[str]:
        if news.now_s < self.due_s:
            return
        for honest in self.given.honest:
            replicas, load = cluster.replicas(honest.name), honest.load(news.now_s)
            ratio = load * 100 / honest.percent / replicas
            at_edge = replicas == honest.need(news.now_s)
            if not at_edge and not 1 / TOLERATED - 0.02 <= ratio <= TOLERATED:
                need = honest.need(news.now_s)
                yield f"{honest.name}: {replicas} replicas where {need} are needed {SETTLED_S:g} s after the last fault"


class OnTime:
    """Nobody waits for anybody: without a fault, every honest object is looked at in every tick or the next."""

    def __init__(self, given: Scenario) -> None:
        self.given, self.from_s = given, last_fault_s(given.faults) + 240

    def look(self, cluster: Cluster, news: News) -> Iterator[str]:
        if news.now_s < self.from_s:
            return
        newest = _newest_looks(cluster)
        for honest in self.given.honest:
            late_s = newest.get(honest.name, float("inf"))
            if late_s > 2 * TICK_S + 1:
                yield f"{honest.name}: its last look was {late_s:.0f} s ago"


class Bounded:
    """Memory, journal and requests stay small, whatever happens."""

    def __init__(self, given: Scenario) -> None:
        self.objects = len(given.honest) + len(given.hostile)

    def look(self, cluster: Cluster, news: News) -> Iterator[str]:
        if len(news.calls) > REQUESTS_PER_STEP:
            yield f"{len(news.calls)} requests in one step"
        for who, process in cluster.processes.items():
            operator = process.operator
            if operator is None or operator.journal is None:
                continue
            if len(operator.ticker._memories) > self.objects:
                yield f"{who} remembers {len(operator.ticker._memories)} objects of {self.objects}"
            size = operator.journal.path.stat().st_size if operator.journal.path.exists() else 0
            if size > JOURNAL_BYTES:
                yield f"the journal of {who} has {size:,} bytes"


class Tenants:
    """Nothing is written where nobody asked for it, and a bystander is left alone."""

    def __init__(self, given: Scenario) -> None:
        self.homes = {honest.name.partition("/")[0] for honest in given.honest} | {"evil", "trimtab-system"}

    def look(self, cluster: Cluster, news: News) -> Iterator[str]:
        for call in news.calls:
            namespace = _namespace(call.path)
            if _writes(call) and namespace not in self.homes:
                yield f"{call.verb} {call.path}"
        if cluster.replicas(BYSTANDER) != FIRST_REPLICAS:
            yield f"{BYSTANDER} has {cluster.replicas(BYSTANDER)} replicas"


class Replays:
    """At the end every journal replays clean."""

    def __init__(self, given: Scenario) -> None:
        self.end_s = last_fault_s(given.faults) + SETTLED_S

    def look(self, cluster: Cluster, news: News) -> Iterator[str]:
        if news.now_s < self.end_s:
            return
        for who, process in cluster.processes.items():
            if not Path(process.settings.journal).exists():  # it never led
                continue
            found = replay(process.settings.journal)
            if found.differences:
                yield f"the journal of {who} replays with {len(found.differences)} differences"


FIRST_REPLICAS = 3
BYSTANDER = "vault/safe"
CHECKERS: tuple[type, ...] = (Bounds, OneWriter, Decreases, Settles, OnTime, Bounded, Tenants, Replays)


def _scales(calls: list[Audited], name: str) -> Iterator[Audited]:
    namespace, _, short = name.partition("/")
    path = f"/namespaces/{namespace}/deployments/{short}/scale"
    return (each for each in calls if each.verb == "patch" and each.status == 200 and each.path.endswith(path))


def _writes(call: Audited) -> bool:
    written = call.verb in ("patch", "create", "delete") and call.status < 300
    return written and call.who.startswith("operator")


def _namespace(path: str) -> str:
    _, found, rest = path.partition("/namespaces/")
    return rest.split("/")[0] if found else ""


def _text(scaling: Scaling) -> str:
    return f"{scaling.was} -> {scaling.replicas} at {scaling.at_s:.0f} s"


def _newest_looks(cluster: Cluster) -> dict[str, float]:
    """How long ago somebody looked at each object."""
    ages: dict[str, float] = {}
    for who, process in cluster.processes.items():
        now = process.clock.now()
        rows = cluster.journal_db(who).execute(NEWEST).fetchall() if _keeps_journal(cluster, who) else []
        for namespace, name, at in rows:
            key = f"{namespace}/{name}"
            ages[key] = min(ages.get(key, float("inf")), now - at)
    return ages


NEWEST = "SELECT namespace, name, max(at) FROM ticks t JOIN objects o ON o.id = t.object GROUP BY 1, 2"


def _keeps_journal(cluster: Cluster, who: str) -> bool:
    operator = cluster.processes[who].operator
    return operator is not None and operator.journal is not None and operator.journal._journal is not None


def news(cluster: Cluster, seen: int) -> News:
    audit = cluster.server.audit
    return News(list(islice(audit, seen, None)), cluster.now() - cluster.start)
