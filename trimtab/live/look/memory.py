"""memory: what is remembered of one object, as it stands in its status; a restart loses nothing of it.

Wishes are not kept: a new leader seeds them with the current replicas, as HPA does, so that it never scales down
before a window has passed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from trimtab.core.model import ContainerSize, Memory
from trimtab.core.nights import InForce, JudgedDay, TuningEvidence, VerdictKind
from trimtab.core.remember import first_sight, not_after, restored, stored
from trimtab.core.remember import shifted as shifted_core
from trimtab.kinds.meta import seconds_of
from trimtab.policy import Record, Size, TunedSettings
from trimtab.wire.from_kubernetes import conditions_in

VERSION = 1
TAG = "Kept"  # records are stored under these names since the first version, whatever the classes are called
LONGEST_BYTES = 64 * 1024
log = logging.getLogger(__name__)


class ReplicasWritten(Record, frozen=True, tag="Wrote"):
    """Our last word on the replicas."""

    was: int
    replicas: int
    at: float


class SizesWritten(Record, frozen=True, tag="Patched"):
    """Our last word on the template's sizes."""

    was: dict[str, ContainerSize]
    sizes: dict[str, ContainerSize]
    at: float
    written: dict[str, Size] = {}  # requests that the user wrote last


class OomKill(Record, frozen=True):
    """The last kill of a container for its memory, by the kubelet's clock: it is answered once."""

    finished_at: float
    request_bytes: float  # that it had then
    pod: str = ""


class Quarrel(Record, frozen=True):
    """Somebody puts an axis back again and again after we wrote it."""

    by: str  # the field manager
    generation: int  # of the object when it happened: an edit ends the quarrel
    moments: tuple[float, ...]  # when it was put back, as far as it still counts
    until: float | None = None  # the axis rests until then; None: it was too seldom so far


class LevelMemory(Record, frozen=True):
    """What was learned of a latency promise: the usage up to which one pod keeps it."""

    about: str = ""  # the promise
    level: float | None = None
    text: str = ""
    raised: str = ""  # the last night that was asked


class TuningMemory(Record, frozen=True, tag="Tuning"):
    """What the last night found, and which settings are in force since one."""

    at: float
    verdict: VerdictKind
    about: str = ""  # a digest of what tuning changes or looks at: an edit of it ends what was found
    reason: str = ""
    in_force: InForce | None = None
    advice: TunedSettings | None = None
    evidence: TuningEvidence | None = None
    rests_until: float | None = None  # it was rolled back, and is left alone for a while
    switched_at: float | None = None  # the last time, whether it was rolled back since or not
    judged: tuple[JudgedDay, ...] = ()  # since then: the last weekday and the last day of a weekend, older first
    undone: float | None = None  # the newest request to undo that was followed


class ObjectMemory(Record, frozen=True, tag=TAG):
    """The core's memory and the operator's own: its last writes, and who put them back."""

    version: int = VERSION
    core: Memory = Memory()
    wrote: ReplicasWritten | None = None
    sizes: dict[str, ContainerSize] = {}  # in force on the pods, where they are not the template's
    template: dict[str, ContainerSize] = {}  # what the template said then; an edit of it ends `sizes`
    patched: SizesWritten | None = None
    oom_kills: dict[str, OomKill] = {}  # by container
    bridge_resizes: int = 0  # pods resized by the bridge, ever
    quarrels: dict[str, Quarrel] = {}  # by what is put back: "replicas", "sizes"
    tuning: TuningMemory | None = None
    latency: LevelMemory | None = None
    target: str | None = None  # KIND/NAME of the workload that all of this is about


