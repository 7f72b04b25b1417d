"""trimtab completion: print the script that completes commands and options in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command(name="completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash: source <(trimtab completion bash)
    zsh:  source <(trimtab completion zsh)
    fish: trimtab completion fish | source
    """
    completion = get_completion_class(shell)
    assert completion is not None and ctx.parent is not None
    click.echo(completion(ctx.parent.command, {}, "trimtab", "_TRIMTAB_COMPLETE").source())
