"""Nobody can write a log line of ours by a name, a message or an exception."""

from __future__ import annotations

import logging
import sys

from trimtab.cli.log import FORMAT, OneLineFormatter

FORGED = "web\n2026-11-16 12:00:00,000 INFO    trimtab.live: all is well\r\x1b[2K\u2028"


def lines(message: str, *args: object, info: bool = False) -> list[str]:
    record = logging.LogRecord(
        "trimtab.test", logging.WARNING, "x.py", 1, message, args, sys.exc_info() if info else None
    )
    return OneLineFormatter(FORMAT).format(record).splitlines()


def test_a_message_is_one_line_whatever_it_holds() -> None:
    (line,) = lines("%s: %s", "shop", FORGED)
    assert line.isprintable() and "web\\n2026" in line
    assert "secret" not in lines("%s", "http://me:secret@prometheus:9090")[0]


def test_lines_of_a_traceback_cannot_be_taken_for_records() -> None:
    try:
        raise ValueError(FORGED)
    except ValueError:
        first, *rest = lines("this tick was given up", info=True)
    assert first.endswith("this tick was given up") and len(rest) >= 4
    assert all(line.startswith("  | ") and line.isprintable() for line in rest)
