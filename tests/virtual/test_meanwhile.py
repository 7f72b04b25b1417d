"""What happens while the operator is at something else: edits, objects made anew, a brake that nobody can see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.faults import CutWatches, Killed, Refusing, Slow, Suspended
from tests.virtual.machines import OWN_NAMESPACE
from tests.virtual.test_tuning import better, night, said
from trimtab.core.nights import NightCase, Verdict
from trimtab.live.act.restore import Restored, restore_all
from trimtab.live.look.subject import ChangeRules
from trimtab.wire.kube import Kube

WEB, API = "shop/web", "shop/api"
RENAMED = {"spec": {"scaleTargetRef": {"name": "api"}}}


def rush(seconds: float) -> float:
    return 6.0 if 300 <= seconds < 900 else 1.0


def cpus(cluster: Cluster, name: str) -> set[str]:
    return {pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in cluster.pods(name)}


def test_a_status_that_comes_late_is_not_written_on_an_object_made_since() -> None:
    """The same name, another object: it would begin with the cooldowns of the old one."""
    with Cluster(seed=1) as cluster:
        cluster.deploy(WEB, replicas=2, load=rush)
        cluster.apply(autoscaler(WEB))
        cluster.faults(Slow(310.0, 330.0, plural="autoscalers", methods=("PATCH",), seconds=8.0))
        cluster.run(seconds=318)
        assert cluster.writes(WEB)[0][0] == 315.0, "its status is under way"
        cluster.delete("Autoscaler", WEB)
        cluster.apply(autoscaler(WEB))
        cluster.run(seconds=10)
        late = [
            each.status for each in cluster.audit("operator-0", "patch", "/status") if each.at > cluster.start + 316
        ]
        assert late == [409]
        assert "status" not in cluster.get("Autoscaler", WEB)
        cluster.run(minutes=10)
        assert cluster.replicas(WEB) == 11
        assert cluster.conditions("Autoscaler", WEB)["Ready"] == ("True", "Running")


def raise_floor(cluster: Cluster) -> None:
    cluster.patch("Autoscaler", WEB, {"spec": {"minReplicas": 9}})


def draw_the_brake(cluster: Cluster) -> None:
    cluster.patch("Namespace", f"/{OWN_NAMESPACE}", {"metadata": {"annotations": {"trimtab.dev/frozen": "true"}}})


@pytest.mark.parametrize(
    ("plural", "path", "meanwhile"),
    [
        pytest.param("autoscalers", "/apis/trimtab.dev/v1alpha1/autoscalers", raise_floor, id="minReplicas is raised"),
        pytest.param("namespaces", "/api/v1/namespaces", draw_the_brake, id="the brake is drawn"),
    ],
)
def test_what_its_owner_wants_and_nobody_can_see_lowers_nothing(
    plural: str, path: str, meanwhile: Callable[[Cluster], None]
) -> None:
    with Cluster(seed=1) as cluster:
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OWN_NAMESPACE}})
        cluster.deploy(WEB, replicas=2, load=rush)
        cluster.apply(autoscaler(WEB))
        cluster.faults(
            Refusing(600.0, 2400.0, path=path, methods=("GET",), status=403), CutWatches(600.0, plural=plural)
        )
        cluster.run(seconds=700)
        assert cluster.replicas(WEB) == 11
        meanwhile(cluster)
        cluster.run(seconds=1600)
        assert cluster.replicas(WEB) == 11
        if plural == "autoscalers":
            assert cluster.conditions("Autoscaler", WEB)["AbleToScale"] == ("False", "StaleView")
        assert cluster.ready()[1].startswith("degraded, leading\n")
        cluster.run(minutes=20)
        assert cluster.replicas(WEB) == (9 if plural == "autoscalers" else 11)


class SlowTuner:
    """Takes a quarter of an hour, and has something better for everybody."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, cases: Iterator[NightCase], count: int) -> list[Verdict]:
        names = [case.uid for case in cases]
        self.asked += 1
        await asyncio.sleep(900.0)
        return [better(name) for name in names]


@contextmanager
def in_the_middle_of_a_night() -> Iterator[tuple[Cluster, SlowTuner]]:
    with night(1) as cluster:
        tuner = cluster.tuner = SlowTuner()
        cluster.deploy(WEB, replicas=10, load=5.0)
        cluster.apply(autoscaler(WEB, 20, tuning={"mode": "Nightly"}))
        cluster.run(minutes=20)
        assert tuner.asked == 1
        yield cluster, tuner


@pytest.mark.parametrize("edited", [False, True], ids=["as it was", "edited"])
def test_what_a_night_found_is_for_the_object_that_it_looked_at(edited: bool) -> None:
    with in_the_middle_of_a_night() as (cluster, _):
        if edited:
            cluster.patch("Autoscaler", WEB, {"spec": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}}}})
        cluster.run(minutes=20)
        assert (said(cluster)["inForce"] != "as written") is not edited
        assert cluster.events(WEB).count("TuningSwitched") == (not edited)


