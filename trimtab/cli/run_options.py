"""The options of `trimtab run`, group by group: what is served, who leads, how requests are sized."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from trimtab.cli.choices import PROMETHEUS_LABEL, SYSTEM_NAMESPACES, TENANCY_MODES
from trimtab.cli.option_groups import option_group
from trimtab.cli.options import Finite
from trimtab.errors import InvalidInput
from trimtab.quantity import MIB, parse_duration, parse_quantity

if TYPE_CHECKING:
    from trimtab.live.measure.tenancy import TenancyMode
    from trimtab.wire.shards import Shard

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


def matchers_of(text: str, option: str) -> str:
    """Others follow them in a selector: without the comma at the end that PromQL allows."""
    from trimtab.wire.promql import parse_matchers

    return ",".join(f'{label}{operator}"{value}"' for label, operator, value in parse_matchers(text, option))


def _option(flag: str, field: str, parse: Parse, default: str, about: str) -> Callable[[Any], Any]:
    """A text that our own parser reads, and refuses by the option's name."""

    def read(ctx: click.Context, param: click.Parameter, text: str) -> Any:
        return parse(text, flag)

    return click.option(flag, field, callback=read, default=default, show_default=bool(default), help=about)


class ServingOptions(NamedTuple):
    """What is looked at, how often, and what is recorded."""

    namespace: str
    tick_s: float
    shadow: bool
    scrape_s: float
    journal: str
    journal_bytes: int
    listen: tuple[str, int] | None
    downscale_s: float
    cpu_init_s: float
    readiness_delay_s: float
    breaker_s: float
    system_namespaces: tuple[str, ...]
    advice_namespaces: tuple[str, ...]
    tenancy: TenancyMode
    history_url: str
    history_matchers: str


serving_options = option_group(
    "serving",
    ServingOptions,
    click.option("-n", "--namespace", default="", help="Serve this namespace only; Roles suffice then."),
    _option("--tick", "tick_s", above_zero, "15s", "How often everything is looked at."),
    click.option("--shadow", is_flag=True, help="Decide and record everything, write nothing but status."),
    _option("--scrape-interval", "scrape_s", above_zero, "60s", "Samples older than two of these are missing."),
    click.option("--journal", default="", help="Record decisions in this SQLite file."),
    _option(
        "--journal-size", "journal_bytes", some_bytes, "512Mi", "As much of it is kept; give its disk twice as much."
    ),
    _option(
        "--listen",
        "listen",
        listen_address,
        "",
        "[ADDRESS]:PORT of /metrics, /healthz and /readyz, such as :8080.",
    ),
    _option(
        "--downscale-window",
        "downscale_s",
        parse_duration,
        "300s",
        "Without `behavior`: how long a lower wish must last.",
    ),
    _option(
        "--cpu-initialization-period",
        "cpu_init_s",
        parse_duration,
        "5m",
        "A pod younger than this counts only by cpu that was measured after it became ready.",
    ),
    _option(
        "--initial-readiness-delay",
        "readiness_delay_s",
        parse_duration,
        "30s",
        "An older pod that was last ready this soon after its start, or never, counts as starting.",
    ),
    _option("--breaker-window", "breaker_s", parse_duration, "300s", "How long the fleet breaker holds."),
    click.option(
        "--system-namespace",
        "system_namespaces",
        multiple=True,
        type=click.Choice(SYSTEM_NAMESPACES),
        help="Serve this namespace of the cluster itself, too; otherwise they are left alone.",
    ),
    click.option(
        "--advice-namespace",
        "advice_namespaces",
        multiple=True,
        help="An Analytics in this namespace looks at every namespace, as one in our own does, such as crane-system.",
    ),
    click.option(
        "--prometheus-tenancy",
        "tenancy",
        type=click.Choice(TENANCY_MODES),
        default="open",
        show_default=True,
        help="Whose queries are asked: label-proxy gives the object's namespace to a prom-label-proxy with each; "
        f"by-label asks for namespaces labelled {PROMETHEUS_LABEL}=true; open for all.",
    ),
    click.option(
        "--history-prometheus",
        "history_url",
        default="",
        help="Where usage of before is read, if --prometheus is a label proxy, with the same credentials.",
    ),
    _option(
        "--history-matchers",
        "history_matchers",
        matchers_of,
        "",
        """Narrow every query for usage of before, such as 'cluster="a"' where Prometheus holds several clusters.""",
    ),
)


class ApiServerOptions(NamedTuple):
    """Who leads, and how much the API server is asked."""

    lease_namespace: str
    lease_s: tuple[float, float, float]
    shard: Shard
    api_per_s: float
    api_burst: float


api_server_options = option_group(
    "api_server",
    ApiServerOptions,
    click.option("--lease-namespace", default="", help="Where the leader's Lease lives; default: our own namespace."),
    _option("--lease", "lease_s", lease_times, "15s/10s/2s", "Lease duration/renew deadline/retry."),
    _option("--shard", "shard", shard_of, "0/1", "Serve this share of the namespaces: 0/3 is the first of three."),
    click.option(
        "--api-qps",
        "api_per_s",
        type=Finite(0, min_open=True),
        default=200.0,
        show_default=True,
        help="Requests per second to the API server.",
    ),
    click.option("--api-burst", type=Finite(1), default=400.0, show_default=True, help="Requests to it at once."),
)


class SizingOptions(NamedTuple):
    """How usage becomes requests."""

    usage_every_s: float
    checkpoint_s: float
    half_life_s: float
    memory_window_s: float
    grow_after_s: float
    shrink_after_s: float
    oom_rest_s: float
    least_cpu_cores: float
    least_memory_bytes: float
    bridge_resizes_per_hour: int


sizing_options = option_group(
    "sizing",
    SizingOptions,
    _option("--usage-every", "usage_every_s", above_zero, "60s", "How often usage is sampled for requests."),
    _option("--usage-checkpoint", "checkpoint_s", above_zero, "10m", "How often usage seen so far is saved."),
    _option("--usage-half-life", "half_life_s", above_zero, "24h", "After this long a sample counts half."),
    _option("--memory-window", "memory_window_s", above_zero, "24h", "One memory peak is kept for each of these."),
    _option("--grow-after", "grow_after_s", parse_duration, "10m", "Usage to see before requests may grow."),
    _option("--shrink-after", "shrink_after_s", parse_duration, "24h", "Usage to see before requests may shrink."),
    _option("--oom-rest", "oom_rest_s", parse_duration, "24h", "Memory does not shrink this long after an OOM kill."),
    _option("--least-cpu", "least_cpu_cores", parse_quantity, "10m", "The least CPU that a pod is sized to."),
    _option("--least-memory", "least_memory_bytes", parse_quantity, "32Mi", "The least memory; VPA has 25m and 250Mi."),
    click.option(
        "--bridge-resizes",
        "bridge_resizes_per_hour",
        type=click.IntRange(2),
        default=12,
        show_default=True,
        help="How often per hour a bridge may resize one pod.",
    ),
)
