"""revert: somebody undid our change (GitOps self-heal, a hand): rest an hour, after a second time until an edit."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from trimtab.core.model import Veto
from trimtab.live.kept import REST_S, Kept
from trimtab.live.world import Target, World
from trimtab.policy import Axis

FOR_EVER = 1e12  # until the object is edited
OURS = "trimtab"


async def noticed(world: World, target: Target, kept: Kept, generation: int, at: float) -> Kept:
    """The memory with a revert noted, ended or unchanged."""
    kept = _edited(kept, generation)
    wrote = kept.wrote
    if wrote is None or target.replicas == wrote.replicas:
        return kept
    if target.replicas != wrote.was or at - wrote.at > REST_S:  # somebody's own number: go on from there
        return replace(kept, wrote=None)
    now = await world.kube.get(Owned, target.resource, target.namespace, target.name)
    if now.spec.replicas == wrote.replicas:  # our write has not come back to us yet
        return kept
    rest_until = at + REST_S if kept.reverts == 0 else FOR_EVER
    return replace(
        kept,
        wrote=None,
        reverts=kept.reverts + 1,
        reverted_by=_last_manager(now),
        rest_until=rest_until,
        rest_generation=generation,
    )


def resting(kept: Kept, at: float) -> bool:
    return kept.rest_until is not None and at < kept.rest_until


def veto(kept: Kept, at: float) -> tuple[Veto, ...]:
    if not resting(kept, at):
        return ()
    until = kept.rest_until if kept.rest_until != FOR_EVER else None
    return (Veto(axis=Axis.REPLICAS, direction=None, reason="Reverted", detail=text(kept), until=until),)


def text(kept: Kept) -> str:
    ends = "for an hour" if kept.rest_until != FOR_EVER else "until this object is edited"
    return f"{kept.reverted_by} undid our last change of the replicas: they rest {ends}"


def _edited(kept: Kept, generation: int) -> Kept:
    if kept.rest_until is None or generation == kept.rest_generation:
        return kept
    return replace(kept, reverts=0, rest_until=None, reverted_by="")


class Field(msgspec.Struct, frozen=True, rename="camel"):
    manager: str = ""
    time: str = ""
    fields_v1: dict[str, Any] = msgspec.field(default_factory=dict, name="fieldsV1")


class OwnedMeta(msgspec.Struct, frozen=True, rename="camel"):
    managed_fields: list[Field] = []


class OwnedSpec(msgspec.Struct, frozen=True):
    replicas: int | None = None


class Owned(msgspec.Struct, frozen=True):
    """A workload with who wrote its fields, which nothing else of ours reads."""

    metadata: OwnedMeta = OwnedMeta()
    spec: OwnedSpec = OwnedSpec()


def _last_manager(owned: Owned) -> str:
    """Who wrote the replicas last, ourselves aside."""
    writers = [
        one
        for one in owned.metadata.managed_fields
        if one.manager != OURS and "f:replicas" in (one.fields_v1.get("f:spec") or {})
    ]
    return max(writers, key=lambda one: one.time).manager if writers else "somebody"
