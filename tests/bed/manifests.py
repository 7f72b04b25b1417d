"""The objects a bed creates itself: its nodes, and the metrics APIs that live outside the cluster."""

from __future__ import annotations

from typing import Any

NODE_SIZE = {"cpu": "1000", "memory": "4Ti", "pods": "5000"}  # room for every test at once


def node(name: str, kubelet_port: int) -> dict[str, Any]:
    """A node without a kubelet; the annotation leads metrics-server to the load server."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
            "annotations": {"metrics.k8s.io/resource-metrics-path": f"/nodes/{name}/metrics/resource"},
        },
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": "127.0.0.1"},
                {"type": "Hostname", "address": name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet_port}},
            "capacity": NODE_SIZE,
            "allocatable": NODE_SIZE,
        },
    }


def metrics_apis(ports: dict[str, int]) -> list[dict[str, Any]]:
    """The resource metrics from metrics-server; custom and external metrics from the load server."""
    return [
        _loopback_service(),
        resource_metrics(ports["metrics-server"]),
        _api_service("custom.metrics.k8s.io", "v1beta2", ports["load-tls"]),
        _api_service("external.metrics.k8s.io", "v1beta1", ports["load-tls"]),
    ]


def resource_metrics(port: int) -> dict[str, Any]:
    """Who answers for the usage of pods: metrics-server, or the adapter that stands beside the load server."""
    return _api_service("metrics.k8s.io", "v1beta1", port)


def _loopback_service() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "loopback", "namespace": "kube-system"},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }


def _api_service(group: str, version: str, port: int) -> dict[str, Any]:
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}"},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
            "service": {"name": "loopback", "namespace": "kube-system", "port": port},
        },
    }


def deployment(
    namespace: str,
    app: str,
    replicas: int = 1,
    cpu: str = "250m",
    memory: str = "256Mi",
    annotations: dict[str, str] | None = None,
    guaranteed: bool = False,
) -> dict[str, Any]:
    """A Deployment of one container named "app" whose pods carry the given bed.trimtab.dev/ annotations."""
    requests = {"cpu": cpu, "memory": memory}
    resources = {"requests": requests} | ({"limits": requests} if guaranteed else {})
    container = {"name": "app", "image": "example.test/app:1", "resources": resources}
    bed_annotations = {f"bed.trimtab.dev/{name}": value for name, value in (annotations or {}).items()}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": app, "namespace": namespace, "labels": {"app": app}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": app}},
            "template": {
                "metadata": {"labels": {"app": app}, "annotations": bed_annotations},
                "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
            },
        },
    }
