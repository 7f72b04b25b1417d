"""trimtab run: the operator, in a cluster or from a laptop with a kubeconfig."""

from __future__ import annotations

import asyncio
import logging

import click

from trimtab.cli.options import Finite
from trimtab.core.usage.settings import Settings as UsageSettings
from trimtab.errors import InvalidInput
from trimtab.live.look.subject import ChangeRules
from trimtab.live.operator import Operator, OperatorSettings
from trimtab.policy import Size
from trimtab.quantity import parse_duration, parse_quantity
from trimtab.wire.access import Access, prometheus_access
from trimtab.wire.kubeconfig import connect


@click.command(name="run")
@click.option("--kubeconfig", help="Path to a kubeconfig; without one: KUBECONFIG, ~/.kube/config, the pod's account.")
@click.option("--context", help="The kubeconfig context to use.")
@click.option("-n", "--namespace", default="", help="Serve this namespace only; Roles suffice then.")
@click.option("--tick", default="15s", show_default=True, help="How often everything is looked at.")
@click.option("--shadow", is_flag=True, help="Decide and record everything, write nothing but status.")
@click.option("--prometheus", "prometheus_url", envvar="PROMETHEUS_URL", help="Address of a Prometheus (or alike).")
@click.option("--prometheus-user", envvar="PROMETHEUS_USER", default="", help="User for basic authentication.")
@click.option("--prometheus-password", envvar="PROMETHEUS_PASSWORD", default="", help="Its password.")
@click.option("--prometheus-token-file", envvar="PROMETHEUS_TOKEN_FILE", default="", help="File with a bearer token.")
@click.option("--prometheus-ca-file", envvar="PROMETHEUS_CA_FILE", default="", help="CA of its certificate.")
@click.option("--prometheus-header", multiple=True, help="NAME=VALUE, such as X-Scope-OrgID=team; may be repeated.")
@click.option(
    "--scrape-interval", default="60s", show_default=True, help="Samples older than two of these are missing."
)
@click.option("--journal", default="", help="Record decisions in this SQLite file.")
@click.option("--listen", default="", help="[ADDRESS]:PORT of /metrics, /healthz and /readyz, such as :8080.")
@click.option("--lease-namespace", default="", help="Where the leader's Lease lives; default: our own namespace.")
@click.option("--lease", default="15s/10s/2s", show_default=True, help="Lease duration/renew deadline/retry.")
@click.option(
    "--downscale-window", default="300s", show_default=True, help="Without `behavior`: how long a lower wish must last."
)
@click.option("--breaker-window", default="300s", show_default=True, help="How long the fleet breaker holds.")
@click.option("--usage-every", default="60s", show_default=True, help="How often usage is sampled for requests.")
@click.option("--usage-checkpoint", default="10m", show_default=True, help="How often usage seen so far is saved.")
@click.option("--usage-half-life", default="24h", show_default=True, help="After this long a sample counts half.")
@click.option("--memory-window", default="24h", show_default=True, help="One memory peak is kept for each of these.")
@click.option("--grow-after", default="10m", show_default=True, help="Usage to see before requests may grow.")
@click.option("--shrink-after", default="24h", show_default=True, help="Usage to see before requests may shrink.")
@click.option(
    "--oom-rest", default="24h", show_default=True, help="Memory does not shrink this long after an OOM kill."
)
@click.option("--least-cpu", default="10m", show_default=True, help="The least CPU that a pod is sized to.")
@click.option("--least-memory", default="32Mi", show_default=True, help="The least memory; VPA has 25m and 250Mi.")
@click.option(
    "--api-qps",
    type=Finite(0, min_open=True),
    default=50.0,
    show_default=True,
    help="Requests a second to the API server.",
)
@click.option("--api-burst", type=Finite(1), default=100.0, show_default=True, help="Requests to it at once.")
@click.option(
    "--log-level", default="info", type=click.Choice(["debug", "info", "warning", "error"]), show_default=True
)
def command(
    kubeconfig: str | None,
    context: str | None,
    namespace: str,
    tick: str,
    shadow: bool,
    prometheus_url: str | None,
    prometheus_user: str,
    prometheus_password: str,
    prometheus_token_file: str,
    prometheus_ca_file: str,
    prometheus_header: tuple[str, ...],
    scrape_interval: str,
    journal: str,
    listen: str,
    lease_namespace: str,
    lease: str,
    downscale_window: str,
    breaker_window: str,
    usage_every: str,
    usage_checkpoint: str,
    usage_half_life: str,
    memory_window: str,
    grow_after: str,
    shrink_after: str,
    oom_rest: str,
    least_cpu: str,
    least_memory: str,
    api_qps: float,
    api_burst: float,
    log_level: str,
) -> None:
    """Keep every Autoscaler, EffectiveHorizontalPodAutoscaler, Hvpa and predictive HPA at its right size."""
    logging.basicConfig(level=log_level.upper(), format="%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    settings = OperatorSettings(
        tick_s=_above_zero(tick, "--tick"),
        namespace=namespace,
        shadow=shadow,
        journal=journal,
        listen=_address(listen),
        lease_namespace=lease_namespace,
        lease_s=_lease(lease),
        api_per_s=api_qps,
        api_burst=api_burst,
        scrape_s=_above_zero(scrape_interval, "--scrape-interval"),
        breaker_s=parse_duration(breaker_window, "--breaker-window"),
        usage_every_s=_above_zero(usage_every, "--usage-every"),
        checkpoint_s=_above_zero(usage_checkpoint, "--usage-checkpoint"),
        usage=UsageSettings(
            half_life_s=_above_zero(usage_half_life, "--usage-half-life"),
            memory_window_s=_above_zero(memory_window, "--memory-window"),
        ),
        change_rules=ChangeRules(
            parse_duration(grow_after, "--grow-after"),
            parse_duration(shrink_after, "--shrink-after"),
            parse_duration(oom_rest, "--oom-rest"),
            floor=Size(
                cpu_cores=parse_quantity(least_cpu, "--least-cpu"),
                memory_bytes=parse_quantity(least_memory, "--least-memory"),
            ),
            downscale_s=parse_duration(downscale_window, "--downscale-window"),
        ),
    )
    prometheus = None
    if prometheus_url:
        prometheus = prometheus_access(
            prometheus_url,
            username=prometheus_user,
            password=prometheus_password,
            token_file=prometheus_token_file,
            ca_file=prometheus_ca_file,
            headers=dict(_header(one) for one in prometheus_header),
        )
    asyncio.run(_run(kubeconfig, context, prometheus, settings))


async def _run(
    kubeconfig: str | None, context: str | None, prometheus: Access | None, settings: OperatorSettings
) -> None:
    await Operator(connect(context, kubeconfig), prometheus, settings).run()


def _above_zero(text: str, option: str) -> float:
    """Nothing can be done every 0 seconds."""
    if (found := parse_duration(text, option)) <= 0:
        raise InvalidInput(option, text, "write a duration above zero")
    return found


def _address(text: str) -> tuple[str, int] | None:
    """ADDRESS:PORT; an address left out is every one of this machine's."""
    address, _, port = text.rpartition(":")
    if text and not (port.isdecimal() and int(port) < 65536):
        raise InvalidInput("--listen", text, "write [ADDRESS]:PORT, such as :8080")
    return (address, int(port)) if text else None


def _lease(text: str) -> tuple[float, float, float]:
    parts = text.split("/")
    if len(parts) != 3:
        raise InvalidInput("--lease", text, "write duration/renew deadline/retry, such as 15s/10s/2s")
    duration, renew, retry = (_above_zero(part, "--lease") for part in parts)
    return duration, renew, retry


def _header(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InvalidInput("--prometheus-header", text, "write NAME=VALUE")
    return name, value
