"""A manifest taken apart field by field: what nobody takes is reported, so that nothing is dropped in silence."""

from __future__ import annotations

import copy
from math import isfinite
from typing import Any, TypeVar

from trimtab.errors import InvalidInput
from trimtab.kinds.ledger import Ledger
from trimtab.kinds.manifest_part import ABSENT
from trimtab.kinds.problems import unquoted

T = TypeVar("T")

_WORDS: dict[type, str] = {str: "text", int: "a whole number", bool: "true or false", list: "a list", dict: "a mapping"}


class SourceFields:
    """One mapping of a manifest; `take` removes a field, `close` reports the rest."""

    def __init__(self, value: dict[str, Any], path: str, ledger: Ledger) -> None:
        self.written, self._left, self.path, self.ledger = frozenset(value), dict(value), path, ledger

    def take(self, name: str, kind: type[T], default: T | None = None) -> T | None:
        value = self._left.pop(name, None)
        if value is None:
            return default
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            fix = unquoted(value) if kind is str and isinstance(value, bool) else f"write {_WORDS[kind]}"
            raise InvalidInput(self.at(name), value, fix)
        return copy.deepcopy(value)

    def need(self, name: str, kind: type[T]) -> T:
        """A field that the other project demands too."""
        value = self.take(name, kind)
        if value is None or value == "":
            raise InvalidInput(self.at(name), ABSENT, "add it")
        return value

    def number(self, name: str) -> str | None:
        """A number as it is written, in quotes or without."""
        value = self.take(name, object)
        try:
            finite = value is None or (not isinstance(value, bool) and isfinite(float(str(value))))
        except ValueError:
            finite = False
        if not finite:
            raise InvalidInput(self.at(name), value, "write a number")
        return None if value is None else str(value)

    def need_number(self, name: str) -> str:
        return self.number(name) or self.need(name, str)

    def has(self, name: str) -> bool:
        return self._left.get(name) is not None

    def holds(self, name: str, value: object) -> bool:
        return bool(self._left.get(name) == value)

    def places(self, places: dict[str, str]) -> None:
        """Where parts of the result stand in the source."""
        self.ledger.places(places)

    def length(self, name: str) -> int:
        value = self._left.get(name)
        return len(value) if isinstance(value, list) else 0

    def names(self) -> list[str]:
        """What nobody has taken yet."""
        return list(self._left)

    def part(self, name: str) -> SourceFields:
        """A mapping inside; an absent one is empty."""
        return SourceFields(self.take(name, dict) or {}, self.at(name), self.ledger)

    def items(self, name: str) -> list[SourceFields]:
        """The mappings of a list."""
        found = self.take(name, list) or []
        for index, item in enumerate(found):
            if not isinstance(item, dict):
                raise InvalidInput(f"{self.at(name)}[{index}]", item, "write a mapping")
        return [SourceFields(item, f"{self.at(name)}[{index}]", self.ledger) for index, item in enumerate(found)]

    def lose(self, name: str, why: str) -> None:
        """Takes a field that has no equivalent."""
        if self._left.pop(name, None) is not None:
            self.ledger.lose(self.at(name), why)

    def note(self, why: str, name: str = "", signal: bool = False) -> None:
        self.ledger.lose(self.at(name) if name else self.path, why, signal)

    def close(self, why: str = "has no equivalent") -> None:
        for name in list(self._left):
            self.lose(name, why)

    def rest(self) -> dict[str, Any]:
        """Everything that is left, taken as it is."""
        left, self._left = self._left, {}
        return copy.deepcopy(left)

    def at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name
