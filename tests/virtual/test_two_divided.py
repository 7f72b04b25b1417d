"""Two installations of the whole cluster, each divided as it likes, beside one that serves a namespace of its own.

Drawn scenes: they come, go, die, freeze for a while, come back, are divided anew. The witness is the API server's list
of requests: who writes holds its Lease and has said there that it serves, nobody of the other installation who may
still write has written since it said so, and in the end the oldest that lives serves every namespace.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest

from tests.virtual.apiserver import Audited
from tests.virtual.cluster import Cluster
from tests.virtual.machines import OWN_NAMESPACE
from tests.virtual.test_shards import RENEW_DEADLINE_S, TEAMS, busy
from trimtab.kinds.annotations import SERVING
from trimtab.wire.shards import Shard

OTHER = "team-trimtab"
OWN, ALONE_IN = "own", TEAMS[0]  # an operator and namespace that it serves alone, sometimes
NOTICED_S = (
    20.0  # a tick and what its requests take: until then the others may not have seen a namespace's own operator
)
TAKE_OVER_S = 75.0  # a Lease that expires, a look that finds it so, a renewal that says so, a look at the others
BREATH_S = (20.0, 140.0)  # between two events


@dataclass(frozen=True)
class HeldLease:
    """As it was last written."""

    holder: str
    at: float
    serves: bool
    since: float  # when this holder first had it
    wrote: bool = False  # since it has said that it serves

    def may_write(self, at: float) -> bool:
        return bool(self.holder) and at - self.at <= RENEW_DEADLINE_S


@dataclass
class Scene:
    """What happens to the installations, drawn from a seed."""

    cluster: Cluster
    rng: random.Random
    running: dict[str, list[str]] = field(default_factory=dict)  # by home: the operators of its present division
    made: int = 0
    own: bool = False  # whether the one of a single namespace runs

    def install(self, home: str) -> None:
        of, self.made = self.rng.choice((1, 2, 3)), self.made + 1
        self.running[home] = [f"{home}-{self.made}-{number}" for number in range(of)]
        for number, name in enumerate(self.running[home]):
            self.cluster.start_operator(name, shard=Shard(number, of), lease_namespace=home)

    def breathe(self) -> None:
        self.cluster.run(seconds=self.rng.uniform(*BREATH_S))

    def happen(self) -> None:
        self.rng.choice((self.come_and_go, self.divide_anew, self.lose_one, self.freeze_one, self.own_operator))()

    def come_and_go(self) -> None:
        """One that is there ends or dies as a whole; one that is not comes back."""
        home = self.rng.choice((OWN_NAMESPACE, OTHER))
        if home not in self.running:
            self.install(home)
        elif len(self.running) == 2:
            end = self.rng.choice((self.cluster.kill, self.cluster.stop_operator))
            for name in self.running.pop(home):
                end(name)

    def divide_anew(self) -> None:
        """As a rollout does: the new ones come, then the old ones end, one by one."""
        home = self.rng.choice(list(self.running))
        old = self.running[home]
        self.install(home)
        for name in old:
            self.cluster.run(seconds=self.rng.uniform(0.0, 15.0))
            self.cluster.stop_operator(name)

    def lose_one(self) -> None:
        """One shard is dead for a while, its siblings live."""
        self.cluster.kill(self._one(), back_after_s=self.rng.uniform(5.0, 90.0))
        self.cluster.run(seconds=90)

    def freeze_one(self) -> None:
        """It wakes up and believes that no time has passed."""
        name = self._one()
        self.cluster.stand_still(name, True)
        self.cluster.run(seconds=self.rng.uniform(5.0, 60.0))
        self.cluster.stand_still(name, False)

    def own_operator(self) -> None:
        if self.own:
            self.cluster.kill(OWN)
        else:
            self.cluster.start_operator(OWN, namespace=ALONE_IN)
        self.own = not self.own

    def _one(self) -> str:
        return self.rng.choice(self.running[self.rng.choice(list(self.running))])


class Witness:
    """Goes through the requests in their order."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.leases: dict[tuple[str, str], HeldLease] = {}  # by namespace and name

    def check(self) -> None:
        for request in self.cluster.server.audit:
            if request.verb not in ("patch", "create") or request.who not in self.cluster.processes:
                continue
            if "/leases" in request.path:
                if request.status in (200, 201):
                    self._note(request)
            elif request.path.endswith(("/scale", "/status")):
                self._check(request)

    def _note(self, request: Audited) -> None:
        home, name = _place(request.path)[0], request.path.rpartition("/leases")[2].strip("/")
        key = home, name or request.body["metadata"]["name"]
        holder, said = request.body["spec"]["holderIdentity"], request.body["metadata"].get("annotations", {})
        before, serves = self.leases.get(key), said.get(SERVING) == "true"
        same = before is not None and before.holder == holder
        self.leases[key] = HeldLease(
            holder,
            request.at,
            serves,
            since=before.since if before and same else request.at,
            wrote=bool(before and same and before.wrote and serves),
        )

    def _check(self, request: Audited) -> None:
        settings, namespace = self.cluster.processes[request.who].settings, _place(request.path)[0]
        home = settings.namespace or settings.lease_namespace
        mine = self.leases[home, settings.shard.lease]
        assert mine.holder == request.who and mine.may_write(request.at), f"{request} without its Lease: {mine}"
        for (place, name), lease in self.leases.items():
            if place not in (home, *TEAMS) and not settings.namespace:
                both = lease.may_write(request.at) and lease.wrote
                assert not both, f"{request} beside {place}/{name}: {lease}"
        own = self.leases.get((ALONE_IN, "trimtab"))
        if not settings.namespace:
            assert settings.shard.owns(namespace) and mine.serves
            left = namespace == ALONE_IN and own and own.may_write(request.at) and request.at > own.since + NOTICED_S
            assert not left, f"{request} beside the namespace's own operator: {own}"
        self.leases[home, settings.shard.lease] = replace(mine, wrote=True)


