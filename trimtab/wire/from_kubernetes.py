"""bridged: pods whose cpu is for a while larger than written, as the API server remembers it.

The bridge resizes under a field manager of its own that names the factor. So the pod itself says what was written,
whatever becomes of our memory, and the word is written and taken back in the same request as the size.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from math import isfinite
from typing import Any

import msgspec
from msgspec.structs import replace

from trimtab.core.limits import CPU_GRAIN, first_set, round_down, round_up
from trimtab.core.model import ContainerSize, Pod
from trimtab.core.requests import ContainerRequest, with_requests
from trimtab.kinds.selector import Selector
from trimtab.policy import Size
from trimtab.quantity import format_cpu, format_memory, parse_quantity
from trimtab.wire.objects import (
    FIELD_MANAGER,
    Container,
    ObjectMeta,
    PodSpec,
    Resources,
    WireCondition,
    WirePod,
    WireWorkload,
)

PREFIX = f"{FIELD_MANAGER}-bridge-"
LARGEST = 2.0  # what any bridge of ours has


def manager_of(factor: float) -> str:
    """Under which name a size with this factor is written."""
    return FIELD_MANAGER if factor == 1.0 else f"{PREFIX}{factor:g}"


def factor_on(pod: WirePod) -> float:
    """How many times its written cpu this pod asks for: of our names the one that wrote last says it.

    A bridge that is over keeps its row where it wrote memory, too. Within one second the written size speaks: a factor
    too little is written again, one too many would divide the cpu.
    """
    ours = [owner for owner in pod.metadata.managed_fields if _is_ours(owner.manager)]
    last = max(reversed(ours), key=lambda owner: (owner.time, owner.manager == FIELD_MANAGER), default=None)
    return _factor(last.manager.removeprefix(PREFIX)) if last is not None else 1.0


def resized_at(pod: WirePod) -> str:
    """When we last wrote this pod's sizes, in RFC 3339; "" for never."""
    return max((owner.time for owner in pod.metadata.managed_fields if _is_ours(owner.manager)), default="")


def _is_ours(manager: str) -> bool:
    return manager == FIELD_MANAGER or manager.startswith(PREFIX)


def _factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        return 1.0
    return factor if isfinite(factor) and 1.0 < factor <= LARGEST else 1.0


def grows(container: Container) -> bool:
    """A container that asks for cpu and is not restarted by a resize."""
    restarts = any(
        rule.resource_name == "cpu" and rule.restart_policy == "RestartContainer" for rule in container.resize_policy
    )
    return bool((container.resources.requests or {}).get("cpu")) and not restarts


def carries(pod: WirePod) -> list[Container]:
    """The containers that a bridge is for; none where the pod as a whole has requests, which bind its containers."""
    return [] if pod.spec.resources else [container for container in pod.spec.containers if grows(container)]


def grown(size: ContainerSize, factor: float) -> ContainerSize:
    """Cpu by the factor in whole millicores; `as_written` gives back exactly what was there."""
    return _cpu(size, lambda cores: round_up(cores * factor, CPU_GRAIN))


def as_written(size: ContainerSize, factor: float) -> ContainerSize:
    return _cpu(size, lambda cores: round_down(cores / factor, CPU_GRAIN))


def _cpu(size: ContainerSize, of: Callable[[float], float]) -> ContainerSize:
    return ContainerSize(requests=_with_cpu(size.requests, of), limits=_with_cpu(size.limits, of))


def _with_cpu(size: Size, of: Callable[[float], float]) -> Size:
    return size if size.cpu_cores is None else Size(cpu_cores=of(size.cpu_cores), memory_bytes=size.memory_bytes)


FINISHED = ("Succeeded", "Failed")
OOM_KILLED, EVICTED = "OOMKilled", "Evicted"


def seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


