"""guard: one object that fails never stops another. Its failure becomes a condition or an event on it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from trimtab.errors import NotLeading, TrimtabError
from trimtab.live.look.subject import name_of
from trimtab.live.tell import conditions
from trimtab.live.tell.events import Happening, tell
from trimtab.live.tell.status_writer import StatusWriter
from trimtab.live.tell.telemetry import Telemetry
from trimtab.wire.objects import Custom
from trimtab.wire.resources import HPAS, Resource
from trimtab.wire.writer import Writer

log = logging.getLogger(__name__)
AT_ONCE = 16  # writes under way
Item = TypeVar("Item")
Result = TypeVar("Result")


class Guard:
    """The one place where an object's failure is caught."""

    def __init__(self, writer: Writer, status_writer: StatusWriter, telemetry: Telemetry) -> None:
        self.writer, self.status_writer, self.telemetry = writer, status_writer, telemetry
        self._told: dict[str, str] = {}

    async def each(
        self,
        verb: Callable[[Item], Awaitable[Result]],
        items: Sequence[Item],
        whose: Callable[[Item], tuple[Resource, Custom]],
        at: float,
    ) -> list[Result]:
        """Do it for each, several at once; the results of those that did not fail."""
        gate = asyncio.Semaphore(AT_ONCE)

        async def guarded(item: Item) -> tuple[bool, Any]:
            async with gate:
                try:
                    return True, await verb(item)
                except NotLeading:
                    return False, None
                except Exception as error:
                    await self._failed(*whose(item), error, at)
                    return False, None

        done = await asyncio.gather(*(guarded(item) for item in items))
        return [result for fine, result in done if fine]

    def forget(self, uids: set[str]) -> None:
        """All but these are gone."""
        self._told = {uid: text for uid, text in self._told.items() if uid in uids}

    async def _failed(self, resource: Resource, about: Custom, error: Exception, at: float) -> None:
        name = name_of(resource.kind, about)
        self.telemetry.failures[type(error).__name__] += 1
        if isinstance(error, TrimtabError):
            log.warning("%s: %s", name, error)
        else:
            log.exception("%s: this is a bug of trimtab; the object keeps its size", name, exc_info=error)
        try:
            if resource is HPAS:
                await self._tell_once(about, error, at)
                return
            # A field that is not applied again would be removed: the rest of the status stays as it was.
            await self.status_writer.say(
                resource, about, self.status_writer.before(about), conditions.of_trouble(error), at
            )
        except (TrimtabError, OSError) as second:
            log.warning("%s: its status cannot be written: %s", name, second)

    async def _tell_once(self, about: Custom, error: Exception, at: float) -> None:
        """Others' objects hear of their trouble by an event, when it is news."""
        uid, text = about.metadata.uid, str(error)
        if self._told.get(uid) != text:
            self._told[uid] = text
            await tell(self.writer, HPAS, about, Happening("ForecastNotUsed", text, warning=True), at)
