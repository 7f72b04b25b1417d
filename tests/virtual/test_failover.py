"""A failover is seen by nobody: the new leader makes no write that an undisturbed twin on the same load would not make.

Whoever leads is killed, told to end, or stands still, at a random moment, under steady load or on a ramp. What the new
leader then writes is compared with a twin that nothing happened to; decreases may come one window later.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import sin
from typing import Any, NamedTuple

import pytest

from tests.virtual.cluster import START, Cluster, autoscaler
from tests.virtual.faults import Killed, Refusing, Suspended
from tests.virtual.fields import Object
from tests.virtual.test_restart import METRICS, of_kind
from tests.virtual.test_tuning import BEFORE_NIGHT, twice_the_target
from trimtab.quantity import parse_quantity

WEB, DAY_S, TICK_S, WINDOW_S, FIRST_PODS = "shop/web", 86400.0, 15.0, 300.0, 14
LEASE = "trimtab-system/trimtab"
LEASE_S = (15.0, 10.0, 2.0)
RAMP_S, RAMP_LASTS_S, LASTS_S = 900.0, 900.0, 2400.0
BETWEEN_S = (850.0, 1700.0)  # then who leads comes to an end
ENDS, LOADS = ("killed", "told to end", "frozen"), ("steady", "ramp")
SOON_S = 3 * TICK_S  # both tick every 15 s, not at the same moments, and look at minutes
QUERY = [
    {"type": "Prometheus", "prometheus": {"query": WEB, "target": {"type": "AverageValue", "averageValue": "700m"}}}
]

Write = tuple[float, float]  # seconds from the start, how much


class Feature(NamedTuple):
    """`slack`: a forecast on a ramp is a little different from one moment to the next, by this share of pods."""

    manifest: Object
    slack: float = 0.0
    start: float = START


def scaled(percent: int = 60, **spec: Any) -> Object:
    return autoscaler(WEB, percent, **({"maxReplicas": 60} | spec))


def ahead(model: str, **spec: Any) -> Feature:
    return Feature(scaled(forecast={"model": model, "horizon": "5m"}, **spec), slack=0.2)


def annotated() -> Object:
    made = scaled() | {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    made["metadata"]["annotations"] = {"predictive": "true"}
    return made


AT_ONCE = {"scaleDown": {"stabilizationWindowSeconds": 0}}
DSP = {"predictionWindowSeconds": 3600, "predictionAlgorithm": {"algorithmType": "dsp"}}
PRICED: dict[str, Any] = {"metrics": QUERY, "objective": {"priority": "balanced"}}
WEIGHTS = {"weights": {"intervals": [{"vpaWeight": 0.6, "startReplicaCount": 3}, {"vpaWeight": 0}]}}
IN_PLACE = {"apply": "InPlace"}
EVERY_HOUR = [{"name": "quarter", "start": "15 * * * *", "end": "25 * * * *", "minReplicas": 18}]
OF_CRANE = of_kind("autoscaling.crane.io/v1alpha1", "EffectiveHorizontalPodAutoscaler", metrics=METRICS, prediction=DSP)
FEATURES = {
    "target": Feature(scaled()),
    "target without a window": Feature(scaled(behavior=AT_ONCE)),
    "line": ahead("linear"),
    "line without a window": ahead("linear", behavior=AT_ONCE),
    "seasonal": ahead("seasonal"),
    "seasonal without a window": ahead("seasonal", metrics=QUERY, behavior=AT_ONCE),
    "Holt-Winters": ahead("holtWinters", metrics=QUERY),
    "learned": ahead("learned", metrics=QUERY),
    "objective": Feature(scaled(**PRICED), slack=0.2),
    "objective of cpu": Feature(scaled(objective={"priority": "balanced"}), slack=0.3),
    "objective and bridge": Feature(scaled(bridge={"maxFactor": "1.5"}, **PRICED), slack=0.2),
    "bridge": Feature(scaled(bridge={"maxFactor": "1.5"})),
    "vertical": Feature(scaled(metrics=[], minReplicas=10, maxReplicas=10, vertical=IN_PLACE), slack=0.12),
    "weights": Feature(scaled(vertical=IN_PLACE, blend=WEIGHTS), slack=0.1),
    "schedule": Feature(scaled(schedules=EVERY_HOUR)),
    "tuned": Feature(scaled(20, tuning={"mode": "Nightly"}), slack=0.1, start=BEFORE_NIGHT),
    "EffectiveHPA": Feature(OF_CRANE, slack=0.2),
    "annotated HPA": Feature(annotated(), slack=0.2),
}


class Scene(NamedTuple):
    feature: str
    load: str
    remembers: bool  # Prometheus has the days before


class Life(NamedTuple):
    """What operators wrote of one workload, by what it was, and when the last one began to lead."""

    writes: dict[str, list[Write]]
    led_at: float


def load_of(kind: str) -> Callable[[float], float]:
    """The same every day: eight pods of load, or from one minute on three times that, within a quarter of an hour."""

    def load(seconds: float) -> float:
        at = seconds % DAY_S
        up = min(1.0, max(0.0, (at - RAMP_S) / RAMP_LASTS_S)) if kind == "ramp" and at < DAY_S / 2 else 0.0
        return (8.0 + 16.0 * up) * (1.0 + 0.01 * sin(at * 1.2345) * sin(at * 0.0537))

    return load


def lived(scene: Scene, end: str = "", at_s: float = 0.0) -> Life:
    feature, load = FEATURES[scene.feature], load_of(scene.load)
    with Cluster(seed=1, operators=2, lease_s=LEASE_S, start=feature.start) as cluster:
        assert cluster.prometheus is not None
        if scene.remembers:
            cluster.prometheus.past[WEB] = cluster.prometheus.used[WEB] = load
        cluster.tuner = twice_the_target
        cluster.deploy(WEB, replicas=FIRST_PODS, load=load, startup_s=60.0)
        cluster.apply(feature.manifest)
        cluster.run(minutes=5)
        leader = cluster.get("Lease", LEASE)["spec"]["holderIdentity"]
        if end == "killed":
            cluster.faults(Killed(at_s, who=leader))
        elif end == "frozen":
            cluster.faults(Suspended(at_s, at_s + 90.0, who=leader))
        elif end:
            cluster.loop.call_at(at_s, cluster.stop_operator, leader)
        cluster.run(seconds=LASTS_S - 300.0)
        return Life(
            {"pods": [(at, float(count)) for at, count in cluster.writes(WEB)], **written(cluster)}, led(cluster)
        )


twin_of = cache(lived)


def written(cluster: Cluster) -> dict[str, list[Write]]:
    """Numbers of pods, their sizes, and floors of HPAs."""
    found: dict[str, list[Write]] = {"cpu": [], "memory": [], "minReplicas": []}
    found["pods"] = [(at, float(count)) for at, count in cluster.writes(WEB)]
    for each in cluster.audit(verb="patch"):
        if each.status >= 300 or not each.who.startswith("operator") or not each.body:
            continue
        at, spec = each.at - cluster.start, each.body.get("spec", {})
        if each.path.endswith("/resize"):
            for name, amount in spec["containers"][0]["resources"].get("requests", {}).items():
                found[name].append((at, parse_quantity(amount)))
        elif "minReplicas" in spec:
            found["minReplicas"].append((at, float(spec["minReplicas"])))
    return found


def led(cluster: Cluster) -> float:
    holder, since_s = "", 0.0
    for each in cluster.audit(path="/leases"):
        now = (each.body or {}).get("spec", {}).get("holderIdentity")
        if each.status < 300 and now and now != holder:
            holder, since_s = now, each.at - cluster.start
    return since_s


def values_of(writes: Sequence[Write], start_s: float, end_s: float) -> list[float]:
    """All that it was between these moments."""
    times = [at for at, _ in writes]
    begin, end = bisect_right(times, start_s), bisect_right(times, end_s)
    return [value for _, value in writes[max(0, begin - 1) : end]]


def strays(mine: Sequence[Write], twin: Sequence[Write], led_at: float, slack: float) -> Iterator[str]:
    """Writes of the new leader that its twin would not have made: more than that had by then, or less than it had."""
    for at, value in mine:
        if at < led_at:
            continue
        known = values_of(twin, at - WINDOW_S - SOON_S, at + SOON_S)
        if not known or not min(known) * (1.0 - slack) <= value <= max(known) * (1.0 + slack):
            yield f"{value:g} at {at:.0f} s, where the twin wrote {known}"


def check(scene: Scene, end: str, at_s: float) -> None:
    twin, life = twin_of(scene), lived(scene, end, at_s)
    said = f"{scene}, {end} at {at_s:.0f} s, led again at {life.led_at:.0f} s"
    assert 0.0 < life.led_at - at_s < 40.0, said
    slack = FEATURES[scene.feature].slack if scene.load == "ramp" else 0.0
    for what, mine in life.writes.items():
        found = list(strays(mine, twin.writes[what], life.led_at, slack))
        assert not found, f"{said}: {what}: {found}"
    first = (0.0, float(FIRST_PODS))
    before = values_of([first, *twin.writes["pods"]], life.led_at - TICK_S, life.led_at - TICK_S)[-1]
    soon = values_of([first, *life.writes["pods"]], 0.0, life.led_at + 2 * TICK_S + 1.0)[-1]
    assert soon >= before * (1.0 - slack), f"{said}: {soon:g} pods two ticks later, the twin had {before:g}"


def drawn(seed: int) -> tuple[Scene, str, float]:
    draw, names = random.Random(seed), list(FEATURES)
    scene = Scene(names[seed % len(names)], LOADS[seed // len(names) % 2], draw.random() < 0.5)
    return scene, draw.choice(ENDS), draw.uniform(*BETWEEN_S)


def test_a_new_leader_of_everything_writes_what_an_undisturbed_one_does() -> None:
    for seed in range(0, 2 * len(FEATURES), 5):
        check(*drawn(seed))


@pytest.mark.many
@pytest.mark.parametrize("seed", range(4 * len(FEATURES)))
def test_so_it_is_at_any_moment(seed: int) -> None:
    check(*drawn(seed))


# --- what a new leader does until it knows what the one before knew ---------------------------------------------------

KILLED_S = 900.0


def priced_below_its_target(cluster: Cluster, load: Callable[[float], float]) -> None:
    """The price gives half as many pods as the target would; the leader is killed after a quarter of an hour."""
    assert cluster.prometheus is not None
    cluster.prometheus.used[WEB] = load
    cluster.deploy(WEB, replicas=FIRST_PODS, load=load, startup_s=60.0)
    cluster.apply(scaled(30, objective={"priority": "savings"}))
    cluster.run(seconds=KILLED_S - 60.0)
    cluster.faults(Killed(KILLED_S, who=cluster.get("Lease", LEASE)["spec"]["holderIdentity"]))


def written_since(cluster: Cluster, since_s: float) -> list[Write]:
    return [(at, count) for at, count in cluster.writes(WEB) if at > since_s]


def test_the_target_does_not_take_the_place_of_a_price_that_is_not_known_yet() -> None:
    with Cluster(seed=1, operators=2, lease_s=LEASE_S) as cluster:
        priced_below_its_target(cluster, load_of("steady"))
        cluster.run(minutes=10)
        assert led(cluster) > KILLED_S and written_since(cluster, KILLED_S) == []
        assert cluster.replicas(WEB) < 0.75 * 8.0 / 0.3


def moving(load: Callable[[float], float]) -> Callable[[float], float]:
    """The same, a little up and down: of a load that never moves nothing is forecast."""
    return lambda seconds: load(seconds) * (1.0 + 0.03 * math.sin(seconds / 97.0))


def test_history_that_cannot_be_read_is_waited_for_five_minutes() -> None:
    with Cluster(seed=1, operators=2, lease_s=LEASE_S) as cluster:
        priced_below_its_target(cluster, moving(load_of("steady")))
        cluster.faults(Refusing(KILLED_S, plural="configmaps", methods=("GET",), status=503))
        cluster.run(minutes=5)
        assert cluster.conditions("Autoscaler", WEB)["PredictionReady"] == ("False", "PredictFailed")
        cluster.run(minutes=3)
        assert cluster.conditions("Autoscaler", WEB)["PredictionReady"] == ("True", "PredictSucceed")


def test_a_new_leader_lets_no_pod_of_an_objective_go_for_one_window() -> None:
    with Cluster(seed=1, operators=2, lease_s=LEASE_S) as cluster:
        priced_below_its_target(cluster, moving(lambda seconds: 12.0 if seconds < KILLED_S else 4.0))
        cluster.run(minutes=15)
        first_s = next(at for at, count in written_since(cluster, KILLED_S) if count < 12.0)
        assert led(cluster) + WINDOW_S <= first_s <= led(cluster) + WINDOW_S + 8 * TICK_S
