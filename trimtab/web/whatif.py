"""What if: the backtest of a workload's own history under other settings, and those settings to take away."""

from __future__ import annotations

import json
from shlex import quote
from typing import Any

import numpy as np
import yaml
from msgspec.structs import replace

from trimtab.journal import ObjectName
from trimtab.kinds.annotations import BRIDGE as BRIDGE_ANNOTATION
from trimtab.policy import Policy, Utilization
from trimtab.quantity import format_number
from trimtab.series import Floats
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.grid import STEP_S
from trimtab.tune.judge import judge_of
from trimtab.tune.policy_backtest import BacktestOutcome, backtest, on_the_total
from trimtab.web.journal_history import History
from trimtab.web.packing import Column, packed
from trimtab.web.query import Knobs
from trimtab.web.sliders import NO_BRIDGE, behaves, may_bridge, present, with_knobs
from trimtab.web.workload import unit_of

KUBECTL = {"HorizontalPodAutoscaler": "hpa", "EffectiveHorizontalPodAutoscaler": "ehpa"}


def judge(known: History, knobs: Knobs) -> tuple[BacktestOutcome, list[str]]:
    """The outcome that `trimtab backtest` gives for the same policy, history, start-up and price."""
    policy, notes = _unlimited(with_knobs(known, knobs)), list(known.demand.notes)
    level = judge_of([policy]).objective.service_level
    cluster = ClusterSpec(startup_s=knobs.startup_s, slo=level, pod_capacity=known.capacity, pod_cores=known.capacity)
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
    if knobs.target != present(known).target and _metric(known, knobs) is None:
        wanted = format_number(knobs.target * known.capacity)
        notes.append(f"what you copy has no metric, which says more than is known here: set its target to {wanted}")
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
    """What of the object's spec these settings move; the rest of it stays as it is."""
    now, metric = present(known), _metric(known, knobs)
    bounds = {"minReplicas": (now.least, knobs.least), "maxReplicas": (now.most, knobs.most)}
    spec: dict[str, Any] = {name: wanted for name, (is_now, wanted) in bounds.items() if wanted != is_now}
    if metric is not None and knobs.target != now.target:
        spec["metrics"] = [metric]
    if behaves(known, knobs):
        spec["behavior"] = _behavior(known, knobs)
    if known.policy.objective is not None and knobs.price != known.policy.objective.price:
        spec["objective"] = {"price": round(knobs.price), "priority": None}
    if knobs.bridge == now.bridge:
        return {"spec": spec}
    factor = f"{knobs.bridge:g}" if knobs.bridge > NO_BRIDGE else None
    if known.name.kind == "Autoscaler":
        return {"spec": spec | {"bridge": {"maxFactor": factor} if factor else None}}
    return {"metadata": {"annotations": {BRIDGE_ANNOTATION: factor}}, "spec": spec}


def _behavior(known: History, knobs: Knobs) -> dict[str, Any]:
    """Both windows, for where there was no `behavior` they were the operator's own; the tolerance if it moved."""
    moved = knobs.tolerance != present(known).tolerance
    tolerance = {"tolerance": format_number(knobs.tolerance)} if moved else {}
    windows = {"scaleUp": knobs.up_window_s, "scaleDown": knobs.down_window_s}
    return {side: {"stabilizationWindowSeconds": round(window)} | tolerance for side, window in windows.items()}


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
        inner = ({"name": metric.name} if metric.name else {}) | {"query": metric.query, "target": target}
    elif kind == "Object" or (labels := _labels(metric.selector)) is None:
        return None  # an object, or a selector of sets, has more to it than the policy tells
    else:
        selected = {"selector": {"matchLabels": labels}} if labels else {}
        inner = {"metric": {"name": metric.name} | selected, "target": target}
    return {"type": kind, kind[0].lower() + kind[1:]: inner}


def _labels(selector: str) -> dict[str, str] | None:
    """ "app=web,tier=front" as labels; None where it asks for more than equality."""
    pairs = [term.partition("=") for term in selector.split(",") if selector]
    if any(not (key and equals) or set(key) & set("! ()") or value.startswith("=") for key, equals, value in pairs):
        return None
    return {key: value for key, _, value in pairs}


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
