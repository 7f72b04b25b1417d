"""Tuning over several nights: what is in force, what is said, what a restart keeps and what goes back by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec.structs import replace

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.faults import Killed, Refusing
from tests.virtual.machines import OWN_NAMESPACE
from tests.virtual.test_objective import MORNING_S, RAMP_S, RATE, STARTUP_S, every_day
from trimtab.core.demand import keys_of
from trimtab.core.figures import Figures
from trimtab.core.forecast.demand_forecasts import DemandForecasts
from trimtab.core.nights import FIRST_SHARE, NightCase, Promise, TuningEvidence, Verdict, VerdictKind
from trimtab.journal_replay import replay
from trimtab.kinds import read
from trimtab.kinds.autoscaler import Autoscaler
from trimtab.policy import TunedSettings
from trimtab.series import Series
from trimtab.tune.night import find
from trimtab.wire.from_kubernetes import rfc3339

BEFORE_NIGHT = 1_750_038_300.0  # a Monday, a quarter to two
NIGHTLY = {"mode": "Nightly"}


def waves(seconds: float) -> float:
    """Twenty-minute waves between two and eight cores: a low target wastes, a high one is late."""
    return 5.0 + 3.0 * float(np.sin(seconds / 1200.0 * 2 * np.pi))


async def here(cases: Iterator[NightCase], count: int) -> list[Verdict]:
    """What the child process does, in this one."""
    return [find(case) for case in cases]


def tuned_cluster(cluster: Cluster, **spec: Any) -> None:
    """A workload with ten days behind it, and an operator that tunes in its own process."""
    cluster.tuner = here
    cluster.prometheus = None  # only our own checkpoint remembers
    cluster.deploy("shop/web", replicas=10, load=waves, startup_s=60.0)
    cluster.apply(autoscaler("shop/web", 20, **({"tuning": NIGHTLY} | spec)))
    cluster.apply(checkpoint(cluster))


def checkpoint(cluster: Cluster) -> dict[str, Any]:
    """The ten days, as an operator of before would have left them."""
    manifest = cluster.get("Autoscaler", "shop/web")
    kind = read({key: manifest[key] for key in ("apiVersion", "kind", "metadata", "spec")})
    assert isinstance(kind, Autoscaler)
    policy, uid, past = kind.to_policy(BEFORE_NIGHT), manifest["metadata"]["uid"], DemandForecasts()
    times = BEFORE_NIGHT - 300.0 * np.arange(10 * 288.0, 0.0, -1.0)
    values = np.array([waves(each - BEFORE_NIGHT) for each in times.tolist()])
    past.restore(uid, policy, keys_of(uid, policy)[0], Series(times, values), 300.0)
    labels = {"trimtab.dev/object-uid": uid, "trimtab.dev/object-namespace": "shop"}
    meta = {"name": "trimtab-usage.autoscaler.shop.web", "namespace": OWN_NAMESPACE, "labels": labels}
    data = {"demand.json": past.save(uid, policy, BEFORE_NIGHT).decode()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def said(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = cluster.get("Autoscaler", "shop/web")["status"].get("tuning", {})
    return found


def night(seed: int) -> Cluster:
    return Cluster(seed=seed, tick_s=300.0, start=BEFORE_NIGHT)


def test_a_night_switches_a_restart_keeps_it_and_a_worse_day_than_promised_takes_it_back() -> None:
    with night(1) as cluster:
        tuned_cluster(cluster)
        cluster.run(minutes=10)
        waiting = {"inForce": "as written", "verdict": "Waiting", "reason": "the first night begins at 02:00, UTC"}
        assert said(cluster) == waiting
        cluster.run(minutes=20)
        first = said(cluster)
        assert first["verdict"] == "Switched" and first["replaced"] == "target 20, tolerance 0.1, window 5m"
        assert first["evidence"]["days"] == 10
        assert float(first["evidence"]["after"]["j"]) < 0.98 * float(first["evidence"]["before"]["j"])
        assert cluster.events("shop/web").count("TuningSwitched") == 1
        cluster.faults(Killed(1900.0, back_after_s=60.0))
        cluster.load("shop/web", lambda seconds: 14.0 if seconds % 3600 < 600 else 2.0)
        cluster.run(hours=23)
        assert said(cluster)["inForce"] == first["inForce"] and said(cluster)["since"] == first["since"]
        cluster.run(hours=2)
        second = said(cluster)
        assert second["verdict"] == "WentBack" and second["inForce"] == "as written"
        assert "was promised" in second["reason"]
        assert cluster.events("shop/web").count("TuningWentBack") == 1
        targets = {act.policy.signals[0].percent for act in cluster.journal().acts("shop", "web")}  # type: ignore[union-attr]
        assert 20 in targets and len(targets) == 2, "what was in force is in the record"
        checked = replay(cluster.journal().path)
        assert checked.checked > 20 and not checked.differences


def test_advice_is_only_said_and_an_edit_ends_what_was_found() -> None:
    with night(2) as cluster:
        tuned_cluster(cluster, tuning={"mode": "Advise"})
        cluster.run(minutes=40)
        assert said(cluster)["verdict"] == "Advised" and "advice" in said(cluster)
        assert said(cluster)["inForce"] == "as written"
        assert cluster.events("shop/web").count("TuningAdvised") == 1
        assert {act.policy.signals[0].percent for act in cluster.journal().acts("shop", "web")} == {20}  # type: ignore[union-attr]
        cluster.patch("Autoscaler", "shop/web", {"spec": {"maxReplicas": 30}})
        cluster.run(minutes=10)
        assert "advice" in said(cluster), "it does not depend on that"
        cluster.patch(
            "Autoscaler", "shop/web", {"spec": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 9}}}}
        )
        cluster.run(minutes=10)
        assert "advice" not in said(cluster)
        cluster.patch("Autoscaler", "shop/web", {"spec": {"tuning": None}})
        cluster.run(minutes=10)
        assert "verdict" not in said(cluster)


def test_limits_bind_and_a_workload_without_a_week_behind_it_waits() -> None:
    limits = {"target": {"min": "15", "max": "22"}, "stabilizationWindowSeconds": {"max": 300}}
    with night(3) as cluster:
        tuned_cluster(cluster, tuning=NIGHTLY | {"limits": limits})
        cluster.deploy("shop/new", replicas=2, load=2.0)
        cluster.apply(autoscaler("shop/new", 50, tuning=NIGHTLY))
        cluster.run(minutes=40)
        target = said(cluster)["inForce"].split()[1].rstrip(",")
        assert target == "written" or 15 <= float(target) <= 22, "without limits it is 25"
        assert "window 30m" not in said(cluster)["inForce"]
        new = cluster.get("Autoscaler", "shop/new")["status"]["tuning"]
        assert new["verdict"] == "Unknown" and "spans" in new["reason"]


def test_an_objective_is_earned_in_a_night_and_steers_from_then_on() -> None:
    """From first sight: days that Prometheus remembers, a night, and pods before the morning, as fast as is written."""
    fastest = {"scaleUp": {"policies": [{"type": "Pods", "value": 3, "periodSeconds": 60}]}}
    spec: dict[str, Any] = {"metrics": [RATE], "maxReplicas": 60, "behavior": fastest, "tuning": NIGHTLY}
    with Cluster(seed=4, tick_s=60.0, start=BEFORE_NIGHT) as cluster:
        assert cluster.prometheus is not None
        cluster.tuner, cluster.prometheus.past["shop/web"] = here, every_day
        cluster.deploy("shop/web", replicas=12, load=every_day, startup_s=STARTUP_S)
        cluster.apply(autoscaler("shop/web", objective={"priority": "reliability"}, **spec))
        cluster.run(minutes=10)
        assert said(cluster)["verdict"] == "Waiting" and "the target steers until" in said(cluster)["reason"]
        cluster.run(minutes=30)
        assert said(cluster)["verdict"] == "Switched" and "priced" in said(cluster)["inForce"]
        assert "priced" not in said(cluster)["replaced"] and "reason" not in said(cluster)
        priced = [act.policy.objective is not None for act in cluster.journal().acts("shop", "web")]
        assert priced == sorted(priced) and not priced[0] and priced[-1]
        assert "is usual at this hour" in cluster.get("Autoscaler", "shop/web")["status"]["lastDecision"]
        writes = [(at, replicas) for at, replicas in cluster.writes("shop/web") if at < MORNING_S + RAMP_S]
        assert any(at < MORNING_S + 60.0 and replicas > 16 for at, replicas in writes), "before the target would"
        steps = [after - before for (_, before), (_, after) in pairwise([(0.0, 12), *cluster.writes("shop/web")])]
        assert max(steps) <= 3
        checked = replay(cluster.journal().path)
        assert checked.checked > 5 and not checked.differences


# --- switches are ordinary scalings ----------------------------------------------------------------------------------

SLOWLY = [{"type": "Pods", "value": 1, "periodSeconds": 60}]
CALM = {"scaleDown": {"stabilizationWindowSeconds": 300, "policies": SLOWLY}}


def better(name: str) -> Verdict:
    figures = Figures(j=1.2, violations=0.1, cost=1.1, churn_per_day=3.0)
    return Verdict(
        uid=name,
        kind=VerdictKind.SWITCHED,
        settings=TunedSettings(target=60.0, tolerance=0.1, window_s=300.0),
        present=TunedSettings(target=20.0, tolerance=0.1, window_s=300.0),
        evidence=TuningEvidence(days=10, before=replace(figures, j=1.5), after=figures),
        promise=Promise(j=1.2, spread=0.1),
    )


async def twice_the_target(cases: Iterator[NightCase], count: int) -> list[Verdict]:
    """A search that has something better for everybody, once."""
    return [
        replace(better(case.uid), kind=VerdictKind.SWITCHED if case.in_force is None else VerdictKind.KEPT)
        for case in cases
    ]


@contextmanager
def switched(seed: int, **spec: Any) -> Iterator[Cluster]:
    """Ten pods of a load that needs five at the target of the night."""
    with Cluster(seed=seed, start=BEFORE_NIGHT) as cluster:
        cluster.tuner = twice_the_target
        cluster.deploy("shop/web", replicas=10, load=2.0)
        cluster.apply(autoscaler("shop/web", 20, tuning=NIGHTLY, **({"behavior": CALM} | spec)))
        cluster.run(minutes=16)
        assert said(cluster)["inForce"].startswith("target 60") and said(cluster)["promisedJ"] == "1.200"
        yield cluster


def times_of(cluster: Cluster, since_s: float) -> list[tuple[float, int]]:
    return [(at, replicas) for at, replicas in cluster.writes("shop/web") if at > since_s]


def test_a_switch_waits_for_a_window_and_shrinks_at_the_written_rate() -> None:
    with switched(5) as cluster:
        cluster.run(minutes=30)
        writes = times_of(cluster, 0.0)
        assert writes[0][0] >= 900.0 + 300.0 and [replicas for _, replicas in writes] == [9, 8, 7, 6, 5, 4]
        assert all(later - earlier >= 60.0 for (earlier, _), (later, _) in pairwise(writes))


def test_a_tuned_window_of_nothing_does_not_make_the_switch_one() -> None:
    """The settings that come in force have no window: the written one holds until it has passed once."""
    with switched(6, behavior={"scaleDown": {"stabilizationWindowSeconds": 600}}) as cluster:
        cluster.run(minutes=30)
        assert times_of(cluster, 0.0)[0][0] >= 900.0 + 600.0


def test_an_edit_of_something_else_keeps_the_tuning_and_one_of_the_target_drops_it() -> None:
    with switched(7) as cluster:
        cluster.patch("Autoscaler", "shop/web", {"spec": {"maxReplicas": 30}})
        cluster.run(minutes=2)
        assert said(cluster)["inForce"].startswith("target 60")
        metrics = autoscaler("shop/web", 25)["spec"]["metrics"]
        cluster.patch("Autoscaler", "shop/web", {"spec": {"metrics": metrics}})
        cluster.run(minutes=2)
        assert said(cluster)["inForce"] == "as written" and "promisedJ" not in said(cluster)
        assert cluster.events("shop/web").count("TuningDropped") == 1


def test_undo_takes_the_switch_back_once_and_the_workload_rests() -> None:
    with switched(8) as cluster:
        cluster.run(minutes=20)
        assert cluster.replicas("shop/web") < 8
        asked = {"trimtab.dev/tuning-undo": rfc3339(cluster.now())}
        cluster.patch("Autoscaler", "shop/web", {"metadata": {"annotations": asked}})
        cluster.run(minutes=4)
        assert said(cluster)["inForce"] == "as written" and said(cluster)["reason"] == "it was undone by hand"
        assert cluster.events("shop/web").count("TuningUndone") == 1
        assert cluster.replicas("shop/web") == 10
        cluster.faults(Killed(cluster.now() - BEFORE_NIGHT + 1.0, back_after_s=30.0))
        cluster.run(minutes=5)
        assert cluster.events("shop/web").count("TuningUndone") == 1, "a new leader follows it no second time"


def test_a_takeover_in_the_tuning_hour_waits_for_history() -> None:
    """The ten days are in a checkpoint that the new leader cannot read for a while."""
    with night(9) as cluster:
        tuned_cluster(cluster)
        cluster.faults(Refusing(0.0, 3600.0, plural="configmaps", methods=("GET",), status=503))
        cluster.run(minutes=45)
        assert said(cluster)["verdict"] == "Waiting", "not Unknown"
        cluster.run(minutes=30)
        assert said(cluster)["verdict"] == "Switched" and said(cluster)["evidence"]["days"] == 10


def test_the_rollout_outlives_the_operator() -> None:
    with switched(10) as cluster:
        for name in ("api", "pay"):
            cluster.deploy(f"shop/{name}", replicas=10, load=2.0)
            cluster.apply(autoscaler(f"shop/{name}", 20, tuning=NIGHTLY))
        cluster.run(minutes=5)
        cluster.faults(Killed(cluster.now() - BEFORE_NIGHT + 1.0, back_after_s=30.0))
        cluster.run(minutes=5)
        for name in ("api", "pay"):
            tuning = cluster.get("Autoscaler", f"shop/{name}")["status"]["tuning"]
            assert tuning["verdict"] == "Waits" and "enough others switch tonight" in tuning["reason"]
        rollout = json.loads(cluster.get("ConfigMap", f"{OWN_NAMESPACE}/trimtab-tuning")["data"]["rollout.json"])
        assert rollout["share"] == FIRST_SHARE and rollout["batch_at"] > BEFORE_NIGHT
