"""trimtab version: as kubectl has it, beside --version."""

from __future__ import annotations

import click

from trimtab import __version__
from trimtab.cli.output import output_option


@click.command(name="version")
@output_option("text", "json")
def command(output: str) -> None:
    """Print the version."""
    click.echo(f'{{"version": "{__version__}"}}' if output == "json" else f"trimtab {__version__}")
