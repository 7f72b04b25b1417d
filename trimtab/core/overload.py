"""overload: above which load a pod is overloaded. Whatever decides, judges or reports asks this module.

CPU: the sum over containers of min(request, 0.8 x limit), native sidecars included; a container without a limit counts
with its request. Resources of the pod as a whole replace the sum, and a ContainerResource metric looks at its container
alone. A written target above that raises the level to min(8/7 x target, 0.8 x limit).
Other metrics, and pods without requests: 8/7 of the target, which is taken to be 70 % of what a pod can carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isclose

from msgspec.structs import replace

from trimtab.core.model import Missing, Observation, Pod, Reason
from trimtab.core.requests import USUAL_TARGET, mean, mean_request, scale_point
from trimtab.policy import (
    SLO,
    Objective,
    PodAverage,
    Policy,
    Record,
    Signal,
    TotalAverage,
    Utilization,
    is_cpu,
    level_of,
    limit_sets_level,
)
from trimtab.quantity import format_number

ABOVE_TARGET = SLO / USUAL_TARGET  # 8/7


class Yardstick(Record, frozen=True):
    """What one pod carries, in the unit of the load.

    At `request` it uses 100 % of what a target in percent is a share of. It is overloaded above `level`, and serves at
    most `limit`; None: nothing limits it.
    """

    request: float
    level: float
    limit: float | None = None
    why: str = ""
    in_cores: bool = False
    own: float | None = None  # the level without anybody's word, where `level` is that

    @property
    def own_level(self) -> float:
        return self.level if self.own is None else self.own

    def by_word(self, level: float, why: str) -> Yardstick:
        """With the level that somebody gives."""
        return replace(self, level=level, why=why, own=self.own_level)

    @property
    def share(self) -> float:
        """The level as a share of the request."""
        return self.level / self.request

    @property
    def bridge_counts(self) -> bool:
        """Whether a larger size carries more: where the limit sets the level."""
        return limit_sets_level(self.request, self.limit)

    def amount(self, load: float) -> str:
        return f"{load * 1000:.0f}m" if self.in_cores else f"{load:.4g}"

    def __str__(self) -> str:
        """ "overloaded above 500m (the request; limit 1000m)"."""
        limit = "" if not self.in_cores else f"; limit {self.amount(self.limit)}" if self.limit else "; no limit"
        return f"overloaded above {self.amount(self.level)} ({self.why}{limit})"


def yardstick(policy: Policy, signal: Signal, seen: Observation) -> Yardstick | Missing:
    """What the pods of an observation carry, by a policy's own word where it has one."""
    return of_pods(policy, signal, seen.pods, scale_point(policy, signal, seen))


def of_pods(
    policy: Policy, signal: Signal, pods: Sequence[Pod], written_for: float | None = None
) -> Yardstick | Missing:
    """The mean of these pods. `written_for` is the request that a target in percent was written for, if not theirs."""
    request = mean_request(pods, signal)
    if isinstance(signal, PodAverage | TotalAverage):
        target = signal.target
        found = of_target(target)
    elif not isinstance(signal, Utilization):
        return Missing(reason=Reason.UNSUPPORTED, detail="its target does not say what one pod carries")
    elif isinstance(request, Missing):
        return request
    else:
        target = signal.percent / 100.0 * request
        found = replace(of_target(target), request=request)
    if is_cpu(signal.metric):
        found = replace(found, in_cores=True, limit=None)
        if not isinstance(request, Missing):
            found = _raised(of_cpu(pods, request, signal.metric.container), target)
    if written_for and written_for != found.request:
        found = scaled(found, written_for / found.request)
    return with_own_level(found, policy.objective)


def with_own_level(found: Yardstick, objective: Objective | None) -> Yardstick:
    """By the service level that an objective writes, where it does."""
    share = objective.service_level if objective else None
    by = "learned by objective.latency" if objective and objective.latency else "objective.serviceLevel"
    return found if share is None else with_share(found, share, by)


