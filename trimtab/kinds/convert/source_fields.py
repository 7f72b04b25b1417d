"""A manifest taken apart field by field: what nobody takes is reported, so that nothing is dropped in silence."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, TypeVar

from trimtab.errors import InvalidInput
from trimtab.kinds.annotations import LAST_APPLIED

T = TypeVar("T")

_SERVER_FIELDS = frozenset(
    ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "ownerReferences"]
)
_WORDS: dict[type, str] = {str: "text", int: "a whole number", bool: "true or false", list: "a list", dict: "a mapping"}


class Lost(NamedTuple):
    """What has no equivalent."""

    path: str
    why: str


class SourceFields:
    """One mapping of a manifest; `take` removes a field, `close` reports the rest."""

    def __init__(self, value: dict[str, Any], path: str, lost: list[Lost]) -> None:
        self._left, self._path, self._lost = dict(value), path, lost

    def take(self, name: str, kind: type[T], default: T | None = None) -> T | None:
        value = self._left.pop(name, None)
        if value is None:
            return default
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise InvalidInput(self.at(name), value, f"write {_WORDS[kind]}")
        return copy.deepcopy(value)

    def has(self, name: str) -> bool:
        return self._left.get(name) is not None

    def part(self, name: str) -> SourceFields:
        """A mapping inside; an absent one is empty."""
        return SourceFields(self.take(name, dict) or {}, self.at(name), self._lost)

    def items(self, name: str) -> list[SourceFields]:
        """The mappings of a list."""
        found = self.take(name, list) or []
        for index, item in enumerate(found):
            if not isinstance(item, dict):
                raise InvalidInput(f"{self.at(name)}[{index}]", item, "write a mapping")
        return [SourceFields(item, f"{self.at(name)}[{index}]", self._lost) for index, item in enumerate(found)]

    def lose(self, name: str, why: str) -> None:
        """Takes a field that has no equivalent."""
        if self._left.pop(name, None) is not None:
            self._lost.append(Lost(self.at(name), why))

    def note(self, why: str, name: str = "") -> None:
        self._lost.append(Lost(self.at(name) if name else self._path, why))

    def close(self, why: str = "has no equivalent") -> None:
        for name in list(self._left):
            self.lose(name, why)

    def rest(self) -> dict[str, Any]:
        """Everything that is left, taken as it is."""
        left, self._left = self._left, {}
        return copy.deepcopy(left)

    def at(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name


def metadata_of(manifest: dict[str, Any]) -> dict[str, Any]:
    """The names, labels and annotations people wrote, without what the server added."""
    written = manifest.get("metadata")
    if not isinstance(written, dict):
        raise InvalidInput("metadata", written, "write a mapping with a name")
    kept = {name: copy.deepcopy(value) for name, value in written.items() if name not in _SERVER_FIELDS}
    notes = kept.pop("annotations", None) or {}
    if not isinstance(notes, dict):
        raise InvalidInput("metadata.annotations", notes, "write a mapping (name: value)")
    notes.pop(LAST_APPLIED, None)
    return kept | ({"annotations": notes} if notes else {})


def annotate(metadata: dict[str, Any], key: str, value: str) -> None:
    metadata["annotations"] = {**metadata.get("annotations", {}), key: value}


def unannotate(metadata: dict[str, Any], key: str) -> str | None:
    """Takes an annotation away and gives its value."""
    notes: dict[str, str] = dict(metadata.get("annotations") or {})
    value = notes.pop(key, None)
    metadata.pop("annotations", None)
    if notes:
        metadata["annotations"] = notes
    return value
