"""trimtab doctor: check the cluster, the permissions, the metrics and the history, and say what will work."""

from __future__ import annotations

import asyncio
import json
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

import click

from trimtab.cli.option_groups import (
    ClusterOptions,
    PlaceOptions,
    PrometheusOptions,
    cluster_options,
    place_options,
    prometheus_options,
)
from trimtab.cli.output import output_option
from trimtab.errors import ClusterUnavailable, InvalidInput, MetricsUnavailable, Refused

if TYPE_CHECKING:
    from trimtab.wire.access import Access
    from trimtab.wire.kube import Kube
    from trimtab.wire.prometheus import Prometheus
    from trimtab.wire.resources import Resource

OLDEST = (1, 30)
RESIZE_SINCE = (1, 33)
CLOCK_SLACK_S = 5.0
HISTORY_DAYS = (14, 7, 3, 1)  # nights start after 3 days; a weekly pattern needs 14
USAGE = 'container_cpu_usage_seconds_total{container!=""}'


class Check(NamedTuple):
    """One finding. A check that is not ok says in `fix` what to do."""

    name: str
    ok: bool
    found: str
    fix: str = ""


class Ability(NamedTuple):
    """Something trimtab can do here, or the checks that keep it from working."""

    name: str
    missing: tuple[str, ...]


@click.command(name="doctor")
@place_options
@cluster_options
@prometheus_options("Prometheus, Thanos, Mimir or VictoriaMetrics; without it, one is looked for among the Services.")
@output_option("table", "json")
def command(place: PlaceOptions, cluster: ClusterOptions, prometheus: PrometheusOptions, output: str) -> None:
    """Check cluster, permissions, metrics, Prometheus and clock, and say what will work.

    It only reads. Exit code 0: everything works, 1: something does not, 2: the cluster cannot be reached.
    """
    checks = asyncio.run(examine(place, cluster, prometheus))
    abilities = abilities_of({check.name for check in checks if check.ok})
    if output == "json":
        found = {"checks": [check._asdict() for check in checks], "works": [each._asdict() for each in abilities]}
        click.echo(json.dumps(found, indent=2))
    else:
        _print(checks, abilities)
    raise SystemExit(0 if all(not each.missing for each in abilities) else 1)


