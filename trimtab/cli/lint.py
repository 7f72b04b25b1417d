"""trimtab lint: what would hurt in manifests."""

from __future__ import annotations

import json
import time

import click

from trimtab.cli.output import output_option
from trimtab.kinds.lint import Finding, LintSeverity, lint
from trimtab.kinds.yaml import Document, load

_COLOURS = {LintSeverity.ERROR: "red", LintSeverity.WARNING: "yellow", LintSeverity.INFO: "cyan"}


@click.command(name="lint")
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR|- ...")
@click.option(
    "--severity",
    type=click.Choice([str(severity) for severity in reversed(LintSeverity)]),
    default="info",
    show_default=True,
    help="Leave out what is less severe.",
)
@output_option("text", "json")
def command(paths: tuple[str, ...], severity: str, output: str) -> None:
    """Find what would hurt in manifests, before it does. Workloads given along are looked at too.

    \b
    trimtab lint deploy/
    kubectl get hpa,vpa,deploy -A -o yaml | trimtab lint -

    Exit code 0: nothing found, 1: findings, 2: something could not be read.
    """
    documents = [document for path in paths for document in load(path)]
    broken = [document for document in documents if document.error is not None]
    worst = list(LintSeverity)[: list(LintSeverity).index(LintSeverity(severity)) + 1]
    findings = [finding for finding in lint(documents, time.time()) if finding.severity in worst]
    if output == "json":
        _print_json(findings, broken)
    else:
        _print_text(findings, broken, len(documents))
    raise SystemExit(2 if broken else 1 if findings else 0)


def _print_json(findings: list[Finding], broken: list[Document]) -> None:
    unreadable = [{"file": document.file, "line": document.line, "why": str(document.error)} for document in broken]
    click.echo(
        json.dumps({"findings": [finding._asdict() for finding in findings], "unreadable": unreadable}, indent=2)
    )


def _print_text(findings: list[Finding], broken: list[Document], read: int) -> None:
    for document in broken:
        click.echo(f"{document.file}:{document.line}: cannot be read: {document.error}", err=True)
    for finding in findings:
        severity = click.style(str(finding.severity), fg=_COLOURS[finding.severity])
        click.echo(f"{finding.file}:{finding.line}: {severity} {finding.object} {finding.path} [{finding.rule}]")
        click.echo(f"    {finding.why}\n    fix: {finding.fix}")
    counts = [f"{sum(finding.severity is severity for finding in findings)} {severity}" for severity in LintSeverity]
    click.echo(f"{read - len(broken)} documents: {', '.join(counts)}, {len(broken)} unreadable", err=True)
