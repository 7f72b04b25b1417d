"""What if: the backtest of a workload's own history under other settings, and those settings to take away."""

from __future__ import annotations

import json
from collections.abc import Mapping
from shlex import join, quote
from typing import Any, NamedTuple

import msgspec
import numpy as np
import yaml
from msgspec import structs
from msgspec.structs import replace

from trimtab.core.explain.tuning import settings_text
from trimtab.core.overload import Yardstick, of_recorded
from trimtab.core.tuned import by_percent, by_target, restated, settings_of, tunable
from trimtab.errors import InvalidInput, NotEnoughData
from trimtab.journal import ObjectName
from trimtab.kinds.annotations import BRIDGE as BRIDGE_ANNOTATION
from trimtab.kinds.objective import bridged
from trimtab.kinds.schedule import expand_schedules
from trimtab.minutes import MINUTE_S
from trimtab.policy import (
    Bridge,
    Objective,
    Policy,
    Rate,
    Rule,
    Stabilise,
    StabiliseMax,
    TunedSettings,
    UpLimit,
    Utilization,
    is_cpu,
)
from trimtab.quantity import format_number
from trimtab.series import Frame
from trimtab.sim.grid import STEP_S
from trimtab.tune.case import Case, Outcome, quickly
from trimtab.tune.demand import Demand, demand_of
from trimtab.tune.judge import cluster_of, judged_pod
from trimtab.tune.manifest import writable_space
from trimtab.tune.queues import queue_of
from trimtab.tune.search import search
from trimtab.web.packing import Column, PageTable
from trimtab.web.sources import Knobs
from trimtab.web.workload import unit_of

STEPS = round(MINUTE_S / STEP_S)  # of a backtest in a minute
USUAL_STARTUP_S = 120.0
NO_BRIDGE = 1.0
KUBECTL = {"HorizontalPodAutoscaler": "hpa", "EffectiveHorizontalPodAutoscaler": "ehpa"}


class History(NamedTuple):
    """A workload as the journal knows it."""

    name: ObjectName
    policy: Policy
    demand: Demand
    pod: Yardstick
    startup_s: float

    @property
    def capacity(self) -> float:
        """Of one pod at 100 %, in the unit of the load."""
        return self.pod.request


def history_of(known: PageTable) -> History:
    """The load of a workload's minutes, held over holes as a backtest reads it, with the schedules of all its time."""
    about, columns = known
    name, policy = ObjectName(**about["name"]), msgspec.convert(about["policy"], Policy)
    load = columns["load"].astype(np.float64)
    if not len(load):
        raise NotEnoughData(f"{name} has no minutes in the journal yet; look again in an hour")
    start = float(columns["at"][0])
    frame = Frame((str(name),), start, MINUTE_S, load[None, :])
    startup_s = float(about["startup"][-1][1]) if about["startup"] else USUAL_STARTUP_S
    policy = expand_schedules(policy, start, start + MINUTE_S * len(load))
    return History(name, policy, demand_of(frame, str(name)), _pod(policy, about, columns), startup_s)


def _pod(policy: Policy, about: Mapping[str, Any], columns: Mapping[str, Column]) -> Yardstick:
    """As the last change saw it; before the first change, what a minute says of requests and of the level."""
    if about.get("pod"):
        return msgspec.convert(about["pod"], Yardstick)
    if not policy.signals or not isinstance(policy.signals[0], Utilization):
        return judged_pod(policy, None).judged
    requests = columns["cpu_cores" if policy.signals[0].metric.name == "cpu" else "memory_bytes"]
    levels = columns["capacity"] / columns["ready"] / np.nan_to_num(columns["bridge"], nan=1.0)
    known = np.flatnonzero(np.isfinite(requests) & np.isfinite(levels))
    if not len(known):
        raise NotEnoughData("the journal does not know what one pod requests, so that a share of it says nothing")
    last = known[-1]
    return of_recorded(float(requests[last]), float(levels[last]), None, is_cpu(policy.signals[0].metric))


def csv(known: History) -> str:
    """The history that was judged, as `trimtab backtest --load` reads it."""
    values = known.demand.values[::STEPS]
    has_sample = np.full(len(values), True) if known.demand.known is None else known.demand.known[::STEPS]
    times = (known.demand.start + MINUTE_S * np.flatnonzero(has_sample)).tolist()
    rows = (f"{at:.0f},{value!r}" for at, value in zip(times, values[has_sample].tolist(), strict=True))
    return "\n".join(("timestamp,value", *rows, ""))


