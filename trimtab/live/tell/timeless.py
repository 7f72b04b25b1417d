"""timeless: a tick without its times. Of two that are equal the same is said, so it is not made up again."""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.core.model import Memory, Missing, Observation, PodSamples, Reason, Samples, Startup
from trimtab.core.remember import stored
from trimtab.live.look.memory import ObjectMemory
from trimtab.live.object_tick import ObjectTick

NO_MEMORY, NOTHING, UNSAID = Memory(), ObjectMemory(), Missing(reason=Reason.NOT_CONFIGURED)


def timeless(tick: ObjectTick) -> ObjectTick | None:
    """None where something may end by itself: what is said then speaks of now."""
    if tick.after.quarrels or tick.subject.policy.admit.pin is not None:
        return None
    return tick._replace(
        seen=_seen(tick.seen),
        memory=NOTHING,
        after=replace(tick.after, core=stored(tick.after.core)),
        decision=replace(tick.decision, memory=NO_MEMORY),
    )


def _seen(seen: Observation) -> Observation:
    startup = seen.startup
    if isinstance(startup, Startup):
        startup = replace(startup, made_at=0.0, expires_at=0.0)
    samples = tuple([_sample(sample) for sample in seen.samples])
    return replace(seen, at=0.0, samples=samples, startup=startup, usage=UNSAID)


def _sample(sample: Samples | Missing) -> Samples | Missing:
    if isinstance(sample, PodSamples):
        return replace(sample, at=0.0, times={}, windows_s={})
    return sample if isinstance(sample, Missing) else replace(sample, at=0.0)
