"""Resource metrics as an adapter in front of Prometheus answers them: as fresh as Prometheus scrapes.

metrics-server refuses to look more often than every ten seconds, which is two minutes of a day that is played twelve
times as fast.
"""

from __future__ import annotations

import datetime as dt
import time
from math import ceil
from typing import Any

from aiohttp import ClientSession

from tests.bed.sharing import World

RESOURCE = "metrics.k8s.io/v1beta1"
WINDOW_S = 5
QUERIES = {
    "cpu": f"sum by (pod, container) (rate(container_cpu_usage_seconds_total{{%s}}[{WINDOW_S}s]))",
    "memory": "sum by (pod, container) (container_memory_working_set_bytes{%s})",
}


def resources() -> dict[str, Any]:
    pods = {"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list"]}
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": RESOURCE, "resources": [pods]}


async def pods(
    client: ClientSession, prometheus: str, world: World, namespace: str, selector: dict[str, str]
) -> dict[str, Any]:
    """PodMetrics of the pods in a namespace that the selector chooses."""
    at = time.time()
    usage: dict[str, dict[str, dict[str, str]]] = {}
    for resource, query in QUERIES.items():
        form = {"query": query % f'namespace="{namespace}"', "time": f"{at:.3f}"}
        async with client.post(f"{prometheus}/api/v1/query", data=form, raise_for_status=True) as answer:
            found = (await answer.json())["data"]["result"]
        for series in found:
            pod, container = series["metric"]["pod"], series["metric"]["container"]
            usage.setdefault(pod, {}).setdefault(container, {})[resource] = _quantity(float(series["value"][1]))
    chosen = [
        pod for pod in world.pods.values() if pod.namespace == namespace and selector.items() <= pod.labels.items()
    ]
    items = [_item(namespace, pod.name, at, usage[pod.name]) for pod in chosen if pod.name in usage]
    complete = [item for item in items if all("cpu" in container["usage"] for container in item["containers"])]
    return {"kind": "PodMetricsList", "apiVersion": RESOURCE, "metadata": {}, "items": complete}


def _item(namespace: str, name: str, at: float, containers: dict[str, dict[str, str]]) -> dict[str, Any]:
    return {
        "metadata": {"namespace": namespace, "name": name},
        "timestamp": dt.datetime.fromtimestamp(at, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "window": f"{WINDOW_S}s",
        "containers": [{"name": container, "usage": usage} for container, usage in sorted(containers.items())],
    }


def _quantity(value: float) -> str:
    return f"{ceil(value * 1e9)}n"
