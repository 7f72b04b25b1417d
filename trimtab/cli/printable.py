"""Keep control characters of names and messages from the cluster off the terminal.

A tenant can write escape sequences into an annotation or a status. Printed as they are, they would clear the screen of
an administrator, rename the window or fill the clipboard.
"""

from __future__ import annotations

import re
from typing import Any, TextIO

from trimtab.errors import printable

_WORDS = re.compile(r"[^\n\t]+")


def printable_lines(text: str) -> str:
    """Return the text with line feeds and tabs, and every other control character spelled out, such as `\\x1b`."""
    return _WORDS.sub(lambda words: printable(words[0]), text)


class PrintableStream:
    """Standard output or error that prints nothing but printable lines, whoever writes to it.

    Rich writes to the stream behind it, because its own colors are control characters; `Screen` cleans its text.
    """

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream  # rich looks for this name

    def write(self, text: str) -> int:
        return self.rich_proxied_file.write(printable_lines(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)
