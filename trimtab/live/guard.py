"""guard: one object that fails never stops another. Its failure becomes a condition or an event on it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from trimtab.errors import ClusterUnavailable, NotLeading, TrimtabError
from trimtab.journal import ObjectName
from trimtab.live.look.subject import Subject, name_of
from trimtab.live.object_tick import ObjectTick
from trimtab.live.tell import conditions
from trimtab.live.tell.status_writer import Happening, StatusWriter, tell
from trimtab.live.tell.telemetry import NOT_READY, Line, Telemetry, labels_of
from trimtab.live.tell.teller import Teller
from trimtab.wire.budget import AT_ONCE, SHARE, Queue
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Custom
from trimtab.wire.resources import HPAS, Resource

log = logging.getLogger(__name__)
BREATH = 100  # items, then the event loop runs others: the lease, the watches
Served = tuple[Resource, Custom] | Subject | ObjectTick
Item = TypeVar("Item", bound=Served)
Result = TypeVar("Result")


class RepeatedFailure(NamedTuple):
    """The failure of one object in the last tick."""

    name: ObjectName
    reason: str  # of its Ready condition
    text: str
    times: int  # ticks in a row


class Guard:
    """The one place where an object's failure is caught."""

    def __init__(self, writer: Kube, status_writer: StatusWriter, teller: Teller, telemetry: Telemetry) -> None:
        self.writer, self.status_writer, self.teller, self.telemetry = writer, status_writer, teller, telemetry
        self._failing: dict[str, RepeatedFailure] = {}
        self._failed_in_this_tick: set[str] = set()
        self._left_out: set[str] = set()  # of the last tick
        self._left_out_in_this_tick: set[str] = set()

    async def each(
        self,
        verb: Callable[[Item], Awaitable[Result]],
        items: Sequence[Item],
        at: float,
        within_s: float | None = None,
        at_once: int = AT_ONCE,
    ) -> list[Result]:
        """Await the verb for each item, several at once, namespaces in turns; return what did not fail.

        After `within_s`, running items have failed, and waiting items come first in the next tick. A few workers run
        them, not a task for each: most items wait for nothing, and a task would cost more than its item.
        """
        waiting, done, over = self._queue(items, at_once), dict[int, Result](), asyncio.Event()

        async def work() -> None:
            while waiting and not over.is_set():
                namespace, (index, item) = waiting.take()
                try:
                    done[index] = await verb(item)
                except NotLeading:
                    pass
                except asyncio.CancelledError:
                    if not over.is_set():
                        raise
                    self._failed(*_owner_of(item), _too_slow(within_s), at)
                except Exception as error:
                    self._failed(*_owner_of(item), error, at)
                finally:
                    waiting.give_back(namespace)
                if index % BREATH == BREATH - 1:
                    await asyncio.sleep(0)

        await _within(within_s, [work() for _ in range(min(at_once, len(items)))], over)
        self._leave_out({_owner_of(item)[1].metadata.uid for _, item in waiting})
        return [done[index] for index in sorted(done)]

    async def each_at_once(self, verb: Callable[[Item], Result], items: Sequence[Item], at: float) -> list[Result]:
        """Call the verb for each item, one after the other: the same for verbs that wait for nothing."""
        done = []
        for index, item in enumerate(items):
            try:
                done.append(verb(item))
            except Exception as error:
                self._failed(*_owner_of(item), error, at)
            if index % BREATH == BREATH - 1:
                await asyncio.sleep(0)
        return done

    def _queue(self, items: Sequence[Item], at_once: int) -> Queue[tuple[int, Item]]:
        """Items that were left out of the last tick come first."""
        queue: Queue[tuple[int, Item]] = Queue(at_once * SHARE // AT_ONCE)
        about = [_owner_of(item)[1].metadata for item in items]
        order: Iterable[int] = range(len(items))
        if self._left_out:
            order = sorted(order, key=lambda index: about[index].uid not in self._left_out)
        for index in order:
            queue.put(about[index].namespace, (index, items[index]))
        return queue

    def _leave_out(self, uids: set[str]) -> None:
        if uids:
            self._left_out_in_this_tick |= uids
            self.telemetry.failures["LeftOut"] += len(uids)
            log.warning("%d objects wait for the next tick: the others took too long", len(uids))

    def forget(self, uids: set[str]) -> None:
        """Keep only these; an object that did not fail in the last tick has recovered."""
        still = uids & self._failed_in_this_tick
        self._failing = {uid: failure for uid, failure in self._failing.items() if uid in still}
        self._failed_in_this_tick.clear()
        self._left_out, self._left_out_in_this_tick = self._left_out_in_this_tick, set()

    def not_ready(self) -> Iterator[Line]:
        """For /metrics: one line for each object that failed in the last tick."""
        for failure in self._failing.values():
            yield NOT_READY, labels_of(failure.name) | {"reason": failure.reason}, 1.0

    def _failed(self, resource: Resource, about: Custom, error: Exception, at: float) -> None:
        uid, name = about.metadata.uid, name_of(resource.kind, about)
        self.telemetry.failures[type(error).__name__] += 1
        before, found = self._failing.get(uid), conditions.of_trouble(error)
        count = before.times + 1 if before is not None and before.text == str(error) else 1
        self._failing[uid] = RepeatedFailure(name, found[0].reason, str(error), count)
        self._failed_in_this_tick.add(uid)
        _log(str(name), error, count)
        if resource is not HPAS:
            # A field that is not applied again would be removed: the rest of the status stays as it was.
            status = self.status_writer.before(about)
            self.teller.later(name, uid, lambda: self.status_writer.say(resource, about, status, found, at))
        elif count == 1:  # others' objects hear of their trouble by an event, when it is news
            happening = Happening("ForecastNotUsed", str(error), warning=True)
            self.teller.later(name, uid, lambda: tell(self.writer, HPAS, about, happening, at))


def _owner_of(item: Served) -> tuple[Resource, Custom]:
    """Return the object that an item of a tick is about."""
    if isinstance(item, ObjectTick):
        item = item.subject
    return (item.resource, item.object) if isinstance(item, Subject) else item


async def _within(within_s: float | None, works: Sequence[Coroutine[None, None, None]], over: asyncio.Event) -> None:
    """Until all are done, or the time is: then `over` is set and the rest cancelled."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        if tasks:
            await asyncio.wait(tasks, timeout=within_s)
        over.set()
    finally:
        for task in tasks:
            task.cancel()
    if slow := [task for task in tasks if not task.done()]:
        await asyncio.wait(slow)
    for task in tasks:
        if not task.cancelled():
            task.result()


def _too_slow(within_s: float | None) -> ClusterUnavailable:
    return ClusterUnavailable(f"this took longer than {within_s:g} s: tried again in the next tick")


def _log(name: str, error: Exception, count: int) -> None:
    """What repeats is said less and less often: the 1st, 10th, 100th time."""
    if str(count).strip("0") != "1":
        return
    times = f" ({count} times in a row)" if count > 1 else ""
    if isinstance(error, TrimtabError):
        log.warning("%s: %s%s", name, error, times)
    else:
        log.exception("%s: this is a bug of trimtab; the object keeps its size%s", name, times, exc_info=error)
