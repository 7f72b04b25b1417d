"""What `trimtab explain` found in a journal, for a terminal or a program."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from trimtab.acts import Act, describe
from trimtab.cli.screen import screen
from trimtab.core.explain import missing_text, sentence, table
from trimtab.core.model import Missing, Observation, PodSamples, Samples
from trimtab.errors import InvalidInput, NotEnoughData, TrimtabError
from trimtab.journal import Journal, Tick
from trimtab.quantity import format_number


def plain(act: Act | None, look: Tick | None) -> dict[str, Any]:
    fields = ("policy", "seen", "memory", "decision", "outcome")
    decided = {field: getattr(act, field) for field in fields} if act is not None else {}
    about = act.name if act is not None else look.name if look is not None else None
    return decided | {"object": str(about), "lastLook": look._asdict() | {"name": str(about)} if look else None}


def unknown(journal: Journal, namespace: str, name: str) -> TrimtabError:
    known = [f"{entry.namespace}/{entry.name}" for entry in journal.names()]
    if f"{namespace}/{name}" in known:
        return NotEnoughData(f"{namespace}/{name} was not looked at before this time")
    return InvalidInput("object", f"{namespace}/{name}", f"the journal knows {', '.join(known[:10]) or 'nothing'}")


def last_look(look: Tick, act: Act | None) -> str:
    """What has been since the last decision that was written down in full."""
    value = "no value" if look.value is None else f"the first metric at {format_number(look.value)}"
    held = f"; {look.held}" if look.held else ""
    since = "Nothing asked for a change" if act is None else "\nSince then nothing else was decided"
    had = f"had {_counted(look.replicas, 'replica')}, {look.ready} ready"
    return f"{since}: at {_moment(look.at)} {look.name} {had}, {value}{held}"


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def print_act(act: Act) -> None:
    console = screen()
    done = describe(act.outcome) if act.outcome else "nothing was changed"
    console.print(Text.assemble((str(act.name), "bold"), f" at {_moment(act.seen.at)}: {done}"))
    console.print(sentence(act.policy, act.seen, act.memory, act.decision))
    console.print(f"\nSeen: {_counted(act.seen.spec_replicas, 'replica')}{_pods(act.seen)}")
    for signal, sample in zip(act.policy.signals, act.seen.samples, strict=False):
        console.print(f"  {signal.metric.label}: {_sample(sample)}")
    rows = Table("what", "before", "after", "why", box=None, pad_edge=False)
    for row in table(act.decision):
        rows.add_row(row.what, row.before, row.after, row.why)
    console.print()
    console.print(rows)


def _pods(seen: Observation) -> str:
    """A metric of the whole workload needs no look at its pods: of those nothing is said."""
    if not seen.pods:
        return "" if seen.status_replicas or not seen.spec_replicas else ", no pods"
    ready = sum(pod.ready is True for pod in seen.pods)
    return f", {_counted(len(seen.pods), 'pod')}, {ready} ready"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _sample(sample: Samples | Missing) -> str:
    if isinstance(sample, Missing):
        return missing_text(sample)
    if isinstance(sample, PodSamples):
        if not sample.values:
            return "no pod has a value"
        mean = sum(sample.values.values()) / len(sample.values)
        return f"{_counted(len(sample.values), 'pod')}, {format_number(mean)} each on average"
    return format_number(sample.value)
