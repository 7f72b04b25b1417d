"""headroom: find what stands in the way of new container sizes, and veto the change with the way out.

Before pods grow, the operator checks every ResourceQuota, LimitRange and the largest node. Before it changes a pod
template, it also checks the running rollout and the PodDisruptionBudgets. A veto names the blocking object, what it
has, what the pods need and the fix. Vetoes are part of the observation, so that explain and replay know them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from msgspec.structs import replace
from pydantic import ValidationError

from trimtab.core.limits import first_set
from trimtab.core.model import Change, ContainerSize, Veto
from trimtab.errors import quoted
from trimtab.kinds.selector import Selector
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.live.look.sizes import POD_LEVEL, cpu_with, is_ready
from trimtab.live.look.subject import Subject
from trimtab.policy import RESOURCES, Apply, Axis, Direction, Size
from trimtab.quantity import describe_memory, format_cpu, parse_quantity
from trimtab.wire.from_kubernetes import FINISHED, condition, container_size, pod_from_wire, size_of
from trimtab.wire.http import LONGEST_SENTENCE
from trimtab.wire.objects import (
    Container,
    Custom,
    Node,
    PodSpec,
    Taint,
    TemplateSpec,
    Toleration,
    WirePod,
    WireWorkload,
)
from trimtab.wire.resources import DEPLOYMENTS

EXCEEDS_QUOTA, EXCEEDS_LIMIT_RANGE, EXCEEDS_NODE = "ExceedsQuota", "ExceedsLimitRange", "ExceedsNode"
ROLLOUT_FAILED, ROLLOUT_UNDER_WAY, DISRUPTION_FORBIDDEN = "RolloutFailed", "RolloutUnderWay", "DisruptionForbidden"
BLOCKERS = (
    *(EXCEEDS_QUOTA, EXCEEDS_LIMIT_RANGE, EXCEEDS_NODE),
    *(ROLLOUT_UNDER_WAY, ROLLOUT_FAILED, DISRUPTION_FORBIDDEN, POD_LEVEL),
)
REQUESTS, LIMITS = False, True
QUOTA_KEYS = {
    "cpu": (REQUESTS, Axis.CPU),
    "memory": (REQUESTS, Axis.MEMORY),
    "requests.cpu": (REQUESTS, Axis.CPU),
    "requests.memory": (REQUESTS, Axis.MEMORY),
    "limits.cpu": (LIMITS, Axis.CPU),
    "limits.memory": (LIMITS, Axis.MEMORY),
}
OUR_SCOPES = {"NotTerminating", "NotBestEffort"}
NOISE, EXACT = 1e-6, 1.0 + 1e-9
KEEP_AWAY = ("NoSchedule", "NoExecute")
Sizes = Mapping[str, ContainerSize]
Growth = Mapping[bool, Mapping[Axis, float]]  # of requests (False) and of limits (True)
Share = tuple[float, float]  # cores and bytes


class ResizedPod(NamedTuple):
    """One pod with the sizes of its containers, sidecars included, before and after a change."""

    spec: PodSpec
    before: dict[str, ContainerSize]
    after: dict[str, ContainerSize]

    def growth(self, axis: Axis, limits: bool) -> float:
        """Return how much more a quota has to grant."""
        return sum(
            (_part(size, axis, limits) or 0.0) - (_part(self.before[name], axis, limits) or 0.0)
            for name, size in self.after.items()
        )

    def request(self, axis: Axis, sizes: Sizes) -> float:
        """Return what the scheduler looks for: all containers at once, or the largest init container."""
        running = sum(_part(size, axis, limits=False) or 0.0 for size in sizes.values())
        inits = [container for container in self.spec.init_containers if not _is_sidecar(container)]
        first = [size_of(container.resources.requests) for container in inits]
        whole = size_of(self.spec.resources.requests) if self.spec.resources else Size()
        return max([running, whole.amount(axis) or 0.0, *(size.amount(axis) or 0.0 for size in first)])

    def share(self, sizes: Sizes) -> Share:
        return self.request(Axis.CPU, sizes), self.request(Axis.MEMORY, sizes)

    def moves(self, axis: Axis) -> bool:
        return any(_both(size, axis) != _both(self.before[name], axis) for name, size in self.after.items())


class NodeSpace(NamedTuple):
    """What one node can give to the pods of workloads: its allocatable less its DaemonSets."""

    node: str
    share: Share


class RolloutBlocker(NamedTuple):
    """Why a pod template must not change now: a reason to filter for and a sentence."""

    reason: str
    detail: str


QUOTA_REFUSES = "QuotaRefuses"


def refused_pods(target: ScaleTarget) -> tuple[Veto, ...]:
    """Hold scale-ups while a quota refuses the pods that are already wanted: more of them would not come either.

    Pods without a node are no reason to hold: they tell a node autoscaler what to add.
    """
    found = condition(target.workload.status.conditions, "ReplicaFailure") if target.workload else None
    if found is None or found.status != "True" or "exceeded quota" not in found.message:
        return ()
    why = f"{target.status_replicas} of {target.replicas} pods exist: {quoted(found.message, LONGEST_SENTENCE)}"
    return (Veto(axis=Axis.REPLICAS, direction=Direction.UP, reason=QUOTA_REFUSES, detail=why),)


class Headroom:
    """The blockers of one tick. Nodes are added up only when a pod wants to grow."""

    def __init__(self, cluster: WatchedCluster) -> None:
        self.cluster = cluster
        self._spaces_of: dict[tuple[object, ...], list[NodeSpace]] = {}

    def vetoes(
        self, subject: Subject, target: ScaleTarget, sizes: dict[str, ContainerSize], change: Change | None
    ) -> tuple[Veto, ...]:
        """Return what forbids the new sizes of a change; `sizes` are those in force."""
        vertical = subject.policy.vertical
        if change is None or not change.sizes or vertical is None or vertical.apply is Apply.NEVER:
            return ()
        if target.workload is None:
            return ()
        recreates = vertical.apply is Apply.RECREATE
        blocker = rollout_blocker(self.cluster, target) if recreates else None
        if blocker is not None:
            return tuple(Veto(axis=axis, direction=None, **blocker._asdict()) for axis in RESOURCES)
        pods = _resized_pods(self.cluster, target, sizes | change.sizes)
        return self._against(target, pods, surplus=recreates and surges(target))

    def bridge_vetoes(self, target: ScaleTarget, change: Change | None, now: float) -> tuple[Veto, ...]:
        """Return what forbids a larger bridge factor for ready pods; `now` is the factor in force."""
        if change is None or change.bridge is None or change.bridge <= now or target.workload is None:
            return ()
        ready = [pod for pod in self.cluster.members.pods(target.namespace, target.uid) if is_ready(pod)]
        pods = [_resized_pod(pod.spec, cpu_with(pod, change.bridge)) for pod in ready]
        found = self._against(target, pods, surplus=False) if pods else ()
        return tuple(replace(veto, axis=Axis.BRIDGE) for veto in found if veto.axis is Axis.CPU)

    def _against(self, target: ScaleTarget, pods: list[ResizedPod], surplus: bool) -> tuple[Veto, ...]:
        assert target.workload is not None
        quotas = [found for found in self.cluster.quotas.store if found.metadata.namespace == target.namespace]
        ranges = [found for found in self.cluster.limit_ranges.store if found.metadata.namespace == target.namespace]
        needs = {limits: _growth(pods, limits, surplus) for limits in (REQUESTS, LIMITS)}
        return (
            *_quota_vetoes(quotas, needs),
            *_limit_range_vetoes(ranges, pods),
            *self._node_vetoes(target.workload.spec.template.spec, pods),
        )

    def _node_vetoes(self, template: TemplateSpec, pods: Sequence[ResizedPod]) -> Iterator[Veto]:
        """A pod must fit the largest node it may run on. Without any visible node nothing can be said."""
        spaces = self._spaces_for(template)
        needs = {pod.share(pod.after): pod for pod in pods if _grows(pod)}
        for need, pod in needs.items() if spaces else ():
            if not any(_fits(need, space.share) for space in spaces):
                yield from _blame(need, pod.share(pod.before), spaces)
                return

    def _spaces_for(self, template: TemplateSpec) -> list[NodeSpace]:
        """Return the nodes its pods may run on, less those that another node surpasses on both axes."""
        key = (tuple(sorted((template.node_selector or {}).items())), template.tolerations)
        if key not in self._spaces_of:
            self._spaces_of[key] = _largest([space for node, space in self._nodes if _welcomes(node, template)])
        return self._spaces_of[key]

    @cached_property
    def _nodes(self) -> list[tuple[Node, NodeSpace]]:
        taken = _daemon_shares(self.cluster.pods.store)
        return [(node, _space(node, taken[node.metadata.name])) for node in self.cluster.nodes.store]


# --- pods before and after -------------------------------------------------------------------------------------------


def _resized_pods(cluster: WatchedCluster, target: ScaleTarget, wanted: Sizes) -> list[ResizedPod]:
    """Return the living pods, which may have injected sidecars; without any, the template."""
    assert target.workload is not None
    living = [
        pod.spec
        for pod in cluster.members.pods(target.namespace, target.uid)
        if pod.status.phase not in FINISHED and pod.metadata.deletion_timestamp is None
    ]
    return [_resized_pod(spec, wanted) for spec in living or [target.workload.spec.template.spec]]


def _resized_pod(spec: PodSpec, wanted: Sizes) -> ResizedPod:
    running = [*spec.containers, *(container for container in spec.init_containers if _is_sidecar(container))]
    before = {container.name: container_size(container.resources) for container in running}
    after = {name: _merged(size, wanted[name]) if name in wanted else size for name, size in before.items()}
    return ResizedPod(spec, before, after)


def _merged(now: ContainerSize, wanted: ContainerSize) -> ContainerSize:
    """Merge as a strategic merge patch does: a field that is not sent stays, such as a LimitRange's default limit."""
    return ContainerSize(requests=first_set(wanted.requests, now.requests), limits=first_set(wanted.limits, now.limits))