def _print(checks: list[Check], abilities: list[Ability]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from trimtab.cli.screen import screen

    table = Table("CHECK", "", "FOUND", box=None, pad_edge=False)
    for check in checks:
        found = check.found if check.ok or not check.fix else f"{check.found}: {check.fix}"
        table.add_row(check.name, "[green]ok[/]" if check.ok else "[yellow]no[/]", escape(found))
    screen().show(table)
    click.echo("\nWhat will work")
    for ability in abilities:
        click.echo(
            f"  {ability.name}: " + (f"no, because of {', '.join(ability.missing)}" if ability.missing else "yes")
        )


NEEDS = {
    "lint, convert and backtest on files": (),
    "recommend for this cluster": ("workloads", "prometheus", "container usage"),
    "scaling by CPU and memory": ("version", "definitions", "pod metrics"),
    "scaling by Prometheus queries": ("version", "definitions", "prometheus"),
    "forecasts and nightly tuning from the first day": ("definitions", "container usage", "history"),
    "resizing pods in place": ("definitions", "in-place resize", "pod metrics"),
    "acting in time": ("clock",),
}


def abilities_of(passed: set[str]) -> list[Ability]:
    return [Ability(name, tuple(need for need in needs if need not in passed)) for name, needs in NEEDS.items()]


async def examine(place: PlaceOptions, cluster: ClusterOptions, options: PrometheusOptions) -> list[Check]:
    """All checks, in the order in which one needs the other."""
    from trimtab.wire.kube import Kube

    access = cluster.connect()
    async with Kube(access) as kube:
        checks = await _cluster_checks(kube, place.namespace or access.namespace)
        where, check = await _find_prometheus(kube, options)
        return [*checks, check, *(await _history_checks(where) if where else [])]


async def _cluster_checks(kube: Kube, namespace: str) -> list[Check]:
    from trimtab.cli.kubectl import types
    from trimtab.wire.resources import DEPLOYMENTS, HPAS, POD_METRICS

    version = await _version(kube)
    written = ".".join(map(str, version))
    install = "run `trimtab crds | kubectl apply -f -`, or install the chart"
    return [
        Check("cluster", True, f"{kube.access.url}, namespace {namespace}"),
        Check("version", version >= OLDEST, f"Kubernetes {written}", f"upgrade to {_text(OLDEST)} or later"),
        Check("in-place resize", version >= RESIZE_SINCE, f"Kubernetes {written}", f"needs {_text(RESIZE_SINCE)}"),
        await _listed(kube, "workloads", DEPLOYMENTS, namespace, "ask for the right to list deployments"),
        await _listed(kube, "autoscalers", HPAS, namespace, "ask for the right to list horizontalpodautoscalers"),
        await _listed(kube, "definitions", types()["autoscaler"], namespace, install),
        await _listed(kube, "pod metrics", POD_METRICS, namespace, "install metrics-server"),
    ]


async def _version(kube: Kube) -> tuple[int, int]:
    """Major and minor; managed clusters write a minor such as "33+"."""
    import msgspec

    try:
        found = msgspec.json.decode(await kube.raw("/version"), type=dict[str, str])
        return int(found["major"]), int(found["minor"].rstrip("+"))
    except (msgspec.MsgspecError, KeyError, ValueError):
        raise ClusterUnavailable(f"{kube.access.url}: /version is not that of a Kubernetes API server") from None


def _text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


async def _listed(kube: Kube, name: str, resource: Resource, namespace: str, fix: str) -> Check:
    """Whether the objects can be listed, and how many there are."""
    from trimtab.wire.objects import PartialObject

    try:
        listing = await kube.list(PartialObject, resource, namespace)
    except Refused as refusal:
        found = "not served" if refusal.status == HTTPStatus.NOT_FOUND else f"refused ({int(refusal.status)})"
        return Check(name, False, f"{resource.plural} {found}", fix)
    except ClusterUnavailable as error:  # an aggregated API whose server is down
        return Check(name, False, str(error), fix)
    return Check(name, True, f"{len(listing.items)} {resource.plural}")


async def _find_prometheus(kube: Kube, options: PrometheusOptions) -> tuple[Access | None, Check]:
    from trimtab.wire.discover import find_prometheus

    if (given := options.access()) is not None:
        return given, Check("prometheus", True, given.url)
    fix = "give --prometheus URL"
    try:
        found = await find_prometheus(kube)
    except Refused:
        return None, Check("prometheus", False, "Services cannot be listed", fix)
    if not found:
        return None, Check("prometheus", False, "none among the Services", fix)
    return found[0].through(kube.access), Check("prometheus", True, f"{found[0].product} {found[0].url}")


async def _history_checks(access: Access) -> list[Check]:
    from trimtab.wire.prometheus import Prometheus

    async with Prometheus(access) as prometheus:
        try:
            return [await _clock(prometheus), await _usage(prometheus), await _history(prometheus)]
        except (MetricsUnavailable, Refused, InvalidInput) as error:
            return [Check("container usage", False, str(error), "check the address and the credentials")]


async def _clock(prometheus: Prometheus) -> Check:
    (answer,) = await prometheus.query("time()")
    ahead_s = answer.value - time.time()
    found = f"Prometheus and this machine are {abs(ahead_s):.1f} s apart"
    return Check("clock", abs(ahead_s) <= CLOCK_SLACK_S, found, "synchronize both with NTP")


async def _usage(prometheus: Prometheus) -> Check:
    found = await prometheus.query(f"count({USAGE})")
    count = int(found[0].value) if found else 0
    return Check("container usage", count > 0, f"{count} series of cAdvisor", "let Prometheus scrape the kubelets")


async def _history(prometheus: Prometheus) -> Check:
    """How many days back container usage reaches."""
    now = time.time()
    for days in HISTORY_DAYS:
        if await prometheus.query(f"count({USAGE})", now - days * 86400):
            return Check("history", days >= 3, f"at least {days} days of container usage", "wait until 3 days are kept")
    return Check("history", False, "less than a day of container usage", "wait until 3 days are kept")
