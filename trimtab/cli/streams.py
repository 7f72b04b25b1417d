"""The standard streams as a program finds them: closed, in an old locale, full, or gone in the middle."""

from __future__ import annotations

import contextlib
import io
import os
import sys


def prepare() -> None:
    """What is closed leads nowhere, and text is UTF-8 in every locale, as it is for kubectl."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  (as long as we live)
        elif isinstance(stream, io.TextIOWrapper) and mode == "w":
            stream.reconfigure(encoding="utf-8", errors="replace")


def flush() -> None:
    """Now, so that what cannot be written is our error and not a complaint of the interpreter after the end."""
    sys.stdout.flush()


def drop_output() -> None:
    """Nobody reads it any more: what is still in the buffer goes nowhere."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
