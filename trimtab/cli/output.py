"""How commands print: `-o`, YAML without anchors, JSON as one value, files whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click
import yaml

from trimtab.errors import InvalidInput


def program_name() -> str:
    """What a person types to call us again: after `make demo` we are in .venv, and on nobody's path."""
    program = Path(sys.argv[0])
    elsewhere = program.name == "trimtab" and program.is_file() and shutil.which("trimtab") is None
    return os.path.relpath(program) if elsewhere else "trimtab"


def write_file(path: Path, text: str) -> None:
    """The whole text or nothing: a reader never finds half a file, and a run that fails leaves the old one."""
    try:
        if path.exists() and not path.is_file():  # a pipe or a device cannot be replaced
            path.write_text(text, encoding="utf-8")
            return
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.write_text(text, encoding="utf-8")
        draft.replace(path.resolve())
    except OSError as error:
        raise unwritable(path, error.strerror or str(error)) from None


def unwritable(path: Path, why: str) -> InvalidInput:
    return InvalidInput(str(path), why, "name a file in a folder that is there and may be written to")


class Plain(yaml.CSafeDumper):
    """No anchors: people and diffs read it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def text(self, data: str) -> yaml.ScalarNode:
        """Several lines, such as those of a query, stand as several lines."""
        return self.represent_scalar("tag:yaml.org,2002:str", data, style="|" if "\n" in data else None)


Plain.add_representer(str, Plain.text)


def output_option(*formats: str) -> Callable[[Any], Any]:
    """`-o`, the first format being the default."""
    return click.option(
        "-o", "--output", type=click.Choice(formats), default=formats[0], show_default=True, help="Output format."
    )


def dump(manifests: list[dict[str, Any]], output: str) -> None:
    """Documents as kubectl takes them: YAML with separators, or JSON (a List when there are several)."""
    if output == "json":
        many = {"apiVersion": "v1", "kind": "List", "items": manifests}
        click.echo(json.dumps(manifests[0] if len(manifests) == 1 else many, indent=2))
        return
    for index, manifest in enumerate(manifests):
        click.echo("---\n" * bool(index) + to_yaml(manifest), nl=False)


def to_yaml(value: Any) -> str:
    text: str = yaml.dump(value, Dumper=Plain, sort_keys=False, allow_unicode=True, width=120)
    return text


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """For the description of a pull request."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
