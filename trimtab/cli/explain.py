"""trimtab explain NAMESPACE/NAME: what was seen, proposed, changed by each rule, and done, from a journal."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from trimtab.errors import InvalidInput, NotEnoughData, TrimtabError

if TYPE_CHECKING:
    from trimtab.acts import Act
    from trimtab.journal import Journal, Tick


@click.command(name="explain")
@click.argument("object_name", metavar="NAMESPACE/NAME")
@click.option("--at", "at_text", help="The decision in force at this time (RFC 3339), instead of the newest.")
@click.option(
    "--journal", default="trimtab.db", show_default=True, envvar="TRIMTAB_JOURNAL", help="The journal to read."
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(object_name: str, at_text: str | None, journal: str, output: str) -> None:
    """Explain what was decided for an object: why it changed something, or what held it."""
    import msgspec

    from trimtab.cli.screen import screen
    from trimtab.journal import Journal
    from trimtab.kinds.meta import when
    from trimtab.web.workload import explanation

    namespace, slash, name = object_name.partition("/")
    if not slash or not namespace or not name:
        raise InvalidInput("object", object_name, "write NAMESPACE/NAME, such as shop/web")
    read, until = Journal.read(journal), when(at_text, "--at")
    act = next(iter(read.acts(namespace, name, until, last=1)), None)
    last = next(iter(deque(read.ticks(namespace, name, until), maxlen=1)), None)
    if act is None and last is None:
        raise _unknown(read, namespace, name)
    if output == "json":
        click.echo(msgspec.json.encode(_plain(act, last)))
        return
    if act is not None:
        print_explanation(explanation(act))
    if last is not None and (act is None or last.at > act.seen.at):
        screen().print(_last_tick(last, act))


def print_explanation(said: Mapping[str, Any]) -> None:
    """Print what `web.workload.explanation` says of one decision."""
    from rich.table import Table
    from rich.text import Text

    from trimtab.cli.screen import screen

    console = screen()
    done = said["outcome"] or "nothing was changed"
    console.print(Text.assemble((said["object"], "bold"), f" at {said['time']}: {done}"))
    console.print(said["sentence"])
    console.print("\nSeen: " + "\n  ".join(said["seen"]) + "\n")
    rows = Table("what", "before", "after", "why", box=None, pad_edge=False)
    for row in said["rows"]:
        rows.add_row(*row)
    console.print(rows)


def _plain(act: Act | None, last: Tick | None) -> dict[str, Any]:
    fields = ("policy", "seen", "memory", "decision", "outcome")
    decided = {field: getattr(act, field) for field in fields} if act is not None else {}
    about = act.name if act is not None else last.name if last is not None else None
    return decided | {"object": str(about), "lastLook": last._asdict() | {"name": str(about)} if last else None}


def _unknown(journal: Journal, namespace: str, name: str) -> TrimtabError:
    known = [f"{entry.namespace}/{entry.name}" for entry in journal.names()]
    if f"{namespace}/{name}" in known:
        return NotEnoughData(f"{namespace}/{name} was not looked at before this time")
    return InvalidInput("object", f"{namespace}/{name}", f"the journal knows {', '.join(known[:10]) or 'nothing'}")


def _last_tick(last: Tick, act: Act | None) -> str:
    """Say what the newest tick saw, as no decision has been recorded since."""
    from trimtab.quantity import format_number
    from trimtab.web.workload import counted, moment

    value = "no value" if last.value is None else f"the first metric at {format_number(last.value)}"
    held = f"; {last.held}" if last.held else ""
    since = "Nothing asked for a change" if act is None else "\nSince then nothing else was decided"
    had = f"had {counted(last.replicas, 'replica')}, {last.ready} ready"
    return f"{since}: at {moment(last.at)} {last.name} {had}, {value}{held}"
