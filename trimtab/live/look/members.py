"""members: which pods belong to which workload; by owner reference, never by name."""

from __future__ import annotations

from collections import defaultdict

from trimtab.core.model import Pod
from trimtab.wire.from_kubernetes import FINISHED, factor_on, owner_uid, pod_from_wire
from trimtab.wire.objects import ObjectMeta, WirePod, WireWorkload
from trimtab.wire.watch import Key, Store

Owner = tuple[str, str]  # namespace and uid: a reference across namespaces is somebody's claim, not an owner


class Members:
    """Which pods belong to which workload, kept up to date by two stores.

    A pod belongs to its controller, and through a ReplicaSet to the ReplicaSet's controller, in its own namespace
    alone. Finished pods never count; facts are made once for each version of a pod and shared between ticks.
    """

    def __init__(self, pods: Store[WirePod], replica_sets: Store[WireWorkload]) -> None:
        self._facts: dict[Owner, dict[Key, Pod]] = defaultdict(dict)  # by the direct owner
        self._together: dict[Owner, tuple[Pod, ...]] = {}  # the same, until one of them changes
        self._raw: dict[Owner, dict[Key, WirePod]] = defaultdict(dict)
        self._sets: dict[Owner, dict[Key, str]] = defaultdict(dict)  # owner -> uids of its ReplicaSets
        self.bridged: dict[Key, WirePod] = {}  # those with more cpu than written, whoever they belong to
        pods.on_change(self._pod_changed)
        replica_sets.on_change(self._set_changed)

    def facts(self, namespace: str, uid: str) -> tuple[Pod, ...]:
        """Every unfinished pod of the workload of this namespace with this uid; the same tuple while none changes."""
        found = [pods for owner in self._owners(namespace, uid) if (pods := self._of_owner(owner))]
        return found[0] if len(found) == 1 else tuple(pod for pods in found for pod in pods)

    def pods(self, namespace: str, uid: str) -> list[WirePod]:
        """The same pods, and the finished ones, as the API server gives them."""
        return [pod for owner in self._owners(namespace, uid) for pod in self._raw.get(owner, {}).values()]

    def _of_owner(self, owner: Owner) -> tuple[Pod, ...]:
        if owner not in self._together and owner in self._facts:
            self._together[owner] = tuple(self._facts[owner].values())
        return self._together.get(owner, ())

    def _owners(self, namespace: str, uid: str) -> list[Owner]:
        return [(namespace, owner) for owner in (uid, *self._sets.get((namespace, uid), {}).values())]

    def _pod_changed(self, key: Key, new: WirePod | None, old: WirePod | None) -> None:
        if new is not None and factor_on(new) > 1.0:
            self.bridged[key] = new
        else:
            self.bridged.pop(key, None)
        if old is not None and (owner := _owner(old.metadata)):
            self._together.pop(owner, None)
            self._facts[owner].pop(key, None)
            self._raw[owner].pop(key, None)
            if not self._raw[owner]:
                del self._raw[owner]
                self._facts.pop(owner, None)
        if new is not None and (owner := _owner(new.metadata)):
            self._together.pop(owner, None)
            self._raw[owner][key] = new
            if new.status.phase not in FINISHED:
                self._facts[owner][key] = pod_from_wire(new)

    def _set_changed(self, key: Key, new: WireWorkload | None, old: WireWorkload | None) -> None:
        if old is not None and (owner := _owner(old.metadata)):
            self._sets[owner].pop(key, None)
            if not self._sets[owner]:
                del self._sets[owner]
        if new is not None and (owner := _owner(new.metadata)):
            self._sets[owner][key] = new.metadata.uid


def _owner(meta: ObjectMeta) -> Owner | None:
    uid = owner_uid(meta)
    return (meta.namespace, uid) if uid else None
