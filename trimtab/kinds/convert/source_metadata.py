"""Names, labels and annotations on their way from one kind to another."""

from __future__ import annotations

import copy
from typing import Any

from trimtab.errors import InvalidInput
from trimtab.kinds.annotations import BOOKKEEPING
from trimtab.kinds.foreign import unannotate
from trimtab.kinds.ledger import Ledger, Lost

_SERVER_FIELDS = frozenset(
    [
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "managedFields",
        "selfLink",
        "ownerReferences",
        "finalizers",
    ]
)


def metadata_of(manifest: dict[str, Any]) -> dict[str, Any]:
    """The names, labels and annotations people wrote, without what the server added."""
    written = manifest.get("metadata")
    if not isinstance(written, dict):
        raise InvalidInput("metadata", written, "write a mapping with a name")
    kept = {name: copy.deepcopy(value) for name, value in written.items() if name not in _SERVER_FIELDS}
    notes = kept.pop("annotations", None) or {}
    labels = kept.pop("labels", None) or {}
    for name, values in (("labels", labels), ("annotations", notes)):
        if not isinstance(values, dict):
            raise InvalidInput(f"metadata.{name}", values, "write a mapping (name: value)")
        for key, value in values.items():
            if not isinstance(value, str):
                raise InvalidInput(f'metadata.{name}["{key}"]', value, "write text in quotes")
        if own := {key: value for key, value in values.items() if not key.startswith(BOOKKEEPING)}:
            kept[name] = own
    return kept


def lose_annotations(ledger: Ledger, metadata: dict[str, Any], prefix: str) -> None:
    """What another controller is told on its objects says nothing to ours."""
    for key in [key for key in metadata.get("annotations", {}) if key.startswith(prefix)]:
        unannotate(metadata, key)
        ledger.lost.append(Lost(f'metadata.annotations["{key}"]', "has no equivalent"))
