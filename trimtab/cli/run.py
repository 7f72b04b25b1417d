"""trimtab run: the operator, in a cluster or from a laptop with a kubeconfig."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from trimtab.cli.choices import PROMETHEUS_LABEL, SYSTEM_NAMESPACES, TENANCY_MODES
from trimtab.cli.option_groups import ClusterOptions, PrometheusOptions, cluster_options, prometheus_options
from trimtab.cli.options import Finite
from trimtab.errors import InvalidInput
from trimtab.promql import parse_matchers
from trimtab.quantity import MIB, parse_duration, parse_quantity

if TYPE_CHECKING:
    from trimtab.live.settings import OperatorSettings
    from trimtab.wire.access import Access
    from trimtab.wire.shards import Shard

GARBAGE_AFTER = 50_000  # objects: those of a tick die with it, and nearly none of them is in a cycle

Parse = Callable[[str, str], Any]  # of a text and of the option to blame


def above_zero(text: str, option: str) -> float:
    """Nothing can be done every 0 seconds."""
    if (found := parse_duration(text, option)) <= 0:
        raise InvalidInput(option, text, "write a duration above zero")
    return found


def some_bytes(text: str, option: str) -> int:
    if (found := parse_quantity(text, option)) < MIB:
        raise InvalidInput(option, text, "write 1Mi or more")
    return round(found)


def listen_address(text: str, option: str) -> tuple[str, int] | None:
    """ADDRESS:PORT; an address left out is every one of this machine's."""
    address, _, port = text.rpartition(":")
    if text and not (port.isdecimal() and int(port) < 65536):
        raise InvalidInput(option, text, "write [ADDRESS]:PORT, such as :8080")
    return (address, int(port)) if text else None


def lease_times(text: str, option: str) -> tuple[float, float, float]:
    parts = text.split("/")
    if len(parts) != 3:
        raise InvalidInput(option, text, "write duration/renew deadline/retry, such as 15s/10s/2s")
    duration, renew, retry = (above_zero(part, option) for part in parts)
    return duration, renew, retry


def shard_of(text: str, option: str) -> Shard:
    from trimtab.wire.shards import Shard

    return Shard.parse(text, option)


def _option(flag: str, field: str, parse: Parse, default: str, about: str) -> Callable[[Any], Any]:
    """A text that our own parser reads, and refuses by the option's name."""

    def read(ctx: click.Context, param: click.Parameter, text: str) -> Any:
        return parse(text, flag)

    return click.option(flag, field, callback=read, default=default, show_default=bool(default), help=about)


