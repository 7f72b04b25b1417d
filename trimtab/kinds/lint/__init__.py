"""lint: what would hurt, found in text, before anything is applied.

A check is a function (entry, world) -> findings; add it to the CHECKS of its module and to docs/lint.md.
"""

from __future__ import annotations

from trimtab.kinds.lint import shape, single, together
from trimtab.kinds.lint.finding import Finding, Found, Severity
from trimtab.kinds.lint.world import Entry, World
from trimtab.kinds.yaml import Document

CHECKS = (*single.CHECKS, *shape.CHECKS, *together.CHECKS)
_ORDER = {severity: rank for rank, severity in enumerate(Severity)}


def lint(documents: list[Document], at: float) -> list[Finding]:
    """Everything the checks say, the worst of each file first; broken documents are the caller's to report."""
    world = World(documents, at)
    found = [_placed(entry, one) for entry in world.entries for check in CHECKS for one in check(entry, world)]
    return sorted(found, key=lambda one: (one.file, one.line, _ORDER[one.severity]))


def _placed(entry: Entry, one: Found) -> Finding:
    document = entry.document
    return Finding(*one[:2], entry.title, *one[2:], document.file, document.line_of(one.path))


__all__ = ["CHECKS", "Finding", "Severity", "lint"]
