"""Queues among the policies that are judged: the one that a Backlog metric serves, and metrics of a queue's length.

How long a queue is depends on the policy that served it, so such a history is no load that another could be given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trimtab.errors import InvalidInput
from trimtab.kinds.queues import queue_followed
from trimtab.policy import Backlog, Policy
from trimtab.quantity import format_duration
from trimtab.sim.queue import WorkQueue


def backlog_of(policy: Policy) -> Backlog | None:
    """Return the metric that says how a queue is served."""
    return next((signal for signal in policy.signals if isinstance(signal, Backlog)), None)


def queue_of(policy: Policy, pod_capacity: float) -> WorkQueue | None:
    """Return the queue that a policy serves, of which one pod finishes `pod_capacity` items per second."""
    backlog = backlog_of(policy)
    return WorkQueue(backlog.concurrency / pod_capacity, backlog.wait_s) if backlog else None


def queue_notes(queue: WorkQueue | None, policies: Sequence[Policy]) -> Iterator[str]:
    """Say what counts as violated, or that what is judged is the length of a queue."""
    if queue is not None:
        yield (
            f"work that waits longer than {format_duration(queue.wait_s)} counts as a violation; items that arrive in"
            " bunches within 15 s are not simulated; the optimum is a lower bound of what any schedule costs"
        )
        return
    for why, fix in (lengths for policy in policies for lengths in _lengths(policy)):
        yield f"{why}, so these figures do not hold for another policy: {fix}"


def refuse_length(policy: Policy) -> None:
    """Raise for a policy that follows the length of a queue: another one would have seen another history."""
    for why, fix in _lengths(policy):
        raise InvalidInput("spec.metrics", why, fix)


def _lengths(policy: Policy) -> Iterator[tuple[str, str]]:
    for signal in policy.signals:
        if queue := queue_followed(signal):
            yield queue.why, queue.fix
