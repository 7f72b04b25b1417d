"""All cores for a while: processes that an interrupted command does not leave, or wait for, to finish their queue."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager


@contextmanager
def workers(most: int) -> Iterator[ProcessPoolExecutor]:
    """As many as there are cores, and no more than there are jobs."""
    pool = ProcessPoolExecutor(max(1, min(os.cpu_count() or 1, most)), initializer=_end_at_once)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _end_at_once() -> None:
    """Ctrl-C reaches every process of the terminal; one that raised KeyboardInterrupt would go on with the next job."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
