"""The twin of HPA: 20 generated specs under the same load, once served by the built-in controller, once by us.

Each load goes up, stays and comes down; when the way up is over, pods of some workloads fail, become unready or lose
their metrics, the same ones on both sides. Every write of both is taken from the API server's audit log. At every
moment, whichever of the two is looked at, the other one was within 1 pod of it within

- 1 sync, where metrics are read when they are asked for (Pods, Object, External), though the two sync half a period
  apart;
- 1 sync and 1 scrape, where they come from metrics-server: a pod counts when two scrapes have seen it, so one that is
  ready a moment later may count a scrape later, and a step becomes two; sizes between two that the other one had count
  as its own. At 98 of 100 moments of all 20, 1 sync alone is enough, and no size is lent.

One second is added for a busy machine. Who syncs before a scrape where the other one syncs after it is a scrape late in
every round anew, as a second built-in controller would be; so both are made to sync after the same scrapes.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from pathlib import Path
from typing import Any

import pytest

from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.bed.parts import HPA_SYNC_PERIOD_S, METRICS_RESOLUTION_S
from tests.e2e.conftest import namespaces
from tests.live.running import Running, autoscaler, install_crds

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
FRESH, SCRAPED = 10, 10  # specs with metrics that are read when they are asked for, and with those of metrics-server
LEAST, MOST = 2, 12
UP_S, HURT_S, DOWN_S, HEAL_S, LASTS_S = 5.0, 75.0, 100.0, 140.0, 180.0  # hurt when the way up is over
FATES = ("Failed", "Unready", "Unmeasured")
SYNC_S = HPA_SYNC_PERIOD_S + 1.0  # the built-in controller waits for its period after a sync is done
APART = 0.02  # of all moments, for one sync
AFTER_SCRAPE_S = 0.5  # it can be read by then, and there is time for pods to be ready before the next one
APPLY_S = 0.8  # until kubectl has created an HPA
LOOK_EVERY_S = 0.1
MOMENTS = [LOOK_EVERY_S * index for index in range(round(LASTS_S / LOOK_EVERY_S))]

Step = tuple[float, int]  # seconds since the load began, replicas from then on


@dataclass(frozen=True, eq=False)
class Twin:
    """One generated case; `fresh`: no scrape lies between the load and who reads it."""

    name: str
    fresh: bool
    spec: dict[str, Any]
    load: dict[str, Any]
    ready_after: str
    fate: str | None
    victims: int

    @property
    def before(self) -> dict[str, Any]:
        """The load before it moves."""
        return {word: points[0][1] for word, points in self.load.items()}


@pytest.fixture
def pair(bed: Bed) -> Iterator[tuple[str, str]]:
    with namespaces(bed, "twin-hpa", "twin-ours") as (theirs, ours):
        yield theirs, ours


# Cases.


def generate(dice: random.Random) -> list[Twin]:
    return [twin(dice, f"web-{index}", index < FRESH) for index in range(FRESH + SCRAPED)]


def twin(dice: random.Random, name: str, fresh: bool) -> Twin:
    metrics, load = fresh_metric(dice, name) if fresh else usage_metrics(dice)
    spec = {"minReplicas": dice.choice([1, LEAST]), "maxReplicas": MOST, "metrics": metrics}
    if dice.random() < 0.8:
        spec["behavior"] = behavior(dice)
    ready_after = dice.choice(["200ms", "200ms", "6s"])
    return Twin(name, fresh, spec, load, ready_after, dice.choice([None, *FATES]), dice.choice([1, 2]))


def behavior(dice: random.Random) -> dict[str, Any]:
    """No period ends with a sync: whether the built-in controller then waits for another is a matter of chance."""
    down: dict[str, Any] = {"stabilizationWindowSeconds": dice.choice([0, 8, 18])}
    if dice.random() < 0.5:
        down |= {"policies": [{"type": "Pods", "value": dice.choice([3, 5]), "periodSeconds": 13}]}
    up: dict[str, Any] = {"stabilizationWindowSeconds": dice.choice([0, 0, 7])}
    if dice.random() < 0.5:
        up |= {"policies": [{"type": "Percent", "value": 100, "periodSeconds": 13}]}
    return {"scaleUp": up, "scaleDown": down}


def usage_metrics(dice: random.Random) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """CPU by utilisation or value, sometimes memory too."""
    percent = {"type": "Utilization", "averageUtilization": dice.choice([40, 50, 75])}
    target = dice.choice([percent, {"type": "AverageValue", "averageValue": dice.choice(["100m", "150m"])}])
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    if dice.random() < 0.3:
        memory = {"type": "AverageValue", "averageValue": "300Mi"}
        metrics.append({"type": "Resource", "resource": {"name": "memory", "target": memory}})
    cores = up_and_down(dice, dice.uniform(0.1, 0.4), dice.uniform(0.8, 2.0))
    return metrics, {"cores": cores, "memory_bytes": up_and_down(dice, 2**28, dice.uniform(1, 8) * 2**28)}


def fresh_metric(dice: random.Random, name: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What the pods, an object or somebody outside says."""
    kind = dice.choice(["Pods", "Object", "External"])
    average = kind == "Pods" or dice.random() < 0.6
    target = {"type": "AverageValue", "averageValue": "10"} if average else {"type": "Value", "value": "10"}
    # A value for the whole does not fall with more pods: above its target they multiply with every sync.
    low, high = (dice.uniform(8, 20), dice.uniform(60, 110)) if average else (dice.uniform(3, 6), dice.uniform(18, 30))
    curve = up_and_down(dice, low, high)
    metric: dict[str, Any] = {"name": "requests_per_second"}
    if kind == "Pods":
        return [{"type": kind, "pods": {"metric": metric, "target": target}}], {"rate": curve}
    if kind == "Object":
        described = {"apiVersion": "v1", "kind": "Service", "name": name}
        return [{"type": kind, "object": {"describedObject": described, "metric": metric, "target": target}}], {
            "rate": curve
        }
    metric = {"name": "queue_length", "selector": {"matchLabels": {"app": name}}}
    return [{"type": kind, "external": {"metric": metric, "target": target}}], {"queue": curve}