def _is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def _part(size: ContainerSize, axis: Axis, limits: bool) -> float | None:
    return (size.limits if limits else size.requests).amount(axis)


def _both(size: ContainerSize, axis: Axis) -> tuple[float | None, float | None]:
    return size.requests.amount(axis), size.limits.amount(axis)


def _growth(pods: Sequence[ResizedPod], limits: bool, surplus: bool) -> dict[Axis, float]:
    """Add up the growth of all pods, plus one old pod if a surge keeps it. A shrinking pod gives nothing back."""
    growth = {}
    for axis in RESOURCES:
        more = sum(max(0.0, pod.growth(axis, limits)) for pod in pods)
        old = max(sum(_part(size, axis, limits) or 0.0 for size in pod.before.values()) for pod in pods)
        growth[axis] = more + old if more and surplus else more
    return growth


def _text(axis: Axis, amount: float) -> str:
    return format_cpu(amount) if axis is Axis.CPU else describe_memory(amount)


# --- ResourceQuota ---------------------------------------------------------------------------------------------------


def _quota_vetoes(quotas: Iterable[Custom], growth: Growth) -> Iterator[Veto]:
    """Hard less used must hold the growth of all pods together.

    A workload's pods are neither Terminating nor, having requests, BestEffort. Other scopes, such as priority classes,
    are left to the API server, whose refusal names them.
    """
    for quota in quotas:
        if quota.spec.get("scopeSelector") or set(quota.spec.get("scopes") or ()) - OUR_SCOPES:
            continue
        used, meta = quota.status.get("used") or {}, quota.metadata
        for key, hard in (quota.status.get("hard") or {}).items():
            if key not in QUOTA_KEYS or key not in used:
                continue
            limits, axis = QUOTA_KEYS[key]
            most, need = parse_quantity(hard), growth[limits][axis]
            left = max(0.0, most - parse_quantity(used[key]))
            if need > left + NOISE:
                detail = (
                    f"ResourceQuota {meta.namespace}/{meta.name} has {_text(axis, left)} of {key} left of "
                    f"{_text(axis, most)}, and the pods would need {_text(axis, need)} more: raise the quota, or set a "
                    "smaller maxAllowed"
                )
                yield Veto(axis=axis, direction=Direction.UP, reason=EXCEEDS_QUOTA, detail=detail)


