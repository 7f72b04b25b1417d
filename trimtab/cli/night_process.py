"""The night's work in a process of its own: it may be slow, run out of memory or die, and no tick notices."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator

from trimtab.core.nights import NightCase, Verdict
from trimtab.errors import TrimtabError
from trimtab.quantity import MIB
from trimtab.tune.night_child import framed, verdicts_in

MEMORY_BYTES = 448 * MIB  # the chart gives the whole pod 1 GiB, of which the operator needs up to half
CPU_S_PER_WORKLOAD, CPU_S_AT_LEAST = 20, 120
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


async def in_child(cases: Iterator[NightCase], count: int) -> list[Verdict]:
    """What `tune.night` makes of so many cases, within a budget of memory and CPU."""
    cpu_s = CPU_S_AT_LEAST + CPU_S_PER_WORKLOAD * count
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "trimtab.tune.night_child",
        str(MEMORY_BYTES),
        str(cpu_s),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | ONE_THREAD,
    )
    try:
        answer, complaint, _ = await asyncio.gather(
            _all_of(process.stdout), _all_of(process.stderr), _feed(process, cases)
        )
        code = await process.wait()
    finally:
        if process.returncode is None:  # we are told to end
            process.kill()
    if code != 0:
        raise TrimtabError(f"the process that tunes ended with {code}: {_last_line(complaint)}")
    return verdicts_in(answer)


async def _feed(process: asyncio.subprocess.Process, cases: Iterator[NightCase]) -> None:
    """A case is made when the one before was taken: few of them are held at a time."""
    assert process.stdin is not None
    try:
        for case in cases:
            process.stdin.write(framed(case))
            await process.stdin.drain()
        process.stdin.close()
    except (BrokenPipeError, ConnectionResetError):
        return  # it died: its exit code says so


async def _all_of(stream: asyncio.StreamReader | None) -> bytes:
    return await stream.read() if stream is not None else b""


def _last_line(complaint: bytes) -> str:
    lines = complaint.decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "it said nothing; most often memory or CPU ran out"
