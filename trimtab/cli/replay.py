"""trimtab replay JOURNAL: take every acting decision again and report what would come out otherwise today."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from trimtab.journal_replay import Difference


@click.command(name="replay")
@click.argument("journal", type=click.Path(dir_okay=False))
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(journal: str, output: str) -> None:
    """Recompute every acting decision of JOURNAL. Exit 0: all the same; 1: differences."""
    import msgspec

    from trimtab.journal_replay import replay

    found = replay(journal)
    if output == "json":
        rows = [_row(difference) for difference in found.differences]
        click.echo(msgspec.json.encode({"checked": found.checked, "differences": rows}))
    else:
        for difference in found.differences:
            row = _row(difference)
            click.echo(f"{row['object']} at {row['at']:.3f}:\n  then: {row['then']}\n  now:  {row['now']}")
        click.echo(f"{found.checked} decisions checked, {len(found.differences)} come out otherwise")
    sys.exit(1 if found.differences else 0)


def _row(difference: Difference) -> dict[str, object]:
    from trimtab.core.explain import sentence

    act = difference.act
    return {
        "object": str(act.name),
        "at": act.seen.at,
        "then": sentence(act.policy, act.seen, act.memory, act.decision),
        "now": sentence(act.policy, act.seen, act.memory, difference.now),
    }
