"""Reports the vectors per file: passed, failed, not applicable."""

from __future__ import annotations

from collections import Counter
from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    counts: dict[str, Counter[str]] = {}
    for outcome in ("passed", "failed", "skipped"):
        for report in terminalreporter.stats.get(outcome, []):
            if "test_golden.py::test_vector[" in report.nodeid:
                name = report.nodeid.split("[", 1)[1].split(":", 1)[0]
                counts.setdefault(name, Counter())[outcome] += 1
    if counts:
        terminalreporter.section("golden vectors")
    for name, count in sorted(counts.items()):
        terminalreporter.line(
            f"{name:8} {count['passed']:4} passed {count['failed']:4} failed {count['skipped']:4} not applicable"
        )
