"""What policies are judged by: a price for load that meets overloaded pods, and what one pod carries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec.structs import replace

from trimtab.core.model import Missing, Pod, Reason
from trimtab.core.overload import (
    Yardstick,
    cpu_request,
    of_cpu,
    of_pods,
    of_target,
    with_own_level,
    with_share,
)
from trimtab.errors import InvalidInput
from trimtab.policy import SLO, Backlog, Objective, Policy, Signal, Utilization, Watermark, is_cpu
from trimtab.quantity import format_cpu
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.tune.demand import load_signal

BURST = 2.0  # times its request: what a pod without a limit is taken to find on its node


class Judge(NamedTuple):
    """`note` says where it comes from, unless from nobody's word."""

    objective: Objective
    note: str = ""


def judge_of(policies: Iterable[Policy], price: float | None = None) -> Judge:
    """The first objective that is written, else the balanced one; a price that is given wins."""
    written = next((policy.objective for policy in policies if policy.objective), None)
    if written is None:
        return Judge(Objective() if price is None else Objective(price=price))
    own = f"the objective that is written (price {written.price:g})"
    if price is None or price == written.price:
        return Judge(written, f"judged by {own}")
    return Judge(replace(written, price=price), f"judged by a price of {price:g}, not by {own}")


class PodTerms(NamedTuple):
    """What a person says of pods, in the place of what manifests say."""

    service_level: float | None = None  # of the request
    capacity: float | None = None  # the load that one pod can carry
    burst: float = BURST


NO_TERMS = PodTerms()


class JudgedPod(NamedTuple):
    """What one pod carries by the yardstick, and what to say of that."""

    judged: Yardstick
    note: str


def judged_pod(
    policy: Policy, pod: Pod | None, terms: PodTerms = NO_TERMS, objective: Objective | None = None
) -> JudgedPod:
    """The yardstick for a policy, whose workload's manifest may say what pods request and may use.

    The level is the person's, else that of an objective, else `core.overload`'s. What one pod can carry never changes
    its request, except where nobody knows one.
    """
    signal = load_signal(policy)
    own, said = _own(replace(policy, objective=None), signal, pod, terms.capacity)
    judged = with_own_level(own, objective)
    if terms.capacity is not None and not isinstance(signal, Backlog):
        judged = replace(judged.by_word(SLO * terms.capacity, "80 % of --pod-capacity"), limit=terms.capacity)
    if terms.service_level is not None:
        judged = with_share(judged, terms.service_level, "--service-level")
    burst = f"; without a limit it serves up to {terms.burst:g} times its request (--burst)"
    parts = said if isinstance(signal, Backlog) else f"{said} and is {judged}{burst if judged.limit is None else ''}"
    return JudgedPod(judged, parts)


def _own(policy: Policy, signal: Signal | None, pod: Pod | None, capacity: float | None) -> tuple[Yardstick, str]:
    """What the operator would know, and the beginning of a sentence about it."""
    if isinstance(signal, Backlog):
        return _of_queue(signal, capacity)
    if signal is None or is_cpu(signal.metric):
        return _of_cores(policy, signal, pod, capacity)
    if capacity is not None:
        carries = Yardstick(request=capacity, level=SLO * capacity, limit=capacity, why="80 % of --pod-capacity")
        return carries, f"one pod carries {capacity:g}"
    if isinstance(signal, Watermark):
        fix = "say how much load one pod carries at 100 %, in the unit of the load"
        raise InvalidInput("--pod-capacity", "missing", fix)
    if isinstance(signal, Utilization):
        return replace(of_target(signal.percent / 100.0), request=1.0), "one pod is taken to request 1"
    carries = of_target(signal.target)
    return carries, f"one pod is taken to carry {carries.request:g} (its target is 70 % of that; say --pod-capacity)"


def _of_cores(policy: Policy, signal: Signal | None, pod: Pod | None, capacity: float | None) -> tuple[Yardstick, str]:
    pods = (pod,) if pod is not None else ()
    if signal is None and pod is not None and (request := cpu_request(pod)):
        found: Yardstick | Missing = of_cpu(pods, request)
    else:
        found = Missing(reason=Reason.ABSENT) if signal is None else of_pods(policy, signal, pods)
    if not isinstance(found, Missing):
        title = f"a pod of {pod.name} requests {format_cpu(found.request)}" if pod else "a pod has no known request"
        return found, f"the load is in cores; {title}"
    if pod is not None:
        fix = "give every container resources.requests.cpu"
        raise InvalidInput(pod.name, "no CPU request", fix)
    request = 1.0 if capacity is None else capacity
    fix = "add the manifest of its workload with -f"
    assumed = Yardstick(request=request, level=request, why="the request", in_cores=capacity is None)
    if capacity is not None:
        return assumed, f"one pod is taken to request {capacity:g}, its --pod-capacity ({fix})"
    return assumed, f"the load is in cores, one pod is taken to request 1 ({fix})"


def _of_queue(signal: Backlog, capacity: float | None) -> tuple[Yardstick, str]:
    if capacity is None and signal.service_time is not None:
        fix = "say how many items one pod finishes per second: its concurrency / the seconds that an item takes"
        raise InvalidInput("--pod-capacity", "missing", fix)
    carries = signal.concurrency / signal.service_time_s if capacity is None else capacity
    note = "" if capacity else f"the load is in items per second; one pod finishes {carries:g} at 100 %"
    return Yardstick(request=carries, level=carries, limit=carries, why="a queue"), note


def cluster_of(judged: Yardstick, burst: float = BURST, **rest: Any) -> ClusterSpec:
    """Simulated pods that carry so much; a pod without a limit serves more than its level in any case."""
    return ClusterSpec(
        pod_capacity=judged.request,
        pod_cores=judged.request,
        level=judged.level,
        own_level=judged.own_level,
        limit=judged.limit,
        burst=max(burst, judged.share / SLO),
        **rest,
    )
