"""A Prometheus that holds two clusters with the same workload in each, and goes by the matchers it is asked with."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from aiohttp import web

from trimtab.promql import Matcher, parse_matchers

CORES, BYTES = {"a": 0.5, "b": 4.0}, {"a": 3e8, "b": 9e9}
CPU, MEMORY = "container_cpu_usage_seconds_total", "container_memory_working_set_bytes"
OPERATES = {
    "=": lambda value, given: value == given,
    "!=": lambda value, given: value != given,
    "=~": lambda value, given: re.fullmatch(given, value) is not None,
    "!~": lambda value, given: re.fullmatch(given, value) is None,
}
Labels = dict[str, str]


def held() -> Iterator[Labels]:
    """ReplicaSets of equal templates have equal names in all clusters; pods have their own."""
    for cluster in CORES:
        here = {"cluster": cluster, "namespace": "shop"}
        pod = here | {"pod": f"web-abc-{cluster}"}
        yield pod | {
            "__name__": "kube_pod_owner",
            "job": "kube-state-metrics",
            "owner_kind": "ReplicaSet",
            "owner_name": "web-abc",
        }
        owner = {"replicaset": "web-abc", "owner_kind": "Deployment", "owner_name": "web"}
        yield here | {"__name__": "kube_replicaset_owner", "job": "kube-state-metrics"} | owner
        yield from (pod | {"__name__": name, "container": "app"} for name in (CPU, MEMORY))


def chosen(matchers: Sequence[Matcher]) -> list[Labels]:
    return [
        labels
        for labels in held()
        if all(OPERATES[how](labels.get(label, ""), value) for label, how, value in matchers)
    ]


def selected(query: str) -> list[Labels]:
    found = re.search(r"(\w+)\{([^}]*)\}", query)
    assert found is not None, query
    return chosen([Matcher("__name__", "=", found[1]), *parse_matchers(found[2])])


class TwoClusters:
    """`queried` are the queries it was asked."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.queried: list[str] = []

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        what = request.path.rpartition("/")[2]
        asked: Any = await request.post()
        if what == "series":
            return web.json_response({"status": "success", "data": selected(asked["match[]"])})
        self.queried.append(asked["query"])
        if what == "query":
            return _answer("scalar", [self.now, str(self.now)])
        start, end, step = float(asked["start"]), float(asked["end"]), float(asked["step"])
        times = [start + step * number for number in range(round((end - start) / step) + 1)]
        rows = _evaluated(asked["query"])
        return _answer("matrix", [{"metric": row, "values": [[at, str(value)] for at in times]} for row, value in rows])


def _answer(kind: str, result: object) -> web.Response:
    return web.json_response({"status": "success", "data": {"resultType": kind, "result": result}})


def _evaluated(query: str) -> list[tuple[Labels, float]]:
    if "orders" in query or query == "vector(1)":  # a tenant's own, and whether anybody answers
        return [({}, 100.0)]
    groups: dict[tuple[str, ...], list[float]] = defaultdict(list)
    operator, by = re.findall(r"^(sum|max) by \((.*?)\)", query)[0]
    for labels in selected(query):
        stemmed = labels | {"stem": labels["pod"].rpartition("-")[0]}
        value = (CORES if labels["__name__"] == CPU else BYTES)[labels["cluster"]]
        groups[tuple(stemmed[key] for key in by.split(","))].append(value)
    fold: Callable[[list[float]], float] = sum if operator == "sum" else max
    return [(dict(zip(by.split(","), group, strict=True)), fold(values)) for group, values in groups.items()]
