"""Schedules: cron pairs in a time zone, laid out as UTC spans over the time somebody asks about.

A kind asks about the moment it is compiled; who replays a history asks about the whole of it. Spans reach from a day
before to eight days after; who keeps a policy longer than a day compiles it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Protocol

from msgspec.structs import replace
from pydantic import Field

from trimtab.errors import InvalidInput
from trimtab.kinds import cron
from trimtab.kinds.amounts import CountOrZero
from trimtab.kinds.manifest_part import FieldRule, ManifestPart
from trimtab.kinds.names import Title
from trimtab.policy import Policy, ScheduledBounds, WrittenSchedule

HOUR_S, DAY_S = 3600.0, 86400.0
BEHIND_S, AHEAD_S = DAY_S, 8 * DAY_S
MOST_PER_DAY = 32  # starts, or ends where there are more of them, of all schedules of one object
TOO_MANY = f"they start or end more than {MOST_PER_DAY} times per day; use metrics for what changes by the minute"

Cron = Annotated[str, Field(min_length=1, max_length=100)]


@lru_cache(maxsize=512)
def _expand(start: str, end: str, zone: str | None, begin: float, until: float) -> tuple[tuple[float, float], ...]:
    return tuple(cron.spans(start, end, cron.zone_of(zone), begin, until))


def zone_name(written: str | None) -> str:
    """One name for what means the same: nothing, "Local" and UTC."""
    return str(cron.zone_of(written))


def expand_schedules(policy: Policy, begin: float, until: float) -> Policy:
    """With the spans of this time; whole hours, so that the many objects that share a schedule share the work."""
    bounds = policy.bounds
    if not bounds.schedules:
        return policy
    first, last = begin - begin % HOUR_S - BEHIND_S, until - until % HOUR_S + AHEAD_S
    spans = tuple(span for written in bounds.schedules for span in _spans(written, first, last))
    if bounds.alone:
        spans = _deciding_alone(spans, bounds.min_replicas, first, last)
    return replace(policy, bounds=replace(bounds, spans=spans))


def _spans(written: WrittenSchedule, first: float, last: float) -> Iterator[ScheduledBounds]:
    least, most = written.min_replicas, written.max_replicas
    for begin, until in _expand(written.start, written.end, written.timezone, first, last):
        yield ScheduledBounds(name=written.name, start=begin, end=until, min_replicas=least, max_replicas=most)


def _deciding_alone(
    spans: Sequence[ScheduledBounds], least: int, first: float, last: float
) -> tuple[ScheduledBounds, ...]:
    """Without any metric the highest floor of each moment is its ceiling too, and outside of schedules `least` is."""
    edges = sorted({first, last, *(edge for span in spans for edge in (span.start, span.end) if first < edge < last)})
    return tuple(_exactly(spans, least, start, end) for start, end in pairwise(edges))


def _exactly(spans: Sequence[ScheduledBounds], least: int, start: float, end: float) -> ScheduledBounds:
    running = [span for span in spans if span.start <= start < span.end and (span.min_replicas or 0) > least]
    highest = max(running, key=lambda span: span.min_replicas or 0, default=None)
    count, name = (highest.min_replicas, highest.name) if highest else (least, "no schedule")
    return ScheduledBounds(name=name, start=start, end=end, min_replicas=count, max_replicas=count)


class CronPair(Protocol):
    @property
    def start(self) -> str: ...
    @property
    def end(self) -> str: ...


def events_per_day(pairs: Iterable[CronPair] | None) -> int:
    """The most that any day can bring: what an object's schedules cost, whatever the date."""
    return sum(max(cron.times_per_day(pair.start), cron.times_per_day(pair.end)) for pair in pairs or ())


@lru_cache(maxsize=512)
def _wrong(start: str, end: str, zone: str | None) -> tuple[InvalidInput, ...]:
    found: list[InvalidInput] = []
    checks: tuple[tuple[Callable[..., object], str | None, str], ...] = (
        (cron.zone_of, zone, "timezone"),
        (cron.translate, start, "start"),
        (cron.translate, end, "end"),
    )
    for check, value, path in checks:
        try:
            check(value, path)
        except InvalidInput as problem:
            found.append(problem)
    for path, expression in (("start", start), ("end", end)):
        if not found and cron.times_per_day(expression) > MOST_PER_DAY:
            fix = f"this comes more than {MOST_PER_DAY} times per day; use metrics for what changes by the minute"
            found.append(InvalidInput(path, expression, fix))
    return tuple(found)


def schedule_problems(start: str, end: str, zone: str | None) -> Iterator[InvalidInput]:
    """What is wrong with a cron pair and its zone; none of it can be said in CEL."""
    yield from _wrong(start, end, zone)


class Schedule(ManifestPart):
    """While it runs its bounds hold beside the usual ones: a floor, a ceiling, or both."""

    name: Title
    """One of its own in this object."""
    timezone: Annotated[str, Field(min_length=1, max_length=64)] = "UTC"
    """An IANA name, such as Europe/Berlin."""
    start: Cron
    """A cron expression: from then on the bounds hold."""
    end: Cron
    """A cron expression: until then."""
    min_replicas: CountOrZero | None = None
    """The floor while it runs."""
    max_replicas: CountOrZero | None = None
    """The ceiling while it runs."""

    rules: ClassVar = (
        FieldRule(
            lambda s: s.min_replicas is not None or s.max_replicas is not None,
            at="minReplicas",
            fix="set minReplicas, maxReplicas or both: without them the schedule does nothing",
            cel="has(self.minReplicas) || has(self.maxReplicas)",
        ),
        FieldRule(
            lambda s: s.min_replicas is None or s.max_replicas is None or s.min_replicas <= s.max_replicas,
            at="minReplicas",
            fix="must not be above maxReplicas",
            cel="!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
        ),
    )

    def problems(self) -> Iterator[InvalidInput]:
        yield from super().problems()
        yield from schedule_problems(self.start, self.end, self.timezone)

    def written(self) -> WrittenSchedule:
        return WrittenSchedule(
            name=self.name,
            start=self.start,
            end=self.end,
            timezone=zone_name(self.timezone),
            min_replicas=self.min_replicas,
            max_replicas=self.max_replicas,
        )


def schedules_alone() -> dict[str, Any]:
    """Return the metric of schedules that decide alone: outside their windows a total of nothing asks for nothing."""
    target = {"type": "AverageValue", "averageValue": "1"}
    return {"type": "Prometheus", "prometheus": {"name": "schedules-alone", "query": "vector(0)", "target": target}}
