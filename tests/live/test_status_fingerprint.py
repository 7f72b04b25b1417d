"""What is said of a tick is what is said of it without its times; where that stays, nothing is made up again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.live.build import AT, AUTOSCALERS, custom
from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.faults import BadMetrics
from trimtab.core.explain import DecisionCondition
from trimtab.live.object_tick import ObjectTick
from trimtab.live.tell import conditions
from trimtab.live.tell.say import status_fingerprint
from trimtab.live.tell.status import STATUS
from trimtab.live.tell.status_writer import MEASURED_EVERY_S, StatusWriter
from trimtab.wire.objects import Custom

REST_S = 600.0
READY = DecisionCondition(type="Ready", status=True, reason="Understood", message="served")


def hvpa(name: str) -> dict[str, Any]:
    namespace, _, short = name.partition("/")
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": short}
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    template = {"maxReplicas": 9, "metrics": [{"type": "Resource", "resource": cpu}]}
    stages = [{"vpaWeight": 0, "lastReplicaCount": 2}, {"vpaWeight": 0.5, "startReplicaCount": 3}]
    spec = {"targetRef": target, "hpaTemplate": template, "weightBasedScalingIntervals": stages}
    meta = {"name": short, "namespace": namespace}
    return {"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "Hvpa", "metadata": meta, "spec": spec}


def fleet(cluster: Cluster) -> None:
    """Of every kind that has a status, some of them restless."""
    specs: dict[str, dict[str, Any]] = {
        "plain": {},
        "ahead": {"forecast": {"model": "linear"}},
        "sized": {"vertical": {"apply": "InPlace"}},
        "bridged": {"bridge": {"maxFactor": "1.5"}},
        "shadow": {"mode": "Shadow"},
        "tuned": {"tuning": {"mode": "Nightly"}, "forecast": {"model": "seasonal"}},
    }
    for number, (name, spec) in enumerate(specs.items()):
        period_s = 1200.0 + 300 * number
        restless = lambda seconds, period_s=period_s: 0.25 if seconds % period_s < period_s / 2 else 1.0  # noqa: E731
        cluster.deploy(f"shop/{name}", replicas=2, load=restless, startup_s=60.0)
        cluster.apply(autoscaler(f"shop/{name}", **spec))
    for name in ("crane", "both"):
        cluster.deploy(f"shop/{name}", replicas=2, load=lambda seconds: 0.25 if seconds % 900 < 450 else 0.8)
    crane = {"apiVersion": "autoscaling.crane.io/v1alpha1", "kind": "EffectiveHorizontalPodAutoscaler"}
    cluster.apply(autoscaler("shop/crane") | crane, hvpa("shop/both"))


def test_the_times_of_a_tick_are_in_no_status() -> None:
    quiet = 0

    def compare(ticks: Sequence[ObjectTick]) -> None:
        nonlocal quiet
        for tick in ticks:
            if (still := status_fingerprint(tick)) is None:
                continue
            make, quiet = STATUS[tick.subject.name.kind], quiet + 1
            assert make(still) == make(tick)
            assert conditions.of_tick(still) == conditions.of_tick(tick)

    with Cluster(seed=3) as cluster:
        cluster.on_tick.append(compare)
        fleet(cluster)
        cluster.faults(BadMetrics(1200.0, 1500.0, workload="shop/plain"), BadMetrics(4000.0, 4100.0, "shop/sized"))
        cluster.run(hours=2)
    assert quiet > 1000


def test_at_rest_no_status_is_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counted(tick: ObjectTick) -> dict[str, Any]:
        made.append(tick.subject.name.name)
        return usual(tick)

    usual = STATUS["Autoscaler"]
    monkeypatch.setitem(STATUS, "Autoscaler", counted)
    with Cluster(seed=1) as cluster:
        cluster.deploy("shop/web", replicas=2, load=0.25)
        cluster.apply(autoscaler("shop/web"))
        cluster.run(seconds=REST_S)
        made.clear()
        cluster.run(seconds=REST_S)
        assert made == []
        before = cluster.get("Autoscaler", "shop/web")["status"]["targets"]
        cluster.load("shop/web", 0.3)  # another percentage is measured, and told
        cluster.run(seconds=60)
        assert made and cluster.get("Autoscaler", "shop/web")["status"]["targets"] != before


class Words:
    """A status writer whose writes go nowhere."""

    def __init__(self) -> None:
        self.writer = StatusWriter(self)  # type: ignore[arg-type]

    async def apply(self, *_: object) -> Custom:
        return custom()


def test_what_was_said_is_not_what_is_said_once_another_word_was_written() -> None:
    words, about, first, second = Words(), custom(), {"currentReplicas": 3}, {"currentReplicas": 4}

    def say(status: dict[str, Any], at: float) -> None:
        asyncio.run(words.writer.say(AUTOSCALERS, about, status, [READY], at))

    say(first, AT)
    assert not words.writer.has_said(about, "first"), "nobody has compared it yet"
    assert not words.writer.is_news(about, first, [READY], AT + 15, "first") and words.writer.has_said(about, "first")
    assert not words.writer.has_said(about, "second")
    say(second, AT + MEASURED_EVERY_S)
    assert not words.writer.has_said(about, "first")
    assert words.writer.is_news(about, first, [READY], AT + 60, "first") and not words.writer.has_said(about, "first")


def test_another_status_on_the_object_is_compared_anew_where_we_have_said_nothing() -> None:
    words, kept = Words(), dict[str, Any](currentReplicas=3, conditions=[])
    about, later = custom(**kept), custom(**kept)
    assert not words.writer.is_news(about, kept, [], AT, "it") and words.writer.has_said(about, "it")
    assert not words.writer.has_said(later, "it")
