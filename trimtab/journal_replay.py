"""replay(): every acting decision of a journal taken again; a difference means that the rules have changed."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from trimtab.acts import Act
from trimtab.core.decide import decide
from trimtab.core.model import Decision
from trimtab.journal import Journal


class Difference(NamedTuple):
    """A decision that today's rules would take otherwise."""

    act: Act
    now: Decision


class Replay(NamedTuple):
    checked: int
    differences: tuple[Difference, ...]


def replay(path: str | Path) -> Replay:
    """Take every acting decision again with the same inputs; a difference means that the rules have changed."""
    journal, checked, differences = Journal.read(path), 0, []
    for act in journal.acts():
        checked += 1
        now = decide(act.policy, act.seen, act.memory)
        if _as_recorded(now, act.decision) != act.decision:
            differences.append(Difference(act, now))
    journal.close()
    return Replay(checked, tuple(differences))


def _as_recorded(now: Decision, then: Decision) -> Decision:
    """Without what decisions did not say yet when it was recorded: that is no change of the rules."""
    if len(now.proposals) != len(then.proposals):
        return now
    pairs = zip(now.proposals, then.proposals, strict=True)
    return replace(now, proposals=tuple(replace(new, ratio=None) if old.ratio is None else new for new, old in pairs))
