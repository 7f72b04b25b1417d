"""The workers of a Dask cluster as an executor: a worker that is lost costs time, never an answer.

The scheduler gives what a lost worker had to others. Only a job that has taken several workers with it is given up.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any

from trimtab.errors import InvalidInput, TrimtabError, Unavailable

WAIT_S = 30


@contextmanager
def dask_executor(address: str) -> Iterator[Executor]:
    """Of the scheduler at this address, or of a cluster of this machine's cores."""
    try:
        from distributed import Client
    except ImportError:
        raise InvalidInput("--engine", "dask", "it needs Dask: pip install 'trimtab[dask]'") from None
    logging.getLogger("distributed").setLevel(logging.ERROR)  # a lost worker is its business, not the user's
    warnings.filterwarnings("ignore", message="Sending large graph")  # a history travels with its job
    with _cluster(address) as place:
        try:
            client = Client(place, timeout=WAIT_S, set_as_default=False)
        except OSError as error:
            raise Unavailable(f"--scheduler {address}: no Dask scheduler answers within {WAIT_S} s: {error}") from None
        try:
            yield DaskExecutor(client)
        finally:
            client.close(timeout=WAIT_S)


@contextmanager
def _cluster(address: str) -> Iterator[Any]:
    if address:
        yield address
        return
    from distributed import LocalCluster

    quiet = {"dashboard_address": None, "silence_logs": logging.ERROR}
    with LocalCluster(n_workers=os.cpu_count() or 1, threads_per_worker=1, **quiet) as here:
        yield here


class DaskExecutor(Executor):
    """Futures as the standard library has them, failures in our words."""

    def __init__(self, client: Any) -> None:
        self._inner = client.get_executor(pure=False)

    def submit(self, job: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        outer: Future[Any] = Future()
        outer.set_running_or_notify_cancel()
        self._inner.submit(job, *arguments, **named).add_done_callback(lambda inner: _hand_on(inner, outer))
        return outer

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._inner.shutdown(wait=wait)


def _hand_on(inner: Future[Any], outer: Future[Any]) -> None:
    from distributed.scheduler import KilledWorker

    if inner.cancelled():
        outer.set_exception(Unavailable("the Dask cluster has gone"))
        return
    error = inner.exception()
    if isinstance(error, KilledWorker):
        outer.set_exception(TrimtabError("it ended several workers, most often for lack of memory"))
    elif error is not None:
        outer.set_exception(error)
    else:
        outer.set_result(inner.result())
