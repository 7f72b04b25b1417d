"""When an Hvpa may move: update modes, stabilisation, the maintenance window, and changes too small to be worth it.

The order is the precedence of HVPA's program: on the vertical axes Off, stabilisation, window, smallest change;
on replicas Off, window, stabilisation.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field

from trimtab.errors import InvalidInput
from trimtab.kinds.amounts import Duration, Quantity, amount
from trimtab.kinds.manifest_part import ManifestPart
from trimtab.policy import Axis, Direction, Gate, MaintenanceWindow, MinChange, Rest, Update, UpdateMode
from trimtab.quantity import is_whole, parse_duration

CLOCK = r"^([01][0-9]|2[0-3])[0-5][0-9][0-5][0-9][+-]([01][0-9]|2[0-3])[0-5][0-9]$"
_DAY_S = 86400
_DEFAULT_CHANGE = {Axis.CPU: 0.2, Axis.MEMORY: 200e6}  # 200m and 200M, where HVPA weights leaves them out

Clock = Annotated[str, Field(pattern=CLOCK, max_length=11)]


class ChangeParams(ManifestPart):
    """An amount, a percentage of the present request, or both: then the smaller one counts."""

    value: Quantity | None = None
    """An amount."""
    percentage: Annotated[int, Field(ge=0, le=10000)] | None = None
    """A share of what it is now, in percent."""


class MinChangeSpec(ManifestPart):
    cpu: ChangeParams | None = None
    """Of the CPU request."""
    memory: ChangeParams | None = None
    """Of the memory request."""
    replicas: ChangeParams | None = None
    """Not read, as upstream."""


class UpdatePolicy(ManifestPart):
    update_mode: Literal["Auto", "Off", "MaintenanceWindow"] = "Auto"
    """Auto, Off (quote it) or MaintenanceWindow."""


class ScaleType(ManifestPart):
    """One axis and direction."""

    update_policy: UpdatePolicy | None = None
    """Whether and when."""
    min_change: MinChangeSpec | None = None
    """Smaller changes are not worth it."""
    stabilization_duration: Duration | None = None
    """Rest so long after the last scaling of any kind."""

    def side(self) -> Side:
        change = self.min_change or MinChangeSpec()
        mode = self.update_policy.update_mode if self.update_policy else "Auto"
        return Side(UpdateMode(mode), seconds(self.stabilization_duration), change.cpu, change.memory)


class WindowSpec(ManifestPart):
    """Every day from begin to end, "HHMMSS+ZZZZ", both ends included; may cross midnight."""

    begin: Clock
    """HHMMSS and the offset of the zone, such as 220000+0100."""
    end: Clock
    """The same; may lie after midnight."""

    rules: ClassVar = ()

    def window(self) -> MaintenanceWindow:
        return MaintenanceWindow(begin_s=clock_s(self.begin), end_s=clock_s(self.end))


class Side(NamedTuple):
    """What one axis and direction obeys."""

    mode: UpdateMode = UpdateMode.AUTO
    rest_s: float = 0.0
    cpu: ChangeParams | None = None
    memory: ChangeParams | None = None


def clock_s(text: str, path: str = "") -> int:
    """The UTC second of the day of "160554+0200"."""
    digits = text[:6] + text[7:11]
    if len(text) != 11 or text[6] not in "+-" or not is_whole(digits):
        raise InvalidInput(path, text, 'write HHMMSS and the offset of the zone, such as "220000+0100"')
    hours, minutes, seconds_, off_hours, off_minutes = (int(digits[i : i + 2]) for i in range(0, 10, 2))
    if hours > 23 or minutes > 59 or seconds_ > 59 or off_hours > 23 or off_minutes > 59:
        raise InvalidInput(path, text, "hours go to 23, minutes and seconds to 59")
    offset_s = (off_hours * 3600 + off_minutes * 60) * (1 if text[6] == "+" else -1)
    return (hours * 3600 + minutes * 60 + seconds_ - offset_s) % _DAY_S


def seconds(text: str | None) -> float:
    return 0.0 if text is None else parse_duration(text)


def gates(replicas: tuple[Side, Side], sizes: tuple[Side, Side], window: MaintenanceWindow | None) -> tuple[Gate, ...]:
    """The gates of both axes; each pair is (up, down)."""
    found: list[Gate] = []
    for direction, side in zip(Direction, replicas, strict=True):
        found += _modes(Axis.REPLICAS, direction, side, UpdateMode.OFF, window)
        found += _modes(Axis.REPLICAS, direction, side, UpdateMode.WINDOW, window)
        found += _rests(Axis.REPLICAS, direction, side)
    for axis in (Axis.CPU, Axis.MEMORY):
        for direction, side in zip(Direction, sizes, strict=True):
            found += _modes(axis, direction, side, UpdateMode.OFF, window)
            found += _rests(axis, direction, side)
            found += _modes(axis, direction, side, UpdateMode.WINDOW, window)
            found.append(_smallest(axis, direction, side))
    return tuple(found)


def _modes(
    axis: Axis, direction: Direction, side: Side, mode: UpdateMode, window: MaintenanceWindow | None
) -> list[Gate]:
    if side.mode is not mode:
        return []
    open_in = window if mode is UpdateMode.WINDOW else None
    return [Update(axis=axis, direction=direction, mode=mode, window=open_in)]


def _rests(axis: Axis, direction: Direction, side: Side) -> list[Gate]:
    return [Rest(axis=axis, direction=direction, window_s=side.rest_s)] if side.rest_s else []


def _smallest(axis: Axis, direction: Direction, side: Side) -> MinChange:
    params = (side.cpu if axis is Axis.CPU else side.memory) or ChangeParams()
    value, percent = amount(params.value), params.percentage
    if value is None and percent is None:
        value = _DEFAULT_CHANGE[axis]
    return MinChange(axis=axis, direction=direction, value=value, percent=None if percent is None else float(percent))
