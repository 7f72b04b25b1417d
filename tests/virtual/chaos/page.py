"""python -m tests.virtual.chaos.page OUT PAGE.md: docs/reliability.md from what the runs left in OUT as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def page(chaos: dict[str, Any], undone: list[dict[str, str]], fuzz: dict[str, Any], soak: dict[str, Any]) -> str:
    faults = "\n".join(f"| {name} | {count} |" for name, count in chaos["faults"].items())
    invariants = "\n".join(f"| {name} | {text} |" for name, text in chaos["invariants"].items())
    return f"""# Reliability

The whole operator (watches, lease, ticks, journal) runs under a virtual clock against an API server in one process.
A seed draws honest objects with their loads, hostile ones beside them, one or two operators and faults; separate
checkers look after every 30 simulated seconds. `make chaos SEEDS=1000` runs it and writes this page; a seed that fails
prints the one command that replays it, the same each time.

**{chaos["survived"]:,} of {chaos["seeds"]:,} seeds survived** (from {chaos["first"]} on):
{chaos["hours"]:,} simulated hours, {chaos["seeds_per_minute"]} seeds per minute of one core. {chaos.get("note", "")}

## Faults

| fault (`tests/virtual/faults.py`) | times |
|---|---|
{faults}

## Invariants

| checker (`tests/virtual/chaos/checks.py`) | what it holds |
|---|---|
{invariants}

Tenancy is a property of its own, over generated objects: `tests/virtual/test_tenants.py`; time is in
`tests/virtual/test_time.py`.

## Fixes taken away

`make undone` takes each fix away in a copy, runs seeds that bring its faults (or a property) and notes what fails:

{_undone(undone)}
## Fuzzing

`make fuzz` feeds everything that reads what others wrote, steered by coverage; what it found is kept in
`tests/fuzz/test_found.py`.

{_fuzz(fuzz)}
## Soak

{_soak(soak)}"""


def _undone(undone: list[dict[str, str]]) -> str:
    rows = "\n".join(f"| {each['row']} | {each['undone']} | {_short(each['by'])} |" for each in undone)
    return f"| found | undone | fails |\n|---|---|---|\n{rows}\n"


def _short(text: str) -> str:
    return (text if len(text) < 160 else f"{text[:157]}...").replace("|", "\\|") or "nobody notices"


def _fuzz(fuzz: dict[str, Any]) -> str:
    rows = "\n".join(f"| {name} | {each['inputs']:,} | {each['seconds']:,} |" for name, each in fuzz.items())
    inputs, seconds = (sum(each[what] for each in fuzz.values()) for what in ("inputs", "seconds"))
    total = f"**{inputs:,} inputs in {seconds / 60:.0f} minutes.**"
    return f"{total}\n\n| target (`tests/fuzz/targets.py`) | inputs | seconds |\n|---|---|---|\n{rows}\n"


def _soak(soak: dict[str, Any]) -> str:
    if not soak:
        return "`make soak` restarts two operators in turn on a real control plane while 300 objects come and go.\n"
    slopes = f"memory by {soak['memory_mib_per_hour']} MiB, the journal by {soak['journal_mib_per_hour']} MiB"
    return f"""`make soak`: {soak["minutes"]:g} minutes on a real control plane with {soak["objects"]} objects, some of
which come and go every few seconds, and {soak["restarts"]} restarts of two operators in turn. Per hour, from life to
life, these changed: {slopes}. At most an operator had {soak["largest_memory_mib"]} MiB.
"""


def _read(path: Path, empty: Any) -> Any:
    return json.loads(path.read_text()) if path.exists() else empty


if __name__ == "__main__":
    out = Path(sys.argv[1])
    found = [_read(out / name, empty) for name, empty in (("undone.json", []), ("fuzz.json", {}), ("soak.json", {}))]
    Path(sys.argv[2]).write_text(page(json.loads((out / "chaos.json").read_text()), *found))
