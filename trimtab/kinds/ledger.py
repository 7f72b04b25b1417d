"""What a translation between two kinds loses, and where in the source each part of its result stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from trimtab.errors import InvalidInput, InvalidObject


class Lost(NamedTuple):
    """What has no equivalent; without a signal the workload would be scaled by something else than before."""

    path: str
    why: str
    signal: bool = False
    exact: bool = False  # `spec.exact` holds it: only who asks for an Autoscaler to apply loses it


class Ledger:
    """Collects losses, and translates paths of the result back into those of the source."""

    def __init__(self) -> None:
        self.lost: list[Lost] = []
        self._places: dict[str, str] = {}

    def lose(self, path: str, why: str, signal: bool = False, exact: bool = False) -> None:
        self.lost.append(Lost(path, why, signal, exact))

    def place(self, made: str, source: str) -> None:
        self._places[made] = source

    def places(self, places: dict[str, str]) -> None:
        self._places |= places

    def source_of(self, path: str) -> str:
        """The path as its writer knows it: that of the longest part of it whose place is known."""
        known = [made for made in self._places if path == made or path.startswith((f"{made}.", f"{made}["))]
        if not known:
            return path
        longest = max(known, key=len)
        source = self._places[longest]
        return source if source.endswith('"]') else source + path[len(longest) :]  # an annotation has no parts

    def at_source(self, error: InvalidObject, what: str) -> InvalidObject:
        """The same problems, where the user wrote them."""
        problems = [
            InvalidInput(self.source_of(problem.path), problem.value, problem.fix) for problem in error.problems
        ]
        return InvalidObject(what, problems)

    @property
    def untold(self) -> Iterator[Lost]:
        """What is lost even where `spec.exact` is kept."""
        return (loss for loss in self.lost if not loss.exact)


def without_none(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
