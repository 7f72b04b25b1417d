"""Do two checkouts decide alike? `python -m tests.kinds.witness OTHER_CHECKOUT` compiles 300 generated policies of all
kinds in both, runs the same generated loads through decide() in a loop, and compares replicas, sizes and reasons.

Use it before and after a change to the compiler that must not change behavior. The other checkout needs its .venv.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

NOW, TICK_S, TICKS = 1_700_000_000.0, 15.0, 120
Manifest = dict[str, Any]
HERE = Path(__file__).parents[2]


def manifests(count: int, seed_number: int) -> list[Manifest]:
    """As many right manifests of every kind, the same ones for the same seed."""
    from tests.kinds import generate

    annotated = {
        "hpa": generate.HPAS,
        "ehpa": generate.EHPAS,
        "hvpa": generate.HVPAS,
        "vertical-hvpa": generate.VERTICAL_HVPAS,
        "autoscaler": generate.AUTOSCALERS,
        "wpa": generate.WATERMARKS,
        "phpa": generate.PREDICTIVE_HPAS,
    }
    kinds = {name: generate.annotated(kind) for name, kind in annotated.items()}
    kinds |= {"custom-hpa": generate.CUSTOM_HPA_VALUES, "keda": generate.SCALED_OBJECTS, "vpa": generate.VPAS}
    each = -(-count // len(kinds))
    return [manifest for kind in kinds.values() for manifest in _drawn(kind, each, seed_number)]


def _drawn(kind: Any, count: int, seed_number: int) -> list[Manifest]:
    from hypothesis import HealthCheck, Phase, given, seed, settings

    drawn: list[Manifest] = []

    @seed(seed_number)
    @settings(
        max_examples=4 * count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(kind)
    def collect(manifest: Manifest) -> None:
        drawn.append(json.loads(json.dumps(manifest)))

    collect()
    random.Random(seed_number).shuffle(drawn)  # Hypothesis begins with the smallest ones
    return drawn[:count]


def compiled(manifest: Manifest) -> Any:
    """The policy, in this checkout or in one from before there was one compiler."""
    import trimtab.kinds as kinds

    if (policy_of := getattr(kinds, "policy_of", None)) is not None:
        return policy_of(manifest, NOW)
    if kinds.is_custom_hpa(manifest):
        return kinds.CustomHpa.from_values(manifest).to_policy(NOW)
    if manifest["kind"] in ("ScaledObject", "VerticalPodAutoscaler"):
        from trimtab.kinds.convert import convert

        manifest = convert(manifest, "autoscaler").manifest
    return kinds.read(manifest).to_policy(NOW)  # type: ignore[attr-defined]


def outcome(manifest: Manifest, seed_number: int) -> dict[str, Any]:
    """What one policy does under one load, tick by tick; or that it was refused."""
    import msgspec

    from trimtab.errors import InvalidInput

    try:
        policy = compiled(manifest)
    except InvalidInput as error:
        return {"refused": str(error)}
    kept = ("forecast", "bridge", "tuning", "objective", "admit", "bounds")
    said = {name: msgspec.to_builtins(getattr(policy, name)) for name in kept}
    return {"policy": said, "ticks": ticks(policy, random.Random(seed_number))}


def ticks(policy: Any, draw: random.Random) -> list[Any]:
    """A loop with decide() under a load that wanders, jumps, ends and is sometimes not measured."""
    from trimtab.core.decide import decide
    from trimtab.core.model import ContainerSize
    from trimtab.core.remember import first_sight, remember
    from trimtab.policy import Size

    replicas, load, done = draw.randint(1, 12), draw.uniform(0.5, 20), []
    size = ContainerSize(requests=Size(cpu_cores=0.5, memory_bytes=2.0**30))
    memory = first_sight(NOW, replicas)
    for index in range(TICKS):
        load = max(0.0, load * draw.uniform(0.9, 1.12)) if draw.random() > 0.06 else draw.choice([0.0, 2.0, 15.0, 60.0])
        at = NOW + TICK_S * index
        seen = observation(policy, replicas, size, load, at, missing=draw.random() < 0.04)
        decision = decide(policy, seen, memory)
        memory = decision.memory
        if decision.change is not None:
            memory = remember(policy, memory, decision.change, at)
            replicas, size = decision.plan.replicas, decision.plan.sizes.get("app", size)
        sizes = [[value.requests.cpu_cores, value.requests.memory_bytes] for value in decision.plan.sizes.values()]
        done.append([decision.plan.replicas, sizes, [step.reason for step in decision.steps]])
    return done


def observation(policy: Any, replicas: int, size: Any, load: float, at: float, missing: bool) -> Any:
    """Everything that a policy of any kind may ask for: samples, a forecast above them, and vertical estimates."""
    from trimtab.core.model import (
        Estimate,
        Forecast,
        Missing,
        Observation,
        Pod,
        PodSamples,
        Quantile,
        Reason,
        TotalSample,
        UsageEstimates,
    )
    from trimtab.policy import Axis, MetricKind, PodAverage, Size, Utilization

    requests, each = size.requests, load / max(1, replicas)
    pods = tuple(
        Pod(
            name=f"p{number}",
            ready=number != 5,
            created_at=at - 40.0 * (number + 1),
            started_at=at - 40.0 * (number + 1) + 5,
            ready_since=at - 40.0 * (number + 1) + 15,
            requests=requests,
            containers=dict.fromkeys(("app", "proxy", "worker-1"), requests),
        )
        for number in range(min(replicas, 60))
    )
    samples: list[Any] = []
    for signal in policy.signals:
        metric = signal.metric
        memory = metric.name == "memory" and metric.axis is Axis.MEMORY
        value = each * (2.0**29 if memory else 0.1)
        by_pod = isinstance(signal, Utilization | PodAverage) or metric.kind is MetricKind.RESOURCE
        values = {pod.name: value * (1 + 0.01 * number) for number, pod in enumerate(pods)}
        samples.append(PodSamples(values=values, at=at) if by_pod else TotalSample(value=load, at=at))
    told: tuple[Any, ...] = tuple(samples)
    if missing:
        told = tuple(Missing(reason=Reason.ABSENT) for _ in samples)
    ahead = Forecast(made_at=at, expires_at=at + 60, demand=(Quantile(0.5, 1.3 * load),), model="linear", level=load)
    target = Size(cpu_cores=0.12 * each + 0.01, memory_bytes=each * 2.0**29 + 2.0**26)
    estimate = Estimate(target=target, observed_s=10 * 86400.0, memory_peak_bytes=each * 2.0**29)
    return Observation(
        at=at,
        spec_replicas=replicas,
        status_replicas=replicas,
        pods=pods,
        sizes={"app": size},
        samples=told,
        forecasts=tuple(ahead for _ in samples) if policy.forecast else (),
        usage=UsageEstimates(made_at=at, expires_at=at + 600, containers={"app": estimate}),
    )


def _outcomes(checkout: Path, drawn: list[Manifest]) -> list[dict[str, Any]]:
    """In a process of the checkout's own."""
    python = checkout / ".venv/bin/python"
    done = subprocess.run(
        [str(python), str(Path(__file__).resolve()), "--decide"],
        cwd=checkout,
        env={"PYTHONPATH": str(checkout)},
        input=json.dumps(drawn),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{checkout}: {done.stderr}")
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def difference(before: dict[str, Any], after: dict[str, Any]) -> str:
    """The first thing that is not the same; empty where all is."""
    if ("refused" in before) != ("refused" in after):
        return f"refused before: {before.get('refused')}; now: {after.get('refused')}"
    if "refused" in before:
        return ""
    for name, value in before["policy"].items():
        if after["policy"][name] != value:
            return f"{name}: {value} before, {after['policy'][name]} now"
    for index, (old, new) in enumerate(zip(before["ticks"], after["ticks"], strict=True)):
        if old != new:
            return f"tick {index}: {old} before, {new} now"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, nargs="?", help="the checkout to compare with")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--decide", action="store_true", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.decide:
        print(json.dumps([outcome(manifest, index) for index, manifest in enumerate(json.load(sys.stdin))]))
        return
    drawn = manifests(wanted.count, wanted.seed)
    before, after = _outcomes(wanted.other.resolve(), drawn), _outcomes(HERE, drawn)
    counted: Counter[str] = Counter()
    for manifest, old, new in zip(drawn, before, after, strict=True):
        kind = str(manifest.get("kind", "custom-hpa"))
        why = difference(old, new)
        counted[f"{kind}: {'differs' if why else 'refused in both' if 'refused' in old else 'same'}"] += 1
        if why:
            print(f"{json.dumps(manifest)}\n  {why}")
    print(*(f"{count:5} {what}" for what, count in sorted(counted.items())), sep="\n")
    raise SystemExit(1 if any("differs" in what for what in counted) else 0)


if __name__ == "__main__":
    main()
