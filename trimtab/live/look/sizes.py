"""sizes: what size the containers of a target have, and what its kind and its images mean for the policy."""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.core.model import ContainerSize
from trimtab.core.overload import still_matters
from trimtab.errors import InvalidInput
from trimtab.kinds.images import is_jvm
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.live.look.memory import ObjectMemory
from trimtab.live.look.subject import Subject
from trimtab.policy import Apply, Policy, Size
from trimtab.wire.from_kubernetes import has_sizes, overloaded_at, template_sizes
from trimtab.wire.resources import DAEMON_SETS


def in_place(policy: Policy) -> bool:
    """Whether sizes are written to pods and the template stays."""
    return policy.vertical is not None and policy.vertical.apply in (Apply.IN_PLACE, Apply.IN_PLACE_OR_RECREATE)


def of_policy(memory: ObjectMemory, policy: Policy) -> ObjectMemory:
    """Sizes in place last no longer than the policy that wrote them: pods made since have the template's."""
    return memory if in_place(policy) or not memory.sizes else replace(memory, sizes={}, template={})


def now(subject: Subject, target: ScaleTarget, memory: ObjectMemory) -> dict[str, ContainerSize]:
    """What each container of the template has; nothing for kinds of which only the scale is known."""
    if subject.policy.vertical is None or target.workload is None:
        return {}
    template = template_sizes(target.workload)
    return memory.sizes if memory.sizes and memory.template == template else template


def written_for(subject: Subject, target: ScaleTarget, memory: ObjectMemory) -> dict[str, Size]:
    """The template's requests, which the user's percentages speak of, while pods have sizes of ours."""
    if subject.policy.vertical is None or target.workload is None or not memory.sizes:
        return {}
    return {name: size.requests for name, size in template_sizes(target.workload).items()}


def fitted(subject: Subject, target: ScaleTarget) -> Subject:
    """The policy as its target allows."""
    return _with_images(_only_advised(subject, target), target)


def _only_advised(subject: Subject, target: ScaleTarget) -> Subject:
    """A DaemonSet has one pod per node: there are no replicas to move, and a new size is advice."""
    policy = subject.policy
    if target.resource != DAEMON_SETS:
        return subject
    if policy.signals or policy.blend or policy.bounds.min_replicas > 1 or policy.vertical is None:
        fix = "it has one pod per node: leave out everything but `vertical`, which advises on its requests"
        raise InvalidInput("scaleTargetRef.kind", "DaemonSet", fix)
    return subject._replace(policy=replace(policy, vertical=replace(policy.vertical, apply=Apply.NEVER)))


def _with_images(subject: Subject, target: ScaleTarget) -> Subject:
    """JVM images: memory is never lowered by itself, because the heap does not give it back."""
    vertical, workload = subject.policy.vertical, target.workload
    if vertical is None or workload is None:
        return subject
    if not any(is_jvm(container.image) for container in workload.spec.template.spec.containers):
        return subject
    return subject._replace(policy=replace(subject.policy, vertical=replace(vertical, keep_memory=True)))


def overloaded(
    cluster: WatchedCluster, target: ScaleTarget, memory: ObjectMemory, policy: Policy, at: float
) -> ObjectMemory:
    """The memory with a kill or an eviction that nobody has answered yet: nothing that helps should wait.

    Where nothing can answer it, as for a container at its largest size, it is over after the rest.
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
    """The last death that still matters, of a container of the template: nobody sizes another one."""
    in_force = memory.sizes or (template_sizes(target.workload) if target.workload else {})
    shown = [(pod, overloaded_at(pod, in_force)) for pod in cluster.members.pods(target.namespace, target.uid)]
    scaled_at = memory.core.scaled_at
    matters = (
        died_at
        for pod, died_at in shown
        if died_at is not None and still_matters(died_at, scaled_at, bool(pod.spec.node_name), has_sizes(pod, in_force))
    )
    return max(matters, default=None)
