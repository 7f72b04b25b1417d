"""What a user wrote that changes nothing: accepted, so that existing manifests apply, and answered with a warning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trimtab.kinds.analytics import Analytics
from trimtab.kinds.annotations import (
    ORIGINAL_FLOOR,
    OURS,
    PAUSED,
    PAUSED_UNTIL,
    PIN,
    PIN_UNTIL,
    RAISED_FLOOR,
    RAISED_FLOOR_UNTIL,
)
from trimtab.kinds.config_keys import ignored
from trimtab.kinds.foreign import ForeignKind
from trimtab.kinds.manifest_part import matching_paths
from trimtab.kinds.meta import Kind
from trimtab.kinds.problems import nearest
from trimtab.policy import Advice

_STEERING = (PAUSED, PAUSED_UNTIL, PIN, PIN_UNTIL)
_FLOOR = (ORIGINAL_FLOOR, RAISED_FLOOR, RAISED_FLOOR_UNTIL)


class Warned(NamedTuple):
    path: str
    why: str


def warnings(obj: Kind) -> list[Warned]:
    """Return the fields and annotations that change nothing, with the reasons."""
    return [*_fields(obj), *_annotations(obj)]


def _fields(obj: Kind) -> Iterator[Warned]:
    if isinstance(obj, ForeignKind):
        losses = () if obj.served_elsewhere else obj.translation.ledger.untold
        yield from (Warned(loss.path, loss.why) for loss in losses)
        return
    manifest = obj.manifest()
    for pattern, why in obj.ignored.items():
        yield from (Warned(path, why) for path in matching_paths(manifest, pattern))
    if isinstance(obj, Analytics):
        advice = Advice(obj.spec.type)
        for name in (name for name in obj.spec.config if ignored(name, advice)):
            yield Warned(f'spec.config["{name}"]', "upstream's key; nothing here depends on it")


def _annotations(obj: Kind) -> Iterator[Warned]:
    known = (*_STEERING, *_FLOOR, *obj.own_annotations)
    for key in obj.metadata.annotations:
        if key.startswith(OURS) and key not in known:
            near = nearest(key, list(known), 0.9)
            meant = f"did you mean {near}?" if near else f"known: {', '.join(_STEERING)}"
            yield Warned(f'metadata.annotations["{key}"]', f"not read here; {meant}")
