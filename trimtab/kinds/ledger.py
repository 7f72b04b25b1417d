"""What a translation between two kinds loses, and where in the source each part of its result stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from trimtab.errors import InvalidInput, InvalidObject

N = TypeVar("N", int, float)


class Lost(NamedTuple):
    """A field without an equivalent; a lost signal means that the workload would follow another metric than before."""

    path: str
    why: str
    signal: bool = False
    exact: bool = False  # `spec.exact` keeps it; only an Autoscaler for a cluster loses it


class Ledger:
    """Collects losses, and translates paths of the result back into paths of the source."""

    def __init__(self) -> None:
        self.lost: list[Lost] = []
        self._places: dict[str, str] = {}

    def lose(self, path: str, why: str, signal: bool = False) -> None:
        self.lost.append(Lost(path, why, signal))

    def approximate(self, path: str, why: str, signal: bool = False) -> None:
        """Record what `spec.exact` keeps and the public fields of an Autoscaler cannot express."""
        self.lost.append(Lost(path, why, signal, exact=True))

    def approximate_written(self, path: str, part: dict[str, Any], names: Iterable[str], why: str) -> None:
        """Approximate those of the named fields that the user wrote."""
        for name in names:
            if name in part:
                self.approximate(f"{path}.{name}" if path else name, why)

    def at_most(self, made: str, value: N, most: N) -> N:
        """Return the value that this field of the result can hold."""
        if value > most:
            self.approximate(self.source_of(made), f"{most:g} is the most it can be, not {value:g}")
        return min(value, most)

    def place(self, made: str, source: str) -> None:
        self._places[made] = source

    def places(self, places: dict[str, str]) -> None:
        self._places |= places

    def source_of(self, path: str) -> str:
        """Return the path in the source of the longest part of this path that has a known place."""
        known = [made for made in self._places if path == made or path.startswith((f"{made}.", f"{made}["))]
        if not known:
            return path
        longest = max(known, key=len)
        source = self._places[longest]
        return source if source.endswith('"]') else source + path[len(longest) :]  # an annotation has no parts

    def at_source(self, error: InvalidObject, what: str) -> InvalidObject:
        """Return the same problems at the places where the user wrote them."""
        problems = [
            InvalidInput(self.source_of(problem.path), problem.value, problem.fix) for problem in error.problems
        ]
        return InvalidObject(what, problems)

    @property
    def untold(self) -> Iterator[Lost]:
        """What is lost even where `spec.exact` is kept."""
        return (loss for loss in self.lost if not loss.exact)


def loses_signal(lost: Iterable[Lost]) -> bool:
    """Return whether the workload would follow another metric than before."""
    return any(loss.signal for loss in lost)


def without_none(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