@lru_cache(maxsize=1000)  # all objects of a tick speak of the same few times
def rfc3339(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def conditions_in(status: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Conditions by type; what is no condition, as schemas of others let pass, is left out."""
    given = status.get("conditions")
    found = [condition for condition in given if isinstance(condition, dict)] if isinstance(given, list) else []
    return {condition["type"]: condition for condition in found if isinstance(condition.get("type"), str)}


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


NOT_SCHEDULED = WireCondition()
INSUFFICIENT = re.compile(r"\bInsufficient ([\w./-]*\w)")
LONGEST_REASON = 160


def lacking(message: str) -> str:
    """What the nodes lack, from "0/3 nodes are available: 3 Insufficient cpu. preemption: ...", else all of it."""
    short_of = dict.fromkeys(INSUFFICIENT.findall(message))
    said = ", ".join(f"insufficient {name}" for name in short_of) or message.partition(" preemption:")[0]
    return said[:LONGEST_REASON]


def pod_from_wire(pod: WirePod) -> Pod:
    """What the core knows of one pod."""
    ready = condition(pod.status.conditions, "Ready")
    scheduled = condition(pod.status.conditions, "PodScheduled") or NOT_SCHEDULED
    waits = scheduled.status == "False" and scheduled.reason == "Unschedulable"
    bare = Pod(
        name=pod.metadata.name,
        phase=pod.status.phase or "Pending",
        ready=None if ready is None else ready.status == "True",
        created_at=seconds(pod.metadata.creation_timestamp),
        scheduled_at=seconds(scheduled.last_transition_time) if scheduled.status == "True" else None,
        waits_since=seconds(scheduled.last_transition_time) if waits else None,
        waits_for=lacking(scheduled.message) if waits else "",
        started_at=seconds(pod.status.start_time),
        ready_since=seconds(ready.last_transition_time) if ready else None,
        deleting=pod.metadata.deletion_timestamp is not None,
        bridge=factor_on(pod),
    )
    return with_requests(bare, _requests(pod), pod_level(pod.spec), pod_cpu_limit(pod.spec))


def template_fact(name: str, spec: PodSpec) -> Pod:
    """Return the Pod record of a pod that is created from this template."""
    return with_requests(Pod(name=name), template_requests(spec), pod_level(spec), pod_cpu_limit(spec))


def _requests(pod: WirePod) -> list[ContainerRequest]:
    """As written: a bridge is no request."""
    main = [_request(container) for container in pod.spec.containers]
    if factor_on(pod) > 1.0:
        sizes = written_sizes(pod)
        main = [_sized(container, sizes[container.name]) for container in main]
    return main + [_request(container, init=True) for container in pod.spec.init_containers]


def _sized(container: ContainerRequest, size: ContainerSize) -> ContainerRequest:
    return replace(container, request=size.requests, cpu_limit=size.limits.cpu_cores)


def _request(container: Container, init: bool = False) -> ContainerRequest:
    return ContainerRequest(
        name=container.name,
        request=size_of(container.resources.requests),
        cpu_limit=size_of(container.resources.limits).cpu_cores,
        init=init,
        restartable=container.restart_policy == "Always",
    )


def template_requests(spec: PodSpec) -> list[ContainerRequest]:
    """Those of a pod template, as the API server completes its pods: a limit without a request is the request too."""
    main = [_completed(container, _request(container)) for container in spec.containers]
    return main + [_completed(container, _request(container, init=True)) for container in spec.init_containers]


def _completed(container: Container, written: ContainerRequest) -> ContainerRequest:
    return replace(written, request=first_set(written.request, size_of(container.resources.limits)))


def pod_level(spec: PodSpec) -> Size:
    """What the pod requests as a whole, where it says so."""
    return size_of(spec.resources.requests) if spec.resources else Size()


def pod_cpu_limit(spec: PodSpec) -> float | None:
    return size_of(spec.resources.limits).cpu_cores if spec.resources else None


def condition(conditions: tuple[WireCondition, ...], kind: str) -> WireCondition | None:
    return next((condition for condition in conditions if condition.type == kind), None)


def container_size(resources: Resources) -> ContainerSize:
    return ContainerSize(requests=size_of(resources.requests), limits=size_of(resources.limits))


def template_sizes(workload: WireWorkload) -> dict[str, ContainerSize]:
    """Requests and limits of the pod template's containers: injected sidecars are not among them."""
    return {container.name: container_size(container.resources) for container in workload.spec.template.spec.containers}


def written_sizes(pod: WirePod) -> dict[str, ContainerSize]:
    """Requests and limits of a pod's containers, without a bridge of ours."""
    sizes = {container.name: container_size(container.resources) for container in pod.spec.containers}
    factor = factor_on(pod)
    if factor == 1.0:
        return sizes
    return sizes | {container.name: as_written(sizes[container.name], factor) for container in carries(pod)}


def selector_of(workload: WireWorkload) -> str:
    """Which pods are the workload's own, as `kubectl -l` takes it."""
    return Selector.model_validate_json(msgspec.json.encode(workload.spec.selector)).text


def killed_at(pod: WirePod, container: str) -> float | None:
    """When this container was last killed for its memory."""
    for status in pod.status.container_statuses:
        for state in (status.state, status.last_state):
            ended = state.terminated
            if status.name == container and ended is not None and ended.reason == OOM_KILLED:
                return seconds(ended.finished_at) or 0.0
    return None


def overloaded_at(pod: WirePod, containers: Iterable[str]) -> float | None:
    """When one of these containers of the pod was last killed for its memory, or the pod evicted."""
    moments = [killed_at(pod, name) for name in containers]
    if pod.status.phase == "Failed" and pod.status.reason == EVICTED:
        moments += [seconds(pod.status.start_time or pod.metadata.creation_timestamp)]
        moments += [seconds(one.last_transition_time) for one in pod.status.conditions]  # none is younger than its end
    return max((moment for moment in moments if moment is not None), default=None)


def has_sizes(pod: WirePod, sizes: Mapping[str, ContainerSize]) -> bool:
    """Every container that has a size there has it here too, a bridge of ours aside."""
    return all(same_size(size, sizes[name]) for name, size in written_sizes(pod).items() if name in sizes)


def same_size(now: ContainerSize, wanted: ContainerSize) -> bool:
    """Equal as far as they are set, in whole millicores and bytes."""
    pairs = [(now.requests, wanted.requests), (now.limits, wanted.limits)]
    return all(_same_amounts(left, right) for left, right in pairs)


def _same_amounts(now: Size, wanted: Size) -> bool:
    cpu = wanted.cpu_cores is None or (now.cpu_cores is not None and abs(now.cpu_cores - wanted.cpu_cores) < 5e-4)
    memory = wanted.memory_bytes is None or (
        now.memory_bytes is not None and abs(now.memory_bytes - wanted.memory_bytes) < 1
    )
    return cpu and memory


def owner_uid(meta: ObjectMeta) -> str:
    """The uid of the controller, "" where there is none."""
    return meta.controller.uid if meta.controller else ""
