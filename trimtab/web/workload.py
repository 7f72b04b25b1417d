"""One workload over time: its minutes, each change as a mark, and the explanation behind a mark."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from trimtab.acts import Act, describe
from trimtab.core.explain import missing_text, sentence, table
from trimtab.core.model import Missing, Observation, PodSamples, Samples, Startup
from trimtab.core.overload import Yardstick, yardstick
from trimtab.errors import InvalidInput, NotEnoughData
from trimtab.journal import Journal, ObjectName
from trimtab.policy import MetricKind, Policy, Utilization
from trimtab.quantity import format_number
from trimtab.web.packing import PageTable

MARKS = 2000  # of the youngest changes; more cannot be told apart


def workload(journal: Journal, name: ObjectName, start: float, end: float) -> PageTable:
    """The columns of `trimtab.minutes`, and as text what it is, what was changed and what holds it back."""
    found = journal.minutes_of(name, start, end)
    policy = known_policy(journal, name)
    about = {
        "name": name._asdict(),
        "policy": policy,
        "unit": unit_of(policy),
        "mode": str(policy.admit.mode),
        "metric": policy.signals[0].metric.label if policy.signals else "",
        "least": policy.bounds.min_replicas,
        "most": policy.bounds.max_replicas,
        "forecast": policy.forecast.model if policy.forecast else "",
        "quantile": policy.forecast.quantile if policy.forecast else None,
        "changes": _changes(journal, name, start, end),
        "held": _held(journal, name),
        "startup": _startup(journal, name),
        "pod": _pod(journal, name, policy),
    }
    return PageTable(about, {"at": found.times, **found.columns})


def known_policy(journal: Journal, name: ObjectName) -> Policy:
    policy = journal.policy_of(name)
    if policy is None:
        last = list(journal.acts(name.namespace, name.name, last=1))
        if not last:
            raise InvalidInput("object", str(name), "the journal knows nothing of it; the fleet lists what it knows")
        return last[0].policy
    return policy


def unit_of(policy: Policy) -> str:
    """What load is counted in."""
    signal = policy.signals[0] if policy.signals else None
    if signal is None:
        return ""
    resource = signal.metric.kind in (MetricKind.RESOURCE, MetricKind.CONTAINER)
    if isinstance(signal, Utilization) or resource:
        return "cores" if signal.metric.name == "cpu" else "bytes"
    return signal.metric.label


def _changes(journal: Journal, name: ObjectName, start: float, end: float) -> list[dict[str, Any]]:
    rows = journal.query(
        "SELECT at, replicas, planned, fate, said FROM decisions d JOIN objects o ON o.id = d.object"
        " WHERE (kind, namespace, name) = (?, ?, ?) AND at BETWEEN ? AND ? AND fate <> 'held' ORDER BY at DESC LIMIT ?",
        (*name, start, end, MARKS),
    )
    keys = ("at", "from", "to", "fate", "said")
    return [dict(zip(keys, row, strict=True)) for row in reversed(rows)]


def _held(journal: Journal, name: ObjectName) -> str:
    rows = journal.query(
        "SELECT held FROM ticks d JOIN objects o ON o.id = d.object"
        " WHERE (kind, namespace, name) = (?, ?, ?) ORDER BY at DESC LIMIT 1",
        name,
    )
    return str(rows[0][0]) if rows else ""


def _startup(journal: Journal, name: ObjectName) -> list[list[float]]:
    """Quantiles of the time from a pod's creation to serving, as the last change saw them."""
    last = list(journal.acts(name.namespace, name.name, last=1))
    if not last or not isinstance(last[0].seen.startup, Startup):
        return []
    return [[quantile.probability, quantile.value] for quantile in last[0].seen.startup.quantiles]


def _pod(journal: Journal, name: ObjectName, policy: Policy) -> dict[str, Any] | None:
    """What one pod carries, as the last change saw it."""
    last = list(journal.acts(name.namespace, name.name, last=1))
    pod = yardstick(policy, policy.signals[0], last[0].seen) if last and policy.signals else None
    return msgspec.to_builtins(pod) if isinstance(pod, Yardstick) else None


def decision(journal: Journal, name: ObjectName, at: float) -> dict[str, Any]:
    """What was seen, proposed, changed by which rule, and done, for the last change not after `at`."""
    found = [act for act in journal.acts(name.namespace, name.name, at, last=5) if act.name == name]
    if not found:
        raise NotEnoughData(f"{name} has not changed anything until then: nothing to explain")
    return explanation(found[-1])


def explanation(act: Act) -> dict[str, Any]:
    """The four values of a decision in the words of `core.explain`, for the page and for terminals."""
    return {
        "object": str(act.name),
        "at": act.seen.at,
        "time": moment(act.seen.at),
        "outcome": describe(act.outcome),
        "sentence": sentence(act.policy, act.seen, act.memory, act.decision),
        "seen": _seen(act.policy, act.seen),
        "rows": [[row.what, row.before, row.after, row.why] for row in table(act.decision)],
    }


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _seen(policy: Policy, seen: Observation) -> list[str]:
    signals = zip(policy.signals, seen.samples, strict=False)
    pods = counted(seen.spec_replicas, "replica") + _pods(seen)
    promise = policy.objective.latency if policy.objective else None
    learned = [promise.text] if promise and promise.text else []
    return [pods, *(f"{signal.metric.label}: {_sample(sample)}" for signal, sample in signals), *learned]


def _pods(seen: Observation) -> str:
    """A metric of the whole workload needs no pods, so nothing is said of those that were not listed."""
    if not seen.pods:
        return "" if seen.status_replicas or not seen.spec_replicas else ", no pods"
    ready = sum(pod.ready is True for pod in seen.pods)
    return f", {counted(len(seen.pods), 'pod')}, {ready} ready"


def _sample(sample: Samples | Missing) -> str:
    if isinstance(sample, Missing):
        return missing_text(sample)
    if isinstance(sample, PodSamples):
        if not sample.values:
            return "no pod has a value"
        mean = sum(sample.values.values()) / len(sample.values)
        return f"{counted(len(sample.values), 'pod')}, {format_number(mean)} each on average"
    return format_number(sample.value)
