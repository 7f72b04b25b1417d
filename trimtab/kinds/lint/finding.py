"""What a check says: how bad, where, why, and what to do."""

from __future__ import annotations

import enum
from typing import NamedTuple


class LintSeverity(enum.StrEnum):
    ERROR = "error"  # it will not work, or it will be refused
    WARNING = "warning"  # it will hurt some day
    INFO = "info"  # it may not be what was meant


class Diagnostic(NamedTuple):
    """One check's word on one object."""

    severity: LintSeverity
    rule: str
    path: str
    why: str
    fix: str


class Finding(NamedTuple):
    """The same, with the object and its place."""

    severity: LintSeverity
    rule: str
    object: str
    path: str
    why: str
    fix: str
    file: str
    line: int
