"""sizes: read what size the containers of a target have, bridges included, and fit the policy to the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from trimtab.core.model import ContainerSize, Veto
from trimtab.core.overload import still_matters
from trimtab.errors import InvalidInput
from trimtab.kinds.images import is_jvm
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.live.look.memory import ObjectMemory, OomKill
from trimtab.live.look.subject import Subject
from trimtab.policy import RESOURCES, Apply, Policy, Size
from trimtab.wire.from_kubernetes import (
    FINISHED,
    carries,
    condition,
    factor_on,
    grown,
    has_sizes,
    killed_at,
    overloaded_at,
    resized_at,
    rfc3339,
    same_size,
    seconds,
    template_sizes,
    written_sizes,
)
from trimtab.wire.objects import WireCondition, WirePod
from trimtab.wire.resources import DAEMON_SETS

POD_LEVEL = "PodLevelResources"


def resizes_in_place(policy: Policy) -> bool:
    """Whether sizes are written to pods and the template stays."""
    return policy.vertical is not None and policy.vertical.apply in (Apply.IN_PLACE, Apply.IN_PLACE_OR_RECREATE)


def drop_foreign_sizes(memory: ObjectMemory, policy: Policy) -> ObjectMemory:
    """Forget in-place sizes when the policy no longer resizes in place: newer pods have the template's size."""
    return memory if resizes_in_place(policy) or not memory.sizes else replace(memory, sizes={}, template={})


def current_sizes(subject: Subject, target: ScaleTarget, memory: ObjectMemory) -> dict[str, ContainerSize]:
    """Return the size in force of each template container; empty where only the scale of the kind is known."""
    if subject.policy.vertical is None or target.workload is None:
        return {}
    template = template_sizes(target.workload)
    return memory.sizes if memory.sizes and memory.template == template else template


def written_for(subject: Subject, target: ScaleTarget, memory: ObjectMemory) -> dict[str, Size]:
    """Return the requests that the user wrote last, where pods have ours: metrics and targets refer to them.

    In place they stand in the template. A rollout replaced them there, so they are remembered.
    """
    if subject.policy.vertical is None or target.workload is None:
        return {}
    if memory.sizes:
        return {name: size.requests for name, size in template_sizes(target.workload).items()}
    return written_before(template_sizes(target.workload), memory) if memory.patched is not None else {}


def written_before(template: Mapping[str, ContainerSize], memory: ObjectMemory) -> dict[str, Size]:
    """Return the requests in the template, and where they are ours, those that the user wrote before."""
    patched = memory.patched
    if patched is None:
        return {name: size.requests for name, size in template.items()}
    return {
        name: patched.written.get(name, size.requests)
        if same_size(size, patched.sizes.get(name, size))
        else size.requests
        for name, size in template.items()
    }


def fit_to_target(subject: Subject, target: ScaleTarget) -> Subject:
    """Return the subject with its policy limited to what its target allows."""
    return _keep_jvm_memory(_only_advise_daemons(subject, target), target)


def pod_level_vetoes(policy: Policy, target: ScaleTarget) -> tuple[Veto, ...]:
    """Hold the sizes of pods with resources of their own, which a resize of a container would not move."""
    if policy.vertical is None or target.workload is None or target.workload.spec.template.spec.resources is None:
        return ()
    detail = "the pod template sets resources for the whole pod, which trimtab does not resize; set them per container"
    return tuple(Veto(axis=axis, direction=None, reason=POD_LEVEL, detail=detail) for axis in RESOURCES)


def _only_advise_daemons(subject: Subject, target: ScaleTarget) -> Subject:
    """A DaemonSet has one pod per node: there are no replicas to move, and a new size is advice."""
    policy = subject.policy
    if target.resource != DAEMON_SETS:
        return subject
    if policy.signals or policy.blend or policy.bounds.min_replicas > 1 or policy.vertical is None:
        fix = "it has one pod per node: leave out everything but `vertical`, which advises on its requests"
        raise InvalidInput("scaleTargetRef.kind", "DaemonSet", fix)
    return subject._replace(policy=replace(policy, vertical=replace(policy.vertical, apply=Apply.NEVER)))


def _keep_jvm_memory(subject: Subject, target: ScaleTarget) -> Subject:
    """Never lower the memory of JVM images: the heap does not give it back."""
    vertical, workload = subject.policy.vertical, target.workload
    if vertical is None or workload is None:
        return subject
    if not any(is_jvm(container.image) for container in workload.spec.template.spec.containers):
        return subject
    return subject._replace(policy=replace(subject.policy, vertical=replace(vertical, keep_memory=True)))


def note_kills(cluster: WatchedCluster, target: ScaleTarget, memory: ObjectMemory, policy: Policy) -> ObjectMemory:
    """Note the last OOM kill of each container with the request it had then, which no later resize changes."""
    if policy.vertical is None or target.workload is None:
        return memory
    template, kills = template_sizes(target.workload), dict(memory.oom_kills)
    for pod in cluster.members.pods(target.namespace, target.uid):
        for name in template:
            finished_at, known = killed_at(pod, name), kills.get(name)
            if finished_at is not None and (known is None or finished_at > known.finished_at):
                request_bytes = _request_at(finished_at, pod, name, template)
                kills[name] = OomKill(finished_at=finished_at, request_bytes=request_bytes, pod=pod.metadata.name)
    kills = {name: kill for name, kill in kills.items() if name in template}
    return memory if kills == memory.oom_kills else replace(memory, oom_kills=kills)


