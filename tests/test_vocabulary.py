"""One word for one thing: no class name occurs twice in the package."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import msgspec

import trimtab
from trimtab.core.model import Observation, UsageEstimates
from trimtab.policy import Bounds, MaintenanceWindow, ScheduledBounds

PACKAGE = Path(trimtab.__file__).parent


def test_no_class_name_occurs_twice() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_journals_written_under_older_names_are_read() -> None:
    bounds = b'{"is":"Bounds","max_replicas":9,"spans":[{"is":"Span","name":"night","start":1.0,"end":2.0}]}'
    assert msgspec.json.decode(bounds, type=Bounds).spans == (ScheduledBounds(name="night", start=1.0, end=2.0),)
    window = b'{"is":"Window","begin_s":60,"end_s":120}'
    assert msgspec.json.decode(window, type=MaintenanceWindow) == MaintenanceWindow(begin_s=60, end_s=120)
    usage = b'{"is":"Usage","made_at":1.0,"expires_at":2.0,"containers":{}}'
    seen = b'{"is":"Observation","at":1.0,"spec_replicas":1,"status_replicas":1,"usage":' + usage + b"}"
    expected = UsageEstimates(made_at=1.0, expires_at=2.0, containers={})
    assert msgspec.json.decode(seen, type=Observation).usage == expected
