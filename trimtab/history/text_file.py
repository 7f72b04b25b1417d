"""The text of a file or of the standard input (`-`): packed or plain, UTF-16 where it says so, as PowerShell does."""

from __future__ import annotations

import codecs
import gzip
import sys
import zlib
from pathlib import Path

from trimtab.errors import InvalidInput

STDIN = "-"


def read_text(path: str) -> str:
    try:
        held = _bytes(path)
        wide = held.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        return held.decode("utf-16" if wide else "utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InvalidInput("file", path, f"cannot be read: {why}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput("file", path, f"cannot be read as text: {error}") from error


def _bytes(path: str) -> bytes:
    if path == STDIN:
        return sys.stdin.buffer.read()
    with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb") as file:
        return file.read()
