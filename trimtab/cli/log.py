"""Log lines of what runs for long: one line per record, whatever somebody wrote into a name or an answer."""

from __future__ import annotations

import logging
from typing import Any

from trimtab.errors import printable, without_credentials

FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


class OneLineFormatter(logging.Formatter):
    """Lines of a traceback are marked, so that none of them can be taken for a record."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return printable(without_credentials(super().formatMessage(record)))

    def formatException(self, ei: Any) -> str:
        lines = super().formatException(ei).splitlines()
        return "\n".join(f"  | {printable(without_credentials(line))}" for line in lines)


def set_up(level: str | int) -> None:
    to_stderr = logging.StreamHandler()
    to_stderr.setFormatter(OneLineFormatter(FORMAT))
    logging.basicConfig(level=level, handlers=[to_stderr])
