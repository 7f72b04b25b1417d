"""Many cores for a while, of this machine or of a Dask cluster: one job, many arguments, answers in their order.

Ctrl-C reaches every process of the terminal. Workers of this machine never see it: they are started while it is held
back, which they inherit, from their very first moment on. Only the command itself is interrupted, and ends them.

A Dask worker that is lost costs time, never an answer: the scheduler gives its work to others. Only a job that has
taken several workers with it is given up.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, TypeVar

import click

from trimtab.cli.option_groups import option_group
from trimtab.errors import InvalidInput, TrimtabError, Unavailable

Answer = TypeVar("Answer")
LOCAL, DASK = "local", "dask"
DASK_TIMEOUT_S = 30
FEW = 2  # so many jobs are done here before workers would have started


class EngineOptions(NamedTuple):
    """Where work is done."""

    engine: str = LOCAL
    scheduler: str = ""

    def executor(self, jobs: int) -> AbstractContextManager[Executor]:
        """Workers for so many jobs, gone at the end."""
        if self.engine == DASK:
            return dask_executor(self.scheduler)
        if self.scheduler:
            raise InvalidInput("--scheduler", self.scheduler, "it belongs to --engine dask")
        return _all_cores(jobs)

    def each(self, job: Callable[..., Answer], calls: Sequence[tuple[Any, ...]]) -> Iterator[Answer | TrimtabError]:
        """The answers in the order of the calls; of one that failed, why. It never costs the others."""
        if self.engine == LOCAL and not self.scheduler and len(calls) <= FEW:
            yield from (_here(job, arguments) for arguments in calls)
            return
        with self.executor(len(calls)) as workers:
            futures = [workers.submit(job, *arguments) for arguments in calls]
            yield from (_here(future.result, ()) for future in futures)


engine_options = option_group(
    "engine",
    EngineOptions,
    click.option(
        "--engine",
        type=click.Choice((LOCAL, DASK)),
        default=LOCAL,
        show_default=True,
        help="The cores of this machine, or the workers of a Dask cluster.",
    ),
    click.option(
        "--scheduler",
        default="",
        metavar="ADDRESS",
        help="With --engine dask: such as tcp://scheduler:8786; without it a cluster on this machine.",
    ),
)


def answered(answer: Answer | TrimtabError) -> Answer:
    """The answer of a job without which nothing can be said."""
    if isinstance(answer, TrimtabError):
        raise answer
    return answer


def _here(job: Callable[..., Answer], arguments: tuple[Any, ...]) -> Answer | TrimtabError:
    try:
        return job(*arguments)
    except TrimtabError as error:
        return error


@contextmanager
def on_all_cores(job: Callable[..., Answer], calls: Sequence[tuple[Any, ...]]) -> Iterator[list[Future[Answer]]]:
    """The job with each of these arguments, begun in their order; as many at a time as there are cores."""
    with _all_cores(len(calls)) as pool:
        yield [pool.submit(job, *arguments) for arguments in calls]


@contextmanager
def _all_cores(jobs: int) -> Iterator[Executor]:
    pool = Sheltered(max(1, min(os.cpu_count() or 1, jobs)))
    try:
        yield pool
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


class Sheltered(ProcessPoolExecutor):
    """Its workers start while interrupts are held back."""

    def submit(self, job: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        with _interrupts_held():
            return super().submit(job, *arguments, **named)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """An interrupt that comes meanwhile is raised at the end; processes that are started meanwhile never see one."""
    came: list[int] = []
    try:
        with _interrupts_noted(came), _interrupts_blocked():
            yield
    finally:
        if came:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def _interrupts_noted(came: list[int]) -> Iterator[None]:
    """Blocked here, the signal goes to a thread of numpy's, and Python would raise it here all the same."""
    if threading.current_thread() is not threading.main_thread():  # nothing is ever raised here
        yield
        return
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Which a new process inherits."""
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
            client = Client(place, timeout=DASK_TIMEOUT_S, set_as_default=False)
        except OSError as error:
            raise Unavailable(
                f"--scheduler {address}: no Dask scheduler answers within {DASK_TIMEOUT_S} s: {error}"
            ) from None
        try:
            yield DaskExecutor(client)
        finally:
            client.close(timeout=DASK_TIMEOUT_S)


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
