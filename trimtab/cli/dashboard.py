"""trimtab dashboard: the fleet, one workload and "what if" in a browser, from a journal or a running operator."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trimtab.cli.option_groups import ClusterOptions, PrometheusOptions, cluster_options, prometheus_options
from trimtab.errors import InvalidInput

if TYPE_CHECKING:
    from trimtab.web.sources import PageSource


@click.command(name="dashboard")
@click.option("--journal", envvar="TRIMTAB_JOURNAL", help="Show this file, written by `run`, `demo` or `backtest`.")
@click.option(
    "--operator",
    default="trimtab/trimtab",
    show_default=True,
    metavar="NAMESPACE/SERVICE",
    help="Without --journal: the operator to ask, through the API server.",
)
@cluster_options
@prometheus_options("A Prometheus that has the operator's metrics: fills the time before its journal.")
@click.option("--port", type=click.IntRange(0, 65535), default=8090, show_default=True, help="0 is any that is free.")
@click.option("--open/--no-open", "opens", default=True, help="Open a browser.")
def command(
    journal: str | None,
    operator: str,
    cluster: ClusterOptions,
    prometheus: PrometheusOptions,
    port: int,
    opens: bool,
) -> None:
    """Look at the fleet, one workload and "what if" in a browser; nothing is ever changed.

    \b
    trimtab dashboard                            # the operator of the current kubeconfig context
    trimtab dashboard --journal trimtab.db
    """
    from trimtab.web.past import PastSource
    from trimtab.web.server import serve

    source = journal_source(journal) if journal else operator_of(operator, cluster)
    if access := prometheus.access():
        source = PastSource(source, access)
    show(lambda opened: serve(source, port, opened), opens)


def journal_source(path: str) -> PageSource:
    from trimtab.journal import Journal
    from trimtab.web.sources import JournalSource

    Journal.read(path).close()  # say what is wrong with it here, not in the browser
    return JournalSource(Path(path), Path(path).name)


def operator_of(name: str, cluster: ClusterOptions) -> PageSource:
    from trimtab.web.operator import OperatorSource

    namespace, slash, service = name.partition("/")
    if not (slash and namespace and service):
        raise InvalidInput("--operator", name, "write NAMESPACE/SERVICE, such as trimtab/trimtab")
    source = OperatorSource(cluster.connect(), namespace, service)
    source.version()  # say here that it does not answer
    return source


Serving = Callable[[Callable[[str], None]], Coroutine[Any, Any, None]]


def show(serving: Serving, opens: bool) -> None:
    """Serve until Ctrl-C."""
    import asyncio
    import webbrowser

    def opened(address: str) -> None:
        click.echo(f"dashboard: {address}  (Ctrl-C ends it)")
        if opens:
            webbrowser.open(address)

    asyncio.run(serving(opened))