# --- LimitRange ------------------------------------------------------------------------------------------------------


class JudgedSize(NamedTuple):
    """One resource of a container or of a whole pod, as a LimitRange judges it."""

    whose: str
    axis: Axis
    before: float
    request: float
    limit: float | None


def _limit_range_vetoes(ranges: Iterable[Custom], pods: Sequence[ResizedPod]) -> Iterator[Veto]:
    """Return one veto per axis and rule, naming the first pod or container that breaks it.

    Rules as the API server applies them: `max` bounds request and limit, `min` both from below, `maxLimitRequestRatio`
    limit / request, and no request may exceed the default limit of a container without one.
    """
    for found in ranges:
        for rule in found.spec.get("limits") or ():
            for axis in RESOURCES:
                judged = (judged for pod in pods for judged in _judged(rule.get("type"), axis, pod))
                wrong = next(((size, why) for size in judged if (why := _why_refused(rule, size))), None)
                if wrong is not None:
                    yield _limit_range_veto(found, *wrong)


def _judged(kind: object, axis: Axis, pod: ResizedPod) -> Iterator[JudgedSize]:
    """What a rule of this type judges, where it would change."""
    if kind == "Container":
        for name, size in pod.after.items():
            if size != pod.before[name]:
                before, request = pod.before[name].requests.amount(axis) or 0.0, size.requests.amount(axis) or 0.0
                yield JudgedSize(f"container {name}", axis, before, request, size.limits.amount(axis))
    elif kind == "Pod" and pod.moves(axis):
        before, request = (_total_request(sizes, axis) for sizes in (pod.before, pod.after))
        limits = [size.limits.amount(axis) for size in pod.after.values()]
        known = [limit for limit in limits if limit is not None]
        yield JudgedSize("the pod", axis, before, request, sum(known) if known else None)


