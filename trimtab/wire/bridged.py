"""bridged: pods whose cpu is for a while larger than written, as the API server remembers it.

The bridge resizes under a field manager of its own that names the factor. So the pod itself says what was written,
whatever becomes of our memory, and the word is written and taken back in the same request as the size.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

from trimtab.core.limits import CPU_GRAIN, round_down, round_up
from trimtab.core.model import ContainerSize
from trimtab.policy import Size
from trimtab.wire.managed_fields import FIELD_MANAGER
from trimtab.wire.objects import Container, WirePod

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