def up_and_down(dice: random.Random, low: float, high: float) -> list[list[float]]:
    """Steps, not all at once: on a ramp every moment is another load."""
    up, down = UP_S + dice.uniform(0, 10), DOWN_S + dice.uniform(0, 10)
    return [[0, low], [up, low], [up + 0.1, high], [down, high], [down + 0.1, low]]


# What happens to them.


def start(bed: Bed, pair: tuple[str, str], twins: list[Twin]) -> None:
    """The workloads of both and our objects; the HPAs come when it is their moment."""
    for one in twins:
        annotations = {"ready-after": one.ready_after}
        bed.apply(*(deployment(each, one.name, replicas=LEAST, annotations=annotations) for each in pair))
        for each in pair:
            bed.load(each, one.name, **one.before)
    bed.apply(*(autoscaler(pair[1], one.name, **one.spec) for one in twins))


def hpa(namespace: str, one: Twin) -> dict[str, Any]:
    made = autoscaler(namespace, one.name, **one.spec)
    return made | {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}


def scrape_seen(bed: Bed, namespace: str) -> float:
    """When a scrape of metrics-server can be read; the others come before and after it in its own step."""
    path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods"

    def newest() -> str:
        stamp: str = max(one["timestamp"] for one in json.loads(bed.kubectl("get", "--raw", path))["items"])
        return stamp

    known = eventually(newest, 60)
    eventually(lambda: newest() != known, 2 * METRICS_RESOLUTION_S, "metrics-server scrapes")
    return time.time()


def wait(until: float) -> float:
    time.sleep(max(0.0, until - time.time()))
    return until


def next_place(place: float, step_s: float, after_s: float = 0.0) -> float:
    """The next time, from so many seconds on, that lies whole steps from `place`."""
    return place + step_s * ceil((time.time() + after_s - place) / step_s)


def keep_step(bed: Bed, pair: tuple[str, str], twins: list[Twin], running: Running) -> float:
    """Let both sync just after the same scrapes: when either was started is chance. The moment from which they do.

    Ours keeps its ticks' places until it has missed two of them; an HPA's first sync is a period after its creation.
    Those that need no scrape come half a period later, so that they are as far from ours as they can be.
    """
    place = scrape_seen(bed, pair[0]) + AFTER_SCRAPE_S
    assert running.process is not None
    running.process.send_signal(signal.SIGSTOP)
    wait(next_place(place, HPA_SYNC_PERIOD_S, after_s=2.2 * HPA_SYNC_PERIOD_S))
    running.process.send_signal(signal.SIGCONT)
    wait(next_place(place - APPLY_S, HPA_SYNC_PERIOD_S))
    bed.apply(*(hpa(pair[0], one) for one in twins if not one.fresh))
    wait(next_place(place - APPLY_S + HPA_SYNC_PERIOD_S / 2, HPA_SYNC_PERIOD_S))
    bed.apply(*(hpa(pair[0], one) for one in twins if one.fresh))
    return place


def hurt(bed: Bed, pair: tuple[str, str], twins: list[Twin]) -> None:
    """The oldest pods of each workload meet its fate; those without metrics are the last ones to be deleted."""
    for namespace in pair:
        pods = sorted(bed.get("pods", "-n", namespace)["items"], key=lambda pod: pod["metadata"]["creationTimestamp"])
        for fate in FATES:
            names = [name for one in twins if one.fate == fate for name in named(pods, one.name)[: one.victims]]
            words = [f"bed.trimtab.dev/fate={fate}"]
            if fate == "Unmeasured":
                words.append("controller.kubernetes.io/pod-deletion-cost=100")
            bed.kubectl("annotate", "pods", "-n", namespace, *names, *words)


def named(pods: list[dict[str, Any]], app: str) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods if pod["metadata"]["labels"]["app"] == app]


