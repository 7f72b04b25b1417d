"""The metrics APIs and a Prometheus, both answering from the simulated load."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from tests.virtual.apiserver import ApiServer, Call, Denied, Reply
from tests.virtual.faults import Spoiling
from tests.virtual.fields import Object, encoded
from tests.virtual.transport import form
from tests.virtual.weather import Weather
from tests.virtual.workloads import CPU, MEMORY, Workload, Workloads
from trimtab.core.model import Missing, PodSamples, Reason
from trimtab.promql import LABEL
from trimtab.sim.meter import NO_TROUBLE, Trouble
from trimtab.wire.from_kubernetes import rfc3339

JOINED = re.compile(rf'label_replace\(\(\n(.*?)\n\), "{LABEL}", "(\d+)", "", ""\)', re.DOTALL)
CHOSEN = re.compile(r'pod=~"(?:\(\?:)?(.*?)(?:\)-\[\^-\]\+)?"')
EVERY_SERIES, MANY = '__name__=~".+"', 3000
INJECTED = 'x"} or vector(1000) or INJECTED{pod=~"(?:y'
FORGED_OWNERS = [
    {
        "__name__": "kube_pod_owner",
        "job": "kube-state-metrics",
        "namespace": namespace,
        "pod": pod,
        "owner_kind": kind,
        "owner_name": owner,
    }
    for namespace in ("shop", INJECTED)
    for pod in (INJECTED, ".*", "cache-1")
    for kind, owner in (("ReplicaSet", INJECTED), ("Deployment", "cache"), ("StatefulSet", "cache|.*"))
]
Value = Callable[[float], float]  # by seconds from the start


class Metrics:
    """metrics.k8s.io for pods; custom metrics `load` of pods; external metrics and queries by their names."""

    def __init__(self, server: ApiServer, workloads: Workloads, weather: Weather) -> None:
        self.server, self.workloads, self.weather = server, workloads, weather
        self.now = server.now  # by the clock of who measures
        self.external: dict[str, Value] = {}
        server.aggregated |= {
            "metrics.k8s.io": self._pods,
            "custom.metrics.k8s.io": self._custom,
            "external.metrics.k8s.io": self._external,
        }

    def trouble(self, workload: Workload) -> Trouble:
        fault = self.weather.metrics(f"{workload.namespace}/{workload.name}")
        if fault is None:
            return NO_TROUBLE
        return Trouble(fault.kind, int(fault.start_s // workload.step_s) - workload.first_step, fault.amount)

    def _of(self, namespace: str) -> list[Workload]:
        return [each for each in self.workloads.all.values() if namespace in ("", each.namespace)]

    def _pods(self, path: tuple[str, ...], params: Mapping[str, str]) -> Reply:
        """VERSION/pods, or VERSION/namespaces/NAMESPACE/pods."""
        namespace = path[2] if len(path) == 4 and path[1] == "namespaces" else ""
        if path[-1] != "pods" or len(path) not in (2, 4):
            raise Denied(404, "NotFound", "the server could not find the requested resource")
        items = [item for workload in self._of(namespace) for item in self._usage(workload)]
        return Reply(200, encoded({"kind": "PodMetricsList", "metadata": {}, "items": items}))

    def _usage(self, workload: Workload) -> list[Object]:
        trouble = self.trouble(workload)
        cpu, memory = workload.sample(CPU, trouble), workload.sample(MEMORY, trouble)
        if not isinstance(cpu, PodSamples) or not isinstance(memory, PodSamples):
            return []
        names = [container["name"] for container in workload.template["spec"]["containers"]]
        spoiled = self.weather.spoiled(f"{workload.namespace}/{workload.name}")
        at = rfc3339(cpu.at + (3600 if spoiled is Spoiling.FUTURE else 0))
        scale = 1e6 if spoiled is Spoiling.HUGE else 1.0
        values = list(cpu.values.items())
        shown: dict[tuple[float, float], list[Object]] = {}  # of pods that do as much, once
        for pod, cores in values:
            used = (cores, memory.values[pod])
            if used not in shown:
                shown[used] = _containers(names, cores * scale, used[1])
        head = {"timestamp": at, "window": f"{cpu.window_s:g}s"}
        return [
            {
                "metadata": {"name": workload.full(pod), "namespace": workload.namespace},
                **head,
                "containers": shown[cores, memory.values[pod]],
            }
            for pod, cores in values[: len(values) // 2 if spoiled is Spoiling.PARTIAL else None]
        ]

    def _custom(self, path: tuple[str, ...], params: Mapping[str, str]) -> Reply:
        """VERSION/namespaces/NAMESPACE/pods/*/load."""
        if len(path) != 6 or path[1] != "namespaces" or path[3:] != ("pods", "*", "load"):
            raise Denied(404, "NotFound", "no such custom metric")
        items = []
        for workload in self._of(path[2]):
            found = workload.by_pod(self.trouble(workload))
            if not isinstance(found, Missing):
                items += [
                    _custom_value(workload.namespace, workload.full(pod), value, found.at)
                    for pod, value in found.values.items()
                ]
        return Reply(200, encoded({"kind": "MetricValueList", "metadata": {}, "items": items}))

    def _external(self, path: tuple[str, ...], params: Mapping[str, str]) -> Reply:
        """VERSION/namespaces/NAMESPACE/NAME: one that was set, or the load of the workload of that name."""
        if len(path) != 4 or path[1] != "namespaces":
            raise Denied(404, "NotFound", "no such external metric")
        value = self.value(path[3], path[2])
        items = []
        if value is not None:
            row = {"metricName": path[3], "timestamp": rfc3339(value[0]), "value": f"{round(value[1] * 1000)}m"}
            items.append(row)
        return Reply(200, encoded({"kind": "ExternalMetricValueList", "metadata": {}, "items": items}))

    def value(self, name: str, namespace: str = "") -> tuple[float, float] | None:
        """When and how much; None: there is no such thing, or it is not known."""
        if name in self.external:
            return self.now(), self.external[name](self.weather.seconds())
        workload = self.workloads.all.get(name if "/" in name else f"{namespace}/{name}")
        found = workload.total(self.trouble(workload)) if workload else Missing(reason=Reason.ABSENT)
        return None if isinstance(found, Missing) else (found.at, found.value)


class FakePrometheus:
    """Instant queries: the text of a query names a workload (`NAMESPACE/NAME`) or an external metric that was set.

    Of what was before, it remembers what `past` says, by the text of a query and seconds from the start, for `keeps_s`;
    what `apart` holds as a series for each day, as labels that change with every release make them. cAdvisor is scraped
    of those workloads alone (NAMESPACE/NAME) that `used` has, for CPU.
    """

    def __init__(self, metrics: Metrics, start: float) -> None:
        self.metrics, self.start = metrics, start
        self.past: dict[str, Callable[[float], float]] = {}
        self.keeps_s = float("inf")
        self.apart: set[str] = set()
        self.used: dict[str, Callable[[float], float]] = {}
        self.asked: list[str] = []  # every query, as it arrived

    def handle(self, call: Call) -> Reply:
        self.asked += [text for name in ("query", "match[]") if (text := str(form(call).get(name, "")))]
        if call.path.endswith("/api/v1/query"):
            return _success("vector", self._rows(str(form(call).get("query", ""))))
        if call.path.endswith("/api/v1/query_range"):
            return _success("matrix", self._remembered(form(call)))
        if call.path.endswith("/api/v1/series"):
            forged = self.metrics.weather.forges_labels
            return Reply(200, encoded({"status": "success", "data": FORGED_OWNERS if forged else []}))
        return Reply(404, b"404 page not found\n")

    def _rows(self, query: str) -> list[Object]:
        """Of one query, or of several that were joined to one."""
        if EVERY_SERIES in query:
            return [{"metric": {"pod": f"evil-{n}"}, "value": [self.metrics.now(), "1"]} for n in range(MANY)]
        asked = [({LABEL: number}, text) for text, number in JOINED.findall(query)] or [({}, query)]
        found = [(labels, self.metrics.value(text)) for labels, text in asked]
        return [{"metric": labels, "value": [now[0], repr(now[1])]} for labels, now in found if now is not None]

    def _remembered(self, asked: Mapping[str, Any]) -> list[Any]:
        query = str(asked.get("query", ""))
        if "by (namespace,stem)(" in query and "container_cpu_usage_seconds_total" in query:
            found = [(labels, self._points(asked, past)) for labels, past in self._usage(query)]
            return [{"metric": labels, "values": points} for labels, points in found if points]
        series: dict[int, list[Any]] = {}
        for at, value in self._points(asked, self.past[query]) if query in self.past else ():
            series.setdefault(int(at // 86400) if query in self.apart else 0, []).append([at, value])
        return [{"metric": {"release": str(number)}, "values": rows} for number, rows in series.items()]

    def _points(self, asked: Mapping[str, Any], past: Value) -> list[tuple[float, str]]:
        first, end, step_s = (float(asked[name]) for name in ("start", "end", "step"))
        times = [first + step_s * number for number in range(int((end - first) / step_s) + 1)]
        kept = [at for at in times if at >= self.metrics.now() - self.keeps_s]
        return [(at, repr(past(at - step_s / 2 - self.start))) for at in kept]  # a value is of the step before it

    def _usage(self, query: str) -> list[tuple[Object, Value]]:
        """All that a workload uses, as used by the first of its pods, or of what their names begin with."""
        asked = [name for group in CHOSEN.findall(query) for name in group.split("|")]
        named = [(full.partition("/"), past) for full, past in self.used.items()]
        rows = [
            (namespace, [each for each in asked if each.startswith(name)], past) for (namespace, _, name), past in named
        ]
        return [({"namespace": namespace, "stem": found[0]}, past) for namespace, found, past in rows if found]


def _containers(names: list[str], cores: float, memory_bytes: float) -> list[Object]:
    """What is used, in equal parts."""
    usage = {"cpu": _nano(cores / len(names)), "memory": _whole(memory_bytes / len(names))}
    return [{"name": name, "usage": usage} for name in names]


def _nano(cores: float) -> str:
    return f"{round(cores * 1e9)}n" if isfinite(cores) else "NaN"


def _whole(amount: float) -> str:
    return str(round(amount)) if isfinite(amount) else "NaN"


def _success(kind: str, result: list[Any]) -> Reply:
    return Reply(200, encoded({"status": "success", "data": {"resultType": kind, "result": result}}))


def _custom_value(namespace: str, pod: str, value: float, at: float) -> Object:
    described = {"kind": "Pod", "namespace": namespace, "name": pod}
    return {"describedObject": described, "timestamp": rfc3339(at), "value": f"{round(value * 1000)}m"}
