"""lint: what would hurt, found in text, before anything is applied.

A check is a function (linted, among) -> findings; add it to the CHECKS of its module and to docs/lint.md.
"""

from __future__ import annotations

from trimtab.kinds.lint import backlog_checks, foreign_checks, object_checks, schedule_and_blend_checks, workload_checks
from trimtab.kinds.lint.finding import Diagnostic, Finding, LintSeverity
from trimtab.kinds.lint.layout import is_template
from trimtab.kinds.lint.manifest_set import LintedManifest, ManifestSet
from trimtab.kinds.lint.silenced import ignored_rules
from trimtab.kinds.yaml import Document

CHECKS = (
    *object_checks.CHECKS,
    *schedule_and_blend_checks.CHECKS,
    *workload_checks.CHECKS,
    *foreign_checks.CHECKS,
    *backlog_checks.CHECKS,
)
_ORDER = {severity: rank for rank, severity in enumerate(LintSeverity)}


def lint(documents: list[Document], at: float) -> list[Finding]:
    """Everything the checks say, the worst of each file first; broken documents are the caller's to report."""
    among = ManifestSet(documents, at)
    found = [
        finding
        for linted in among.manifests
        for check in CHECKS
        for diagnostic in check(linted, among)
        if (finding := _placed(linted, diagnostic)).rule not in ignored_rules(linted.document, finding.line)
    ]
    return sorted(found, key=lambda finding: (finding.file, finding.line, _ORDER[finding.severity]))


def _placed(linted: LintedManifest, diagnostic: Diagnostic) -> Finding:
    document = linted.document
    return Finding(*diagnostic[:2], linted.title, *diagnostic[2:], document.file, document.line_of(diagnostic.path))


__all__ = ["CHECKS", "Finding", "LintSeverity", "is_template", "lint"]
