"""trimtab custom-hpa: nanit custom-hpa for one Deployment, configured by its environment variables."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from trimtab.cli.option_groups import ClusterOptions, cluster_options

if TYPE_CHECKING:
    from trimtab.kinds import CustomHpa

LEVELS = {"trace": "DEBUG", "warn": "WARNING"}  # the document's words that Python spells otherwise


@click.command(name="custom-hpa")
@cluster_options
def command(cluster: ClusterOptions) -> None:
    """Scale one Deployment by one Prometheus query, with the factors and cooldowns of nanit custom-hpa.

    \b
    Needed:   DEPLOYMENT NAMESPACE TARGET_VALUE MIN_REPLICAS MAX_REPLICAS
              PROMETHEUS_URL PROMETHEUS_PORT PROMETHEUS_QUERY
    Optional: CONTROL_LOOP_PERIOD=15 SCALE_{UP,DOWN}_COOLDOWN=15 SCALE_{UP,DOWN}_MIN_FACTOR=0.1
              SCALE_{UP,DOWN}_MAX_FACTOR=1.0 DRY_RUN=false EXACT=false LOG_LEVEL=info PORT=3000
              RELEASE, RELEASE_NAMESPACE: the ConfigMap that keeps the cooldowns
    """
    import asyncio

    from trimtab.cli import log
    from trimtab.kinds import CustomHpa

    custom = CustomHpa.from_env(os.environ)
    level = LEVELS.get(custom.log_level, custom.log_level.upper())
    log.set_up(level)
    release = os.environ.get("RELEASE") or custom.name
    release_namespace = os.environ.get("RELEASE_NAMESPACE") or custom.target.namespace
    asyncio.run(_serve(custom, cluster, release, release_namespace))


async def _serve(custom: CustomHpa, cluster: ClusterOptions, release: str, release_namespace: str) -> None:
    from trimtab.live.custom_hpa.serve import serve

    await serve(custom, cluster.connect(), release, release_namespace)
