"""Pods and workloads of the API server as facts of the core; membership goes by owner reference, never by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

import msgspec

from trimtab.core.model import ContainerSize, Pod
from trimtab.core.requests import ContainerRequest, with_requests
from trimtab.kinds.selector import Selector
from trimtab.policy import Size
from trimtab.quantity import format_cpu, format_memory, parse_quantity
from trimtab.wire.objects import Container, ObjectMeta, Resources, WireCondition, WirePod, WireWorkload
from trimtab.wire.watch import Key, Store

FINISHED = ("Succeeded", "Failed")
OOM_KILLED, EVICTED = "OOMKilled", "Evicted"


def seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def size_of(written: Mapping[str, str | int | float] | None) -> Size:
    """Requests or limits; what is not set stays None, which is not zero."""
    given = written or {}
    cpu, memory = given.get("cpu"), given.get("memory")
    return Size(
        cpu_cores=None if cpu is None else parse_quantity(cpu),
        memory_bytes=None if memory is None else parse_quantity(memory),
    )


def amounts(size: Size) -> dict[str, str]:
    """The other way round: what is None is left out."""
    written = {}
    if size.cpu_cores is not None:
        written["cpu"] = format_cpu(size.cpu_cores)
    if size.memory_bytes is not None:
        written["memory"] = format_memory(size.memory_bytes)
    return written


def fact(pod: WirePod) -> Pod:
    """What the core knows of one pod."""
    ready = condition(pod.status.conditions, "Ready")
    bare = Pod(
        name=pod.metadata.name,
        phase=pod.status.phase or "Pending",
        ready=None if ready is None else ready.status == "True",
        created_at=seconds(pod.metadata.creation_timestamp),
        started_at=seconds(pod.status.start_time),
        ready_since=seconds(ready.last_transition_time) if ready else None,
        deleting=pod.metadata.deletion_timestamp is not None,
    )
    level = size_of(pod.spec.resources.requests) if pod.spec.resources else None
    return with_requests(bare, _requests(pod), level)


def _requests(pod: WirePod) -> list[ContainerRequest]:
    main = [_request(one) for one in pod.spec.containers]
    return main + [_request(one, init=True) for one in pod.spec.init_containers]


def _request(one: Container, init: bool = False) -> ContainerRequest:
    return ContainerRequest(
        name=one.name,
        request=size_of(one.resources.requests),
        init=init,
        restartable=one.restart_policy == "Always",
    )


def condition(conditions: tuple[WireCondition, ...], kind: str) -> WireCondition | None:
    return next((one for one in conditions if one.type == kind), None)


def container_size(resources: Resources) -> ContainerSize:
    return ContainerSize(requests=size_of(resources.requests), limits=size_of(resources.limits))


def template_sizes(workload: WireWorkload) -> dict[str, ContainerSize]:
    """Requests and limits of the pod template's containers: injected sidecars are not among them."""
    return {one.name: container_size(one.resources) for one in workload.spec.template.spec.containers}


def selector_of(workload: WireWorkload) -> str:
    """Which pods are the workload's own, as `kubectl -l` takes it."""
    return Selector.model_validate_json(msgspec.json.encode(workload.spec.selector)).text


def overloaded(pod: WirePod, since: float) -> bool:
    """A container was killed for its memory, or the pod was evicted, after `since`."""
    if pod.status.phase == "Failed" and pod.status.reason == EVICTED:
        return (seconds(pod.metadata.creation_timestamp) or 0.0) > since
    return any((at := killed_at(pod, one.name)) is not None and at > since for one in pod.status.container_statuses)


def killed_at(pod: WirePod, container: str) -> float | None:
    """When this container was last killed for its memory."""
    for status in pod.status.container_statuses:
        for state in (status.state, status.last_state):
            ended = state.terminated
            if status.name == container and ended is not None and ended.reason == OOM_KILLED:
                return seconds(ended.finished_at) or 0.0
    return None


class Members:
    """Which pods belong to which workload, kept up to date by two stores.

    A pod belongs to its controller, and through a ReplicaSet to the ReplicaSet's controller. Finished pods never
    count; facts are made once for each version of a pod and shared between ticks.
    """

    def __init__(self, pods: Store[WirePod], replica_sets: Store[WireWorkload]) -> None:
        self._facts: dict[str, dict[Key, Pod]] = defaultdict(dict)  # by uid of the direct owner
        self._raw: dict[str, dict[Key, WirePod]] = defaultdict(dict)
        self._sets: dict[str, dict[Key, str]] = defaultdict(dict)  # uid of the owner -> its ReplicaSets
        pods.on_change(self._pod_changed)
        replica_sets.on_change(self._set_changed)

    def facts(self, uid: str) -> tuple[Pod, ...]:
        """Every unfinished pod of the workload with this uid."""
        return tuple(pod for owner in self._owners(uid) for pod in self._facts.get(owner, {}).values())

    def pods(self, uid: str) -> list[WirePod]:
        """The same pods, and the finished ones, as the API server gives them."""
        return [pod for owner in self._owners(uid) for pod in self._raw.get(owner, {}).values()]

    def _owners(self, uid: str) -> list[str]:
        return [uid, *self._sets.get(uid, {}).values()]

    def _pod_changed(self, key: Key, new: WirePod | None, old: WirePod | None) -> None:
        if old is not None and (owner := _owner(old.metadata)):
            self._facts[owner].pop(key, None)
            self._raw[owner].pop(key, None)
            if not self._raw[owner]:
                del self._raw[owner]
                self._facts.pop(owner, None)
        if new is not None and (owner := _owner(new.metadata)):
            self._raw[owner][key] = new
            if new.status.phase not in FINISHED:
                self._facts[owner][key] = fact(new)

    def _set_changed(self, key: Key, new: WireWorkload | None, old: WireWorkload | None) -> None:
        if old is not None and (owner := _owner(old.metadata)):
            self._sets[owner].pop(key, None)
            if not self._sets[owner]:
                del self._sets[owner]
        if new is not None and (owner := _owner(new.metadata)):
            self._sets[owner][key] = new.metadata.uid


def _owner(meta: ObjectMeta) -> str:
    return meta.controller.uid if meta.controller else ""
