"""sizes: the vertical half of an object: what size is in force, how a new one is written, and that it stays.

In place the template stays as it is: pods that come later are resized when first seen, and an edit of the template's
own requests is the user's new word.
"""

from __future__ import annotations

from http import HTTPStatus

from msgspec.structs import replace

from trimtab.core.admit import pinned
from trimtab.core.model import Change, ContainerSize
from trimtab.errors import InvalidInput, Refused
from trimtab.kinds.images import is_jvm
from trimtab.live.act import resize
from trimtab.live.act.pen import Pen
from trimtab.live.headroom.rollout import blocker as blocker_of
from trimtab.live.look.facts import template_sizes
from trimtab.live.look.kept import Kept, Patched
from trimtab.live.look.subject import Subject
from trimtab.live.look.world import Target, World
from trimtab.live.measure.usage import newest_overload
from trimtab.policy import Apply, Policy, Size
from trimtab.wire.resources import DAEMON_SETS

IN_PLACE = (Apply.IN_PLACE, Apply.IN_PLACE_OR_RECREATE)


def now(subject: Subject, target: Target, kept: Kept) -> dict[str, ContainerSize]:
    """What each container of the template has; nothing for kinds of which only the scale is known."""
    if subject.policy.vertical is None or target.workload is None:
        return {}
    template = template_sizes(target.workload)
    return kept.sizes if kept.sizes and kept.template == template else template


def written_for(subject: Subject, target: Target, kept: Kept) -> dict[str, Size]:
    """The template's requests, which the user's percentages speak of, while pods have sizes of ours."""
    if subject.policy.vertical is None or target.workload is None or not kept.sizes:
        return {}
    return {name: size.requests for name, size in template_sizes(target.workload).items()}


def fitted(subject: Subject, target: Target) -> Subject:
    """The policy as its target allows."""
    return _with_images(_only_advised(subject, target), target)


def _only_advised(subject: Subject, target: Target) -> Subject:
    """A DaemonSet has one pod a node: there are no replicas to move, and a new size is advice."""
    policy = subject.policy
    if target.resource != DAEMON_SETS:
        return subject
    if policy.signals or policy.blend or policy.bounds.min_replicas > 1 or policy.vertical is None:
        fix = "it has one pod a node: leave out everything but `vertical`, which advises on its requests"
        raise InvalidInput("scaleTargetRef.kind", "DaemonSet", fix)
    return subject._replace(policy=replace(policy, vertical=replace(policy.vertical, apply=Apply.NEVER)))


def _with_images(subject: Subject, target: Target) -> Subject:
    """JVM images: memory is never lowered by itself, because the heap does not give it back."""
    vertical, workload = subject.policy.vertical, target.workload
    if vertical is None or workload is None:
        return subject
    if not any(is_jvm(container.image) for container in workload.spec.template.spec.containers):
        return subject
    return subject._replace(policy=replace(subject.policy, vertical=replace(vertical, keep_memory=True)))


def overloaded(world: World, target: Target, kept: Kept, policy: Policy) -> Kept:
    """A kill or an eviction after the last scaling: nothing that helps should wait."""
    if policy.vertical is None or kept.core.overloaded:
        return kept
    at = newest_overload(world.members.pods(target.uid))
    if at is None or at <= (kept.core.scaled_at or 0.0):
        return kept
    return replace(kept, core=replace(kept.core, overloaded=True))


def writable(subject: Subject, change: Change | None) -> Change | None:
    """Without the sizes that are only advice; None when nothing else is left."""
    vertical = subject.policy.vertical
    if change is None or vertical is None or vertical.apply is not Apply.NEVER:
        return change
    return None if change.replicas is None else replace(change, sizes=None)


async def write(
    pen: Pen, world: World, subject: Subject, target: Target, kept: Kept, changed: dict[str, ContainerSize], at: float
) -> Kept:
    """New sizes, by the way the policy names."""
    vertical = subject.policy.vertical
    assert vertical is not None and target.workload is not None
    wanted = now(subject, target, kept) | changed
    if vertical.apply is Apply.RECREATE:
        return await _roll_out(pen, target, kept, wanted, at)
    await resize.in_place(pen, world.members.pods(target.uid), wanted)
    return replace(kept, sizes=wanted, template=template_sizes(target.workload))


async def keep(pen: Pen, world: World, subject: Subject, target: Target, kept: Kept, at: float) -> Kept:
    """Pods that came since get the size too; what cannot be done in place becomes a rollout where that is allowed."""
    vertical = subject.policy.vertical
    if vertical is None or vertical.apply not in IN_PLACE or target.workload is None:
        return kept
    if pinned(subject.policy.admit, at):  # only the pin is written
        return kept
    wanted = now(subject, target, kept)
    if not kept.sizes or wanted is not kept.sizes:
        return kept
    pods = world.members.pods(target.uid)
    gives_up = resize.gives_up(vertical.apply, resize.stuck(pods), at)
    blocker = blocker_of(world, target) if gives_up else None
    if gives_up and blocker is None:
        return await _roll_out(pen, target, kept, wanted, at)
    await resize.in_place(pen, pods, wanted)
    if blocker is not None:
        raise Refused(f"what cannot be done in place waits for a rollout: {blocker.detail}", HTTPStatus.CONFLICT)
    return kept


async def _roll_out(pen: Pen, target: Target, kept: Kept, wanted: dict[str, ContainerSize], at: float) -> Kept:
    """Into the template: from now on its sizes are those in force, unless somebody puts the old ones back."""
    assert target.workload is not None
    await resize.template(pen, target, wanted)
    patched = Patched(was=template_sizes(target.workload), sizes=wanted, at=at)
    return replace(kept, sizes={}, template={}, patched=patched)
