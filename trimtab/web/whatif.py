"""What if: the backtest of a workload's own history under other settings, and those settings to take away."""

from __future__ import annotations

import json
from shlex import quote
from typing import Any, NamedTuple

import msgspec
import numpy as np
import yaml
from msgspec.structs import replace

from trimtab.errors import InvalidInput, NotEnoughData
from trimtab.journal import DAY_S, Journal, ObjectName
from trimtab.kinds.annotations import BRIDGE as BRIDGE_ANNOTATION
from trimtab.minutes import MINUTE_S
from trimtab.policy import Bridge, Policy, Stabilise, StabiliseMax, Utilization, is_cpu
from trimtab.quantity import format_number
from trimtab.series import Floats, Frame
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.grid import STEP_S
from trimtab.tune.candidates import Setting, setting_of, with_setting
from trimtab.tune.demand import Demand, demand_of, pod_capacity
from trimtab.tune.policy_backtest import BacktestOutcome, backtest, on_the_total
from trimtab.web.packing import Column, packed, unpacked
from trimtab.web.workload import known_policy, unit_of

DAYS = 14.0
STEPS = round(MINUTE_S / STEP_S)  # of a backtest in a minute
NO_BRIDGE = 1.0
KUBECTL = {"HorizontalPodAutoscaler": "hpa", "EffectiveHorizontalPodAutoscaler": "ehpa"}


class Knobs(NamedTuple):
    """What the page's sliders hold; `target` is the share of what one pod carries."""

    target: float
    tolerance: float
    up_window_s: float
    down_window_s: float
    least: int
    most: int
    startup_s: float
    price: float  # pod-minutes that one violated pod-minute of load is worth
    bridge: float  # how many times their written CPU ready pods may have; 1 is no bridge


class History(NamedTuple):
    """A workload as the journal knows it."""

    name: ObjectName
    policy: Policy
    demand: Demand
    capacity: float  # of one pod at 100 %, in the unit of the load
    startup_s: float


class KnownLoad(NamedTuple):
    """The same before anything was made of it: its load by the minute, NaN where nothing was seen."""

    name: ObjectName
    policy: Policy
    start: float
    load: Floats
    capacity: float
    startup_s: float


def known_load(journal: Journal, name: ObjectName, days: float = DAYS) -> KnownLoad:
    policy, span = known_policy(journal, name), journal.span()
    end = span[1] if span else 0.0
    found = journal.minutes_of(name, end - days * DAY_S, end)
    if not len(found.times):
        raise NotEnoughData(f"{name} has no minutes in the journal yet; look again in an hour")
    load = found.columns["load"].astype(np.float64)
    capacity, startup_s = _capacity(policy, found.columns), _startup_s(journal, name)
    return KnownLoad(name, policy, float(found.times[0]), load, capacity, startup_s)


def history_of(known: KnownLoad) -> History:
    """Held over holes, as a backtest reads it."""
    frame = Frame((str(known.name),), known.start, MINUTE_S, known.load[None, :])
    return History(known.name, known.policy, demand_of(frame, str(known.name)), known.capacity, known.startup_s)


def history(journal: Journal, name: ObjectName, days: float = DAYS) -> History:
    """Its load by the minute, held over holes, and what one of its pods carries."""
    return history_of(known_load(journal, name, days))


def _capacity(policy: Policy, columns: dict[str, Any]) -> float:
    """From the pods' requests where the target is a share of them, else from the target itself."""
    if policy.signals and isinstance(policy.signals[0], Utilization):
        requests = columns["cpu_cores" if policy.signals[0].metric.name == "cpu" else "memory_bytes"]
        known = requests[np.isfinite(requests)]
        if not len(known):
            raise NotEnoughData("the journal does not know what one pod requests, so that a share of it says nothing")
        return float(known[-1])
    return pod_capacity(policy, None)[0]


def _startup_s(journal: Journal, name: ObjectName) -> float:
    last = list(journal.acts(name.namespace, name.name, last=1))
    quantiles = getattr(last[0].seen.startup, "quantiles", ()) if last else ()
    return float(quantiles[-1].value) if quantiles else 120.0