def test_who_leads_anew_asks_anew() -> None:
    with in_the_middle_of_a_night() as (cluster, tuner):
        operator = cluster.processes["operator-0"].operator
        assert operator is not None
        operator.ticker.take_over(term=1)
        cluster.run(minutes=30)
        assert tuner.asked == 2 and said(cluster)["inForce"] != "as written"
        assert cluster.events(WEB).count("TuningSwitched") == 1


@pytest.mark.parametrize("dead", [False, True], ids=["the operator runs", "the operator was dead"])
def test_an_object_that_is_pointed_at_another_workload_takes_nothing_with_it(dead: bool) -> None:
    """Their templates are alike, which says nothing of what they need."""
    with Cluster(seed=9, change_rules=ChangeRules(up_after_s=300.0, down_after_s=300.0), checkpoint_s=300.0) as cluster:
        cluster.deploy(WEB, replicas=2, load=3.0)
        cluster.deploy(API, replicas=2, load=1.2)
        cluster.apply(autoscaler(WEB, metrics=[], minReplicas=2, maxReplicas=2, vertical={"apply": "InPlace"}))
        cluster.run(hours=1)
        assert cpus(cluster, WEB) != {"1"} and cpus(cluster, API) == {"1"}
        if dead:
            cluster.faults(Killed(3610.0, back_after_s=60.0))
            cluster.run(seconds=20)
        cluster.patch("Autoscaler", WEB, RENAMED)
        cluster.run(seconds=150)
        assert cpus(cluster, API) == {"1"}, "nothing was seen of it yet"
        cluster.run(hours=1)
        assert cpus(cluster, API) != {"1"} and cpus(cluster, API) != cpus(cluster, WEB)


def test_forecasts_of_another_workload_begin_anew() -> None:
    with Cluster(seed=2) as cluster:
        cluster.prometheus = None
        cluster.deploy(WEB, replicas=2, load=3.0)
        cluster.deploy(API, replicas=2, load=0.5)
        cluster.apply(autoscaler(WEB, forecast={"model": "linear"}))
        cluster.run(minutes=30)
        operator = cluster.processes["operator-0"].operator
        assert operator is not None
        demand, uid = operator.forecasts.demand, cluster.get("Autoscaler", WEB)["metadata"]["uid"]
        cluster.patch("Autoscaler", WEB, RENAMED)
        cluster.run(minutes=2)
        values = demand.log.recent(demand._keys[uid][0], cluster.now(), 3600.0).values
        assert 0 < len(values) < 10 and max(values) < 1.0


def test_what_cannot_be_put_back_for_one_is_put_back_for_the_others() -> None:
    async def restored() -> list[Restored]:
        async with Kube(cluster._access("person")) as kube:
            return [each async for each in restore_all(kube, "", dry_run=False)]

    def hpa(namespace: str, notes: dict[str, str]) -> dict[str, object]:
        meta = {"name": "web", "namespace": namespace, "annotations": {"trimtab.dev/min-replicas": "2"} | notes}
        spec = autoscaler(f"{namespace}/web")["spec"] | {"minReplicas": 6}
        return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": meta, "spec": spec}

    with Cluster(seed=4, operators=0) as cluster:
        ours = {"trimtab.dev/floor": "6", "trimtab.dev/floor-until": "1.2.3"}
        cluster.apply(hpa("evil", ours), hpa("shop", ours))
        cluster.faults(Refusing(0.0, path="/apis/autoscaling/v2/namespaces/evil", methods=("PATCH",), status=422))
        found = cluster.loop.run_until_complete(restored())
        assert [bool(each.trouble) for each in found] == [True, False]
        assert cluster.get("HorizontalPodAutoscaler", "shop/web")["spec"]["minReplicas"] == 2


def test_who_stood_still_in_the_middle_of_a_tick_writes_nothing_when_another_leads() -> None:
    """The answer that it waited for is there when it goes on, and so is the change that it asks for."""
    with Cluster(seed=5, operators=2) as cluster:
        cluster.deploy(WEB, replicas=2, load=rush)
        cluster.apply(autoscaler(WEB))
        cluster.run(seconds=200)
        first = cluster.get("Lease", f"{OWN_NAMESPACE}/trimtab")["spec"]["holderIdentity"]
        slow = Slow(310.0, 340.0, plural="pods", methods=("GET",), seconds=4.0)  # whoever leads now writes after it
        cluster.faults(slow, Suspended(316.0, 333.0, who=first))
        cluster.run(seconds=400)
        (at, _), *_ = cluster.writes(WEB)
        assert at > 333 and not cluster.writes(WEB, first)