def with_share(found: Yardstick, share: float, by: str) -> Yardstick:
    of = "the request" if found.in_cores else "what a pod carries"
    return found.by_word(share * found.request, f"{share:g} of {of}, {by}")


def scaled(found: Yardstick, factor: float) -> Yardstick:
    """The same pod of another size."""
    limit = None if found.limit is None else found.limit * factor
    own = None if found.own is None else found.own * factor
    return replace(found, request=found.request * factor, level=found.level * factor, limit=limit, own=own)


def of_recorded(request: float, level: float | None, limit: float | None, in_cores: bool) -> Yardstick:
    """A pod of which these numbers alone are known."""
    level = request if level is None else level
    return Yardstick(request=request, level=level, limit=limit, why=_why(request, level, limit), in_cores=in_cores)


def of_target(target: float) -> Yardstick:
    carries = target / USUAL_TARGET
    why = f"8/7 of the target of {format_number(target)}"
    return Yardstick(request=carries, level=SLO * carries, limit=carries, why=why)


def of_cpu(pods: Sequence[Pod], request: float, container: str = "") -> Yardstick:
    """What pods carry that request so much on average, whatever scales them."""
    living = [pod for pod in pods if not pod.deleting and cpu_request(pod, container)]
    level = mean([cpu_level(pod, container) for pod in living])
    limits = [pod.cpu_limit(container) for pod in living]
    known = [limit for limit in limits if limit is not None]
    limit = mean(known) if len(known) == len(limits) else None
    return Yardstick(request=request, level=level, limit=limit, why=_why(request, level, limit), in_cores=True)


def _why(request: float, level: float, limit: float | None) -> str:
    if isclose(level, request, rel_tol=1e-9):
        return "the request"
    if limit is not None and isclose(level, SLO * limit, rel_tol=1e-9):
        return "80 % of the limit"
    return f"{level / request:.0%} of the request"


def _raised(found: Yardstick, target: float) -> Yardstick:
    most = SLO * found.limit if found.limit is not None else inf
    level = min(ABOVE_TARGET * target, most)
    if target <= found.level * (1.0 + 1e-9) or level <= found.level:
        return found
    why = "8/7 of the target" if level < most else "80 % of the limit"
    return replace(found, level=level, why=f"{why}, because the target is above {found.amount(found.level)}")


def bridge_counts(policy: Policy, pods: Sequence[Pod]) -> bool:
    """Whether larger pods carry more: the limit of each sets its level. Elsewhere they can burst already."""
    container = next((signal.metric.container for signal in policy.signals if is_cpu(signal.metric)), "")
    sizes = [(cpu_request(pod, container), pod.cpu_limit(container)) for pod in pods if pod.ready and not pod.deleting]
    return all(request and limit and limit_sets_level(request, limit) for request, limit in sizes)


def cpu_request(pod: Pod, container: str = "") -> float | None:
    size = pod.containers.get(container) if container else pod.requests
    return size.cpu_cores if size is not None else None


def cpu_level(pod: Pod, container: str = "") -> float:
    """Return the CPU usage above which a pod, or one of its containers, is overloaded."""
    request = cpu_request(pod, container) or 0.0
    if container:
        return level_of(request, pod.cpu_limits.get(container))
    parts = {name: size.cpu_cores or 0.0 for name, size in pod.containers.items()}
    if "" in pod.cpu_limits or not parts or not isclose(sum(parts.values()), request, rel_tol=1e-9):
        return level_of(request, pod.cpu_limits.get(""))  # of the pod as a whole
    return sum(level_of(cores, pod.cpu_limits.get(name)) for name, cores in parts.items())


def still_matters(died_at: float, scaled_at: float | None, on_a_node: bool, current_size: bool) -> bool:
    """Return whether a killed pod shows that its workload is still too small, so that a remedy must not wait.

    Ignores kills before the last scaling, which may have answered them, and kills of pods that had another size.
    """
    return on_a_node and current_size and (scaled_at is None or died_at > scaled_at)