def present(known: History) -> Knobs:
    """The settings that are in force; violations have the price of the object's own objective, if it has one."""
    objective = known.policy.objective or Objective()
    settings, rules, bounds = settings_of(known.policy), known.policy.settle, known.policy.bounds
    up = max((rule.up_s for rule in rules if isinstance(rule, Stabilise)), default=0.0)
    return Knobs(
        settings.target / _per_share(known),
        settings.tolerance,
        up,
        settings.window_s,
        bounds.min_replicas,
        bounds.max_replicas,
        known.startup_s,
        objective.price,
        NO_BRIDGE if known.policy.bridge is None else known.policy.bridge.max_factor,
        (known.policy.bridge or Bridge()).ceiling,
        float(known.policy.objective is not None),
    )


def may_bridge(known: History) -> bool:
    """A bridge looks at the CPU of pods; an HPA's own controller would take it for idle pods."""
    signals = known.policy.signals
    return known.name.kind != "HorizontalPodAutoscaler" and any(is_cpu(signal.metric) for signal in signals)


def with_knobs(known: History, knobs: Knobs) -> Policy:
    """The policy in force, with these settings; nothing else of it is touched."""
    if knobs.least > knobs.most:
        raise InvalidInput("minReplicas", knobs.least, f"put it from 0 to maxReplicas ({knobs.most})")
    if knobs.bridge > NO_BRIDGE and not may_bridge(known):
        raise InvalidInput("bridge", knobs.bridge, "it needs a metric on cpu, and another kind than an HPA")
    policy = known.policy
    if policy.objective is not None:
        priced = replace(policy.objective, price=knobs.price)
        policy = replace(policy, objective=priced) if knobs.priced else by_target(policy)
    bounds = replace(policy.bounds, min_replicas=knobs.least, max_replicas=knobs.most)
    policy = replace(restated(policy, _settings(known, knobs)), bounds=bounds)
    if knobs.up_window_s != present(known).up_window_s:
        policy = replace(policy, settle=tuple(_with_up_window(rule, knobs.up_window_s) for rule in policy.settle))
    if not _moves_bridge(known, knobs):
        return policy
    if knobs.bridge <= NO_BRIDGE:
        return replace(policy, bridge=None)
    bridge = replace(policy.bridge or Bridge(), max_factor=knobs.bridge, ceiling=knobs.ceiling)
    if policy.bridge is None and policy.objective is not None:
        policy = replace(policy, objective=bridged(policy.objective))
    return replace(policy, bridge=bridge)


def _moves_bridge(known: History, knobs: Knobs) -> bool:
    now = present(known)
    return knobs.bridge != now.bridge or (knobs.bridge > NO_BRIDGE and knobs.ceiling != now.ceiling)


def _settings(known: History, knobs: Knobs) -> TunedSettings:
    target = float(f"{knobs.target * _per_share(known):.6g}")
    if knobs.target == present(known).target:
        target = settings_of(known.policy).target
    return TunedSettings(target=target, tolerance=knobs.tolerance, window_s=knobs.down_window_s)


def _with_up_window(rule: Rule, up_s: float) -> Rule:
    """The same rule as `behavior` writes it, with another window of increases."""
    if isinstance(rule, StabiliseMax):
        rule = Stabilise(down_s=rule.window_s)
    if isinstance(rule, UpLimit):
        return Rate()
    return replace(rule, up_s=up_s) if isinstance(rule, Stabilise) else rule


def _per_share(known: History) -> float:
    """The target of a pod at 100 %, in the words of the metric."""
    return 100.0 if by_percent(tunable(known.policy)) else known.capacity


def behaves(known: History, knobs: Knobs) -> bool:
    """Whether something moved that `behavior` says: an HPA without one follows other rules than one with it."""
    now = present(known)
    return (knobs.tolerance, knobs.up_window_s, knobs.down_window_s) != (
        now.tolerance,
        now.up_window_s,
        now.down_window_s,
    )


def judge(known: History, knobs: Knobs) -> tuple[Outcome, list[str]]:
    """The outcome that `trimtab backtest` gives for the same policy, history, start-up and price."""
    case, note = quickly(case_of(known, with_knobs(known, knobs), knobs))
    return case.outcome(str(known.name)), [*filter(None, [*known.demand.notes, case.gap_note, note])]


