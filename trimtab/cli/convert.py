"""trimtab convert: one autoscaler's manifest as another's."""

from __future__ import annotations

from typing import Any

import click

from trimtab.cli.output import dump, output_option
from trimtab.errors import InvalidInput, InvalidObject
from trimtab.kinds.convert import TARGETS, convert, convertible
from trimtab.kinds.yaml import Document, load


@click.command(name="convert")
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR|- ...")
@click.option("--to", type=click.Choice(list(TARGETS)), required=True, help="The kind to write.")
@click.option("--strict", is_flag=True, help="Exit 1 when something has no equivalent.")
@output_option("yaml", "json")
def command(paths: tuple[str, ...], to: str, strict: bool, output: str) -> None:
    """Turn HPA, VPA, KEDA, EHPA, Hvpa and custom-hpa manifests into one another.

    What has no equivalent is listed on standard error with its path.

    \b
    kubectl get hpa web -o yaml | trimtab convert - --to autoscaler
    trimtab convert keda/ --to autoscaler > autoscalers.yaml

    Exit code 0: converted, 1: with --strict something was lost, 2: something could not be read or converted.
    """
    made: list[dict[str, Any]] = []
    lost, failed = 0, 0
    for document in (document for path in paths for document in load(path)):
        try:
            result = _convert(document, to)
        except InvalidInput as error:
            failed += 1
            _complain(document, error)
            continue
        made += [result.manifest] if result else []
        for loss in result.lost if result else []:
            lost += 1
            click.echo(f"{document.file}:{document.line_of(loss.path)}: warning: {loss.path}: {loss.why}", err=True)
    if made:
        dump(made, output)
    raise SystemExit(2 if failed else 1 if strict and lost else 0)


def _convert(document: Document, to: str) -> Any:
    if document.error is not None:
        raise document.error
    if not isinstance(document.value, dict) or not convertible(document.value):
        kind = document.value.get("kind") if isinstance(document.value, dict) else None
        click.echo(f"{document.file}:{document.line}: left out: {kind or 'this'} is no autoscaler", err=True)
        return None
    return convert(document.value, to)


def _complain(document: Document, error: InvalidInput) -> None:
    problems = error.problems if isinstance(error, InvalidObject) else (error,)
    for problem in problems:
        line = document.line if document.error else document.line_of(problem.path)
        click.echo(f"{document.file}:{line}: error: {problem}", err=True)