def _total_request(sizes: Sizes, axis: Axis) -> float:
    return sum(size.requests.amount(axis) or 0.0 for size in sizes.values())


def _why_refused(rule: dict[str, Any], judged: JudgedSize) -> str:
    """Return which part of the rule the size breaks, or ""."""
    axis, request, limit = judged.axis, judged.request, judged.limit
    largest, smallest = max(request, limit or 0.0), min(request, request if limit is None else limit)
    if (most := _amount(rule, "max", axis)) is not None and largest > most * EXACT:
        return f"at most {_text(axis, most)} of {axis}, not {_text(axis, largest)}"
    if (given := _amount(rule, "default", axis)) is not None and limit is not None and request > limit * EXACT:
        return f"a limit of {_text(axis, given)} of {axis}, and requests {_text(axis, request)}"
    if (least := _amount(rule, "min", axis)) is not None and smallest * EXACT < least:
        return f"at least {_text(axis, least)} of {axis}, not {_text(axis, smallest)}"
    ratio = _amount(rule, "maxLimitRequestRatio", axis)
    if ratio is not None and limit is not None and request and limit > request * ratio * EXACT:
        return f"limits of {ratio:g} times the requests of {axis} at most, not {limit / request:.3g} times"
    return ""


def _amount(rule: dict[str, Any], field: str, axis: Axis) -> float | None:
    found = (rule.get(field) or {}).get(axis.value)
    return None if found is None else parse_quantity(found)


def _limit_range_veto(found: Custom, judged: JudgedSize, why: str) -> Veto:
    direction = Direction.UP if judged.request > judged.before else Direction.DOWN
    meta, fix = found.metadata, "maxAllowed" if direction is Direction.UP else "minAllowed"
    detail = f"LimitRange {meta.namespace}/{meta.name} gives {judged.whose} {why}: change it, or set {fix} to fit"
    return Veto(axis=judged.axis, direction=direction, reason=EXCEEDS_LIMIT_RANGE, detail=detail)


# --- nodes -----------------------------------------------------------------------------------------------------------


def _daemon_shares(pods: Iterable[WirePod]) -> dict[str, list[Share]]:
    """Return what DaemonSets take of each node."""
    taken: dict[str, list[Share]] = defaultdict(list)
    for pod in pods:
        owner = pod.metadata.controller
        if owner is not None and owner.kind == "DaemonSet" and pod.status.phase not in FINISHED:
            sizes = pod_from_wire(pod).containers.values()
            share = sum(size.cpu_cores or 0.0 for size in sizes), sum(size.memory_bytes or 0.0 for size in sizes)
            taken[pod.spec.node_name].append(share)
    return taken


def _space(node: Node, taken: list[Share]) -> NodeSpace:
    whole = size_of(node.status.allocatable)
    cpu = (whole.cpu_cores or 0.0) - sum(share[0] for share in taken)
    return NodeSpace(node.metadata.name, (cpu, (whole.memory_bytes or 0.0) - sum(share[1] for share in taken)))


def _welcomes(node: Node, template: TemplateSpec) -> bool:
    """nodeSelector matches, and neither a cordon nor an untolerated taint keeps the pods away."""
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