def read(status: dict[str, Any], at: float, replicas: int, whose: str = "an object") -> ObjectMemory:
    """From the object's status; of a memory that we cannot read, what the rest of the status tells."""
    seed = first_sight(at, replicas)
    try:
        given = status.get("memory") or {"is": TAG, "version": 0}
        if len(msgspec.json.encode(given)) > LONGEST_BYTES:
            raise msgspec.ValidationError("longer than anything we write")
        memory = msgspec.convert(given, ObjectMemory)
    except msgspec.ValidationError:
        memory = ObjectMemory(version=0)
    if memory.version != VERSION:
        return ObjectMemory(core=not_after(_from_the_rest(status, seed, replicas), at))
    now = _redated(memory, lambda dated: min(dated, at), not_after(memory.core, at))
    if now != memory:
        log.warning("%s: its memory has dates in the future, which are dropped: which machine's clock is wrong?", whose)
    return replace(now, core=restored(now.core, at, replicas))


def of_target(memory: ObjectMemory, target: str, at: float, replicas: int) -> ObjectMemory:
    """The same, of this workload; where the object was edited to name another one, nothing is known of that."""
    if memory.target is None:
        return replace(memory, target=target)
    return memory if memory.target == target else ObjectMemory(core=first_sight(at, replicas), target=target)


def shifted(memory: ObjectMemory, by_s: float) -> ObjectMemory:
    """The clock was set by this much."""
    return _redated(memory, lambda dated: dated + by_s, shifted_core(memory.core, by_s))


def _redated(memory: ObjectMemory, change: Callable[[float], float], core: Memory) -> ObjectMemory:
    wrote = replace(memory.wrote, at=change(memory.wrote.at)) if memory.wrote else None
    patched = replace(memory.patched, at=change(memory.patched.at)) if memory.patched else None
    quarrels = {what: _redated_quarrel(quarrel, change) for what, quarrel in memory.quarrels.items()}
    tuning = _redated_tuning(memory.tuning, change) if memory.tuning else None
    return replace(memory, core=core, wrote=wrote, patched=patched, quarrels=quarrels, tuning=tuning)


def _redated_tuning(tuning: TuningMemory, change: Callable[[float], float]) -> TuningMemory:
    in_force = replace(tuning.in_force, since=change(tuning.in_force.since)) if tuning.in_force else None
    rests_s = None if tuning.rests_until is None else tuning.rests_until - tuning.at
    at = change(tuning.at)
    return replace(
        tuning,
        at=at,
        in_force=in_force,
        rests_until=None if rests_s is None else at + rests_s,
        switched_at=None if tuning.switched_at is None else change(tuning.switched_at),
        judged=tuple(replace(day, at=change(day.at)) for day in tuning.judged),
    )


def _redated_quarrel(quarrel: Quarrel, change: Callable[[float], float]) -> Quarrel:
    """A rest lasts as long after the last time as it did before."""
    moments = tuple(change(moment) for moment in quarrel.moments)
    if quarrel.until is None or not moments:
        return replace(quarrel, moments=moments)
    return replace(quarrel, moments=moments, until=moments[-1] + quarrel.until - quarrel.moments[-1])


def _from_the_rest(status: dict[str, Any], seed: Memory, replicas: int) -> Memory:
    """Another version of trimtab wrote it: no cooldown is cut short, and a zero of ours is still ours."""
    hvpa = status.get("lastScaling")
    last = hvpa if isinstance(hvpa, dict) else status
    scaled_at = seconds_of(status.get("lastScaleTime") or last.get("lastScaleTime"))
    zeroed = replicas == 0 and conditions_in(status).get("ScaledToZero", {}).get("status") == "True"
    return replace(seed, up_at=scaled_at, down_at=scaled_at, resized_at=scaled_at, zeroed=zeroed)


def written(memory: ObjectMemory) -> dict[str, Any]:
    """What goes into the status, without what is empty: people read it there, too."""
    slim = replace(memory, core=stored(memory.core))
    plain: dict[str, Any] = _bare(msgspec.to_builtins(slim))
    return plain


def _bare(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: _bare(each) for name, each in value.items() if each is not None and each not in ({}, (), [])}
