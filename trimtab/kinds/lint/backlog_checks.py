"""Checks of metrics that measure a queue."""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.kinds.lint.finding import Diagnostic, LintSeverity
from trimtab.kinds.lint.manifest_set import LintedManifest, ManifestSet
from trimtab.kinds.queues import queue_followed


def queue_length(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    """A target for the length of a queue orders pods for the delay of serving, not for the work."""
    if linted.served_elsewhere:  # its controller has no Backlog
        return
    for index, signal in enumerate(linted.policy.signals if linted.policy else ()):
        if queue := queue_followed(signal):
            path = linted.path(f"metrics[{index}]")
            yield Diagnostic(LintSeverity.WARNING, "queue-length", path, queue.why, queue.fix)


CHECKS = (queue_length,)
