"""Everything that can go wrong for a user, as one tree; each error says what to do about it.

TrimtabError
├── InvalidInput          what a user wrote cannot be meant; nothing was changed
│   ├── InvalidObject     all that is wrong with one object, at once
│   └── InvalidPolicy     a policy contradicts itself; it is refused as a whole
├── Unavailable           something outside did not answer; the workload keeps its size
│   ├── MetricsUnavailable
│   └── ClusterUnavailable
├── Refused               the cluster answered and said no (403, conflict, quota)
└── NotEnoughData         there is data, but too little to say anything

Programmer errors are assertions, never one of these.
"""

from __future__ import annotations

from collections.abc import Sequence


class TrimtabError(Exception):
    """The root: the command line prints its message and exits with `exit_code`."""

    exit_code = 2


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


class Refused(TrimtabError):
    """The API server answered no; `status` is its HTTP code."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class NotEnoughData(TrimtabError):
    """The message says how much there is and how much is needed."""
