"""vertical first: in a stage of weight 1 sizes answer a wish for replicas, and need to have seen it to have no answer.

- What sizes answer is not remembered as a wish: it would come back from the stabilisation window when they have grown.
- A wish comes from the newest samples and from the pods as they are, a recommendation from usage, which is sampled less
  often, and its sizes take time to arrive. So where sizes are as recommended, usage is awaited that is as new as the
  sample which first said so, and pods that have their size; not for ever: one of both axes must follow the load.
"""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.core.blend.weights import SizeAnswer, answer
from trimtab.core.blend.wishes import AxisWishes
from trimtab.core.model import Memory, Missing, Observation, PodSamples, Samples
from trimtab.policy import Vertical, Weights

PATIENCE_S = 120.0  # twice as long as usage takes to be sampled by default


def vertical_first(
    rule: Weights, vertical: Vertical, wishes: AxisWishes, seen: Observation, memory: Memory
) -> tuple[AxisWishes, Memory]:
    """The wishes with how long sizes are awaited, and the memory of since when."""
    sizes = answer(rule, vertical, wishes)
    if sizes is not SizeAnswer.FOLLOWED:
        memory = _answered(memory, seen) if sizes is SizeAnswer.MORE else memory
        return wishes, replace(memory, followed_since=None)
    since = _newest(seen) if memory.followed_since is None else memory.followed_since
    memory = replace(memory, followed_since=since)
    if seen.at >= since + PATIENCE_S or not (_usage_behind(seen, since) or _on_their_way(seen)):
        return wishes, memory
    return wishes._replace(awaited_until=since + PATIENCE_S), _answered(memory, seen)


def _answered(memory: Memory, seen: Observation) -> Memory:
    now = (seen.at, seen.spec_replicas)
    return replace(memory, wanted=tuple(now if at == seen.at else (at, wish) for at, wish in memory.wanted))


def _usage_behind(seen: Observation, since: float) -> bool:
    sampled_at = None if isinstance(seen.usage, Missing) else seen.usage.sampled_at
    return sampled_at is not None and sampled_at < since


def _on_their_way(seen: Observation) -> bool:
    """Whether a pod does not have the size in force."""
    return any(
        name in pod.containers and pod.containers[name] != size.requests
        for pod in seen.pods
        for name, size in seen.sizes.items()
    )


def _newest(seen: Observation) -> float:
    times = [at for samples in seen.samples if not isinstance(samples, Missing) for at in _times(samples)]
    return min(max(times, default=seen.at), seen.at)


def _times(samples: Samples) -> list[float]:
    single = samples.times.values() if isinstance(samples, PodSamples) else ()
    return [samples.at, *single]