def present(known: History, price: float = 32.0) -> Knobs:
    """The settings that are in force."""
    setting, rules, bounds = setting_of(known.policy, known.capacity), known.policy.settle, known.policy.bounds
    up = max((rule.up_s for rule in rules if isinstance(rule, Stabilise)), default=0.0)
    return Knobs(
        setting.target,
        setting.tolerance,
        up,
        setting.stabilise_s,
        max(1, bounds.min_replicas),
        bounds.max_replicas,
        known.startup_s,
        price,
        NO_BRIDGE if known.policy.bridge is None else known.policy.bridge.max_factor,
    )


def may_bridge(known: History) -> bool:
    """A bridge looks at the CPU of pods; an HPA's own controller would take it for idle pods."""
    signals = known.policy.signals
    return known.name.kind != "HorizontalPodAutoscaler" and any(is_cpu(signal.metric) for signal in signals)


def with_knobs(known: History, knobs: Knobs) -> Policy:
    """The policy in force, with these settings; nothing else of it is touched."""
    if knobs.least > knobs.most:
        raise InvalidInput("minReplicas", knobs.least, f"put it from 1 to maxReplicas ({knobs.most})")
    if knobs.bridge > NO_BRIDGE and not may_bridge(known):
        raise InvalidInput("bridge", knobs.bridge, "it needs a metric on cpu, and another kind than an HPA")
    policy = known.policy
    if knobs == present(known, knobs.price)._replace(startup_s=knobs.startup_s):
        return policy
    policy = with_setting(policy, Setting(knobs.target, knobs.tolerance, knobs.down_window_s), known.capacity)
    rules = tuple(
        replace(rule, up_s=knobs.up_window_s) if isinstance(rule, Stabilise) else rule for rule in policy.settle
    )
    bounds = replace(policy.bounds, min_replicas=knobs.least, max_replicas=knobs.most)
    bridge = None if knobs.bridge <= NO_BRIDGE else replace(policy.bridge or Bridge(), max_factor=knobs.bridge)
    return replace(policy, settle=rules, bounds=bounds, bridge=bridge)


def judge(known: History, knobs: Knobs) -> tuple[BacktestOutcome, list[str]]:
    """The outcome that `trimtab backtest` gives for the same policy, history, start-up and price."""
    policy, notes = _unlimited(with_knobs(known, knobs)), list(known.demand.notes)
    cluster = ClusterSpec(startup_s=knobs.startup_s, pod_capacity=known.capacity, pod_cores=known.capacity)
    policy, note = on_the_total(policy, cluster)
    notes += [note] if note else []
    return backtest(str(known.name), policy, known.demand, cluster, knobs.price), notes


def _unlimited(policy: Policy) -> Policy:
    """How often a pod may be resized is the operator's own limit, of which a manifest and its backtest know nothing."""
    if policy.bridge is None:
        return policy
    return replace(policy, bridge=replace(policy.bridge, resizes_per_hour=None))


def answer(known: History, knobs: Knobs) -> bytes:
    """Figures, curves on the 15 s grid in the unit of the load, and the settings to take away."""
    outcome, notes = judge(known, knobs)
    run = outcome.run
    about = {
        "knobs": knobs._asdict(),
        "mayBridge": may_bridge(known),
        "unit": unit_of(known.policy),
        "capacity": known.capacity,
        "days": known.demand.days,
        "start": known.demand.start,
        "figures": outcome.figures(),
        "optimumPodHours": float(outcome.best.sum()) / 240,
        "notes": notes,
        "yaml": as_yaml(known, knobs),
        "command": command(known, knobs),
    }
    times: Floats = known.demand.start + STEP_S * np.arange(len(run.load), dtype=np.float64)
    load = run.load.astype(np.float32)
    curves: dict[str, Column] = {
        "at": times,
        "load": load,
        "replicas": run.replicas,
        "ready": run.ready,
        "optimum": outcome.best,
    }
    return packed(about, curves)


