"""What lint found, for a terminal, a program, a pull request or a code scanner."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import click

import trimtab
from trimtab.cli.printable import echo_coloured
from trimtab.kinds.lint import Finding, LintSeverity
from trimtab.kinds.yaml import Document

_COLOURS = {LintSeverity.ERROR: "red", LintSeverity.WARNING: "yellow", LintSeverity.INFO: "cyan"}
_LEVELS = {LintSeverity.ERROR: "error", LintSeverity.WARNING: "warning", LintSeverity.INFO: "note"}
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


class Report(NamedTuple):
    findings: list[Finding]
    unreadable: list[Document]
    templates: list[str]  # files that Helm has to render first
    read: int


def show(report: Report, output: str) -> None:
    {"text": _text, "json": _json, "markdown": _markdown, "sarif": _sarif}[output](report)


def _json(report: Report) -> None:
    unreadable = [{"file": bad.file, "line": bad.line, "why": str(bad.error)} for bad in report.unreadable]
    findings = [finding._asdict() for finding in report.findings]
    _dump({"findings": findings, "unreadable": unreadable, "templates": report.templates})


def _text(report: Report) -> None:
    for bad in report.unreadable:
        click.echo(f"{bad.file}:{bad.line}: cannot be read: {bad.error}", err=True)
    for file in report.templates:
        click.echo(f"{file}: left out, a Helm template: helm template CHART | trimtab lint -", err=True)
    for finding in report.findings:
        echo_coloured(
            (f"{finding.file}:{finding.line}: ", ""),
            (str(finding.severity), _COLOURS[finding.severity]),
            (f" {finding.object} {finding.path} [{finding.rule}]", ""),
        )
        click.echo(f"    {finding.why}\n    fix: {finding.fix}")
    click.echo(_counts(report), err=True)


def _counts(report: Report) -> str:
    found = [sum(finding.severity is severity for finding in report.findings) for severity in LintSeverity]
    counts = [f"{number} {severity}" for number, severity in zip(found, LintSeverity, strict=True)]
    documents = "1 document" if report.read == 1 else f"{report.read} documents"
    return f"{documents}: {', '.join(counts)}, {len(report.unreadable)} unreadable"


def _markdown(report: Report) -> None:
    click.echo(f"### trimtab lint\n\n{_counts(report)}\n")
    if report.findings:
        click.echo("| | where | rule | why | fix |\n|---|---|---|---|---|")
    for finding in report.findings:
        where = f"`{finding.file}:{finding.line}` {finding.object} `{finding.path}`"
        cells = (str(finding.severity), where, f"`{finding.rule}`", finding.why, finding.fix)
        click.echo("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    for bad in report.unreadable:
        click.echo(f"\n`{bad.file}:{bad.line}` cannot be read: {bad.error}")


def _sarif(report: Report) -> None:
    rules = [{"id": rule} for rule in sorted({finding.rule for finding in report.findings})]
    driver = {"name": "trimtab", "version": trimtab.__version__, "rules": rules}
    results = [_result(finding) for finding in report.findings]
    unread = [
        {"level": "error", "message": {"text": f"{bad.file}:{bad.line}: {bad.error}"}} for bad in report.unreadable
    ]
    told = [{"executionSuccessful": not unread, "toolExecutionNotifications": unread}]
    _dump({"$schema": _SARIF, "version": "2.1.0", "runs": [_run(driver, results, told)]})


def _run(driver: dict[str, Any], results: list[dict[str, Any]], told: list[dict[str, Any]]) -> dict[str, Any]:
    return {"tool": {"driver": driver}, "results": results, "invocations": told}


def _result(finding: Finding) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": finding.file}, "region": {"startLine": finding.line}}
    return {
        "ruleId": finding.rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.object} {finding.path}: {finding.why}; fix: {finding.fix}"},
        "locations": [{"physicalLocation": place}],
    }


def _dump(value: dict[str, Any]) -> None:
    click.echo(json.dumps(value, indent=2))
