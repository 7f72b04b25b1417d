"""trimtab explain NAMESPACE/NAME: what was seen, proposed, changed by each rule, and done, from a journal."""

from __future__ import annotations

from collections import deque

import click

from trimtab.errors import InvalidInput


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

    from trimtab.cli.explain_output import last_look, plain, print_act, unknown
    from trimtab.cli.screen import screen
    from trimtab.journal import Journal
    from trimtab.kinds.meta import when

    namespace, slash, name = object_name.partition("/")
    if not slash or not namespace or not name:
        raise InvalidInput("object", object_name, "write NAMESPACE/NAME, such as shop/web")
    read, until = Journal.read(journal), when(at_text, "--at")
    act = next(iter(read.acts(namespace, name, until, last=1)), None)
    looks = deque(read.ticks(namespace, name, until), maxlen=1)
    if act is None and not looks:
        raise unknown(read, namespace, name)
    if output == "json":
        click.echo(msgspec.json.encode(plain(act, looks[-1] if looks else None)))
        return
    if act is not None:
        print_act(act)
    if looks and (act is None or looks[-1].at > act.seen.at):
        screen().print(last_look(looks[-1], act))
