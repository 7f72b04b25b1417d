"""People who take things away and bring them back, as they were but new; and tenants who mean no good."""

from __future__ import annotations

from tests.virtual.apiserver import ApiServer
from tests.virtual.faults import Away, DefinitionAway, Fault, Flood, ForeignPods, NamespaceAway, ObjectAway
from tests.virtual.fields import Entry, Object
from tests.virtual.objects import Key
from tests.virtual.served import Served
from trimtab.wire.resources import DEPLOYMENTS, NAMESPACES, PODS, REPLICA_SETS, Resource

KUBECTL, TENANT = Entry("kubectl"), Entry("tenant")
OWN_META = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")
FOLLOWING = (PODS, REPLICA_SETS)  # their Deployment brings them back


class Administrator:
    """Acts on the server's store: nobody asks whether it may."""

    def __init__(self, server: ApiServer) -> None:
        self.server, self.store = server, server.store
        self._taken: dict[Fault, list[tuple[Resource, Object]]] = {}
        self._uninstalled: dict[Fault, Served] = {}

    def begin(self, fault: Away | Flood | ForeignPods) -> None:
        if isinstance(fault, DefinitionAway):
            self._uninstall(fault)
        elif isinstance(fault, Away):
            self._take(fault, self._named(fault))
        else:
            made = self._flood(fault) if isinstance(fault, Flood) else self._foreign_pods(fault)
            self._taken[fault] = [(resource, self.store.write(resource, found, TENANT)) for resource, found in made]

    def end(self, fault: Away | Flood | ForeignPods) -> None:
        if isinstance(fault, DefinitionAway):
            self.server.install(self._uninstalled.pop(fault))
        for resource, found in self._taken.pop(fault):
            if isinstance(fault, Away):
                self._come_back(resource, found, fault)
            elif self.store.get(resource, *_key(found)) is not None:
                self.store.delete(resource, *_key(found))

    def _named(self, fault: Away) -> list[tuple[Resource, Key]]:
        if isinstance(fault, ObjectAway):
            namespace, _, name = fault.name.partition("/")
            return [(self._resource(fault.kind), (namespace, name))]
        assert isinstance(fault, NamespaceAway)
        inside = [
            (held.resource, key)
            for held in self.store.collections.values()
            for key in held.items
            if key[0] == fault.name and held.resource not in FOLLOWING
        ]
        there = self.store.get(NAMESPACES, "", fault.name) is not None
        return [*inside, *([(NAMESPACES, ("", fault.name))] if there else [])]

    def _take(self, fault: Away, named: list[tuple[Resource, Key]]) -> None:
        known = [(resource, key) for resource, key in named if self.store.get(resource, *key) is not None]
        taken = self._taken[fault] = [(resource, self.store.delete(resource, *key)) for resource, key in known]
        if isinstance(fault, ObjectAway) and fault.alias:
            for resource, found in taken:
                self.store.write(resource, _new(found, fault.alias), KUBECTL)

    def _come_back(self, resource: Resource, found: Object, fault: Away) -> None:
        namespace, name = _key(found)
        if isinstance(fault, ObjectAway) and fault.alias and self.store.get(resource, namespace, fault.alias):
            self.store.delete(resource, namespace, fault.alias)
        if self.store.get(resource, namespace, name) is None:
            self.store.write(resource, _new(found), KUBECTL)

    def _uninstall(self, fault: DefinitionAway) -> None:
        resource = self._resource(fault.name)
        self._uninstalled[fault] = self.server.served[resource.api_version, resource.plural]
        self._taken[fault] = [(resource, found) for found in self.store.of(resource).items.values()]
        self.server.uninstall(resource)

    def _resource(self, kind: str) -> Resource:
        return next(served.resource for served in self.server.served.values() if served.resource.kind == kind)

    def _flood(self, fault: Flood) -> list[tuple[Resource, Object]]:
        spec = {"maxReplicas": "many", "metrics": 7}
        metas = [{"name": f"flood-{number}", "namespace": fault.namespace} for number in range(fault.objects)]
        return [(self._resource("Autoscaler"), {"metadata": meta, "spec": spec}) for meta in metas]

    def _foreign_pods(self, fault: ForeignPods) -> list[tuple[Resource, Object]]:
        namespace, _, name = fault.workload.partition("/")
        victim = self.store.get(DEPLOYMENTS, namespace, name)
        sets = [
            found
            for key, found in self.store.of(REPLICA_SETS).items.items()
            if victim is not None and key[0] == namespace and key[1].startswith(name)
        ]
        return [
            (PODS, _foreign_pod(found, f"foreign-{number}", fault.namespace))
            for found in sets
            for number in range(fault.pods)
        ]


def _foreign_pod(owner: Object, name: str, namespace: str) -> Object:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner["metadata"]["name"], "controller": True}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"}
    meta = {
        "name": name,
        "namespace": namespace,
        "labels": dict(owner["spec"]["template"]["metadata"]["labels"]),
        "ownerReferences": [reference | {"uid": owner["metadata"]["uid"]}],
    }
    status = {"phase": "Running", "startTime": "2025-01-01T00:00:00Z", "conditions": [ready]}
    return {"metadata": meta, "spec": owner["spec"]["template"]["spec"], "status": status}


def _new(found: Object, name: str = "") -> Object:
    """As somebody applies it again: without what the server and controllers wrote."""
    meta = {key: value for key, value in found["metadata"].items() if key not in OWN_META}
    bare = {key: value for key, value in found.items() if key != "status"}
    return bare | {"metadata": meta | ({"name": name} if name else {})}


def _key(found: Object) -> Key:
    return found["metadata"].get("namespace", ""), found["metadata"]["name"]
