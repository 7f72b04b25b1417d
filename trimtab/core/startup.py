"""How long pods take from creation to their first Ready: the horizon of every forecast (predictive HPA (McNaughton)).

The document means the pods that are ready; its program takes every pod with a Ready condition, whose transition may
have been to "not ready" moments after creation. `exact` follows the program. Our own models use quantiles over many
pods, each recorded once: a pod that was ready before and comes back says nothing about starting.

Nodes and pods are learned apart: start-up = quantile(node to Ready) + min(quantile(creation to node), ten minutes).
A node autoscaler needs minutes, and forecasts must look past them. Longer waits are a lack of capacity, and looking
further ahead makes no node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil

from msgspec.structs import replace

from trimtab.core.model import Missing, Observation, Pod, Quantile, Reason, Startup
from trimtab.policy import Record

PROBABILITIES = (0.5, 0.9)
VALID_S = 86400.0  # start-up changes with releases, not within a day
KEPT = 20  # start-ups that the quantiles look at, the newest: three slow ones of a new release move nine in ten
UNKNOWN_STARTUP_S = 60.0
LONGEST_WAIT_S = 600.0  # for a node, as far as forecasts look past it
FLAP_S = 10.0  # a Ready condition that turned false this long after the start had been true before

PodKey = tuple[str, float]  # name and creation: a StatefulSet uses names again


class StartupLog(Record, frozen=True):
    """What has been recorded, in seconds, oldest first. `waiting` pods have been seen before they were ready."""

    witnessed: tuple[float, ...] = ()
    assumed: tuple[float, ...] = ()  # already Ready at the first look: it may have been a later flap
    waits: tuple[float, ...] = ()  # of the witnessed ones: until they had a node
    waiting: frozenset[PodKey] = frozenset()
    known: frozenset[PodKey] = frozenset()  # pods that exist and are done with, recorded or not


def startup_times_s(
    pods: Iterable[Pod], exact: bool = False, recorded: Mapping[str, float] | None = None
) -> list[float]:
    """One duration for each pod that has become ready; one recorded earlier, by name, wins."""
    times = []
    for pod in pods:
        measured = _measure(pod)
        if pod.ready or (exact and pod.ready is not None):
            found = (recorded or {}).get(pod.name, measured)
            times += [found] if found is not None else []
    return times


def mean_startup_s(pods: Iterable[Pod], exact: bool = False, recorded: Mapping[str, float] | None = None) -> float:
    """Predictive HPA's horizon, a plain mean; no pod that counts means 0."""
    times = startup_times_s(pods, exact, recorded)
    return sum(times) / len(times) if times else 0.0


def watch(log: StartupLog, pods: Iterable[Pod]) -> StartupLog:
    """Record each pod of one workload once, at its first Ready; `pods` are all that exist now.

    One that is new since the last look was ready for the first time, though nobody saw it wait: else quick starts would
    never count, and one slow start would speak for all of them.
    """
    witnessed, assumed, waits = list(log.witnessed), list(log.assumed), list(log.waits)
    waiting, known = set[PodKey](), set[PodKey]()
    has_looked = bool(log.known or log.waiting)
    for pod in pods:
        measured, key = _measure(pod), (pod.name, pod.created_at or 0.0)
        if key in log.known or _lost_readiness(pod):
            known.add(key)
        elif pod.ready and measured is not None:
            known.add(key)
            wait_s = _wait_for_node(pod)
            (witnessed if has_looked else assumed).append(measured - wait_s)
            if has_looked:
                waits.append(wait_s)
        elif not pod.ready:
            waiting.add(key)
    return StartupLog(
        witnessed=tuple(witnessed[-KEPT:]),
        assumed=tuple(assumed[-KEPT:]),
        waits=tuple(waits[-KEPT:]),
        waiting=frozenset(waiting),
        known=frozenset(known),
    )


def not_looked_for_a_while(log: StartupLog) -> StartupLog:
    """What was recorded stays; the next look is like the first."""
    return replace(log, waiting=frozenset(), known=frozenset())


def after_others(log: StartupLog, times_s: tuple[float, ...], waits_s: tuple[float, ...]) -> StartupLog:
    """The start-ups that another operator saw come before our own."""
    witnessed, waits = (*times_s, *log.witnessed), (*waits_s, *log.waits)
    return replace(log, witnessed=witnessed[-KEPT:], waits=waits[-KEPT:])


def startup_of(log: StartupLog, at: float) -> Startup | Missing:
    """Quantiles over the start-ups that were witnessed; over the assumed ones only while there are none."""
    return startup(log.witnessed or log.assumed, at, log.waits)


def startup(times_s: Sequence[float], at: float, waits_s: Sequence[float] = ()) -> Startup | Missing:
    """Quantiles by rank: half, and nine in ten, of the pods were ready within this time."""
    if not times_s:
        return Missing(reason=Reason.NO_READY_PODS, detail="no pod has been seen becoming ready")
    waits = _quantiles(waits_s or (0.0,))
    quantiles = tuple(
        Quantile(p, start_s + min(wait_s, LONGEST_WAIT_S))
        for (p, start_s), (_, wait_s) in zip(_quantiles(times_s), waits, strict=True)
    )
    return Startup(made_at=at, expires_at=at + VALID_S, quantiles=quantiles, pods=len(times_s), waits=waits)


def _quantiles(times_s: Sequence[float]) -> tuple[Quantile, ...]:
    ranked = sorted(times_s)
    return tuple(Quantile(p, ranked[ceil(p * len(ranked)) - 1]) for p in PROBABILITIES)


def as_of(found: Startup | Missing, at: float) -> Startup | Missing:
    """The same, made now: of a log in which nothing is new."""
    return replace(found, made_at=at, expires_at=at + VALID_S) if isinstance(found, Startup) else found


def usual_startup_s(seen: Observation) -> float:
    """Return the start-up time of nine pods of ten."""
    return UNKNOWN_STARTUP_S if isinstance(seen.startup, Missing) else max(1.0, seen.startup.quantiles[-1].value)


def _lost_readiness(pod: Pod) -> bool:
    if pod.ready is not False or pod.started_at is None or pod.ready_since is None:
        return False
    return pod.ready_since > pod.started_at + FLAP_S


def _wait_for_node(pod: Pod) -> float:
    """From its creation on; 0 where nobody says when it had one."""
    if pod.created_at is None or pod.scheduled_at is None or pod.ready_since is None:
        return 0.0
    return max(0.0, min(pod.scheduled_at, pod.ready_since) - pod.created_at)


def _measure(pod: Pod) -> float | None:
    if pod.created_at is None or pod.ready_since is None:
        return None
    return max(0.0, pod.ready_since - pod.created_at)
