"""The child process of a night: cases come in one by one, verdicts go out at the end, within a budget.

A message is its length in four bytes and MessagePack. The first is the fleet; then one per case; then nothing.
"""

from __future__ import annotations

import os
import resource
import struct
import sys
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from trimtab.core.nights import Fleet, NightCase, Verdict

LENGTH = struct.Struct(">I")
NICENESS = 19


def main() -> None:
    """Arguments: bytes of memory, seconds of CPU."""
    from trimtab.tune.night import find, plan  # the simulator: the operator, which speaks with us, does without it

    memory_bytes, cpu_s = (int(word) for word in sys.argv[1:])
    os.nice(NICENESS)
    # What may become resident, not what is mapped: libraries map far more than they touch.
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    messages = _messages(sys.stdin.buffer)
    fleet = msgspec.msgpack.decode(next(messages), type=Fleet)
    findings = [find(msgspec.msgpack.decode(message, type=NightCase)) for message in messages]
    sys.stdout.buffer.write(msgspec.msgpack.encode(plan(findings, fleet)))


def _messages(stream: BinaryIO) -> Iterator[bytes]:
    while head := stream.read(LENGTH.size):
        yield stream.read(LENGTH.unpack(head)[0])


def framed(record: Fleet | NightCase) -> bytes:
    data = msgspec.msgpack.encode(record)
    return LENGTH.pack(len(data)) + data


def verdicts_in(answer: bytes) -> list[Verdict]:
    return msgspec.msgpack.decode(answer, type=list[Verdict])


if __name__ == "__main__":
    main()
