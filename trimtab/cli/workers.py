"""All cores for a while: processes that an interrupted command ends at once and never leaves behind.

Ctrl-C reaches every process of the terminal. Workers never see it: they are started while it is held back, which they
inherit, from their very first moment on. Only the command itself is interrupted, and ends them.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

from trimtab.errors import TrimtabError

Answer = TypeVar("Answer")


@contextmanager
def on_all_cores(job: Callable[..., Answer], calls: Sequence[tuple[Any, ...]]) -> Iterator[list[Future[Answer]]]:
    """The job with each of these arguments, begun in their order; as many at a time as there are cores."""
    pool = ProcessPoolExecutor(max(1, min(os.cpu_count() or 1, len(calls))))
    try:
        with _interrupts_held():
            futures = [pool.submit(job, *arguments) for arguments in calls]
        yield futures
    except BrokenProcessPool:
        _end_workers()
        raise TrimtabError(
            "a worker process was killed, most often for lack of memory; free some and try again"
        ) from None
    except BaseException:
        _end_workers()
        raise
    finally:
        # Its thread is seen off too: one that ends together with the interpreter would complain about it.
        pool.shutdown(cancel_futures=True)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """An interrupt that comes meanwhile is raised at the end."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_workers() -> None:
    for process in multiprocessing.active_children():
        process.terminate()
