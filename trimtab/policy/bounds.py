"""Floor and ceiling, schedules, pins, pauses, and which model looks ahead."""

from __future__ import annotations

import enum
from typing import Any

from trimtab.policy.record import Record, require


class ScheduledBounds(Record, frozen=True, tag="Span"):  # the tag is in stored journals
    """A schedule at work: from start to end (UTC, end excluded) these bounds hold beside the usual ones."""

    name: str
    start: float
    end: float
    min_replicas: int | None = None
    max_replicas: int | None = None

    def __post_init__(self) -> None:
        require(self.start < self.end, f"schedules.{self.name}", self.start, "it must start before it ends")


class WrittenSchedule(Record, frozen=True):
    """A schedule before anybody asked when it runs: two cron expressions in a time zone."""

    name: str
    start: str
    end: str
    timezone: str = "UTC"
    min_replicas: int | None = None
    max_replicas: int | None = None


class Bounds(Record, frozen=True):
    min_replicas: int = 1
    max_replicas: int = 10
    spans: tuple[ScheduledBounds, ...] = ()
    schedules: tuple[WrittenSchedule, ...] = ()  # what the spans were made of, to lay them out over another time
    alone: bool = False  # no metric beside the schedules: their floor is the ceiling too

    def __post_init__(self) -> None:
        ordered = 0 <= self.min_replicas <= self.max_replicas
        require(ordered, "minReplicas", self.min_replicas, f"put it from 0 to maxReplicas ({self.max_replicas})")


class Mode(enum.StrEnum):
    AUTO = "Auto"
    SHADOW = "Shadow"
    PAUSED = "Paused"


class Admit(Record, frozen=True):
    """Whether to decide at all, and a pin that overrules every signal."""

    mode: Mode = Mode.AUTO
    paused_until: float | None = None
    pin: int | None = None
    pin_until: float | None = None

    def __post_init__(self) -> None:
        require((self.pin or 0) >= 0, "pin", self.pin, "give a number of replicas")


class ForecastChoice(Record, frozen=True):
    """Which model looks ahead, and how far; `exact` is the program of its source, quirks included."""

    model: str = "linear"
    horizon_s: float | None = None  # None: the measured start-up time
    quantile: float = 0.5
    exact: bool = False
    options: dict[str, Any] = {}  # of the model, by the names of its own options

    def __post_init__(self) -> None:
        require(0 < self.quantile < 1, "quantile", self.quantile, "give a probability between 0 and 1")
        require(
            self.horizon_s is None or self.horizon_s > 0,
            "horizon",
            self.horizon_s,
            "give a number of seconds above zero",
        )
