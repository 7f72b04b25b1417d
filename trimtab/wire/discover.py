"""Find the metrics servers of a cluster among its Services; the one that sees most comes first."""

from __future__ import annotations

import re

import msgspec

from trimtab.wire.access import Access
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Service, ServicePort
from trimtab.wire.resources import SERVICES


class Signature(msgspec.Struct, frozen=True):
    """How a product looks: its Service's name or app label, its ports, the path of its API."""

    product: str
    looks_like: str
    ports: tuple[int, ...]
    path: str = ""


# In order of preference: a global view before a single server. Names as their charts and operators give them.
SIGNATURES = (
    Signature("Thanos", r"thanos-query-frontend|thanos(-.+)?-quer(y|ier)$", (9090, 10902, 9091, 80)),
    Signature("Mimir", r"mimir.*-(query-frontend|gateway|nginx)$|^mimir$", (8080, 80), "/prometheus"),
    Signature("VictoriaMetrics", r"vmselect", (8481,), "/select/0/prometheus"),
    Signature("VictoriaMetrics", r"vmsingle|victoria-metrics-single", (8428, 8429)),
    Signature("Prometheus", r"prometheus-(server|k8s|operated)$|-prometheus$|^prometheus$", (9090, 80)),
)
NOT_IT = re.compile(r"alertmanager|pushgateway|exporter|operator$|adapter|kube-state|webhook|blackbox|grafana|headless")
APP_LABELS = ("app.kubernetes.io/name", "app", "k8s-app")


class PrometheusService(msgspec.Struct, frozen=True):
    product: str
    namespace: str
    name: str
    port: int
    path: str

    @property
    def url(self) -> str:
        """Its address for whoever runs inside the cluster."""
        return f"http://{self.name}.{self.namespace}.svc:{self.port}{self.path}"

    def through(self, cluster: Access) -> Access:
        """Its address from a laptop: through the API server's proxy, with the cluster's own credentials."""
        return cluster.at(SERVICES.path(self.namespace, f"{self.name}:{self.port}", "proxy") + self.path)


async def find_prometheus(kube: Kube, namespace: str = "") -> list[PrometheusService]:
    """Everything that looks like it, best first; one list of Services, however many there are."""
    listing = await kube.list(Service, SERVICES, namespace)
    ranked = [(rank, found) for service in listing.items for rank, found in [recognise(service)] if found]
    return [found for _, found in sorted(ranked, key=lambda pair: (pair[0], pair[1].namespace, pair[1].name))]


def recognise(service: Service) -> tuple[int, PrometheusService | None]:
    """The first signature that one of its names fits, with a port we know."""
    labels = service.metadata.labels or {}
    names = [service.metadata.name, *(labels[key] for key in APP_LABELS if key in labels)]
    if any(NOT_IT.search(name) for name in names):
        return len(SIGNATURES), None
    for rank, signature in enumerate(SIGNATURES):
        port = _port(service.spec.ports, signature.ports)
        if port and any(re.search(signature.looks_like, name) for name in names):
            meta = service.metadata
            return rank, PrometheusService(signature.product, meta.namespace, meta.name, port, signature.path)
    return len(SIGNATURES), None


def _port(offered: tuple[ServicePort, ...], wanted: tuple[int, ...]) -> int:
    numbers = {port.port for port in offered}
    return next((port for port in wanted if port in numbers), 0)
