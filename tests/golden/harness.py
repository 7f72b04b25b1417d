"""Reads the golden vectors, ours or those of the folder that TRIMTAB_GOLDEN names, and knows which cases are not ours
to pass, and why.

An adapter module (`adapt_FILE.py`) has ADAPTERS, a dict from a case's `fn` (or, where a file has none, the first
word of its id, or else what its own `key_of(case)` says) to a function that takes the case and asserts. It calls our
code; it never computes an answer itself.
"""

from __future__ import annotations

import enum
import importlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

Case = dict[str, Any]

OURS = Path(__file__).parent / "vectors"
FOLDER = Path(os.environ.get("TRIMTAB_GOLDEN", OURS))
RECORDINGS = Path(os.environ.get("TRIMTAB_TRACES", FOLDER.parent / "traces")) / "crane_dsp"
FILES = (
    "hpa",
    "nanit",
    "thesis",
    "wpa",
    "phpa",
    "hvpa",
    "vpa",
    "crane",
    *(("recordings",) if RECORDINGS.exists() else ()),
)


class Excuse(enum.StrEnum):
    """The only reasons for which a case may stay unanswered."""

    INTERNALS = "another program's internals"
    WORDS = "the input is only described in words"
    RESOLVED = "an upstream bug we resolved; the resolved value is asserted in its place"


def load(name: str) -> list[Case]:
    path = FOLDER / f"{name}.json"
    if not path.exists():
        return []
    data = json.loads(path.read_text())
    return list(data["cases"] if isinstance(data, dict) else data)


def key(name: str, case: Case) -> str:
    own = getattr(module(name), "key_of", None)
    return str(own(case) if own else case.get("fn") or case["id"].split("-")[0])


def module(name: str) -> Any:
    return importlib.import_module(f"tests.golden.adapt_{name}")


def adapter(name: str, case: Case) -> Callable[[Case], None] | None:
    """By the case's own id first, then by its function."""
    adapters: dict[str, Callable[[Case], None]] = module(name).ADAPTERS
    return adapters.get(case.get("id", "")) or adapters.get(key(name, case))


def excuse(name: str, case: Case) -> Excuse | None:
    """By id or by function; the reason is from the closed list above."""
    excused: dict[str, Excuse] = getattr(module(name), "EXCUSED", {})
    return excused.get(case.get("id", "")) or excused.get(key(name, case))
