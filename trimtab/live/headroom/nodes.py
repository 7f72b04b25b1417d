"""nodes: a pod must fit the largest node it may run on: what that has for pods, less the DaemonSets' share.

Looked at: nodeSelector, cordons, taints that keep pods away. Where no node is seen at all (Roles only, a pool that is
scaled to zero) nothing can be said, and nothing is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from trimtab.core.model import Veto
from trimtab.live.headroom.pods import Sized, text
from trimtab.policy import RESOURCES, Axis, Direction
from trimtab.wire.from_kubernetes import FINISHED, fact, size_of
from trimtab.wire.objects import Node, Taint, TemplateSpec, Toleration, WirePod

EXCEEDS_NODE = "ExceedsNode"
KEEP_AWAY = ("NoSchedule", "NoExecute")
Share = tuple[float, float]  # cores and bytes
EXACT = 1.0 + 1e-9


class Space(NamedTuple):
    """What one node has for the pods of workloads."""

    node: str
    share: Share


class Nodes:
    """The nodes of one tick, added up when first asked for."""

    def __init__(self, nodes: Iterable[Node], pods: Iterable[WirePod]) -> None:
        taken = _daemons(pods)
        self._spaces = [(node, _space(node, taken[node.metadata.name])) for node in nodes]
        self._largest: dict[tuple[object, ...], list[Space]] = {}

    def vetoes(self, template: TemplateSpec, pods: Sequence[Sized]) -> Iterator[Veto]:
        spaces = self._for(template)
        needs = {_need(pod, after=True): pod for pod in pods if _grows(pod)}
        for need, pod in needs.items() if spaces else ():
            if not any(_fits(need, space.share) for space in spaces):
                yield from _blame(need, _need(pod, after=False), spaces)
                return

    def _for(self, template: TemplateSpec) -> list[Space]:
        """Where its pods may run; only those that no other surpasses on both axes."""
        key = (tuple(sorted((template.node_selector or {}).items())), template.tolerations)
        if key not in self._largest:
            self._largest[key] = _front([space for node, space in self._spaces if _welcomes(node, template)])
        return self._largest[key]


def _daemons(pods: Iterable[WirePod]) -> dict[str, list[Share]]:
    """What DaemonSets take of each node."""
    taken: dict[str, list[Share]] = defaultdict(list)
    for pod in pods:
        owner = pod.metadata.controller
        if owner is not None and owner.kind == "DaemonSet" and pod.status.phase not in FINISHED:
            sizes = fact(pod).containers.values()
            share = sum(size.cpu_cores or 0.0 for size in sizes), sum(size.memory_bytes or 0.0 for size in sizes)
            taken[pod.spec.node_name].append(share)
    return taken


def _space(node: Node, taken: list[Share]) -> Space:
    whole = size_of(node.status.allocatable)
    cpu = (whole.cpu_cores or 0.0) - sum(share[0] for share in taken)
    return Space(node.metadata.name, (cpu, (whole.memory_bytes or 0.0) - sum(share[1] for share in taken)))


def _welcomes(node: Node, template: TemplateSpec) -> bool:
    labels = node.metadata.labels or {}
    return (
        not node.spec.unschedulable
        and (template.node_selector or {}).items() <= labels.items()
        and all(_tolerated(taint, template.tolerations) for taint in node.spec.taints if taint.effect in KEEP_AWAY)
    )


def _tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    return any(
        toleration.effect in ("", taint.effect)
        and toleration.key in ("", taint.key)
        and (toleration.operator == "Exists" or toleration.value == taint.value)
        for toleration in tolerations
    )


def _front(spaces: list[Space]) -> list[Space]:
    front: list[Space] = []
    for space in sorted(spaces, key=lambda space: space.share, reverse=True):
        if not front or space.share[1] > front[-1].share[1]:
            front.append(space)
    return front


def _need(pod: Sized, after: bool) -> Share:
    sizes = pod.after if after else pod.before
    return pod.request(Axis.CPU, sizes), pod.request(Axis.MEMORY, sizes)


def _grows(pod: Sized) -> bool:
    return any(new > old for new, old in zip(_need(pod, after=True), _need(pod, after=False), strict=True))


def _fits(need: Share, share: Share) -> bool:
    return need[0] <= share[0] * EXACT and need[1] <= share[1] * EXACT


def _blame(need: Share, before: Share, spaces: list[Space]) -> Iterator[Veto]:
    """The axes that grow and that no node has room for; where each fits somewhere but not together, all that grow."""
    growing = [place for place in (0, 1) if need[place] > before[place]]
    alone = [place for place in growing if all(need[place] > space.share[place] * EXACT for space in spaces)]
    for place in alone or growing:
        best = max(spaces, key=lambda space: space.share[place])
        yield _veto(RESOURCES[place], need[place], best, best.share[place])


def _veto(axis: Axis, need: float, best: Space, have: float) -> Veto:
    detail = (
        f"a pod would need {text(axis, need)} of {axis}, and Node {best.node}, the largest it may run on, has "
        f"{text(axis, max(0.0, have))} for it beside its DaemonSets: add a larger node, or set a smaller maxAllowed"
    )
    return Veto(axis=axis, direction=Direction.UP, reason=EXCEEDS_NODE, detail=detail)
