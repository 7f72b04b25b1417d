"""python -m tests.virtual.chaos.page FOUND.json PAGE.md: docs/reliability.md from what a run of seeds found."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

UNDONE = Path(__file__).with_name("undone.json")  # tried by hand: the fix taken away, and what failed then


def page(found: dict[str, Any]) -> str:
    faults = "\n".join(f"| {name} | {count} |" for name, count in found["faults"].items())
    invariants = "\n".join(f"| {name} | {text} |" for name, text in found["invariants"].items())
    undone = "\n".join(f"| {row} | {fix} | {by} |" for row, fix, by in json.loads(UNDONE.read_text()))
    return f"""# Reliability

The whole operator (watches, lease, ticks, journal) runs under a virtual clock against an API server in one process.
A seed draws honest objects with their loads, hostile ones beside them, one or two operators and faults; separate
checkers look after every 30 simulated seconds. `make chaos SEEDS=1000` runs it and writes this page; a seed that fails
prints the one command that replays it, the same each time.

**{found["survived"]:,} of {found["seeds"]:,} seeds survived** (from {found["first"]} on):
{found["hours"]:,} simulated hours, {found["seeds_per_minute"]} seeds per minute of one core.

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

Each was undone by hand, and this failed:

| found | undone | fails |
|---|---|---|
{undone}

Not noticed by these seeds when undone, and held by tests of their own alone: the fence at the wire, errors of the
journal, doubts about a stale view, scalings that no status tells of, memory that is not restored from the status,
samples that are not a number, negative or stale.
"""


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(page(json.loads(Path(sys.argv[1]).read_text())))
