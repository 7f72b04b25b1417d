"""May it happen now? (stage `gate`)"""

from __future__ import annotations

import enum

from trimtab.policy.axis import Axis, Direction
from trimtab.policy.record import Record, require


class UpdateMode(enum.StrEnum):
    AUTO = "Auto"
    OFF = "Off"
    WINDOW = "MaintenanceWindow"


class MaintenanceWindow(Record, frozen=True, tag="Window"):  # the tag is in stored journals
    """Every day from begin to end in UTC seconds of the day, both included; may cross midnight."""

    begin_s: int
    end_s: int

    def __post_init__(self) -> None:
        for second in (self.begin_s, self.end_s):
            require(0 <= second < 86400, "maintenanceTimeWindow", second, "give a time of the day")


class Update(Record, frozen=True):
    """Document 001: an axis and direction that is switched off, or only open in the maintenance window."""

    axis: Axis
    direction: Direction
    mode: UpdateMode
    window: MaintenanceWindow | None = None


class Rest(Record, frozen=True):
    """Document 001: nothing on this axis and direction within window_s of the last scaling of any kind."""

    axis: Axis
    direction: Direction
    window_s: float

    def __post_init__(self) -> None:
        require(self.window_s >= 0, "stabilizationDuration", self.window_s, "give a duration that is not negative")


class MinChange(Record, frozen=True):
    """Document 001: changes below the smaller of value and percent of the current request are not worth it."""

    axis: Axis
    direction: Direction
    value: float | None = None
    percent: float | None = None

    def __post_init__(self) -> None:
        for amount in (self.value, self.percent):
            require((amount or 0) >= 0, "minChange", amount, "give an amount that is not negative")


Gate = Update | Rest | MinChange
