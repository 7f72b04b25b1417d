"""The child process of a night: cases come in one by one, verdicts go out at the end, within a budget.

A message is its length in four bytes and MessagePack: one per case.
"""

from __future__ import annotations

import os
import resource
import struct
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import BinaryIO, TypeVar

import msgspec

from trimtab.core.nights import NightCase, Verdict
from trimtab.core.overload import Yardstick
from trimtab.policy import (
    Bridge,
    ForecastChoice,
    Metric,
    MetricKind,
    Objective,
    Policy,
    TotalAverage,
    Tuning,
    TuningMode,
)

T = TypeVar("T")
R = TypeVar("R")
LENGTH = struct.Struct(">I")
NICENESS = 19
EXAMPLE_DAYS = 7
AT_ONCE = 2  # cases: the compiled lane runs without Python's lock; more of them need more memory


def main() -> None:
    """Arguments: bytes of memory, seconds of CPU."""
    memory_bytes, cpu_s = (int(word) for word in sys.argv[1:])
    os.nice(NICENESS)
    # What may become resident, not what is mapped: libraries map far more than they touch.
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    compile_apart()
    from trimtab.tune.night import find  # the simulator: the operator, which speaks with us, does without it

    find(example())  # reads what was compiled, before two want it at once
    cases = (msgspec.msgpack.decode(message, type=NightCase) for message in _messages(sys.stdin.buffer))
    sys.stdout.buffer.write(msgspec.msgpack.encode(side_by_side(find, cases)))


def compile_apart() -> None:
    """What the cases need, where nothing is compiled yet, as in a new container: it stays in the cache, and the memory
    that a compiler never gives back goes with the process."""
    if os.fork() == 0:
        try:
            from trimtab.tune.night import find

            find(example())
        finally:
            os._exit(0)  # whatever went wrong here is said of the first case
    os.wait()


def example() -> NightCase:
    """A week of one pod with all that a night can choose from."""
    metric = Metric(kind=MetricKind.EXTERNAL, name="load")
    policy = Policy(
        signals=(TotalAverage(metric=metric, target=0.7),),
        forecast=ForecastChoice(model="learned"),
        bridge=Bridge(),
        objective=Objective(),
        tuning=Tuning(mode=TuningMode.NIGHTLY),
    )
    minutes = array("f", [1.0]) * (EXAMPLE_DAYS * 1440)
    return NightCase(
        uid="",
        workload="example",
        policy=policy,
        start=0.0,
        demand=minutes.tobytes(),
        pod=Yardstick(request=1.0, level=0.8, limit=1.0),
        startup_s=60.0,
    )


def side_by_side(work: Callable[[T], R], given: Iterable[T]) -> list[R]:
    """The answers in the order of what is given; the next is made when somebody is free for it, by one at a time."""
    numbered, turn = enumerate(given), Lock()
    answers: dict[int, R] = {}

    def take() -> tuple[int, T] | None:
        with turn:
            return next(numbered, None)

    def serve() -> None:
        while (taken := take()) is not None:
            number, item = taken
            answers[number] = work(item)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for served in [pool.submit(serve) for _ in range(AT_ONCE)]:
            served.result()
    return [answers[number] for number in sorted(answers)]


def _messages(stream: BinaryIO) -> Iterator[bytes]:
    while head := stream.read(LENGTH.size):
        yield stream.read(LENGTH.unpack(head)[0])


def framed(case: NightCase) -> bytes:
    data = msgspec.msgpack.encode(case)
    return LENGTH.pack(len(data)) + data


def verdicts_in(answer: bytes) -> list[Verdict]:
    return msgspec.msgpack.decode(answer, type=list[Verdict])


if __name__ == "__main__":
    main()
