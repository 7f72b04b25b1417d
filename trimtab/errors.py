"""Everything that can go wrong for a user, as one tree; each error says what to do about it.

TrimtabError
├── InvalidInput          what a user wrote cannot be meant; nothing was changed
│   ├── InvalidObject     all that is wrong with one object, at once
│   └── InvalidPolicy     a policy contradicts itself; it is refused as a whole
├── Unavailable           something outside did not answer; the workload keeps its size
│   ├── MetricsUnavailable
│   ├── ClusterUnavailable
│   └── JournalUnavailable
├── Refused               the cluster answered and said no (403, conflict, quota)
├── NotLeading            another operator may lead by now; nothing was written
└── NotEnoughData         there is data, but too little to say anything

Programmer errors are assertions, never one of these.

Errors are shown to tenants: none holds the credentials of a URL, and what a server said is quoted with `quoted`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

CREDENTIALS = re.compile(r"(?<=://)[^\s/?#]*@")
LONGEST_QUOTE = 120  # characters


def without_credentials(text: str) -> str:
    """The same with //host for every //user:password@host."""
    return CREDENTIALS.sub("", text) if "@" in text else text


def printable(text: str) -> str:
    """The same on one line: what is no character for the eye becomes its escape, so nobody can forge a line."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def quoted(text: str, longest: int = LONGEST_QUOTE) -> str:
    """What somebody else said, fit for a message of ours: one short line without credentials."""
    said = printable(without_credentials(" ".join(text[: 8 * longest].split())))
    return said if len(said) <= longest else f"{said[: longest - 3]}..."


class TrimtabError(Exception):
    """The root: the command line prints its message and exits with `exit_code`."""

    exit_code = 2

    def __str__(self) -> str:
        return without_credentials(super().__str__())

    def __reduce__(self) -> tuple[Any, ...]:
        """As it is, whatever its own words at its making were: errors cross processes."""
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[TrimtabError], args: tuple[Any, ...], fields: dict[str, Any]) -> TrimtabError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


class InvalidInput(TrimtabError):
    """A field, its value and the fix, always all three."""

    def __init__(self, path: str, value: object, fix: str) -> None:
        super().__init__(f"{path}: {value!r}: {fix}" if path else f"{value!r}: {fix}")
        self.path, self.value, self.fix = path, value, fix


class InvalidObject(InvalidInput):
    """Every problem of one object; path, value and fix are those of the first."""

    def __init__(self, what: str, problems: Sequence[InvalidInput]) -> None:
        first = problems[0]
        super().__init__(first.path, first.value, first.fix)
        self.what, self.problems = what, tuple(problems)
        self.args = ("\n".join((what, *(f"  {problem}" for problem in problems))),)


class InvalidPolicy(InvalidInput):
    """Raised before anything is decided, so half a policy never acts."""


class Unavailable(TrimtabError):
    """Temporary by assumption: callers keep what they have and try again."""


class MetricsUnavailable(Unavailable):
    """A metrics source did not answer, or answered with something that is not a value."""


class ClusterUnavailable(Unavailable):
    """The API server did not answer."""


class JournalUnavailable(Unavailable):
    """The record of decisions cannot be written; no decision depends on it."""

    def __init__(self, message: str, damaged: bool = False) -> None:
        super().__init__(message)
        self.damaged = damaged


class Refused(TrimtabError):
    """The API server answered no; `status` is its HTTP code."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class NotLeading(TrimtabError):
    """Somebody else may be leader by now: nothing is written, and nobody needs to hear of it."""


class NotEnoughData(TrimtabError):
    """The message says how much there is and how much is needed."""
