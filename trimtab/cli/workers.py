"""All cores for a while: processes that an interrupted command does not leave, or wait for, to finish their queue."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def working(jobs: Sequence[Callable[[], T]]) -> Iterator[list[Future[T]]]:
    """The jobs, begun; as many at once as there are cores."""
    pool = ProcessPoolExecutor(max(1, min(os.cpu_count() or 1, len(jobs))))
    try:
        with _ctrl_c_waits():
            futures = [pool.submit(job) for job in jobs]
        yield futures
    except BaseException:
        for worker in multiprocessing.active_children():
            worker.terminate()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Ctrl-C reaches every process of the terminal. Workers are born inside, so it waits there for ever: neither a
    traceback of theirs nor a broken pool comes before our own KeyboardInterrupt, which comes at the end of this block.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
