"""trimtab dashboard: the fleet, one workload and "what if" in a browser, from a journal."""

from __future__ import annotations

import asyncio
import webbrowser
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import click

from trimtab.journal import Journal


@click.command(name="dashboard")
@click.option(
    "--journal", default="trimtab.db", show_default=True, envvar="TRIMTAB_JOURNAL", help="The journal to show."
)
@click.option("--port", type=click.IntRange(0, 65535), default=8090, show_default=True, help="0 is any that is free.")
@click.option("--open/--no-open", "opens", default=True, help="Open a browser.")
def command(journal: str, port: int, opens: bool) -> None:
    """Look at the fleet, one workload and "what if" in a browser; nothing is ever changed.

    \b
    trimtab dashboard --journal trimtab.db
    """
    from trimtab.web.server import serve
    from trimtab.web.sources import JournalSource

    Journal.read(journal).close()  # say what is wrong with it here, not in the browser
    path = Path(journal)
    show(lambda opened: serve(JournalSource(path, path.name), port, opened), opens)


Serving = Callable[[Callable[[str], None]], Coroutine[Any, Any, None]]


def show(serving: Serving, opens: bool) -> None:
    """Serve until Ctrl-C."""

    def opened(address: str) -> None:
        click.echo(f"dashboard: {address}  (Ctrl-C ends it)")
        if opens:
            webbrowser.open(address)

    asyncio.run(serving(opened))
