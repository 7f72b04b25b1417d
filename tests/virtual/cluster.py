"""A whole cluster in a test: an API server, controllers, load, operators and faults, under a virtual clock.

    with Cluster(seed=1) as cluster:
        cluster.deploy("shop/web", replicas=2)
        cluster.load("shop/web", lambda seconds: 2.0 if seconds < 600 else 8.0)
        cluster.apply(autoscaler("shop/web"))
        cluster.run(hours=1)
        assert cluster.writes("shop/web") == [...]

Operators begin so that they tick at whole multiples of 15 s (`step_s`) from the start, the first time after one step.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import tempfile
import uuid
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import yaml

from tests.virtual.apiserver import ACCOUNT, ADMIN, ApiServer, Audited, Call, Reply
from tests.virtual.bugs import Bugs
from tests.virtual.clock import GRAIN
from tests.virtual.faults import Fault
from tests.virtual.fields import Object, encoded
from tests.virtual.loop import VirtualLoop
from tests.virtual.machines import OWN_NAMESPACE, Machines, Process, own
from tests.virtual.metrics import FakePrometheus, Metrics
from tests.virtual.weather import Weather
from tests.virtual.workloads import KUBELET, Load, Workload, Workloads, deployment
from trimtab.journal import Journal
from trimtab.kinds.annotations import FROZEN
from trimtab.live.object_tick import ObjectTick
from trimtab.live.operator import LOOK_AGAIN_S
from trimtab.live.tuning.nightly import Tuner
from trimtab.quantity import parse_quantity
from trimtab.sim.grid import STEP_S
from trimtab.wire.from_kubernetes import rfc3339
from trimtab.wire.kube import Patch
from trimtab.wire.resources import PODS, Resource

START = 1_750_000_500.0  # a whole multiple of 15 s, on a Sunday
AFTER_S = 1.0  # a run ends this long after its last moment, so that what happens then has happened
EDGE_S = 0.001  # load is measured just before a tick, pods become ready just after it


class OomKill(NamedTuple):
    """Which workload, when, and the memory that the container asked for then."""

    name: str
    at_s: float
    request_bytes: float


class Cluster(Machines):
    """Write a test with `apply`, `deploy`, `load`, `faults`, `run`; read it by `writes`, `get`, `audit`, `journal`."""

    def __init__(
        self, seed: int = 0, *, operators: int = 1, start: float = START, step_s: float = STEP_S, **settings: Any
    ) -> None:
        self.seed, self.start, self.step_s = seed, start, step_s
        self._settings: dict[str, Any] = {"tick_s": step_s} | settings
        self.loop = VirtualLoop()
        self.loop.made = own
        self.server = ApiServer(self.now)
        self.weather = Weather(lambda: self.now() - start, seed)
        self.workloads = Workloads(self.server, start, step_s)
        self.metrics = Metrics(self.server, self.workloads, self.weather)
        self.prometheus: FakePrometheus | None = FakePrometheus(self.metrics, start)
        self.tuner: Tuner | None = None
        self.processes: dict[str, Process] = {}
        self.on_tick: list[Callable[[Sequence[ObjectTick]], None]] = []  # they see what operators see and decide
        self.oom_kills: list[OomKill] = []
        self.bugs = Bugs()
        self.homes: dict[str, str] = {}  # of operators that are not installed in OWN_NAMESPACE
        self._operators, self._until = operators, 0.0
        self._next_step = 1

    # --- as a context ---

    def __enter__(self) -> Self:
        gc.collect()
        gc.freeze()  # what is imported stays: looking through all of it takes longer than a tick
        self._gc = gc.get_threshold()
        gc.set_threshold(50_000)
        self._random = random.getstate()
        random.seed(self.seed)
        self._folder = tempfile.TemporaryDirectory()
        logging.root.addHandler(self.bugs)
        asyncio.set_event_loop(self.loop)
        self._schedule_step()
        for number in range(self._operators):
            self.loop.call_at(self.step_s - LOOK_AGAIN_S, self.start_operator, f"operator-{number}")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.loop.run_until_complete(self._end())
        finally:
            logging.root.removeHandler(self.bugs)
            random.setstate(self._random)
            gc.set_threshold(*self._gc)
            asyncio.set_event_loop(None)
            self.loop.close()
            self._folder.cleanup()
            gc.collect()  # of what came since: the next one would freeze what this one has left
        assert kind is not None or not self.bugs.met, self.bugs.met

    async def _end(self) -> None:
        for process in self.processes.values():
            await self._kill(process)

    # --- time ---

    def now(self) -> float:
        return int((self.start + self.loop.now_s) * GRAIN + 0.5) / GRAIN

    def run(self, *, hours: float = 0.0, minutes: float = 0.0, seconds: float = 0.0) -> None:
        self._until += hours * 3600 + minutes * 60 + seconds
        self.loop.run_until_complete(asyncio.sleep(self._until + AFTER_S - self.loop.time()))
        for process in self.processes.values():
            if process.died_of is not None:
                raise process.died_of

    def _schedule_step(self) -> None:
        at = self._next_step * self.step_s
        self.loop.call_at(at - EDGE_S, self.workloads.close_step)
        self.loop.call_at(at + EDGE_S, self._open_step)

    def _open_step(self) -> None:
        self.workloads.open_step()
        self._next_step += 1
        self._schedule_step()

    # --- what people and other programs do ---

    def apply(self, *manifests: str | Object, by: str = ADMIN) -> None:
        """`kubectl apply`, with its field manager, on one or many documents."""
        for manifest in manifests:
            documents = yaml.safe_load_all(manifest) if isinstance(manifest, str) else [manifest]
            for document in documents:
                self._applied(document, by)

    def _applied(self, document: Object, by: str) -> None:
        resource = self.resource(document["apiVersion"], document["kind"])
        meta = document["metadata"]
        path = resource.path(meta.get("namespace", "default"), meta["name"])
        params = {"fieldManager": by, "force": "true"}
        self._expect(Call(by, "PATCH", path, params, encoded(document), Patch.APPLY))

    def patch(self, kind: str, name: str, body: Object, by: str = ADMIN) -> None:
        """`kubectl patch --type merge`; `kind` as in a manifest."""
        namespace, _, short = name.partition("/")
        path = self._kind(kind).path(namespace, short)
        self._expect(Call(by, "PATCH", path, {"fieldManager": by}, encoded(body), Patch.MERGE))

    def delete(self, kind: str, name: str, by: str = ADMIN) -> None:
        namespace, _, short = name.partition("/")
        self._expect(Call(by, "DELETE", self._kind(kind).path(namespace, short), {}, None, ""))

    def deploy(self, name: str, load: Load | float | None = None, startup_s: float | None = None, **spec: Any) -> None:
        """A Deployment of one container with its pods running; again: a new version of its manifest."""
        given = {"startup_s": startup_s, "load": _load(load)}
        self.workloads.set(name, **{key: value for key, value in given.items() if value is not None})
        self.apply(deployment(name, **spec))

    def load(self, name: str, cores: Load | float, memory: Load | None = None) -> None:
        """What is asked of all pods of a workload together, in cores (and bytes), by seconds from the start."""
        self.workloads.set(name, load=_load(cores), **({"memory": memory} if memory else {}))

    def oom_kill(self, name: str, pod: int = 0, container: str = "main") -> None:
        """The kernel ends a container for its memory, and the kubelet starts it again."""
        if name not in self.workloads.all:
            return  # its namespace is away
        found = self.pods(name)[pod]
        request = next(each for each in found["spec"]["containers"])["resources"]["requests"]["memory"]
        self.oom_kills.append(OomKill(name, self.now() - self.start, parse_quantity(request)))
        end = {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": rfc3339(self.now())}}
        status = found["status"] | {"containerStatuses": [{"name": container, "lastState": end}]}
        self.server.store.write(PODS, found | {"status": status}, KUBELET._replace(subresource="status"))

    def reinstall(self, gone: bool) -> None:
        """`helm uninstall`, whose hook freezes the installation; then `helm install`: another account, another UID."""
        home = f"/{OWN_NAMESPACE}"
        if gone:
            for who in self.processes:
                self.kill(who)
            uid = next(iter(self.server.accounts.values()), ACCOUNT)
            self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OWN_NAMESPACE}})
            self.patch("Namespace", home, {"metadata": {"annotations": {FROZEN: uid}}})
            return
        self.server.accounts |= {each: str(uuid.UUID(int=self.server.store.version)) for each in self.processes}
        for who in self.processes:
            self.start_operator(who)

    def refuse_pods(self, name: str, full: bool, quota: bool) -> None:
        """New pods of a workload get no node, or a quota refuses them, until somebody makes room."""
        if (workload := self.workloads.all.get(name)) is not None:  # its namespace may be away
            workload.make_room(full, quota)

    def faults(self, *faults: Fault) -> None:
        async def add() -> None:
            self.weather.add(faults, self.server, self)

        self.loop.run_until_complete(add())

    def _expect(self, call: Call) -> Reply:
        reply = self.server.handle(call)
        assert reply.status < 300, reply.body.decode()
        return reply

    # --- what happened ---

    def resource(self, api_version: str, kind: str) -> Resource:
        found = [served.resource for served in self.server.served.values() if served.resource.kind == kind]
        return next(resource for resource in found if resource.api_version == api_version)

    def _kind(self, kind: str) -> Resource:
        return next(served.resource for served in self.server.served.values() if served.resource.kind == kind)

    def get(self, kind: str, name: str) -> Object:
        namespace, _, short = name.partition("/")
        found = self.server.store.get(self._kind(kind), namespace, short)
        assert found is not None, f"there is no {kind} {name}"
        return found

    def replicas(self, name: str) -> int:
        return int(self.get("Deployment", name)["spec"]["replicas"])

    def pods(self, name: str) -> list[Object]:
        workload = self.workloads.all[name]
        return [self.get("Pod", f"{workload.namespace}/{workload.full(pod.name)}") for pod in workload.pods.all]

    def workload(self, name: str) -> Workload:
        return self.workloads.all[name]

    def audit(self, who: str = "", verb: str = "", path: str = "") -> list[Audited]:
        """Requests by whom they came from, what they did and what their path holds."""
        return [
            each
            for each in self.server.audit
            if who in ("", each.who) and verb in ("", each.verb) and path in each.path
        ]

    def writes(self, name: str, who: str = "") -> list[tuple[float, int]]:
        """Scalings of a workload by operators: seconds from the start, replicas."""
        namespace, _, short = name.partition("/")
        path = f"/namespaces/{namespace}/deployments/{short}/scale"
        found = [each for each in self.audit(who, "patch", path) if each.status == 200]
        return [(each.at - self.start, each.body["spec"]["replicas"]) for each in found]

    def conditions(self, kind: str, name: str) -> dict[str, tuple[str, str]]:
        """Type -> status and reason."""
        found = (self.get(kind, name).get("status") or {}).get("conditions") or []
        return {each["type"]: (each["status"], each["reason"]) for each in found}

    def events(self, name: str) -> list[str]:
        """Reasons of the Events about an object, in order."""
        namespace, _, short = name.partition("/")
        events = self.server.store.of(self._kind("Event")).items.values()
        about = [(each, each["involvedObject"]) for each in events]
        return [each["reason"] for each, of in about if (of["namespace"], of["name"]) == (namespace, short)]

    def metrics_page(self, who: str = "operator-0") -> str:
        """What an operator answers on /metrics."""
        operator = self.processes[who].operator
        assert operator is not None
        return operator.telemetry.render()

    def ready(self, who: str = "operator-0") -> tuple[int, str]:
        """What it answers on /readyz."""
        operator = self.processes[who].operator
        assert operator is not None
        return operator.ready()

    def journal(self, who: str = "operator-0") -> Journal:
        return Journal.read(self.processes[who].settings.journal)


def _load(given: Load | float | None) -> Load | None:
    if given is None or callable(given):
        return given
    return lambda seconds: given


def autoscaler(name: str, percent: int = 50, **spec: Any) -> Object:
    """An Autoscaler of CPU for the Deployment of the same name."""
    namespace, _, short = name.partition("/")
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}}
    full: Object = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": short},
        "minReplicas": 1,
        "maxReplicas": 20,
        "metrics": [{"type": "Resource", "resource": cpu}],
    }
    return {
        "apiVersion": "trimtab.dev/v1alpha1",
        "kind": "Autoscaler",
        "metadata": {"name": short, "namespace": namespace},
        "spec": full | spec,
    }


__all__ = ["Callable", "Cluster", "autoscaler", "START"]