def _largest(spaces: list[NodeSpace]) -> list[NodeSpace]:
    front: list[NodeSpace] = []
    for space in sorted(spaces, key=lambda space: space.share, reverse=True):
        if not front or space.share[1] > front[-1].share[1]:
            front.append(space)
    return front


def _grows(pod: ResizedPod) -> bool:
    return any(new > old for new, old in zip(pod.share(pod.after), pod.share(pod.before), strict=True))


def _fits(need: Share, share: Share) -> bool:
    return need[0] <= share[0] * EXACT and need[1] <= share[1] * EXACT


def _blame(need: Share, before: Share, spaces: list[NodeSpace]) -> Iterator[Veto]:
    """Veto the axes that grow and fit no node; where each fits some node but not together, all that grow."""
    growing = [place for place in (0, 1) if need[place] > before[place]]
    alone = [place for place in growing if all(need[place] > space.share[place] * EXACT for space in spaces)]
    for place in alone or growing:
        axis, best = RESOURCES[place], max(spaces, key=lambda space: space.share[place])
        detail = (
            f"a pod would need {_text(axis, need[place])} of {axis}, and Node {best.node}, the largest it may run on, "
            f"has {_text(axis, max(0.0, best.share[place]))} for it beside its DaemonSets: add a larger node, or set a "
            "smaller maxAllowed"
        )
        yield Veto(axis=axis, direction=Direction.UP, reason=EXCEEDS_NODE, detail=detail)


# --- rollouts and PodDisruptionBudgets -------------------------------------------------------------------------------


def rollout_blocker(cluster: WatchedCluster, target: ScaleTarget) -> RolloutBlocker | None:
    """Return the first reason to leave the pod template alone: a rollout that runs or failed, or a budget."""
    assert target.workload is not None
    progressing = condition(target.workload.status.conditions, "Progressing")
    if progressing is not None and progressing.reason == "ProgressDeadlineExceeded":
        text = "its last rollout has failed (ProgressDeadlineExceeded): mend it first"
        return RolloutBlocker(ROLLOUT_FAILED, f"{target.text}: {text}")
    if _rollout_under_way(target.workload):
        text = "a rollout is under way, and another waits for its end"
        return RolloutBlocker(ROLLOUT_UNDER_WAY, f"{target.text}: {text}")
    pods = [pod for pod in cluster.members.pods(target.namespace, target.uid) if pod.status.phase not in FINISHED]
    for budget in cluster.disruption_budgets.store:
        here = budget.metadata.namespace == target.namespace and forbids_disruption(budget)
        if here and any(_selects(budget, pod.metadata.labels or {}) for pod in pods):
            text = (
                f"PodDisruptionBudget {budget.metadata.namespace}/{budget.metadata.name} allows no disruption of "
                f"{target.text} now: a rollout waits until it does; apply: InPlace needs none"
            )
            return RolloutBlocker(DISRUPTION_FORBIDDEN, text)
    return None


def _rollout_under_way(workload: WireWorkload) -> bool:
    meta, status = workload.metadata, workload.status
    wanted = 1 if workload.spec.replicas is None else workload.spec.replicas
    return status.observed_generation < meta.generation or status.updated_replicas < wanted or status.replicas > wanted


def surges(target: ScaleTarget) -> bool:
    """Whether a rollout starts a new pod beside the old ones: a Deployment that may miss no pod."""
    workload = target.workload
    if workload is None or target.resource is not DEPLOYMENTS or workload.spec.strategy.type == "Recreate":
        return False
    rolling = workload.spec.strategy.rolling_update
    missing = "25%" if rolling is None or rolling.max_unavailable is None else rolling.max_unavailable
    if isinstance(missing, str):
        missing = int(missing.rstrip("%")) * target.replicas // 100
    return missing == 0


def forbids_disruption(budget: Custom) -> bool:
    """Whether the budget's status is current and leaves no disruption."""
    seen = int(budget.status.get("observedGeneration") or 0) >= budget.metadata.generation
    return seen and budget.status.get("disruptionsAllowed") == 0


def _selects(budget: Custom, labels: dict[str, str]) -> bool:
    """A budget without a selector selects nothing; an empty selector selects everything."""
    found = budget.spec.get("selector")
    if found is None:
        return False
    try:
        return Selector.model_validate(found).matches(labels)
    except ValidationError:
        return False
