"""What one seed stands for: honest objects with their loads, hostile ones, operators and faults."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import ceil
from typing import Any, NamedTuple

from tests.virtual.chaos.visible import BLIND, SCALERS, over_s
from tests.virtual.cluster import autoscaler
from tests.virtual.faults import (
    BadMetrics,
    ClockStepped,
    Compacted,
    CutWatches,
    DamagedJournal,
    DefinitionAway,
    DiskFull,
    Fault,
    Flood,
    ForeignPods,
    ForgedLabels,
    Garbled,
    Killed,
    LostEvents,
    NamespaceAway,
    NodesFull,
    ObjectAway,
    OomKilled,
    QuotaUsedUp,
    Refusing,
    Reinstalled,
    RepeatedEvents,
    Slow,
    SpoiledMetrics,
    Spoiling,
    StalledWatches,
    Suspended,
    Unanswered,
    Unreachable,
    Unread,
)
from trimtab.sim.cluster_spec import FaultKind

FIRST_S, LAST_S = 120, 900  # faults begin and end within
CHANGE_S = 240.0  # how long a load stays
SETTLED_S = 1200.0  # after the last fault every honest object has what it needs
END_S = LAST_S + SETTLED_S
WINDOW_S = 300.0
RATE_S = 60.0
FEEDS = ("pods", "deployments", "autoscalers", "replicasets", "namespaces", "")
SIZED = "shop/cache"  # its memory grows with each OOM kill
OPERATORS = ("operator-0", "operator-1")


class Honest(NamedTuple):
    """An object that asks for nothing unusual; `loads` are cores, each for CHANGE_S, the last one for good."""

    name: str
    percent: int
    least: int
    most: int
    added: int  # pods that may come within RATE_S
    removed: int  # and go
    loads: tuple[float, ...]

    def load(self, seconds: float) -> float:
        return self.loads[min(int(seconds / CHANGE_S), len(self.loads) - 1)]

    def need(self, seconds: float) -> int:
        return min(self.most, max(self.least, ceil(self.load(seconds) * 100 / self.percent)))

    def manifest(self) -> dict[str, Any]:
        up, down = (
            {"policies": [{"type": "Pods", "value": pods, "periodSeconds": int(RATE_S)}]}
            for pods in (self.added, self.removed)
        )
        spec: dict[str, Any] = {"minReplicas": self.least, "maxReplicas": self.most}
        return autoscaler(self.name, self.percent, **spec, behavior={"scaleUp": up, "scaleDown": down})


class Scenario(NamedTuple):
    seed: int
    operators: int
    honest: tuple[Honest, ...]
    hostile: tuple[dict[str, Any], ...]
    faults: tuple[Fault, ...]


def scenario(seed: int) -> Scenario:
    draw = random.Random(seed)
    operators = draw.choice([1, 1, 2])
    honest = tuple(_honest(draw, name) for name in ("shop/web", "shop/api", "bank/core")[: draw.randint(2, 3)])
    hostile = tuple(draw.sample(HOSTILE, draw.randint(1, 3)))
    faults = [fault for _ in range(draw.randint(2, 5)) for fault in draw.choice(FAULTS)(draw)]
    if any(isinstance(fault, Suspended) for fault in faults):
        operators = 2  # somebody takes over
    faults += [OomKilled(_span(draw)[0], workload=SIZED) for _ in range(draw.randint(0, 3))]
    return Scenario(seed, operators, honest, hostile, tuple(faults))


def _honest(draw: random.Random, name: str) -> Honest:
    loads = tuple(round(draw.uniform(0.5, 5.0), 2) for _ in range(4))
    added, removed = draw.choice([2, 4]), draw.choice([1, 2, 4])
    return Honest(name, draw.choice([50, 70]), draw.randint(1, 2), 14, added, removed, loads)


def _span(draw: random.Random) -> tuple[float, float]:
    start = draw.uniform(FIRST_S, LAST_S - 200)
    return round(start, 1), round(start + draw.uniform(20, 200), 1)


def _long(draw: random.Random) -> tuple[float, float]:
    """Longer than a window, which would hide what is wrong."""
    start = draw.uniform(FIRST_S, 380)
    return round(start, 1), round(start + draw.uniform(400, 500), 1)


def _target(draw: random.Random) -> dict[str, Any]:
    feed = draw.choice([*FEEDS, "prometheus", "leases"])
    return {"plural": feed, "share": draw.choice([0.2, 0.5, 1.0]), "who": draw.choice(["", "operator-0"])}


def _clock(draw: random.Random) -> list[Fault]:
    """Set, and set back or not: wrong in either direction, for a while or for good."""
    start, end = _span(draw)
    by_s, who = draw.choice([86_400.0, 3600.0, 400.0, 20.0]) * draw.choice([1, -1]), draw.choice(OPERATORS[:1])
    stepped = ClockStepped(start, by_s=by_s, who=who)
    return [stepped, *([ClockStepped(end, by_s=-by_s, who=who)] if draw.random() < 0.5 else [])]


def _killed(draw: random.Random) -> list[Fault]:
    start, _ = _span(draw)
    who = draw.choice(OPERATORS[:1])
    methods = draw.choice([("PATCH",), ("GET", "POST", "PATCH", "DELETE")])
    done, back_s = draw.random() < 0.5, round(draw.uniform(1, 60), 1)
    if draw.random() < 0.5:
        return [Killed(start, LAST_S, who, awaits=draw.randint(1, 400), back_after_s=back_s)]
    requests = draw.randint(0, 12)
    return [Killed(start, LAST_S, who, requests=requests, methods=methods, done=done, back_after_s=back_s)]


def _still_in_a_tick(draw: random.Random) -> list[Fault]:
    """It waits for metrics while the load has just changed, and goes on when its lease is over."""
    start = CHANGE_S * draw.randint(1, 3) + 15 * draw.randint(1, 3) + round(draw.uniform(1, 7), 1)
    end = start + round(draw.uniform(20, 110), 1)
    return [Slow(start - 60, end + 30, plural="pods", seconds=8.0), Suspended(start, end)]


def _away(draw: random.Random) -> list[Fault]:
    start, end = _span(draw)
    end = draw.choice([end, end, start + 0.4])  # or made anew in the same second
    name = draw.choice(["shop/web", "shop/api"])
    alias = draw.choice(["", "renamed"])
    return [
        draw.choice(
            [
                ObjectAway(start, end, name, "Autoscaler", alias),
                ObjectAway(start, end, name, "Deployment", alias),
                NamespaceAway(start, end, "shop"),
                DefinitionAway(start, end, "Autoscaler"),
            ]
        )
    ]


def _no_pods_told(draw: random.Random) -> list[Fault]:
    """After the first sync nothing more is heard of pods, while more of them come."""
    start, end = _long(draw)
    refused: dict[str, Any] = {"path": "/api/v1/pods", "status": draw.choice([403, 500])}
    return [Refusing(start, end, **refused), CutWatches(start, plural="pods")]


def _cut_off(draw: random.Random) -> list[Fault]:
    """It cannot renew, and what it is about to write is held up until another leads."""
    start, end = _span(draw)
    alone: dict[str, Any] = {"who": "operator-0"}
    late = Slow(start, end, **alone, plural="pods", seconds=draw.choice([4.0, 8.0]))
    return [
        Refusing(start, end, **alone, plural="leases", status=500),
        late,
        Slow(start, end, **alone, plural="deployments", seconds=8.0),
    ]


def _unread(draw: random.Random) -> list[Fault]:
    """From the start on, or from later on; somebody may have to begin without it."""
    start, end = draw.choice([(0.0, _long(draw)[1]), _span(draw)])
    kinds = (*SCALERS, "verticalpodautoscalers", "hvpas", "effectivehorizontalpodautoscalers")
    return [Unread(start, end, plural=draw.choice(kinds), status=draw.choice([403, 500]))]


FAULTS: list[Callable[[random.Random], list[Fault]]] = [
    lambda draw: [Slow(*_span(draw), **_target(draw), seconds=draw.choice([0.5, 3.0, 8.0]))],
    lambda draw: [Refusing(*_span(draw), **_target(draw), status=draw.choice([500, 503, 403]))],
    lambda draw: [Refusing(*_span(draw), **_target(draw), status=429, retry_after_s=draw.choice([1.0, 5.0, 30.0]))],
    lambda draw: [Refusing(*_span(draw), **_target(draw) | {"methods": ("PATCH",)}, status=409)],
    lambda draw: [Unreachable(*_span(draw), **_target(draw))],
    lambda draw: [Unreachable(*_span(draw), who="operator-0")],
    lambda draw: [Unanswered(*_span(draw), **_target(draw))],
    lambda draw: [Unreachable(*_span(draw), plural="prometheus")],
    lambda draw: [Garbled(*_span(draw), **_target(draw))],
    _unread,
    lambda draw: [CutWatches(*_span(draw), plural=draw.choice(FEEDS))],
    lambda draw: [Compacted(start := _span(draw)[0]), CutWatches(start + 1)],
    lambda draw: [StalledWatches(*_span(draw), plural=draw.choice(FEEDS))],
    lambda draw: _lost(draw),
    lambda draw: [RepeatedEvents(*_span(draw), share=0.5)],
    _killed,
    _killed,
    _cut_off,
    _clock,
    _clock,
    lambda draw: [ForgedLabels(*_long(draw))],
    lambda draw: [NodesFull(*_span(draw), workload=draw.choice(["shop/web", "shop/api"]))],
    lambda draw: [QuotaUsedUp(*_span(draw), workload=draw.choice(["shop/web", "shop/api"]))],
    lambda draw: [Reinstalled(*_span(draw))],
    lambda draw: [DiskFull(*_span(draw))],
    lambda draw: [DamagedJournal(*_span(draw))],
    lambda draw: [Suspended(*_span(draw))],
    lambda draw: [Suspended(start := _span(draw)[0], start + draw.choice([8.0, 12.0, 20.0, 45.0]))],
    _still_in_a_tick,
    _away,
    _away,
    _no_pods_told,
    lambda draw: [Flood(_span(draw)[0])],
    lambda draw: [ForeignPods(_span(draw)[0], workload=draw.choice(["shop/web", "shop/api"]))],
    lambda draw: [BadMetrics(*_long(draw), "shop/web", draw.choice(BLIND))],
    lambda draw: [BadMetrics(*_span(draw), "shop/api", FaultKind.LATE, draw.choice([60.0, 150.0]))],
    lambda draw: [SpoiledMetrics(*_long(draw), "shop/web", draw.choice(list(Spoiling)))],
]


def _lost(draw: random.Random) -> list[Fault]:
    """What was lost is told again when the stream is opened anew: in the moment of the cut nobody's version is known.

    A second later somebody may have heard something newer, go on from there, and never list again.
    """
    start, end = _span(draw)
    plural = draw.choice(FEEDS)
    return [LostEvents(start, end, plural, 0.5), CutWatches(end), Compacted(end)]


def names_of(fault: Fault) -> tuple[str, ...]:
    """Its kind, and its kind with what it is about."""
    kind = type(fault).__name__
    about = (getattr(fault, name, "") for name in ("plural", "path"))
    return (kind, *(f"{kind} {word}" for word in about if word))


def last_fault_s(faults: tuple[Fault, ...]) -> float:
    return max(map(over_s, faults), default=0.0)


def _evil(name: str, spec: dict[str, Any], **meta: Any) -> dict[str, Any]:
    found = autoscaler(f"evil/{name}", **(_ref("bad") | spec))  # the one workload that the tenant has
    return found | {"metadata": found["metadata"] | meta}


def _other(api_version: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    notes = {"predictive": "true", "trimtab.dev/min-replicas": "99999999999"}
    meta = {"name": name, "namespace": "evil", "annotations": notes}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}


def _ref(name: str, kind: str = "Deployment", api: str = "apps/v1") -> dict[str, Any]:
    return {"scaleTargetRef": {"apiVersion": api, "kind": kind, "name": name}}


def _metric(**metric: Any) -> dict[str, Any]:
    return {"metrics": [metric]}


_AVERAGE = {"type": "AverageValue", "averageValue": "1"}
_DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment"}
SPYING: dict[str, Any] = {
    "describedObject": {"apiVersion": "v1", "kind": "Namespace", "name": "vault"},
    "metric": {"name": "load"},
    "target": {"type": "Value", "value": "1"},
}
ADOPTED: dict[str, Any] = {
    "targetRef": _DEPLOYMENT | {"name": "safe", "namespace": "vault"},
    "type": "Replicas",
    "adoptionType": "Auto",
}
CURIOUS: dict[str, Any] = {
    "type": "Replicas",
    "completionStrategy": {"completionStrategyType": "Periodical", "periodSeconds": 60},
    "resourceSelectors": [_DEPLOYMENT | {"name": "safe", "namespace": "vault"}, _DEPLOYMENT],
}
VAULT = "../../../../../apis/apps/v1/namespaces/vault/deployments/safe"
CLIMBING = {"apiVersion": "v1", "kind": "Service", "name": VAULT}
HOSTILE: list[dict[str, Any]] = [
    _evil("climbs", _ref(VAULT) | {"minReplicas": 0}, annotations={"trimtab.dev/pin": "0"}),
    _evil("other-kind", _ref("safe", api="../api/v1/pods")),
    _evil("absent", _ref("nobody")),
    _evil("own", _ref("bad", "Autoscaler", "trimtab.dev/v1alpha1")),
    _evil("long", _metric(type="Prometheus", prometheus={"query": "x" * 5000, "target": _AVERAGE})),
    _evil(
        "many",
        {
            "metrics": [
                {"type": "External", "external": {"metric": {"name": f"m{n}"}, "target": _AVERAGE}} for n in range(60)
            ]
        },
    ),
    _evil("horizon", {"forecast": {"model": "linear", "horizon": "300000h"}}),
    _evil("every", _metric(type="Prometheus", prometheus={"query": '{__name__=~".+"}', "target": _AVERAGE})),
    _evil("typed", {"metrics": 7, "maxReplicas": "many"}),
    _evil("bad", {"minReplicas": 0, "maxReplicas": 2**31 - 1}, annotations={"trimtab.dev/pin": "999999999999"}),
    _evil("named", _ref("bad\n2026-01-01 forged line")),
    _evil("reaches", _metric(type="Object", object=SPYING | {"describedObject": CLIMBING})),
    _evil("spy", _metric(type="Object", object=SPYING)),
    _other("autoscaling/v2", "HorizontalPodAutoscaler", "floor", autoscaler("evil/bad")["spec"]),
    _other("analysis.crane.io/v1alpha1", "Recommendation", "forged", ADOPTED),
    _other("analysis.crane.io/v1alpha1", "Analytics", "curious", CURIOUS),
    _other("v1", "ConfigMap", "trimtab-usage.autoscaler.shop.web", {}) | {"data": {"main": "[]", "demand": "[]"}},
]
FORGED = {
    "memory": {"is": "Kept", "version": 1, "core": {"is": "Memory", "up_at": 4e9, "down_at": 4e9}},
    "conditions": [{"status": 7}, "odd"],
    "recommendedValue": "scaleStrategy: Auto\nmaxReplicas: 1\n",
}
