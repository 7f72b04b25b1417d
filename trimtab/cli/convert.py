"""trimtab convert: one autoscaler's manifest as another's."""

from __future__ import annotations

import enum
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from trimtab.cli.choices import CONVERT_TO
from trimtab.cli.output import dump, output_option
from trimtab.errors import InvalidInput, InvalidObject

if TYPE_CHECKING:
    from trimtab.kinds.convert import Converted
    from trimtab.kinds.yaml import Document


class ConversionOutcome(enum.Enum):
    KEPT = enum.auto()  # all of it
    LESS = enum.auto()  # something is left out
    REFUSED = enum.auto()  # its signal would be lost
    BROKEN = enum.auto()  # it cannot be read, or there can be no such object


class ConvertOptions(NamedTuple):
    to: str
    beside_keda: bool
    force: bool


@click.command(name="convert")
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR|- ...")
@click.option("--to", type=click.Choice(CONVERT_TO), required=True, help="The kind to write.")
@click.option("--strict", is_flag=True, help="Exit 1 when anything is left out, a whole object included.")
@click.option("--force", is_flag=True, help="Convert also what loses its signal and would follow CPU instead.")
@click.option("--beside-keda", is_flag=True, help="KEDA keeps fetching its metrics; only its scaling ends.")
@output_option("yaml", "json")
def command(paths: tuple[str, ...], strict: bool, output: str, **wanted: Any) -> None:
    """Turn HPA, VPA, KEDA, WPA, PHPA, EHPA, Hvpa and custom-hpa manifests into one another.

    What has no equivalent is listed on standard error with its path. What would no longer be scaled by the signal it
    is scaled by now is refused.

    \b
    kubectl get hpa web -o yaml | trimtab convert - --to autoscaler
    trimtab convert keda/ --to autoscaler > autoscalers.yaml
    kubectl get scaledobject web -o yaml | trimtab convert - --to autoscaler --beside-keda

    Exit code 0: converted, 1: refused, or with --strict something was left out, 2: something could not be read or
    converted.
    """
    from trimtab.kinds.lint.layout import patch_files
    from trimtab.kinds.yaml import load

    made: list[dict[str, Any]] = []
    documents = [document for path in paths for document in load(path)]
    patches = patch_files(documents)
    outcomes = Counter(_convert(document, patches, ConvertOptions(**wanted), made) for document in documents)
    if made:
        dump(made, output)
    refused = outcomes[ConversionOutcome.REFUSED] or (strict and outcomes[ConversionOutcome.LESS])
    if not made and not refused and not outcomes[ConversionOutcome.BROKEN]:
        click.echo(f"{', '.join(paths)}: error: there is no autoscaler in it", err=True)
        raise SystemExit(2)
    raise SystemExit(2 if outcomes[ConversionOutcome.BROKEN] else 1 if refused else 0)


def _convert(
    document: Document, patches: set[str], wanted: ConvertOptions, made: list[dict[str, Any]]
) -> ConversionOutcome:
    from trimtab.kinds.convert import convert

    try:
        if why := _left_out(document, patches):
            _say(document, document.line, f"left out: {why}")
            return ConversionOutcome.LESS
        if document.error is not None:
            raise document.error
        result = convert(document.value, wanted.to, wanted.beside_keda)
    except InvalidInput as error:
        _complain(document, error)
        return ConversionOutcome.BROKEN
    return _report(document, result, wanted, made)


def _left_out(document: Document, patches: set[str]) -> str | None:
    from trimtab.kinds.convert import convertible
    from trimtab.kinds.lint.layout import is_patch, is_template

    value = document.value if isinstance(document.value, dict) else {}
    if is_template(document):
        return "a Helm template: helm template CHART | trimtab convert -"
    if document.error is None and not convertible(value):
        return f"{value.get('kind') or 'this'} is no autoscaler"
    return "a patch, no whole object: kustomize build DIR | trimtab convert -" if is_patch(document, patches) else None


def _report(
    document: Document, result: Converted, wanted: ConvertOptions, made: list[dict[str, Any]]
) -> ConversionOutcome:
    for loss in sorted(result.lost, key=lambda loss: document.line_of(loss.path)):
        severity = "error" if loss.signal and not wanted.force else "warning"
        _say(document, document.line_of(loss.path), f"{severity}: {loss.path}: {loss.why}")
    if result.loses_signal and not wanted.force:
        _say(document, document.line, "refused: its signal would be lost; --force converts it all the same")
        return ConversionOutcome.REFUSED
    made.append(result.manifest)
    if wanted.beside_keda and document.value.get("kind") == "ScaledObject":
        _say(document, document.line, f"then end KEDA's scaling: {_pause(result.manifest['metadata'])}")
    return ConversionOutcome.LESS if result.lost else ConversionOutcome.KEPT


def _pause(metadata: dict[str, Any]) -> str:
    namespace = f" -n {metadata['namespace']}" if "namespace" in metadata else ""
    return f"kubectl annotate scaledobject {metadata.get('name', 'NAME')}{namespace} autoscaling.keda.sh/paused=true"


def _complain(document: Document, error: InvalidInput) -> None:
    problems = error.problems if isinstance(error, InvalidObject) else (error,)
    for problem in problems:
        line = document.line if document.error else document.line_of(problem.path)
        _say(document, line, f"error: {problem}")


def _say(document: Document, line: int, text: str) -> None:
    click.echo(f"{document.file}:{line}: {text}", err=True)
