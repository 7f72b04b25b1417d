"""Adapters for hpa.json."""

from __future__ import annotations

from collections.abc import Callable

from tests.golden.harness import Case, Excuse

ADAPTERS: dict[str, Callable[[Case], None]] = {}
EXCUSED: dict[str, Excuse] = {}
