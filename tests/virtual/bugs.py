"""What the operator calls a bug of its own, as it says so in its log: no test of the whole of it should see one."""

from __future__ import annotations

import logging

WORDS = "bug of trimtab"


class Bugs(logging.Handler):
    """Keeps the sentence and the error of each."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.met: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        said = record.getMessage()
        if WORDS in said:
            error = record.exc_info[1] if record.exc_info else None
            self.met.append(f"{said}: {error!r}")
