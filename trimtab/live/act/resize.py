"""resize: requests and limits onto pods in place, or into the template, which is a rollout and obeys its rules.

In place: strategic merge of pods/resize, growing pods at once, shrinking ones one at a time. Pods that come later have
the template's size and are resized when first seen. Deferred and Infeasible come back as a pod condition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

from trimtab.core.model import ContainerSize
from trimtab.errors import Refused
from trimtab.live.look.cluster import ScaleTarget
from trimtab.policy import Apply
from trimtab.wire.from_kubernetes import (
    FINISHED,
    amounts,
    carries,
    condition,
    factor_on,
    grown,
    manager_of,
    same_size,
    seconds,
    written_sizes,
)
from trimtab.wire.kube import Kube, Patch
from trimtab.wire.objects import WirePod, WireWorkload
from trimtab.wire.resources import PODS

Sizes = Mapping[str, ContainerSize]
DEFERRED_S = 300.0


class Stuck(NamedTuple):
    """A pod that cannot be resized where it is."""

    pod: str
    reason: str  # Deferred or Infeasible
    since: float
    message: str


async def in_place(writer: Kube, pods: Sequence[WirePod], sizes: Sizes) -> int:
    """Bring pods to their sizes; how many were written. Refused only when nothing else could be written either.

    A pod that changed meanwhile waits for the next tick.
    """
    written, refused, shrunk = 0, None, any(_in_progress(pod) for pod in pods)
    for pod in pods:
        wanted = _differs(pod, sizes)
        if not wanted or pod.metadata.deletion_timestamp is not None or pod.status.phase in FINISHED:
            continue
        shrinks = _shrinks(pod, wanted)
        if shrinks and shrunk:
            continue
        try:
            if await _patch(writer, pod, wanted):
                written, shrunk = written + 1, shrunk or shrinks
        except Refused as refusal:
            refused = refusal
    if refused is not None and not written:
        raise refused
    return written


async def one_by_one(writer: Kube, pods: Sequence[WirePod], sizes: Sizes) -> None:
    """Bring these pods to their sizes, growing or shrinking, without waiting for a tick between them.

    Nobody looks again, so one refusal is told, after the others.
    """
    refused = None
    for pod in pods:
        try:
            if wanted := _differs(pod, sizes):
                await _patch(writer, pod, wanted)
        except Refused as refusal:
            refused = refusal
    if refused is not None:
        raise refused


async def template(writer: Kube, target: ScaleTarget, sizes: Sizes) -> None:
    """Patch the template's containers; injected sidecars are not in it, so they are never touched."""
    assert target.workload is not None
    known = {container.name for container in target.workload.spec.template.spec.containers}
    containers = [_container(name, size) for name, size in sizes.items() if name in known]
    body = {
        "metadata": {"resourceVersion": target.version},
        "spec": {"template": {"spec": {"containers": containers}}},
    }
    await writer.patch(WireWorkload, target.resource, target.namespace, target.name, body, Patch.STRATEGIC)


def stuck(pods: Sequence[WirePod]) -> list[Stuck]:
    """Pods whose resize the kubelet has put off or ruled out."""
    found = []
    for pod in pods:
        pending = condition(pod.status.conditions, "PodResizePending")
        if pending is not None and pending.status == "True":
            since = seconds(pending.last_transition_time) or 0.0
            found.append(Stuck(pod.metadata.name, pending.reason, since, pending.message))
    return found


def gives_up(apply: Apply, waiting: Sequence[Stuck], at: float) -> bool:
    """InPlaceOrRecreate falls back after Infeasible, or Deferred for five minutes."""
    return apply is Apply.IN_PLACE_OR_RECREATE and any(
        pod.reason == "Infeasible" or at - pod.since >= DEFERRED_S for pod in waiting
    )


async def _patch(writer: Kube, pod: WirePod, wanted: Sizes) -> bool:
    """New written sizes; a bridge stays on top of them."""
    factor, bridged = factor_on(pod), {container.name for container in carries(pod)}
    sizes = {name: grown(size, factor) if name in bridged else size for name, size in wanted.items()}
    return await patch(writer, pod, sizes, factor)


async def patch(writer: Kube, pod: WirePod, sizes: Sizes, factor: float) -> bool:
    """Write the sizes of one pod, in which a bridge of this factor is counted; False when somebody was faster."""
    meta = pod.metadata
    containers = [_container(name, size) for name, size in sizes.items()]
    body = {"metadata": {"resourceVersion": meta.resource_version}, "spec": {"containers": containers}}
    try:
        await writer.patch(
            WirePod, PODS, meta.namespace, meta.name, body, Patch.STRATEGIC, "resize", manager_of(factor)
        )
    except Refused as refusal:
        if refusal.status not in (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND):
            raise
        return False
    return True


def _differs(pod: WirePod, sizes: Sizes) -> dict[str, ContainerSize]:
    now = written_sizes(pod)
    return {name: size for name, size in sizes.items() if name in now and not same_size(now[name], size)}


def _shrinks(pod: WirePod, wanted: Sizes) -> bool:
    now = {name: size.requests for name, size in written_sizes(pod).items()}
    return any(
        (size.requests.cpu_cores or 0) < (now[name].cpu_cores or 0) - 5e-4
        or (size.requests.memory_bytes or 0) < (now[name].memory_bytes or 0) - 1
        for name, size in wanted.items()
    )


def _in_progress(pod: WirePod) -> bool:
    """The kubelet is at it. What it has put off or ruled out may wait for ever, and holds up nobody."""
    found = condition(pod.status.conditions, "PodResizeInProgress")
    return found is not None and found.status == "True"


def _container(name: str, size: ContainerSize) -> dict[str, Any]:
    resources = {"requests": amounts(size.requests), "limits": amounts(size.limits)}
    return {"name": name, "resources": {key: value for key, value in resources.items() if value}}