@click.command(name="run")
@cluster_options
@prometheus_options("Address of a Prometheus (or alike).")
@click.option("-n", "--namespace", default="", help="Serve this namespace only; Roles suffice then.")
@_option("--tick", "tick_s", above_zero, "15s", "How often everything is looked at.")
@click.option("--shadow", is_flag=True, help="Decide and record everything, write nothing but status.")
@_option("--scrape-interval", "scrape_s", above_zero, "60s", "Samples older than two of these are missing.")
@click.option("--journal", default="", help="Record decisions in this SQLite file.")
@_option("--journal-size", "journal_bytes", some_bytes, "512Mi", "As much of it is kept; give its disk twice as much.")
@_option("--listen", "listen", listen_address, "", "[ADDRESS]:PORT of /metrics, /healthz and /readyz, such as :8080.")
@click.option(
    "--api-token-file",
    "api_token_file",
    default="",
    help="Answer /api (dashboard, why, explain) to whoever sends the token in this file; without one, to this machine.",
)
@_option(
    "--downscale-window", "downscale_s", parse_duration, "300s", "Without `behavior`: how long a lower wish must last."
)
@_option(
    "--cpu-initialization-period",
    "cpu_init_s",
    parse_duration,
    "5m",
    "A pod younger than this counts only by cpu that was measured after it became ready.",
)
@_option(
    "--initial-readiness-delay",
    "readiness_delay_s",
    parse_duration,
    "30s",
    "An older pod that was last ready this soon after its start, or never, counts as starting.",
)
@_option("--breaker-window", "breaker_s", parse_duration, "300s", "How long the fleet breaker holds.")
@click.option(
    "--system-namespace",
    "system_namespaces",
    multiple=True,
    type=click.Choice(SYSTEM_NAMESPACES),
    help="Serve this namespace of the cluster itself, too; otherwise they are left alone.",
)
@click.option(
    "--advice-namespace",
    "advice_namespaces",
    multiple=True,
    help="An Analytics in this namespace looks at every namespace, as one in our own does, such as crane-system.",
)
@click.option(
    "--prometheus-tenancy",
    "tenancy",
    type=click.Choice(TENANCY_MODES),
    default="open",
    show_default=True,
    help="Whose queries are asked: label-proxy gives the object's namespace to a prom-label-proxy with each; "
    f"by-label asks for namespaces labelled {PROMETHEUS_LABEL}=true; open for all.",
)
@click.option(
    "--history-prometheus",
    "history_url",
    default="",
    help="Where usage of before is read, if --prometheus is a label proxy, with the same credentials.",
)
@_option(
    "--history-matchers",
    "history_matchers",
    parse_matchers,
    "",
    """Narrow every query for usage of before, such as 'cluster="a"' where Prometheus holds several clusters.""",
)
@_option(
    "--kube-state-metrics",
    "kube_state_metrics",
    parse_matchers,
    'job="kube-state-metrics"',
    "Which series come from kube-state-metrics: only these say which pods belonged to which workload. Empty: none.",
)
@click.option("--lease-namespace", default="", help="Where the leader's Lease lives; default: our own namespace.")
@_option("--lease", "lease_s", lease_times, "15s/10s/2s", "Lease duration/renew deadline/retry.")
@_option("--shard", "shard", shard_of, "0/1", "Serve this share of the namespaces: 0/3 is the first of three.")
@click.option(
    "--api-qps",
    "api_per_s",
    type=Finite(0, min_open=True),
    default=200.0,
    show_default=True,
    help="Requests per second to the API server.",
)
@click.option("--api-burst", type=Finite(1), default=400.0, show_default=True, help="Requests to it at once.")
@_option("--usage-every", "usage_every_s", above_zero, "60s", "How often usage is sampled for requests.")
@_option("--usage-checkpoint", "checkpoint_s", above_zero, "10m", "How often usage seen so far is saved.")
@_option("--usage-half-life", "half_life_s", above_zero, "24h", "After this long a sample counts half.")
@_option("--memory-window", "memory_window_s", above_zero, "24h", "One memory peak is kept for each of these.")
@_option("--grow-after", "up_after_s", parse_duration, "10m", "Usage to see before requests may grow.")
@_option("--shrink-after", "down_after_s", parse_duration, "24h", "Usage to see before requests may shrink.")
@_option("--oom-rest", "oom_rest_s", parse_duration, "24h", "Memory does not shrink this long after an OOM kill.")
@_option("--least-cpu", "least_cpu_cores", parse_quantity, "10m", "The least CPU that a pod is sized to.")
@_option("--least-memory", "least_memory_bytes", parse_quantity, "32Mi", "The least memory; VPA has 25m and 250Mi.")
@click.option(
    "--bridge-resizes",
    "bridge_resizes_per_hour",
    type=click.IntRange(2),
    default=12,
    show_default=True,
    help="How often per hour a bridge may resize one pod.",
)
@click.option(
    "--log-level", default="info", type=click.Choice(["debug", "info", "warning", "error"]), show_default=True
)
def command(cluster: ClusterOptions, prometheus: PrometheusOptions, log_level: str, **settings: Any) -> None:
    """Keep every Autoscaler, EffectiveHorizontalPodAutoscaler, Hvpa and predictive HPA at its right size."""
    import asyncio

    from trimtab.cli import log

    log.set_up(log_level.upper())
    asyncio.run(_run(cluster, prometheus.access(), operator_settings(settings)))


def operator_settings(values: dict[str, Any]) -> OperatorSettings:
    """Build the operator's settings from the options, which have the names of their fields."""
    from trimtab.core.usage.settings import HistogramSettings as UsageSettings
    from trimtab.live.look.subject import ChangeRules
    from trimtab.live.settings import OperatorSettings
    from trimtab.policy import Size

    usage = UsageSettings(**{field: values.pop(field) for field in ("half_life_s", "memory_window_s")})
    rules = {field: values.pop(field) for field in ChangeRules._fields if field in values}
    floor = Size(cpu_cores=values.pop("least_cpu_cores"), memory_bytes=values.pop("least_memory_bytes"))
    return OperatorSettings(**values, usage=usage, change_rules=ChangeRules(**rules, floor=floor))


async def _run(cluster: ClusterOptions, prometheus: Access | None, settings: OperatorSettings) -> None:
    """Until SIGTERM or SIGINT."""
    import asyncio
    import gc
    import signal
    from pathlib import Path

    from trimtab.cli.night_process import in_child
    from trimtab.live.operator import Operator
    from trimtab.web.operator import answer_on, token_in
    from trimtab.web.sources import JournalSource
    from trimtab.wire.clock import SYSTEM

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    operator = Operator(cluster.connect(), prometheus, settings, SYSTEM)
    operator.ticker.tuning.tuner = in_child
    if settings.journal:
        source = JournalSource(Path(settings.journal), settings.identity)
        token = token_in(settings.api_token_file)
        operator.extend_server = lambda app: answer_on(app, source, operator.leadership.may_write, token)
    gc.freeze()  # what is imported stays
    gc.set_threshold(GARBAGE_AFTER)
    await operator.run(stop)
