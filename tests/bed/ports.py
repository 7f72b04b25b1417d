"""Ports for servers of tests, from below those that the kernel gives to connections: a free one stays free."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator

RANGE = range(20000, 32000)
_dice = random.SystemRandom()  # test runs that draw from one seed must not draw the same ports


def free_ports() -> Iterator[int]:
    return (port for port in _dice.sample(RANGE, k=len(RANGE)) if is_free(port))


def free_port() -> int:
    return next(free_ports())


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: old connections do not count
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
