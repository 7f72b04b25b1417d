"""An event loop whose time jumps to the next timer whenever nothing else happens.

With `patience_s` sockets work as usual and are waited for that long before each jump. Work for other threads is done at
once, in this one: the same program takes the same turns each time.

Turns and timers are most of what a simulated hour consists of: they are kept here, with nothing that only a loop with
threads, sockets or a debugger needs.
"""

from __future__ import annotations

import asyncio
import selectors
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from heapq import heappop, heappush
from itertools import count
from typing import Any, TypeVar

T = TypeVar("T")
SOCKETS_S = 0.25  # what a packet to ourselves may take on a busy machine; each jump takes as long
_new = object.__new__
GRAIN = 1e9  # of a second: timers that are due at the same time are due at the very same float


class _Turn(asyncio.Handle):
    """Filled by the loop, without a call of its own: there are forty in a tick."""

    __slots__ = ()
    _repr = _source_traceback = None  # for debuggers


class _Timer(asyncio.TimerHandle):
    __slots__ = ()
    _repr = _source_traceback = None
    _scheduled = True

    def cancel(self) -> None:
        """It stays where it is, and is passed over when its time comes."""
        self._cancelled = True


class VirtualLoop(asyncio.SelectorEventLoop):
    """`holds` may keep a turn back, by the context it runs in; `release` lets all of those go on."""

    _ready: deque[Any]  # of handles: what is in them is not for everybody
    _stopping: bool
    _selector: selectors.BaseSelector
    _process_events: Callable[[Any], None]

    def __init__(self, patience_s: float = 0.0) -> None:
        self.patience_s = patience_s
        self.holds: Callable[[Context], bool] | None = None
        self.turns = 0  # that were taken: what a run costs, whatever machine it is on
        self.made: Callable[[asyncio.Task[Any], Context | None], None] | None = None  # hears of each task
        self.now_s = 0.0
        self._held: list[asyncio.Handle] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []  # a heap; of one time, in the order they came
        self._numbers = count()
        super().__init__()

    def time(self) -> float:
        return self.now_s

    def _run_once(self) -> None:
        """Round by round until somebody stops it. Time stands still while anybody has a turn."""
        ready, timers = self._ready, self._timers
        while True:
            if self.patience_s:
                self._await_sockets()
            elif not ready:
                self._pass_cancelled()
                if timers and timers[0][0] > self.now_s:
                    self.now_s = timers[0][0]
            while timers and timers[0][0] <= self.now_s:
                ready.append(heappop(timers)[2])
            for _ in range(len(ready)):
                turn = ready.popleft()
                if not turn._cancelled:
                    self.turns += 1
                    try:
                        turn._context.run(turn._callback, *turn._args)
                    except (SystemExit, KeyboardInterrupt):
                        raise
                    except BaseException as error:
                        self._failed(turn, error)
            if self._stopping:
                return

    def _failed(self, turn: asyncio.Handle, error: BaseException) -> None:
        said = f"Exception in callback {turn!r}"
        self.call_exception_handler({"message": said, "exception": error, "handle": turn})

    def _pass_cancelled(self) -> None:
        while self._timers and self._timers[0][2]._cancelled:
            heappop(self._timers)

    def _await_sockets(self) -> None:
        self._pass_cancelled()
        left_s = 0.0 if self._ready else max(0.0, self._timers[0][0] - self.now_s) if self._timers else None
        found = self._selector.select(None if left_s is None else min(left_s, self.patience_s))
        self._process_events(found)
        if not self._ready and self._timers:
            self.now_s = max(self.now_s, self._timers[0][0])

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer: Any = _new(_Timer)
        timer._callback, timer._args, timer._loop, timer._cancelled = callback, args, self, False
        timer._context = copy_context() if context is None else context
        timer._when = when = int(when * GRAIN + 0.5) / GRAIN
        heappush(self._timers, (when, next(self._numbers), timer))
        return timer

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.now_s + delay, callback, *args, context=context)

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> asyncio.Handle:  # type: ignore[override]
        turn: Any = _new(_Turn)
        turn._callback, turn._args, turn._loop, turn._cancelled = callback, args, self, False
        turn._context = copy_context() if context is None else context
        self._ready.append(turn)
        if self.holds is not None and self.holds(turn._context):
            self._ready.remove(turn)
            self._held.append(turn)
        return turn

    def create_task(  # type: ignore[override]
        self, work: Coroutine[Any, Any, T], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[T]:
        task = asyncio.Task(work, loop=self, name=name, context=context)
        if self.made is not None:
            self.made(task, context)
        return task

    def release(self) -> None:
        self._ready.extend(self._held)
        self._held.clear()

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done


def run(work: Coroutine[Any, Any, T], patience_s: float = 0.0) -> T:
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(patience_s)) as runner:
        return runner.run(work)


def now() -> float:
    return asyncio.get_running_loop().time()