def patch(known: History, knobs: Knobs) -> dict[str, Any]:
    """What of the object's spec these settings are; the rest of it stays as it is."""
    metric = _metric(known, knobs)
    window = {"stabilizationWindowSeconds": round(knobs.down_window_s), "tolerance": format_number(knobs.tolerance)}
    up = {"stabilizationWindowSeconds": round(knobs.up_window_s), "tolerance": format_number(knobs.tolerance)}
    spec: dict[str, Any] = {"minReplicas": knobs.least, "maxReplicas": knobs.most}
    if metric is not None:
        spec["metrics"] = [metric]
    if with_knobs(known, knobs) != known.policy or not any(
        isinstance(one, StabiliseMax) for one in known.policy.settle
    ):
        spec["behavior"] = {"scaleUp": up, "scaleDown": window}
    if knobs.bridge == present(known).bridge:
        return {"spec": spec}
    factor = f"{knobs.bridge:g}" if knobs.bridge > NO_BRIDGE else None
    if known.name.kind == "Autoscaler":
        return {"spec": spec | {"bridge": {"maxFactor": factor} if factor else None}}
    return {"metadata": {"annotations": {BRIDGE_ANNOTATION: factor}}, "spec": spec}


def _metric(known: History, knobs: Knobs) -> dict[str, Any] | None:
    """The metric with its new target, as autoscaling/v2 (or our Prometheus) writes it."""
    (signal,) = known.policy.signals
    kind = str(signal.metric.kind)
    if isinstance(signal, Utilization):
        target: dict[str, Any] = {"type": "Utilization", "averageUtilization": round(knobs.target * 100)}
    else:
        target = {"type": "AverageValue", "averageValue": format_number(knobs.target * known.capacity)}
    inner: dict[str, Any] = {"target": target}
    metric = signal.metric
    if kind in ("Resource", "ContainerResource"):
        inner = {"name": metric.name, "target": target} | ({"container": metric.container} if metric.container else {})
    elif kind == "Prometheus":
        inner = {"query": metric.query, "target": target}
    elif kind == "Object" or metric.selector:
        return None  # a selector or an object has more to it than the policy tells
    else:
        inner = {"metric": {"name": metric.name}, "target": target}
    return {"type": kind, kind[0].lower() + kind[1:]: inner}


def as_yaml(known: History, knobs: Knobs) -> str:
    """A patch file; its first line says how to use it."""
    target = f"kubectl patch {_target(known.name)} --type merge --patch-file FILE"
    return f"# {target}\n{yaml.safe_dump(patch(known, knobs), sort_keys=False)}"


def _target(name: ObjectName) -> str:
    kind = KUBECTL.get(name.kind, name.kind.lower())
    return f"{kind} {quote(name.name)} -n {quote(name.namespace)}"


def command(known: History, knobs: Knobs) -> str:
    """The same as one line for a shell."""
    text = json.dumps(patch(known, knobs), separators=(",", ":")).replace("'", "'\\''")
    return f"kubectl patch {_target(known.name)} --type merge -p '{text}'"


def pack_load(known: KnownLoad) -> bytes:
    """To judge it somewhere else: whoever wants to know pays for the computing."""
    about = {field: getattr(known, field) for field in KnownLoad._fields if field != "load"}
    return packed(about, {"load": known.load})


def unpack_load(content: bytes) -> KnownLoad:
    about, columns = unpacked(content)
    name, policy = ObjectName(*about["name"]), msgspec.convert(about["policy"], Policy)
    load = columns["load"].astype(np.float64)
    return KnownLoad(name, policy, about["start"], load, about["capacity"], about["startup_s"])


def csv(known: History) -> str:
    """The history that was judged, as `trimtab backtest --load` reads it."""
    values = known.demand.values[::STEPS]
    rows = (f"{known.demand.start + MINUTE_S * index:.0f},{value!r}" for index, value in enumerate(values.tolist()))
    return "\n".join(("timestamp,value", *rows, ""))
