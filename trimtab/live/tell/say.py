"""say: hand the teller what a tick has to say of one object: its status, and an event for each act."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from trimtab.core.explain import DecisionCondition, resizes, sentence
from trimtab.core.model import Memory, Missing, Observation, PodSamples, Reason, Samples, Startup
from trimtab.core.remember import stored
from trimtab.live.look.memory import ObjectMemory
from trimtab.live.look.subject import Subject
from trimtab.live.object_tick import ObjectTick
from trimtab.live.tell import conditions
from trimtab.live.tell.status import STATUS
from trimtab.live.tell.status_writer import Happening, StatusWriter, tell
from trimtab.live.tell.teller import Teller
from trimtab.wire.kube import Kube

log = logging.getLogger(__name__)
FROZEN_MODE = "Frozen"
NO_MEMORY, NOTHING_REMEMBERED, NO_USAGE = Memory(), ObjectMemory(), Missing(reason=Reason.NOT_CONFIGURED)


def say(teller: Teller, status_writer: StatusWriter, tick: ObjectTick) -> None:
    """Hand over the object's status."""
    subject, at = tick.subject, tick.seen.at
    if tick.wrote("replicas"):
        announce(teller, status_writer.writer, subject, _rescaled(tick), at)
    if tick.wrote("sizes"):
        announce(teller, status_writer.writer, subject, _resized(tick), at)
    if tick.wrote("bridge") and (news := _bridged(tick)):
        announce(teller, status_writer.writer, subject, news, at)
    fingerprint = status_fingerprint(tick)
    if fingerprint and status_writer.has_said(subject.object, fingerprint):
        teller.drop(subject.uid)  # most objects in most ticks
        return
    said = fingerprint or tick
    status, found = STATUS[subject.name.kind](said), conditions.of_tick(said)
    _hand_over(teller, status_writer, tick, status, found, fingerprint)


def say_frozen(teller: Teller, status_writer: StatusWriter, tick: ObjectTick) -> None:
    """What was said before stays, above all what is remembered of what is in force: it may be put back meanwhile."""
    status = status_writer.before(tick.subject.object) | {"mode": FROZEN_MODE}
    _hand_over(teller, status_writer, tick, status, (conditions.OF_FROZEN,), None)


def _hand_over(
    teller: Teller,
    status_writer: StatusWriter,
    tick: ObjectTick,
    status: dict[str, Any],
    found: Sequence[DecisionCondition],
    matter: object,
) -> None:
    subject, at = tick.subject, tick.seen.at
    if not status_writer.is_news(subject.object, status, found, at, matter):
        teller.drop(subject.uid)  # a task for each would cost more than all else
        return
    teller.later(
        subject.name, subject.uid, lambda: status_writer.say(subject.resource, subject.object, status, found, at)
    )


def _rescaled(tick: ObjectTick) -> Happening:
    subject, replicas = tick.subject, tick.decision.plan.replicas
    text = sentence(subject.policy, tick.seen, tick.memory.core, tick.decision)
    log.info("%s: %d -> %d replicas: %s", subject.name, tick.target.replicas, replicas, text)
    return Happening("SuccessfulRescale", f"New size: {replicas}; reason: {text}")


def _resized(tick: ObjectTick) -> Happening:
    said = [f"{change.amounts}: {change.why}" for change in resizes(tick.seen, tick.decision)]
    for text in said:
        log.info("%s: %s", tick.subject.name, text)
    return Happening("SuccessfulResize", "; ".join(said))


def _bridged(tick: ObjectTick) -> Happening | None:
    """The log has every step of a bridge, events its begin and its end."""
    before, after = tick.memory.core.bridge, tick.after.core.bridge
    text = f"{tick.bridged.pods} ready pods go from {before:g} to {after:g} times their cpu"
    log.info("%s: %s", tick.subject.name, text)
    return None if min(before, after) > 1.0 else Happening("Bridge", text)


def announce(teller: Teller, writer: Kube, subject: Subject, news: Happening, at: float) -> None:
    """Write an event; it replaces no earlier one."""
    key = f"{subject.uid}/{news.reason}/{at}"
    teller.later(subject.name, key, lambda: tell(writer, subject.resource, subject.object, news, at))


def status_fingerprint(tick: ObjectTick) -> ObjectTick | None:
    """Return the tick without its times: the rendered status is reused when nothing but the time changed.

    None where the status speaks of a moment that passes by itself, such as the end of a pin.
    """
    if tick.after.quarrels or tick.subject.policy.admit.pin is not None:
        return None
    return tick._replace(
        seen=_undated(tick.seen),
        memory=NOTHING_REMEMBERED,
        after=replace(tick.after, core=stored(tick.after.core)),
        decision=replace(tick.decision, memory=NO_MEMORY),
    )


def _undated(seen: Observation) -> Observation:
    startup = seen.startup
    if isinstance(startup, Startup):
        startup = replace(startup, made_at=0.0, expires_at=0.0)
    samples = tuple([_undated_sample(sample) for sample in seen.samples])
    return replace(seen, at=0.0, samples=samples, startup=startup, usage=NO_USAGE)


def _undated_sample(sample: Samples | Missing) -> Samples | Missing:
    if isinstance(sample, PodSamples):
        return replace(sample, at=0.0, times={}, windows_s={})
    return sample if isinstance(sample, Missing) else replace(sample, at=0.0)
