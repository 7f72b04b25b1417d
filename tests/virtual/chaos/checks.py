"""What must hold whatever happens: each checker looks by itself, after every step, and says what it saw."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol

from tests.virtual.apiserver import Audited
from tests.virtual.chaos.scenario import RATE_S, SETTLED_S, SIZED, WINDOW_S, Honest, Scenario, last_fault_s
from tests.virtual.chaos.visible import births, blinds, hidden, holds_up_nobody, over_s
from tests.virtual.cluster import Cluster
from tests.virtual.faults import Flood
from trimtab.journal_replay import replay
from trimtab.quantity import MIB, parse_quantity

TICK_S = 15.0
TOLERATED = 1.12  # HPA's tolerance, and whole percents
LAG_S = 90.0  # until a mean of the last minute tells of a new load
RECOVERY_S = 240.0  # after a fault
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
    """Only who holds the lease writes, and only as long as it lasts."""

    def __init__(self, given: Scenario) -> None:
        self._holder, self._ends = "", 0.0

    def look(self, cluster: Cluster, news: News) -> Iterator[str]:
        for call in news.calls:
            if "/leases" in call.path:
                if call.status in (200, 201) and call.body:
                    spec = call.body["spec"]
                    self._holder, self._ends = spec["holderIdentity"], call.at + spec["leaseDurationSeconds"]
            elif _writes(call) and call.who != self._holder:
                yield f"{call.who} wrote {call.path} while the lease was of {self._holder or 'nobody'}"
            elif _writes(call) and call.at > self._ends:
                yield f"{call.who} wrote {call.path} {call.at - self._ends:.1f} s after its lease had ended"


class Scalings:
    """No decrease on missing, stale or partial data, none before its window is over; neither way faster than allowed.

    By the true load, whatever the operator believes, over restarts, new leaders and clock steps.
    """

    def __init__(self, given: Scenario) -> None:
        self.given = given
        self._scalings: dict[str, list[Scaling]] = {honest.name: [] for honest in given.honest}

    def look(self, cluster: Cluster, news: News) -> Iterator[str]:
        for honest in self.given.honest:
            for call in _scales(news.calls, honest.name):
                known = self._scalings[honest.name]
                was = known[-1].replicas if known else FIRST_REPLICAS
                scaling = Scaling(call.at - cluster.start, was, call.body["spec"]["replicas"])
                known.append(scaling)
                yield from self._fast(honest, scaling)
                if scaling.replicas < was:
                    yield from self._blind(honest, scaling)
                    yield from self._early(honest, scaling)

    def _blind(self, honest: Honest, scaling: Scaling) -> Iterator[str]:
        for fault in self.given.faults:
            if fault.start_s + TICK_S < scaling.at_s < fault.end_s and blinds(fault, honest.name):
                yield f"{honest.name}: {_text(scaling)} on data that is {fault}"

    def _early(self, honest: Honest, scaling: Scaling) -> Iterator[str]:
        """The highest need within the window, where nothing hid it."""
        start, end = int(scaling.at_s - WINDOW_S + LAG_S), int(scaling.at_s - LAG_S)
        seen = [at_s for at_s in range(max(0, start), end, 15) if not hidden(self.given.faults, honest.name, at_s)]
        busy = max((honest.load(at_s) for at_s in seen), default=0.0) * 100 / honest.percent
        if min(busy, honest.most) > TOLERATED * scaling.replicas:
            yield f"{honest.name}: {_text(scaling)} although {busy:.1f} were needed within the last {WINDOW_S:g} s"

    def _fast(self, honest: Honest, scaling: Scaling) -> Iterator[str]:
        """As Kubernetes counts: what went the other way in the same period may come back.

        Up to a tick: acts bear the time at which their tick was due, and may have left later.
        """
        way = 1 if scaling.replicas > scaling.was else -1
        born_s = births(self.given.faults, honest.name, scaling.at_s)
        moved = 0
        for each in self._scalings[honest.name]:
            pods, age_s = way * (each.replicas - each.was), scaling.at_s - each.at_s
            if each.at_s > born_s and age_s < (RATE_S - TICK_S if pods > 0 else RATE_S + TICK_S):
                moved += pods
        if moved > (honest.added if way > 0 else honest.removed):
            yield f"{honest.name}: {_text(scaling)}: {moved} within {RATE_S:g} s"


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
    """Nobody waits for anybody: whatever tenants do, every honest object is looked at in every tick or the next."""

    def __init__(self, given: Scenario) -> None:
        self.given = given
        self.troubled = [
            (each.start_s, over_s(each) + RECOVERY_S) for each in given.faults if not holds_up_nobody(each)
        ]

    def look(self, cluster: Cluster, news: News) -> Iterator[str]:
        if news.now_s < RECOVERY_S or any(start_s <= news.now_s < end_s for start_s, end_s in self.troubled):
            return
        newest = _newest_looks(cluster)
        for honest in self.given.honest:
            late_s = newest.get(honest.name, float("inf"))
            if late_s > 2 * TICK_S + 1:
                yield f"{honest.name}: its last look was {late_s:.0f} s ago"


class Bounded:
    """Memory, journal and requests stay small, whatever happens."""

    def __init__(self, given: Scenario) -> None:
        flood = sum(fault.objects for fault in given.faults if isinstance(fault, Flood))
        self.objects = len(given.honest) + len(given.hostile) + flood + 1  # and the sized one

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
    """Nothing is written where nobody asked for it; a bystander is left alone, and not asked about."""

    def __init__(self, given: Scenario) -> None:
        self.homes = {honest.name.partition("/")[0] for honest in given.honest} | {"evil", "trimtab-system"}

    def look(self, cluster: Cluster, news: News) -> Iterator[str]:
        for call in news.calls:
            namespace = _namespace(call.path)
            asks = f"/{BYSTANDER.partition('/')[0]}" in call.path and call.who.startswith("operator")
            if asks or (_writes(call) and namespace not in self.homes):
                yield f"{call.verb} {call.path}"
        if cluster.replicas(BYSTANDER) != FIRST_REPLICAS:
            yield f"{BYSTANDER} has {cluster.replicas(BYSTANDER)} replicas"


class Memory:
    """Memory grows by OOM kills alone, each counted once from what the container asked for when it was killed."""

    def __init__(self, given: Scenario) -> None:
        pass

    def look(self, cluster: Cluster, news: News) -> Iterator[str]:
        for call in news.calls:
            if call.verb != "patch" or not call.path.endswith("/resize") or call.status != 200:
                continue
            written = parse_quantity(call.body["spec"]["containers"][0]["resources"]["requests"]["memory"])
            kills = [kill.request_bytes for kill in cluster.oom_kills if kill.at_s <= call.at - cluster.start]
            if written > max([256 * MIB, *(_answer_bytes(request_bytes) for request_bytes in kills)]):
                yield f"{SIZED}: {written / MIB:.0f} MiB after kills at {[round(each / MIB) for each in kills]} MiB"


def _answer_bytes(request_bytes: float) -> float:
    """The most that one kill explains: what would have been enough, its histogram bucket, and the margin."""
    need = max(request_bytes + 100 * MIB, 1.2 * request_bytes)
    return 1.15 * (1.05 * need + 1e7) + 1000.0


class Replays:
    """At the end every journal replays clean."""

    def __init__(self, given: Scenario) -> None:
        self.end_s = last_fault_s(given.faults) + SETTLED_S

    def look(self, cluster: Cluster, news: News) -> Iterator[str]:
        if news.now_s < self.end_s:
            return
        for who, process in cluster.processes.items():
            if not Path(process.settings.journal).exists() or not _keeps_journal(cluster, who):  # it does not lead
                continue
            found = replay(process.settings.journal)
            if found.differences:
                yield f"the journal of {who} replays with {len(found.differences)} differences"


class Queries:
    """No name that somebody scraped is more than a text in a query of ours."""

    def __init__(self, given: Scenario) -> None:
        self._read = 0

    def look(self, cluster: Cluster, news: News) -> Iterator[str]:
        assert cluster.prometheus is not None
        for query in cluster.prometheus.asked[self._read :]:
            names = re.findall(r"[A-Za-z_]\w*", TEXT.sub("", query))
            if "INJECTED" in names:
                yield f"a name became part of a query: {query}"
        self._read = len(cluster.prometheus.asked)


TEXT = re.compile(r'"(?:\\.|[^"\\])*"')


class Understood:
    """Nothing that happens is called a bug of trimtab."""

    def __init__(self, given: Scenario) -> None:
        pass

    def look(self, cluster: Cluster, news: News) -> Iterator[str]:
        yield from cluster.bugs.met


FIRST_REPLICAS = 3
BYSTANDER = "vault/safe"
CHECKERS: tuple[type, ...] = (
    Bounds,
    OneWriter,
    Scalings,
    Settles,
    OnTime,
    Bounded,
    Tenants,
    Memory,
    Queries,
    Replays,
    Understood,
)


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
        now = process.operator.clock.now() if process.operator else 0.0
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
