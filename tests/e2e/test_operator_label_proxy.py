"""A real prom-label-proxy before Prometheus: a tenant's query sees its own namespace, whatever it asks for."""

from __future__ import annotations

import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.bed import Bed, build, eventually
from tests.bed.manifests import deployment
from tests.bed.ports import free_port
from tests.e2e.conftest import namespaces
from tests.live.running import Running, autoscaler, conditions, install_crds, replicas

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
EVERYBODYS = "sum(requests_per_second)"  # it names no namespace


@contextmanager
def label_proxy(bed: Bed, folder: Path) -> Iterator[str]:
    """Its address; every query needs a namespace, and sees its series alone."""
    port = free_port()
    words = ("-label", "namespace", "-upstream", bed.prometheus_url, "-insecure-listen-address", f"127.0.0.1:{port}")
    binary = build.binaries(("prom-label-proxy",))["prom-label-proxy"]
    with (folder / "proxy.log").open("wb") as log:
        process = subprocess.Popen([str(binary), *words], stdout=log, stderr=log)
    try:
        address = f"http://127.0.0.1:{port}"
        eventually(lambda: urllib.request.urlopen(f"{address}/healthz", timeout=5).status == 200, 30)
        yield address
    finally:
        process.terminate()
        process.wait(30)


def test_a_query_sees_its_own_namespace_alone(bed: Bed, tmp_path: Path) -> None:
    install_crds(bed)
    with namespaces(bed, "proxied", "loud") as (ours, others), label_proxy(bed, tmp_path) as address:
        bed.load(ours, "web", rate=60)
        bed.load(others, "web", rate=900)
        bed.apply(deployment(ours, "web"), deployment(others, "web"))
        target = {"type": "AverageValue", "averageValue": "20"}
        metrics = [{"type": "Prometheus", "prometheus": {"query": EVERYBODYS, "target": target}}]
        bed.apply(autoscaler(ours, metrics=metrics))
        options = ("--prometheus", address, "--prometheus-tenancy", "label-proxy")
        with Running(bed, ours, tmp_path, *options, "--history-prometheus", bed.prometheus_url):
            eventually(lambda: replicas(bed, ours) == 3, 60, "60 requests per second at 20 each")
            assert conditions(bed, ours)["ScalingActive"]["status"] == "True"
