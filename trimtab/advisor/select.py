"""select: the workloads an Analytics speaks of; its own namespace, or all of them from the operator's own."""

from __future__ import annotations

from http import HTTPStatus

from trimtab.advisor.targets import AdvisedTarget, read_targets
from trimtab.errors import InvalidInput, Refused
from trimtab.kinds.analytics import Analytics, ObjectReference, ResourceSelector
from trimtab.wire.kube import Kube
from trimtab.wire.resources import DAEMON_SETS, Resource


async def select(kube: Kube, analytics: Analytics, everywhere: bool, at: float) -> list[AdvisedTarget]:
    """Each target once, in the order of the selectors; Refused when nothing matches."""
    wanted = [
        (selector, await advisable(kube, selector.api_version, selector.kind, analytics.namespace))
        for selector in analytics.spec.resource_selectors
    ]
    namespace = "" if everywhere else analytics.namespace
    resources = dict.fromkeys(resource for _, resource in wanted)
    targets = await read_targets(kube, (namespace,), at, resources=resources)
    chosen = {
        target.key: target
        for selector, resource in wanted
        for target in targets
        if (target.api_version, target.kind) == (resource.api_version, resource.kind) and matches(selector, target)
    }
    if not chosen:
        where = "any namespace" if everywhere else f"namespace {analytics.namespace}, where it looks,"
        fix = (
            ""
            if everywhere
            else f"; to look everywhere from there: trimtab run --advice-namespace {analytics.namespace}"
        )
        raise Refused(f"no workload in {where} matches spec.resourceSelectors{fix}", HTTPStatus.NOT_FOUND)
    return list(chosen.values())


def matches(selector: ResourceSelector, target: AdvisedTarget) -> bool:
    """A name decides alone; labels are the workload's own and those of its pod selector."""
    if selector.name:
        return selector.name == target.name
    return selector.label_selector is None or selector.label_selector.matches(target.matched)


async def find(kube: Kube, ref: ObjectReference, namespace: str, everywhere: bool, at: float) -> AdvisedTarget:
    """The target of a Recommendation that stands for itself."""
    inside = ref.namespace or namespace
    if inside != namespace and not everywhere:
        fix = "a Recommendation outside the operator's namespace may only point at its own"
        raise InvalidInput("spec.targetRef.namespace", ref.namespace, fix)
    resource = await advisable(kube, ref.api_version or "apps/v1", ref.kind, namespace)
    for target in await read_targets(kube, (inside,), at, resources=(resource,)):
        if target.name == ref.name:
            return target
    raise Refused(f"{ref.kind} {inside}/{ref.name} does not exist", HTTPStatus.NOT_FOUND)


async def advisable(kube: Kube, api_version: str, kind: str, asker: str) -> Resource:
    """DaemonSets pass: their requests are advised on; what has no replicas at all is a mistake."""
    resource = await kube.resource(api_version, kind, asker)
    if not resource.scalable and resource != DAEMON_SETS:
        fix = "it has no scale subresource, or no namespace; choose Deployments, StatefulSets or the like"
        raise InvalidInput("kind", kind, fix)
    return resource