def case_of(known: History, policy: Policy, knobs: Knobs) -> Case:
    """A policy on this history, judged by the start-up and the price that are chosen."""
    policy = _unlimited(policy)
    pods = cluster_of(known.pod, startup_s=knobs.startup_s, queue=queue_of(policy, known.capacity))
    return Case(known.demand, policy, pods, knobs.price)


def advice(known: History, knobs: Knobs) -> dict[str, Any]:
    """The best settings, as `trimtab tune` finds them on the same history, beside those in force.

    `knobs` say by which start-up and price; the settings that are compared are those in force.
    """
    case = case_of(known, known.policy, knobs).last_whole_days()
    choice = search(case, writable_space(known.name.kind, case.policy, case.pods))
    best, percent = _with_settings(known, knobs, choice.now), by_percent(tunable(known.policy))
    return {
        "changed": choice.changed,
        "days": choice.days,
        "daysWon": len(choice.days_won),
        "was": settings_text(choice.was, percent),
        "now": settings_text(choice.now, percent),
        "figures": [structs.asdict(choice.before), structs.asdict(choice.after)],
        "knobs": best._asdict(),
        "notes": [*case.demand.notes, *choice.notes],
        "yaml": as_yaml(known, best),
        "command": command(known, best),
    }


def _with_settings(known: History, knobs: Knobs, settings: TunedSettings) -> Knobs:
    """The knobs in these positions; bounds and the window of increases are as they are in force."""
    now = present(known)
    if settings == settings_of(known.policy):
        return now._replace(startup_s=knobs.startup_s, price=knobs.price)
    bridge = now.bridge if now.bridge > NO_BRIDGE else Bridge().max_factor
    return now._replace(
        target=settings.target / _per_share(known),
        tolerance=settings.tolerance,
        down_window_s=settings.window_s,
        startup_s=knobs.startup_s,
        price=knobs.price,
        bridge=bridge if settings.ceiling else NO_BRIDGE,
        ceiling=settings.ceiling or now.ceiling,
        priced=float(settings.priced),
    )


def _unlimited(policy: Policy) -> Policy:
    """How often a pod may be resized is the operator's own limit, of which a manifest and its backtest know nothing."""
    if policy.bridge is None:
        return policy
    return replace(policy, bridge=replace(policy.bridge, resizes_per_hour=None))


def answer(known: History, knobs: Knobs) -> PageTable:
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
        "level": str(known.pod),
        "days": known.demand.days,
        "start": known.demand.start,
        "figures": outcome.by_name(),
        "optimumPodHours": float(outcome.best.sum()) / 240,
        "notes": notes,
        "yaml": as_yaml(known, knobs),
        "command": command(known, knobs),
    }
    curves: dict[str, Column] = {
        "at": known.demand.start + STEP_S * np.arange(len(run.load), dtype=np.float64),
        "load": run.load.astype(np.float32),
        "replicas": run.replicas,
        "ready": run.ready,
        "optimum": outcome.best,
    }
    return PageTable(about, curves)


def patch(known: History, knobs: Knobs) -> dict[str, Any]:
    """What of the object's spec these settings move; the rest of it stays as it is."""
    now, metric = present(known), _metric(known, knobs)
    bounds = {"minReplicas": (now.least, knobs.least), "maxReplicas": (now.most, knobs.most)}
    spec: dict[str, Any] = {name: wanted for name, (is_now, wanted) in bounds.items() if wanted != is_now}
    if metric is not None and knobs.target != now.target:
        spec["metrics"] = [metric]
    if behaves(known, knobs):
        spec["behavior"] = _behavior(known, knobs)
    if known.policy.objective is not None and knobs.priced != now.priced:
        spec["objective"] = None
    elif known.policy.objective is not None and knobs.price != known.policy.objective.price:
        spec["objective"] = {"price": round(knobs.price), "priority": None}
    if not _moves_bridge(known, knobs):
        return {"spec": spec}
    factor = f"{knobs.bridge:g}" if knobs.bridge > NO_BRIDGE else None
    if known.name.kind == "Autoscaler":
        ceiling = {"ceiling": f"{knobs.ceiling:g}"} if knobs.ceiling != now.ceiling else {}
        return {"spec": spec | {"bridge": {"maxFactor": factor} | ceiling if factor else None}}
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
    return join([kind, name.name, "-n", name.namespace])


def command(known: History, knobs: Knobs) -> str:
    """The same as one line for a shell."""
    text = json.dumps(patch(known, knobs), separators=(",", ":"))
    return f"kubectl patch {_target(known.name)} --type merge -p {quote(text)}"
