"""The command line: one module per command, imported only when it is called.

Exit codes: 0 all is well, 1 something was found, 2 it could not be done. Errors are sentences, never tracebacks.
To add a command: trimtab/cli/NAME.py with a click command called `command`, and a line in SECTIONS.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
import warnings
from difflib import get_close_matches
from typing import Any, TextIO, cast

import click

from trimtab import __version__
from trimtab.cli.printable import PrintableStream
from trimtab.errors import TrimtabError

SECTIONS = {
    "Before anything is touched": {
        "demo": "See what trimtab does, without a cluster.",
        "recommend": "Say what should be autoscaled, and with which settings.",
        "backtest": "Replay a workload's own history under policies.",
        "tune": "Find better settings for a policy in that history.",
        "capacity": "Learn how much one pod serves while latency stays below a promise.",
        "lint": "Find what would hurt in manifests, before it does.",
        "convert": "Turn HPA, VPA, KEDA, EHPA, Hvpa into one another.",
        "bench": "Run the benchmark protocol over a folder of traces.",
    },
    "In a cluster": {
        "doctor": "Check cluster, permissions and metrics, and say what will work.",
        "handover": "Take over from an HPA or ScaledObject without a gap, and back.",
        "run": "Run the operator.",
        "crds": "Print the CustomResourceDefinitions, ready for kubectl apply.",
        "custom-hpa": "Scale one Deployment by one query, as nanit's custom-hpa does.",
    },
    "What it does and did": {
        "status": "List what is served: replicas, what holds it, the last decision.",
        "explain": "Explain the last decision for an object, from a journal.",
        "replay": "Take every decision of a journal again, report differences.",
        "dashboard": "Look at the fleet, one workload and what-if in a browser.",
        "version": "Print the version.",
        "completion": "Print the completion script of bash, zsh or fish.",
    },
    "When something is wrong": {
        "freeze": "Stop every write of an installation at once.",
        "unfreeze": "Let a frozen installation go on.",
        "restore": "Put back what a stopped operator left in force.",
    },
}
COMMANDS = {name: text for commands in SECTIONS.values() for name, text in commands.items()}


def _note(message: Warning | str, *where: object, **more: object) -> None:
    """A warning is for the person at the terminal, who does not care which line it comes from."""
    click.echo(f"note: {message}", err=True)


def _prepare_streams() -> None:
    """What is closed leads nowhere, and text is UTF-8 in every locale, as it is for kubectl."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  (as long as we live)
        elif isinstance(stream, io.TextIOWrapper) and mode == "w":
            stream.reconfigure(encoding="utf-8", errors="replace")


def _drop_output() -> None:
    """Nobody reads it any more: what is still in the buffer goes nowhere."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class ErrorHandlingGroup(click.Group):
    """A group whose errors are sentences and exit codes."""

    def invoke(self, ctx: click.Context) -> Any:
        _prepare_streams()
        stdout, stderr = (cast(TextIO, PrintableStream(stream)) for stream in (sys.stdout, sys.stderr))
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            return self._answered(ctx)

    def _answered(self, ctx: click.Context) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _note
                return self._invoke(ctx)
        except TrimtabError as error:
            click.echo(f"trimtab: {error}", err=True)
            ctx.exit(error.exit_code)
        except (click.exceptions.Exit, click.ClickException):
            raise
        except (KeyboardInterrupt, click.Abort):
            click.echo("trimtab: interrupted", err=True)
            ctx.exit(2)
        except BrokenPipeError:  # whoever read our output has seen enough
            _drop_output()
            ctx.exit(2)
        except OSError as error:
            _drop_output()
            click.echo(f"trimtab: {error.filename or 'output'}: {error.strerror or error}", err=True)
            ctx.exit(2)
        except Exception as error:
            if os.environ.get("TRIMTAB_DEBUG"):
                raise
            click.echo(f"trimtab: this is a bug: {type(error).__name__}: {error}", err=True)
            click.echo("Please report it; TRIMTAB_DEBUG=1 shows where it happened.", err=True)
            ctx.exit(2)

    def _invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        finally:
            sys.stdout.flush()  # what cannot be written is our error, not the interpreter's after the end


class LazyGroup(ErrorHandlingGroup):
    """A group that imports a command's module when it is called, so that `--help` takes no time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"trimtab.cli.{cmd_name.replace('-', '_')}")
        found: click.Command = module.command
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        near = [] if args[0] in COMMANDS else get_close_matches(args[0], COMMANDS, 1)
        if near:
            ctx.fail(f"No such command '{args[0]}', did you mean {near[0]}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(len("custom-hpa")), text) for name, text in commands.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", message="trimtab %(version)s")
def main() -> None:
    """Autoscaling for Kubernetes: the right number of pods, of the right size, before the load arrives."""
