"""Ports for servers of tests, from below those that the kernel gives to connections: a free one stays free.

A client that calls a server while it is down could otherwise be given the very port it calls, and nobody could listen
there again. A server listens seconds after its port was drawn: until then, and as long as whoever drew it lives, nobody
else draws it, by a lock on a file of that number.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

RANGE = range(20000, 32000)
_dice = random.SystemRandom()  # test runs that draw from one seed must not draw the same ports
_drawn: list[IO[bytes]] = []  # the locks of this process


def free_ports() -> Iterator[int]:
    return (port for port in _dice.sample(RANGE, k=len(RANGE)) if is_free(port) and _is_ours(port))


def free_port() -> int:
    return next(free_ports())


def _is_ours(port: int) -> bool:
    """From now on, unless somebody else has drawn it."""
    folder = Path(tempfile.gettempdir()) / f"trimtab-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    lock = (folder / str(port)).open("wb")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return False
    _drawn.append(lock)
    return True


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: old connections do not count
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
