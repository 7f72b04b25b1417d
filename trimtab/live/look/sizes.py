"""sizes: what size the containers of a target have, and what its kind and its images mean for the policy."""

from __future__ import annotations

import re

from msgspec.structs import replace

from trimtab.core.model import ContainerSize
from trimtab.errors import InvalidInput
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.live.look.memory import ObjectMemory
from trimtab.live.look.subject import Subject
from trimtab.policy import Apply, Policy, Size
from trimtab.wire.facts import newest_overload, template_sizes
from trimtab.wire.resources import DAEMON_SETS

JVM = re.compile(
    r"(^|[/_.-])(java|jdk|jre|jvm|openjdk|temurin|corretto|tomcat|jetty|wildfly|kafka|elasticsearch)", re.I
)


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
    if not any(JVM.search(container.image) for container in workload.spec.template.spec.containers):
        return subject
    return subject._replace(policy=replace(subject.policy, vertical=replace(vertical, keep_memory=True)))


def overloaded(cluster: WatchedCluster, target: ScaleTarget, memory: ObjectMemory, policy: Policy) -> ObjectMemory:
    """A kill or an eviction after the last scaling: nothing that helps should wait."""
    if policy.vertical is None or memory.core.overloaded:
        return memory
    at = newest_overload(cluster.members.pods(target.uid))
    if at is None or at <= (memory.core.scaled_at or 0.0):
        return memory
    return replace(memory, core=replace(memory.core, overloaded=True))
