"""A real Prometheus over blocks that promtool made of the series one gives it."""

from __future__ import annotations

import re
import struct
import subprocess
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.bed.build import binaries
from tests.bed.ports import free_port
from tests.bed.waiting import eventually
from tests.history.chunks import field, number, snappy
from trimtab.series import Floats


class Filled(NamedTuple):
    """One series to be: its name with labels as Prometheus writes them, unix seconds, values."""

    name: str
    times: NDArray[np.int64]
    values: Floats


def fill(directory: Path, series: Iterable[Filled]) -> None:
    """One block for all: with the default of two hours promtool would read the file once for each of them."""
    directory.mkdir(parents=True, exist_ok=True)
    text = directory / "samples.txt"
    with text.open("w") as file:
        for one in series:
            stamped = zip(one.values.tolist(), one.times.tolist(), strict=True)
            file.writelines(f"{one.name} {value!r} {at}\n" for value, at in stamped)
        file.write("# EOF\n")
    tool = binaries(("promtool",))["promtool"]
    command = [tool, "tsdb", "create-blocks-from", "--max-block-duration=768h", "openmetrics", text, directory / "data"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    text.unlink()
    if done.returncode:
        raise RuntimeError(f"promtool: {done.stderr[-2000:]}")


def push(url: str, series: Iterable[Filled]) -> None:
    """By remote write (times in milliseconds), which takes what a text file cannot hold: marks of staleness.

    All in one request: what comes later must not be older than an hour.
    """
    body = snappy(b"".join(field(1, _written(one)) for one in series))
    headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy"}
    urllib.request.urlopen(urllib.request.Request(f"{url}/api/v1/write", body, headers), timeout=30).close()


def _written(one: Filled) -> bytes:
    labels = {"__name__": one.name.partition("{")[0], **dict(re.findall(r'(\w+)="([^"]*)"', one.name))}
    named = (field(1, field(1, key.encode()) + field(2, value.encode())) for key, value in sorted(labels.items()))
    stamped = zip(one.values.tolist(), one.times.tolist(), strict=True)
    held = (field(2, b"\x09" + struct.pack("<d", value) + number(2, at)) for value, at in stamped)
    return b"".join((*named, *held))


@contextmanager
def serve(directory: Path, *more: str) -> Iterator[tuple[str, int]]:
    """Its address and process id, while it runs; `more` are flags of its command line."""
    address = f"127.0.0.1:{free_port()}"
    config = directory / "prometheus.yml"
    config.write_text("global: {}\n")
    flags = {
        "config.file": config,
        "storage.tsdb.path": directory / "data",
        "storage.tsdb.retention.time": "3650d",
        "web.listen-address": address,
        "log.level": "error",
    }
    program = str(binaries(("prometheus",))["prometheus"])
    with (directory / "prometheus.log").open("w") as log:
        process = subprocess.Popen([program, *(f"--{k}={v}" for k, v in flags.items()), *more], stderr=log, stdout=log)
    try:
        _await(f"http://{address}/-/ready", process, directory / "prometheus.log")
        yield f"http://{address}", process.pid
    finally:
        process.terminate()
        process.wait(20)


def _await(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    def ready() -> bool:
        if process.poll() is not None:
            raise RuntimeError(f"prometheus ended: {log.read_text()[-2000:]}")
        urllib.request.urlopen(url, timeout=2).close()
        return True

    eventually(ready, 60, url, every_s=0.05)
