"""Faults are data: what goes wrong, from when to when (seconds from the cluster's start), for whom.

`Weather` (weather.py) brings them about. A new fault is a dataclass here and a few lines there.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from tests.virtual.apiserver import Call
from trimtab.sim.cluster_spec import FaultKind

FOREVER = float("inf")


@dataclass(frozen=True)
class Fault:
    start_s: float
    end_s: float = FOREVER

    def holds(self, at_s: float) -> bool:
        return self.start_s <= at_s < self.end_s


@dataclass(frozen=True)
class OnRequests(Fault):
    """Which requests it befalls: whose, to which collection ("prometheus": that server), by which methods, and what
    their path or their body holds."""

    who: str = ""
    plural: str = ""
    path: str = ""  # this one, and what lies below it
    methods: tuple[str, ...] = ("GET", "POST", "PATCH", "DELETE")
    share: float = 1.0
    about: str = ""

    def befalls(self, call: Call, plural: str) -> bool:
        of_place = self.plural in ("", plural) and f"{call.path}/".startswith(f"{self.path}/" if self.path else "")
        there = self.about in call.path or self.about.encode() in (call.body or b"")
        return of_place and there and self.who in ("", call.who) and call.method in self.methods


@dataclass(frozen=True)
class Slow(OnRequests):
    """Answers take this long."""

    seconds: float = 1.0


@dataclass(frozen=True)
class Refusing(OnRequests):
    """Nothing is done, a status says so."""

    status: int = 500
    retry_after_s: float | None = None


@dataclass(frozen=True)
class Unread(Refusing):
    """A kind that is no part of Kubernetes cannot be read."""

    methods: tuple[str, ...] = ("GET",)


@dataclass(frozen=True)
class Garbled(OnRequests):
    """Somebody in between answers with a page of its own; nothing is done."""


@dataclass(frozen=True)
class Unreachable(OnRequests):
    """No connection: nothing leaves."""


@dataclass(frozen=True)
class Unanswered(OnRequests):
    """It is done, but the answer is lost."""


@dataclass(frozen=True)
class CutWatches(Fault):
    """At the start the streams of a feed end, of all of them without a name."""

    plural: str = ""
    who: str = ""


@dataclass(frozen=True)
class StalledWatches(Fault):
    """Streams stay open and say nothing; what happened meanwhile is told afterwards."""

    plural: str = ""
    who: str = ""


@dataclass(frozen=True)
class LostEvents(Fault):
    plural: str = ""
    share: float = 1.0


@dataclass(frozen=True)
class RepeatedEvents(Fault):
    plural: str = ""
    share: float = 1.0


@dataclass(frozen=True)
class Compacted(Fault):
    """At the start the history is forgotten: a watch that comes back is told 410."""


@dataclass(frozen=True)
class Killed(Fault):
    """From the start on, at its n-th request (of these methods), as by SIGKILL: before it is done, or before its answer
    comes; or between two awaits, the n-th from then on. It may come back."""

    who: str = "operator-0"
    requests: int = 0  # 0: at once
    awaits: int = 0
    methods: tuple[str, ...] = ("GET", "POST", "PATCH", "DELETE")
    done: bool = False  # the last request is carried out
    back_after_s: float | None = None


@dataclass(frozen=True)
class Suspended(Fault):
    """The process stands still, as by SIGSTOP or with its machine: clocks go on, what has left arrives."""

    who: str = "operator-0"


@dataclass(frozen=True)
class ClockStepped(Fault):
    """At the start the wall clock of an operator's machine is set."""

    by_s: float = 0.0
    who: str = "operator-0"


@dataclass(frozen=True)
class DiskFull(Fault):
    """The journal's file cannot grow."""

    who: str = "operator-0"


@dataclass(frozen=True)
class DamagedJournal(Fault):
    """At the start an operator is killed and its journal written over; at the end it comes back."""

    who: str = "operator-0"


@dataclass(frozen=True)
class Away(Fault):
    """From the start to the end something is not there: then it is again as it was, as a new object."""

    name: str = ""


@dataclass(frozen=True)
class ObjectAway(Away):
    """An object, `name` is NAMESPACE/NAME; `alias` is the name that it has meanwhile."""

    kind: str = "Autoscaler"
    alias: str = ""


@dataclass(frozen=True)
class NamespaceAway(Away):
    """A namespace, with all that is in it."""


@dataclass(frozen=True)
class DefinitionAway(Away):
    """A CustomResourceDefinition by its kind, with all of its objects."""


@dataclass(frozen=True)
class Flood(Fault):
    """A tenant has this many invalid objects, and edits them all the while."""

    namespace: str = "evil"
    objects: int = 60


@dataclass(frozen=True)
class ForeignPods(Fault):
    """A tenant's pods name the ReplicaSet of another namespace's workload as their owner."""

    namespace: str = "evil"
    workload: str = ""
    pods: int = 20


@dataclass(frozen=True)
class OomKilled(Fault):
    """At the start the kernel kills a container of a workload's first pod for its memory."""

    workload: str = ""


@dataclass(frozen=True)
class ForgedLabels(Fault):
    """A tenant's pods expose owners of others' pods, as kube-state-metrics would, with names that are PromQL."""


@dataclass(frozen=True)
class Reinstalled(Fault):
    """At the start the chart is uninstalled, which freezes; at the end it is installed anew, with another account."""


@dataclass(frozen=True)
class NodesFull(Fault):
    """The scheduler finds no node for new pods of a workload until the end, when nodes are there."""

    workload: str = ""


@dataclass(frozen=True)
class QuotaUsedUp(Fault):
    """A quota refuses more pods of a workload than it has; the controller says so on the Deployment."""

    workload: str = ""


@dataclass(frozen=True)
class BadMetrics(Fault):
    """What is measured of one workload: missing, stale, NaN, negative, zero or late, as in the simulator."""

    workload: str = ""
    kind: FaultKind = FaultKind.MISSING
    amount: float = 0.0


class Spoiling(enum.StrEnum):
    HUGE = "huge"
    FUTURE = "from the future"
    PARTIAL = "of half the pods"


@dataclass(frozen=True)
class SpoiledMetrics(Fault):
    """What metrics.k8s.io says of one workload, beyond what the simulator knows."""

    workload: str = ""
    kind: Spoiling = Spoiling.FUTURE
