"""trimtab custom-hpa: document 002 for one Deployment, told by its environment variables."""

from __future__ import annotations

import asyncio
import logging
import os

import click

from trimtab.cli import log
from trimtab.kinds import CustomHpa
from trimtab.live.custom_hpa.serve import serve
from trimtab.wire.kubeconfig import connect

LEVELS = {"trace": logging.DEBUG, "warn": logging.WARNING}  # the document's words that Python spells otherwise


@click.command(name="custom-hpa")
@click.option("--kubeconfig", help="Path to a kubeconfig; without one: KUBECONFIG, ~/.kube/config, the pod's account.")
@click.option("--context", help="The kubeconfig context to use.")
def command(kubeconfig: str | None, context: str | None) -> None:
    """Scale one Deployment by one Prometheus query, with the factors and cooldowns of document 002.

    \b
    Needed:   DEPLOYMENT NAMESPACE TARGET_VALUE MIN_REPLICAS MAX_REPLICAS
              PROMETHEUS_URL PROMETHEUS_PORT PROMETHEUS_QUERY
    Optional: CONTROL_LOOP_PERIOD=15 SCALE_{UP,DOWN}_COOLDOWN=15 SCALE_{UP,DOWN}_MIN_FACTOR=0.1
              SCALE_{UP,DOWN}_MAX_FACTOR=1.0 DRY_RUN=false EXACT=false LOG_LEVEL=info PORT=3000
              RELEASE, RELEASE_NAMESPACE: the ConfigMap that keeps the cooldowns
    """
    custom = CustomHpa.from_env(os.environ)
    level = LEVELS.get(custom.log_level, custom.log_level.upper())
    log.set_up(level)
    release = os.environ.get("RELEASE") or custom.name
    release_namespace = os.environ.get("RELEASE_NAMESPACE") or custom.target.namespace
    asyncio.run(_serve(custom, kubeconfig, context, release, release_namespace))


async def _serve(
    custom: CustomHpa, kubeconfig: str | None, context: str | None, release: str, release_namespace: str
) -> None:
    await serve(custom, connect(context, kubeconfig), release, release_namespace)