def _place(path: str) -> list[str]:
    return path.split("/namespaces/")[1].split("/")


def last_writers(cluster: Cluster, since: float) -> dict[str, set[str]]:
    """By namespace: where those are installed who scaled in it since then."""
    found: dict[str, set[str]] = {}
    for request in cluster.audit(verb="patch", path="/scale"):
        if request.at - cluster.start >= since and request.status == 200:
            settings = cluster.processes[request.who].settings
            found.setdefault(_place(request.path)[0], set()).add(settings.namespace or settings.lease_namespace)
    return found


def play(seed: int, events: int) -> None:
    rng = random.Random(seed)
    with Cluster(seed=seed, operators=0) as cluster:
        for home in (OWN_NAMESPACE, OTHER):
            cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}})
        busy(cluster)
        scene = Scene(cluster, rng)
        for home in rng.sample((OWN_NAMESPACE, OTHER), 2):
            scene.install(home)
            cluster.run(seconds=rng.choice((0.0, 0.3, 40.0)))
        for _ in range(events):
            scene.happen()
            scene.breathe()
        settled = cluster.now() - cluster.start + TAKE_OVER_S
        cluster.run(seconds=TAKE_OVER_S + 300)
        Witness(cluster).check()
        noted = {home: cluster.get("Namespace", f"/{home}")["metadata"]["annotations"] for home in scene.running}
        oldest = min(scene.running, key=lambda home: (noted[home]["trimtab.dev/installation"], home))
        expected = {team: {ALONE_IN if scene.own and team == ALONE_IN else oldest} for team in TEAMS}
        assert last_writers(cluster, settled) == expected


def start(cluster: Cluster, home: str, *shards: Shard, tick_s: float = 15.0) -> None:
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}})
    for shard in shards:
        cluster.start_operator(f"{home}-{shard.number}", shard=shard, lease_namespace=home, tick_s=tick_s)


@pytest.mark.parametrize(
    "living", [pytest.param((1, 2), id="its first never came"), pytest.param((2,), id="only its last came")]
)
def test_an_elder_lives_while_any_of_its_shards_does(living: tuple[int, ...]) -> None:
    with Cluster(seed=1, operators=0) as cluster:
        busy(cluster)
        start(cluster, OWN_NAMESPACE, *(Shard(number, 3) for number in living))
        cluster.run(seconds=30)
        start(cluster, OTHER, Shard(0, 2), Shard(1, 2))
        cluster.run(minutes=6)
        Witness(cluster).check()
        served = {team for team in TEAMS if any(Shard(number, 3).owns(team) for number in living)}
        assert last_writers(cluster, 60.0) == {team: {OWN_NAMESPACE} for team in served}


@pytest.mark.parametrize("shards", [1, 2])
def test_an_elder_that_wakes_up_asks_before_it_writes(shards: int) -> None:
    """Its Lease is still its own, for nobody else wanted that, but the other serves, and looks less often than it."""
    with Cluster(seed=1, operators=0) as cluster:
        busy(cluster)
        for home, tick_s in ((OWN_NAMESPACE, 15.0), (OTHER, 60.0)):
            start(cluster, home, *(Shard(number, shards) for number in range(shards)), tick_s=tick_s)
            cluster.run(seconds=30)
        for still, seconds in ((True, 400), (False, 300)):
            for number in range(shards):
                cluster.stand_still(f"{OWN_NAMESPACE}-{number}", still)
            cluster.run(seconds=seconds)
        Witness(cluster).check()
        assert set().union(*last_writers(cluster, 200.0).values()) == {OWN_NAMESPACE, OTHER}


@pytest.mark.parametrize("seed", range(6))
def test_never_two_write_and_the_oldest_that_lives_serves_everything(seed: int) -> None:
    play(seed, events=6)


@pytest.mark.many
@pytest.mark.parametrize("seed", range(100, 200))
def test_many_scenes(seed: int) -> None:
    play(seed, events=10)
