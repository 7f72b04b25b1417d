"""How commands print: `-o`, YAML without anchors, JSON as one value."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click
import yaml


class Plain(yaml.CSafeDumper):
    """No anchors: people and diffs read it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


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
