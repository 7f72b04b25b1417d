"""say: what a tick has to say of one object, handed to the teller: its status, and an event where it was scaled."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from trimtab.core.explain import sentence
from trimtab.live.act import resize
from trimtab.live.look.subject import Subject
from trimtab.live.object_tick import ObjectTick
from trimtab.live.tell import conditions
from trimtab.live.tell.events import Happening, tell
from trimtab.live.tell.status import STATUS
from trimtab.live.tell.status_writer import StatusWriter
from trimtab.live.tell.teller import Teller
from trimtab.live.tell.timeless import timeless
from trimtab.wire.kube import Kube
from trimtab.wire.objects import WirePod

log = logging.getLogger(__name__)


def say(teller: Teller, status_writer: StatusWriter, tick: ObjectTick, resized: Sequence[WirePod]) -> None:
    """`resized` are its pods, where their sizes move."""
    subject, at = tick.subject, tick.seen.at
    if tick.wrote("replicas"):
        announce(teller, status_writer.writer, subject, _rescaled(tick), at)
    still, waiting = timeless(tick), resize.stuck(resized)
    matter = (still, waiting) if still else None
    if matter and status_writer.has_said(subject.object, matter):
        teller.drop(subject.uid)  # most objects in most ticks
        return
    status, found = STATUS[subject.name.kind](still or tick), conditions.of_tick(still or tick, waiting)
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


def announce(teller: Teller, writer: Kube, subject: Subject, news: Happening, at: float) -> None:
    """An event; none takes the place of an earlier one."""
    key = f"{subject.uid}/{news.reason}/{at}"
    teller.later(subject.name, key, lambda: tell(writer, subject.resource, subject.object, news, at))
