"""trimtab explain NAMESPACE/NAME: what was seen, proposed, changed by each rule, and done, from a journal."""

from __future__ import annotations

from datetime import UTC, datetime

import click
import msgspec
from rich.table import Table
from rich.text import Text

from trimtab.cli.screen import screen
from trimtab.core.explain import missing_text, sentence, table
from trimtab.core.model import Missing, PodSamples, Samples
from trimtab.errors import InvalidInput, NotEnoughData
from trimtab.journal import Act, Journal, describe
from trimtab.kinds.meta import when
from trimtab.quantity import format_number


@click.command(name="explain")
@click.argument("object_name", metavar="NAMESPACE/NAME")
@click.option("--at", "at_text", help="The last decision not after this time (RFC 3339), instead of the newest.")
@click.option(
    "--journal", default="trimtab.db", show_default=True, envvar="TRIMTAB_JOURNAL", help="The journal to read."
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(object_name: str, at_text: str | None, journal: str, output: str) -> None:
    """Explain the last acting decision for an object."""
    namespace, slash, name = object_name.partition("/")
    if not slash or not namespace or not name:
        raise InvalidInput("object", object_name, "write NAMESPACE/NAME, such as shop/web")
    act = _find(Journal.read(journal), namespace, name, when(at_text, "--at"))
    if output == "json":
        fields = ("policy", "seen", "memory", "decision", "outcome")
        click.echo(msgspec.json.encode({field: getattr(act, field) for field in fields} | {"object": str(act.name)}))
    else:
        _print(act)


def _find(journal: Journal, namespace: str, name: str, until: float | None) -> Act:
    found = list(journal.acts(namespace, name, until, last=1))
    if found:
        return found[0]
    known = [f"{entry.namespace}/{entry.name}" for entry in journal.names()]
    if f"{namespace}/{name}" in known:
        raise NotEnoughData(f"{namespace}/{name} has not changed anything in this time: nothing to explain")
    listed = ", ".join(known[:10]) or "nothing"
    raise InvalidInput("object", f"{namespace}/{name}", f"the journal knows {listed}")


def _print(act: Act) -> None:
    console = screen()
    at = datetime.fromtimestamp(act.seen.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    console.print(Text.assemble((str(act.name), "bold"), f" at {at}: {describe(act.outcome)}"))
    console.print(sentence(act.policy, act.seen, act.memory, act.decision))
    console.print(f"\nSeen: {act.seen.spec_replicas} replicas, {len(act.seen.pods)} pods")
    for signal, sample in zip(act.policy.signals, act.seen.samples, strict=False):
        console.print(f"  {signal.metric.label}: {_sample(sample)}")
    rows = Table("what", "before", "after", "why", box=None, pad_edge=False)
    for row in table(act.decision):
        rows.add_row(row.what, row.before, row.after, row.why)
    console.print()
    console.print(rows)


def _sample(sample: Samples | Missing) -> str:
    if isinstance(sample, Missing):
        return missing_text(sample)
    if isinstance(sample, PodSamples):
        mean = sum(sample.values.values()) / len(sample.values)
        return f"{len(sample.values)} pods, {format_number(mean)} each on average"
    return format_number(sample.value)
