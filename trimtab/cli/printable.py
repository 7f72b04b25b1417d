"""Keep control characters of names and messages from the cluster off the terminal.

A tenant can write escape sequences into an annotation or a status. Printed as they are, they would clear the screen of
an administrator, rename the window or fill the clipboard.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any, TextIO

import click

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


def echo_coloured(*parts: tuple[str, str]) -> None:
    """Print a line of texts with their colors; only the colors may hold control characters.

    click drops colors where nobody sees them, but does not know https://no-color.org.
    """
    plain = bool(os.environ.get("NO_COLOR"))
    clean = [(printable_lines(text), color) for text, color in parts]
    line = "".join(text if plain or not color else click.style(text, fg=color) for text, color in clean)
    click.echo(line, file=getattr(sys.stdout, "rich_proxied_file", sys.stdout))