def heal(bed: Bed, pair: tuple[str, str]) -> None:
    for namespace in pair:
        with suppress(subprocess.CalledProcessError):  # one that was deleted meanwhile
            bed.kubectl("annotate", "pods", "-n", namespace, "--all", "bed.trimtab.dev/fate-")


def counts(bed: Bed, namespace: str) -> dict[str, int]:
    return {one["metadata"]["name"]: one["spec"]["replicas"] for one in bed.get("deploy", "-n", namespace)["items"]}


def rested(bed: Bed, pair: tuple[str, str]) -> bool:
    """Every object of both has read its metrics, and the replicas have rested for a scrape and a sync."""
    for kind, namespace in zip(("hpa", "autoscaler"), pair, strict=True):
        for one in bed.get(kind, "-n", namespace)["items"]:
            kinds = {each["type"]: each["status"] for each in one.get("status", {}).get("conditions", [])}
            assert kinds.get("ScalingActive") == "True", (namespace, one["metadata"]["name"], kinds)
    before = [counts(bed, each) for each in pair]
    time.sleep(METRICS_RESOLUTION_S + HPA_SYNC_PERIOD_S)
    return [counts(bed, each) for each in pair] == before


# What is compared.


def trajectories(bed: Bed, namespace: str, first: dict[str, int], began: float) -> dict[str, list[Step]]:
    """Every write of a scale, when it came to the API server."""
    found: dict[str, list[Step]] = {name: [(float("-inf"), count)] for name, count in first.items()}
    for event in bed.audit():
        about = event["objectRef"]
        written = event["verb"] in ("update", "patch") and event["responseStatus"]["code"] == 200
        if written and about.get("subresource") == "scale" and about.get("namespace") == namespace:
            at = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp() - began
            if at > 0:
                found[about["name"]].append((at, event["requestObject"]["spec"]["replicas"]))
    return found


def near(steps: list[Step], at: float, slack_s: float) -> set[int]:
    """All that it was within the slack of this moment."""
    first = bisect_right(steps, (at - slack_s, MOST + 1)) - 1
    last = bisect_right(steps, (at + slack_s, MOST + 1))
    return {count for _, count in steps[first:last]}


def apart(one: list[Step], other: list[Step], slack_s: float, between: bool) -> list[float]:
    """The moments at which one was further than 1 pod from everything that the other was within the slack."""

    def away(at: float) -> int:
        sizes = near(other, at, slack_s)
        sizes = set(range(min(sizes), max(sizes) + 1)) if between else sizes
        return min(abs(near(one, at, 0).pop() - size) for size in sizes)

    return [at for at in MOMENTS if away(at) > 1]


def strays(them: list[Step], us: list[Step], slack_s: float = SYNC_S, between: bool = False) -> list[float]:
    """Both ways: neither has a turn of its own."""
    return sorted({*apart(them, us, slack_s, between), *apart(us, them, slack_s, between)})


def told(one: Twin, them: list[Step], us: list[Step]) -> str:
    lines = [" ".join(f"{at:.1f}:{count}" for at, count in steps) for steps in (them, us)]
    away_s = LOOK_EVERY_S * len(strays(them, us))
    return f"{one.name} ({one.fate}), {away_s:.1f} s beyond one sync\n  HPA  {lines[0]}\n  ours {lines[1]}"


def test_twenty_specs_follow_the_built_in_controller(bed: Bed, pair: tuple[str, str], tmp_path: Path) -> None:
    install_crds(bed)
    twins = generate(random.Random(20261115))
    # HPA has no breaker that doubts the metrics when half of all workloads shrink at once.
    with Running(bed, pair[1], tmp_path, "--tick", f"{HPA_SYNC_PERIOD_S}s", "--breaker-window", "0s") as running:
        start(bed, pair, twins)
        place = keep_step(bed, pair, twins, running)
        eventually(lambda: rested(bed, pair), 120, "both controllers read metrics", every_s=1)
        first = {each: counts(bed, each) for each in pair}
        began = wait(next_place(place, METRICS_RESOLUTION_S))
        for one in twins:
            for each in pair:
                bed.load(each, one.name, **one.load)
        wait(began + HURT_S)
        hurt(bed, pair, twins)
        wait(began + HEAL_S)
        heal(bed, pair)
        wait(began + LASTS_S)
    them, us = (trajectories(bed, each, first[each], began) for each in pair)
    paths = {one: (them[one.name], us[one.name]) for one in twins}
    said = "\n".join(told(one, *paths[one]) for one in twins)
    print(said)
    assert all(max(count for _, count in steps) >= MOST / 2 for steps in them.values()), f"the load moves all\n{said}"
    beyond = {
        one.name: strays(*path, SYNC_S if one.fresh else SYNC_S + METRICS_RESOLUTION_S, between=not one.fresh)
        for one, path in paths.items()
    }
    assert not any(beyond.values()), f"{beyond}\n{said}"
    assert sum(len(strays(*path)) for path in paths.values()) <= APART * len(MOMENTS) * len(twins), said
