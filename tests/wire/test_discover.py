"""Which Services are taken for a metrics server: names as charts and operators give them."""

from __future__ import annotations

import pytest

from trimtab.wire.access import Access
from trimtab.wire.discover import PrometheusService, recognise
from trimtab.wire.objects import ObjectMeta, Service, ServicePort, ServiceSpec


def service(name: str, port: int, **labels: str) -> Service:
    meta = ObjectMeta(
        name=name,
        namespace="monitoring",
        labels={key.replace("_", "/"): value for key, value in labels.items()},
    )
    return Service(meta, ServiceSpec((ServicePort("http", port), ServicePort("other", 12345))))


@pytest.mark.parametrize(
    "name, port, product, path",
    [
        ("prometheus-server", 80, "Prometheus", ""),
        ("prometheus-k8s", 9090, "Prometheus", ""),
        ("prometheus-operated", 9090, "Prometheus", ""),
        ("kube-prometheus-stack-prometheus", 9090, "Prometheus", ""),
        ("thanos-query", 9090, "Thanos", ""),
        ("thanos-querier", 9091, "Thanos", ""),
        ("mimir-query-frontend", 8080, "Mimir", "/prometheus"),
        ("mimir-nginx", 80, "Mimir", "/prometheus"),
        ("vmsingle-main", 8429, "VictoriaMetrics", ""),
        ("vmselect-main", 8481, "VictoriaMetrics", "/select/0/prometheus"),
    ],
)
def test_recognised(name: str, port: int, product: str, path: str) -> None:
    assert recognise(service(name, port))[1] == PrometheusService(product, "monitoring", name, port, path)


@pytest.mark.parametrize(
    "name, port",
    [
        ("prometheus-alertmanager", 9093),
        ("prometheus-pushgateway", 9091),
        ("prometheus-node-exporter", 9100),
        ("prometheus-operator", 8080),
        ("prometheus-adapter", 443),
        ("prometheus-kube-state-metrics", 8080),
        ("prometheus-server", 443),
        ("web", 80),
        ("grafana", 80),
    ],
)
def test_not_mistaken_for_one(name: str, port: int) -> None:
    assert recognise(service(name, port))[1] is None


def test_a_label_is_enough_and_a_global_view_comes_first() -> None:
    renamed, found = recognise(service("metrics", 9090, app="prometheus"))
    assert found is not None
    assert recognise(service("thanos-query", 9090))[0] < renamed


def test_its_address_inside_and_outside_the_cluster() -> None:
    found = PrometheusService("Mimir", "obs", "mimir-nginx", 80, "/prometheus")
    assert found.url == "http://mimir-nginx.obs.svc:80/prometheus"
    through = found.through(Access("https://api:6443")).url
    assert through == "https://api:6443/api/v1/namespaces/obs/services/mimir-nginx:80/proxy/prometheus"
