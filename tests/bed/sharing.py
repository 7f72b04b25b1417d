"""The closed loop: a workload's scripted load, shared among its ready pods; more pods, less for each.

share of a ready pod = load(t) / ready pods, its CPU never above its limit; other pods do nothing.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

ANNOTATION, FATE = "bed.trimtab.dev/load", "bed.trimtab.dev/fate"
IDLE_MEMORY_BYTES = 16 * 2**20  # metrics-server drops a container whose memory or CPU counter is zero
FAULTS = (None, "nan", "silent", "unmeasured")

Workload = tuple[str, str]  # namespace, value of the label "app"


@dataclass(frozen=True)
class Curve:
    """A value over time: straight lines between (seconds since the script began, value), flat outside."""

    points: tuple[tuple[float, float], ...]

    @classmethod
    def parse(cls, field_name: str, given: Any) -> Curve:
        points = given if isinstance(given, list) else [[0, given]]
        try:
            curve = cls(tuple((float(at_s), float(value)) for at_s, value in points))
        except (TypeError, ValueError):
            raise ValueError(f"{field_name}: {given!r} is neither a number nor [[seconds, value], ...]") from None
        if not points or list(curve.points) != sorted(curve.points):
            raise ValueError(f"{field_name}: {given!r} needs points in order of time")
        return curve

    def at(self, elapsed_s: float) -> float:
        before, after = self.points[0], self.points[-1]
        for point in self.points:
            if point[0] <= elapsed_s:
                before = point
            else:
                after = point
                break
        if elapsed_s <= before[0] or after[0] <= before[0]:
            return before[1]
        return before[1] + (after[1] - before[1]) * (elapsed_s - before[0]) / (after[0] - before[0])


@dataclass(frozen=True)
class Script:
    """What all pods of a workload do together: CPU cores, bytes, requests a second; `queue` is not shared."""

    since: float
    cores: Curve = Curve(((0, 0),))
    memory_bytes: Curve = Curve(((0, 0),))
    rate: Curve = Curve(((0, 0),))
    queue: Curve = Curve(((0, 0),))
    fault: str | None = None  # nan: application values are NaN; silent: none; unmeasured: kubelets say nothing

    @property
    def is_constant(self) -> bool:
        return all(len(curve.points) == 1 for curve in (self.cores, self.memory_bytes, self.rate))

    @classmethod
    def parse(cls, words: dict[str, Any], now: float) -> Script:
        curves = ("cores", "memory_bytes", "rate", "queue")
        unknown = set(words) - {*curves, "fault"}
        if unknown:
            raise ValueError(f"{sorted(unknown)}: unknown; use {', '.join(curves)} or fault")
        if words.get("fault") not in FAULTS:
            raise ValueError(f"fault: {words['fault']!r} is not one of {FAULTS}")
        parsed = {name: Curve.parse(name, words[name]) for name in curves if name in words}
        return cls(since=now, fault=words.get("fault"), **parsed)


@dataclass
class Pod:
    namespace: str
    name: str
    labels: dict[str, str]
    node: str
    containers: tuple[str, ...]
    running: bool
    ready: bool
    started_at: float
    cpu_limit: float
    measured: bool = True  # it works unseen with the fate Unmeasured
    cpu_seconds: float = 0.001
    cores: float = 0.0
    memory_bytes: float = IDLE_MEMORY_BYTES
    requests: float = 0.0
    rate: float = 0.0

    @property
    def workload(self) -> Workload:
        return self.namespace, self.labels.get("app", "")


@dataclass
class World:
    """All pods and scripts. A workload is brought forward when somebody looks at it or it changes, not all of them
    each time: with twenty thousand pods the load server would do nothing else."""

    now: float
    pods: dict[str, Pod] = field(default_factory=dict)  # by uid
    members: dict[Workload, dict[str, Pod]] = field(default_factory=lambda: defaultdict(dict))
    on_node: dict[str, dict[str, Pod]] = field(default_factory=lambda: defaultdict(dict))
    posted: dict[Workload, Script] = field(default_factory=dict)
    annotated: dict[Workload, tuple[str, Script]] = field(default_factory=dict)
    node_cpu_seconds: dict[str, float] = field(default_factory=lambda: defaultdict(lambda: 0.001))
    _brought: dict[Workload, float] = field(default_factory=dict)  # up to when its counters go
    _ramps: set[Workload] = field(default_factory=set)  # whose load changes by itself

    def script(self, workload: Workload) -> Script:
        """A posted script wins over the annotation of the pods."""
        annotated = self.annotated.get(workload)
        return self.posted.get(workload) or (annotated[1] if annotated else Script(self.now))

    def see(self, raw: dict[str, Any], started_at: float) -> None:
        """Takes over a pod as the API server gives it; its counters go on."""
        uid, seen = raw["metadata"]["uid"], _pod(raw, started_at)
        self.bring(seen.workload)
        known = self.pods.get(uid)
        if known:
            seen.cpu_seconds, seen.requests = known.cpu_seconds, known.requests
            self.on_node[known.node].pop(uid, None)
        self.pods[uid] = self.members[seen.workload][uid] = self.on_node[seen.node][uid] = seen
        self._read_annotation(seen.workload, raw["metadata"].get("annotations", {}).get(ANNOTATION))
        self.bring(seen.workload)

    def forget(self, uid: str) -> None:
        gone = self.pods.get(uid)
        if gone is None:
            return
        self.bring(gone.workload)
        for known in (self.pods, self.members[gone.workload], self.on_node[gone.node]):
            known.pop(uid, None)
        self.bring(gone.workload)

    def post(self, workload: Workload, script: Script) -> None:
        self.bring(workload)
        self.posted[workload] = script
        self._note_ramp(workload)
        self.bring(workload)

    def set_clock(self, now: float) -> None:
        self.now = max(self.now, round(now, 3))  # samples carry milliseconds: rates of whole ones come out exact

    def advance(self, now: float) -> None:
        """Adds what every pod has done since the last time, and shares the load of this moment."""
        self.set_clock(now)
        for workload in list(self.members):
            self.bring(workload)

    def advance_ramps(self, now: float) -> None:
        """The same where the load changes by itself; what is constant comes out the same whenever it is added."""
        self.set_clock(now)
        for workload in list(self._ramps):
            self.bring(workload)

    def bring(self, workload: Workload) -> None:
        elapsed_s = self.now - self._brought.get(workload, self.now)
        self._brought[workload] = self.now
        ready = []
        for pod in self.members[workload].values():
            pod.cpu_seconds += pod.cores * elapsed_s
            pod.requests += pod.rate * elapsed_s
            self.node_cpu_seconds[pod.node] += pod.cores * elapsed_s
            pod.cores, pod.rate, pod.memory_bytes = 0.0, 0.0, IDLE_MEMORY_BYTES
            if pod.running and pod.ready:
                ready.append(pod)
        if ready:
            self._share(self.script(workload), ready)

    def _share(self, script: Script, pods: list[Pod]) -> None:
        elapsed_s = self.now - script.since
        cores, rate, memory_bytes = (
            curve.at(elapsed_s) / len(pods) for curve in (script.cores, script.rate, script.memory_bytes)
        )
        for pod in pods:
            pod.cores, pod.rate = min(cores, pod.cpu_limit), rate
            pod.memory_bytes = max(memory_bytes, IDLE_MEMORY_BYTES)

    def _read_annotation(self, workload: Workload, text: str | None) -> None:
        known = self.annotated.get(workload)
        if text and (known is None or known[0] != text):
            self.annotated[workload] = (text, Script.parse(json.loads(text), self.now))
            self._note_ramp(workload)

    def _note_ramp(self, workload: Workload) -> None:
        if self.script(workload).is_constant:
            self._ramps.discard(workload)
        else:
            self._ramps.add(workload)


def _pod(raw: dict[str, Any], started_at: float) -> Pod:
    meta, spec, status = raw["metadata"], raw["spec"], raw.get("status", {})
    conditions = {each["type"]: each["status"] for each in status.get("conditions", [])}
    return Pod(
        namespace=meta["namespace"],
        name=meta["name"],
        labels=meta.get("labels", {}),
        node=spec.get("nodeName", ""),
        containers=tuple(each["name"] for each in spec["containers"]),
        running=status.get("phase") == "Running" and "deletionTimestamp" not in meta,
        ready=conditions.get("Ready") == "True",
        started_at=started_at,
        cpu_limit=_cpu_limit(status),
        measured=meta.get("annotations", {}).get(FATE) != "Unmeasured",
    )


def _cpu_limit(status: dict[str, Any]) -> float:
    """The limit that is in force, which after a deferred resize is not the one in the spec."""
    first = (status.get("containerStatuses") or [{}])[0]
    text = str(first.get("resources", {}).get("limits", {}).get("cpu", math.inf))
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)