def _request_at(finished_at: float, pod: WirePod, container: str, template: dict[str, ContainerSize]) -> float:
    """Return the memory the container asked for when it was killed.

    Where we resized the pod since, and nobody remembers from which size, the template's is the safe answer: a basis
    that is too small is corrected by the next kill, one that is too large grows with every leader.
    """
    sizes = [written_sizes(pod)[container]] if container in written_sizes(pod) else []
    if resized_at(pod) >= rfc3339(finished_at):
        sizes.append(template[container])
    return min((size.requests.memory_bytes or 0.0 for size in sizes), default=0.0)


def note_overload(
    cluster: WatchedCluster, target: ScaleTarget, memory: ObjectMemory, policy: Policy, at: float
) -> ObjectMemory:
    """Note an OOM kill or eviction that no scaling has answered, so that nothing which helps waits.

    Where nothing can answer it, as for a container at its largest size, it ends after the OOM rest.
    """
    core = memory.core
    died_at = None if policy.vertical is None else _died_at(cluster, target, memory)
    if policy.vertical is None or (died_at is None and not core.overloaded):
        return memory
    last = max((moment for moment in (died_at, core.overloaded_at) if moment is not None), default=at)
    if at >= last + policy.vertical.oom_rest_s:
        return replace(memory, core=replace(core, overloaded=False, overloaded_at=None))
    return replace(memory, core=replace(core, overloaded=True, overloaded_at=last))


def _died_at(cluster: WatchedCluster, target: ScaleTarget, memory: ObjectMemory) -> float | None:
    """Return the last death that still matters, of a container of the template."""
    in_force = memory.sizes or (template_sizes(target.workload) if target.workload else {})
    shown = [(pod, overloaded_at(pod, in_force)) for pod in cluster.members.pods(target.namespace, target.uid)]
    scaled_at = memory.core.scaled_at
    matters = (
        died_at
        for pod, died_at in shown
        if died_at is not None and still_matters(died_at, scaled_at, bool(pod.spec.node_name), has_sizes(pod, in_force))
    )
    return max(matters, default=None)


class BridgeInForce(NamedTuple):
    """How the pods of one workload carry the bridge: more CPU than written, for a while."""

    pods: int = 0  # resized ones; not those whose resize is deferred or infeasible
    left_out: tuple[str, ...] = ()  # containers that a resize would restart, or that ask for no cpu


NO_BRIDGE = BridgeInForce()


def bridge_in_force(pods: Sequence[WirePod]) -> BridgeInForce:
    living = [pod for pod in pods if pod.status.phase not in FINISHED and pod.metadata.deletion_timestamp is None]
    bridged = sum(1 for pod in living if factor_on(pod) > 1.0 and _pending(pod) is None)
    left_out = {container.name for pod in living for container in pod.spec.containers if container not in carries(pod)}
    return BridgeInForce(bridged, tuple(sorted(left_out)))


class StuckResize(NamedTuple):
    """A pod whose resize the kubelet has deferred or called infeasible."""

    pod: str
    reason: str  # Deferred or Infeasible
    since: float
    message: str


def stuck_resizes(pods: Sequence[WirePod]) -> list[StuckResize]:
    """Return the pods whose resize the kubelet has deferred or called infeasible."""
    found = []
    for pod in pods:
        if pending := _pending(pod):
            since = seconds(pending.last_transition_time) or 0.0
            found.append(StuckResize(pod.metadata.name, pending.reason, since, pending.message))
    return found


def _pending(pod: WirePod) -> WireCondition | None:
    found = condition(pod.status.conditions, "PodResizePending")
    return found if found is not None and found.status == "True" else None


class ResizeProgress(NamedTuple):
    """How many pods of one workload have the size in force, and which ones the kubelet keeps waiting."""

    sized: int = 0
    pods: int = 0
    stuck: tuple[StuckResize, ...] = ()


def resize_progress(pods: Sequence[WirePod], in_force: Mapping[str, ContainerSize]) -> ResizeProgress:
    living = [pod for pod in pods if pod.status.phase not in FINISHED and pod.metadata.deletion_timestamp is None]
    sized = sum(1 for pod in living if has_sizes(pod, in_force))
    return ResizeProgress(sized, len(living), tuple(stuck_resizes(living)))


def is_ready(pod: WirePod) -> bool:
    found = condition(pod.status.conditions, "Ready")
    return found is not None and found.status == "True" and pod.metadata.deletion_timestamp is None


def cpu_with(pod: WirePod, factor: float) -> dict[str, ContainerSize]:
    """Return the CPU of each container that the bridge grows; never its memory."""
    sizes = written_sizes(pod)
    larger = {container.name: grown(sizes[container.name], factor) for container in carries(pod)}
    return {
        name: ContainerSize(
            requests=Size(cpu_cores=size.requests.cpu_cores), limits=Size(cpu_cores=size.limits.cpu_cores)
        )
        for name, size in larger.items()
    }
