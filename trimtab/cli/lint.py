"""trimtab lint: what would hurt in manifests."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trimtab.cli.choices import LINT_BASELINE, LINT_SEVERITIES
from trimtab.cli.output import output_option, write_file
from trimtab.errors import InvalidInput

if TYPE_CHECKING:
    from trimtab.kinds.lint import Finding


@click.command(name="lint")
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR|- ...")
@click.option(
    "--severity",
    type=click.Choice(LINT_SEVERITIES),
    default="info",
    show_default=True,
    help="Leave out what is less severe.",
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"Leave out what this file knows [default: {LINT_BASELINE} of a linted folder].",
)
@click.option("--update-baseline", is_flag=True, help="Write what is found now into the baseline; exit 0.")
@output_option("text", "json", "markdown", "sarif")
def command(paths: tuple[str, ...], severity: str, baseline: Path | None, update_baseline: bool, output: str) -> None:
    """Find what would hurt in manifests, before it does. Workloads given along are looked at too.

    A comment `# trimtab:ignore=RULE` on a line, or on the one above, silences a rule there; above the whole document
    it does so for all of it.

    \b
    trimtab lint deploy/
    kubectl get hpa,vpa,deploy -A -o yaml | trimtab lint -

    Exit code 0: nothing found, 1: findings, 2: something could not be read.
    """
    from trimtab.cli.lint_output import Report, show
    from trimtab.kinds.lint import LintSeverity, is_template, lint
    from trimtab.kinds.lint.silenced import fingerprint, read_baseline
    from trimtab.kinds.yaml import load

    documents = [document for path in paths for document in load(path)]
    templates = sorted({document.file for document in documents if is_template(document)})
    broken = [document for document in documents if document.error is not None and not is_template(document)]
    worst = list(LintSeverity)[: list(LintSeverity).index(LintSeverity(severity)) + 1]
    findings = [finding for finding in lint(documents, time.time()) if finding.severity in worst]
    known = baseline or _beside(paths)
    if update_baseline:
        _update(findings, known, paths)
        return
    if known is not None:
        left_out = read_baseline(known)
        findings = [finding for finding in findings if fingerprint(finding, known.parent) not in left_out]
    show(Report(findings, broken, templates, sum(document.error is None for document in documents)), output)
    raise SystemExit(2 if broken else 1 if findings else 0)


def _beside(paths: tuple[str, ...]) -> Path | None:
    return next((Path(path) / LINT_BASELINE for path in paths if (Path(path) / LINT_BASELINE).is_file()), None)


def _update(findings: list[Finding], known: Path | None, paths: tuple[str, ...]) -> None:
    from trimtab.kinds.lint.silenced import baseline_text

    folder = next((Path(path) for path in paths if Path(path).is_dir()), None)
    file = known or (folder / LINT_BASELINE if folder else None)
    if file is None:
        raise InvalidInput("--baseline", None, "name the file to write, or lint a folder")
    write_file(file, baseline_text(findings, file.parent))
    click.echo(f"{file}: {len(findings)} findings are known now", err=True)
