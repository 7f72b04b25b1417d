"""trimtab run: the operator, in a cluster or from a laptop with a kubeconfig."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trimtab.cli.option_groups import ClusterOptions, PrometheusOptions, cluster_options, prometheus_options
from trimtab.cli.run_options import (
    ApiServerOptions,
    ServingOptions,
    SizingOptions,
    api_server_options,
    serving_options,
    sizing_options,
)

if TYPE_CHECKING:
    from trimtab.live.settings import OperatorSettings
    from trimtab.wire.access import Access

GARBAGE_AFTER = 50_000  # objects: those of a tick die with it, and nearly none of them is in a cycle


@click.command(name="run")
@cluster_options
@prometheus_options("Address of a Prometheus (or alike).")
@serving_options
@api_server_options
@sizing_options
@click.option(
    "--log-level", default="info", type=click.Choice(["debug", "info", "warning", "error"]), show_default=True
)
def command(
    cluster: ClusterOptions,
    prometheus: PrometheusOptions,
    serving: ServingOptions,
    api_server: ApiServerOptions,
    sizing: SizingOptions,
    log_level: str,
) -> None:
    """Keep every Autoscaler, EffectiveHorizontalPodAutoscaler, Hvpa and predictive HPA at its right size."""
    import asyncio

    from trimtab.cli import log

    log.set_up(log_level.upper())
    asyncio.run(_run(cluster, prometheus.access(), _settings(serving, api_server, sizing)))


def _settings(serving: ServingOptions, api_server: ApiServerOptions, sizing: SizingOptions) -> OperatorSettings:
    from trimtab.core.usage.settings import HistogramSettings as UsageSettings
    from trimtab.live.look.subject import ChangeRules
    from trimtab.live.settings import OperatorSettings
    from trimtab.policy import Size

    return OperatorSettings(
        tick_s=serving.tick_s,
        namespace=serving.namespace,
        shadow=serving.shadow,
        journal=serving.journal,
        journal_bytes=serving.journal_bytes,
        listen=serving.listen,
        lease_namespace=api_server.lease_namespace,
        lease_s=api_server.lease_s,
        shard=api_server.shard,
        api_per_s=api_server.api_per_s,
        api_burst=api_server.api_burst,
        scrape_s=serving.scrape_s,
        breaker_s=serving.breaker_s,
        system_namespaces=serving.system_namespaces,
        advice_namespaces=serving.advice_namespaces,
        tenancy=serving.tenancy,
        history_url=serving.history_url,
        history_matchers=serving.history_matchers,
        usage_every_s=sizing.usage_every_s,
        checkpoint_s=sizing.checkpoint_s,
        usage=UsageSettings(half_life_s=sizing.half_life_s, memory_window_s=sizing.memory_window_s),
        change_rules=ChangeRules(
            sizing.grow_after_s,
            sizing.shrink_after_s,
            sizing.oom_rest_s,
            floor=Size(cpu_cores=sizing.least_cpu_cores, memory_bytes=sizing.least_memory_bytes),
            downscale_s=serving.downscale_s,
            bridge_resizes_per_hour=sizing.bridge_resizes_per_hour,
            cpu_init_s=serving.cpu_init_s,
            readiness_delay_s=serving.readiness_delay_s,
        ),
    )


async def _run(cluster: ClusterOptions, prometheus: Access | None, settings: OperatorSettings) -> None:
    """Until SIGTERM or SIGINT."""
    import asyncio
    import gc
    import signal
    from pathlib import Path

    from trimtab.cli.night_process import in_child
    from trimtab.live.operator import Operator
    from trimtab.web.operator import answer_on
    from trimtab.web.sources import JournalSource
    from trimtab.wire.clock import SYSTEM

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    operator = Operator(cluster.connect(), prometheus, settings, SYSTEM)
    operator.ticker.tuning.tuner = in_child
    if settings.journal:
        source = JournalSource(Path(settings.journal), settings.identity)
        operator.extend_server = lambda app: answer_on(app, source, operator.leadership.may_write)
    gc.freeze()  # what is imported stays
    gc.set_threshold(GARBAGE_AFTER)
    await operator.run(stop)
