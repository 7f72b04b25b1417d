"""A day of load at twelve times its speed on a real control plane: tuned and bridged beside the built-in HPA.

One load, two namespaces: default HPA at 70 % in one; in the other what `trimtab tune` makes of the same settings and
seven days of that load's past. All times are twelve times as short as in the day that is played, for both: start-up,
windows, how often they look, which pods they take for young; and both learn the usage of pods from a Prometheus that
scrapes every second. Only the bridge keeps its own five minutes. Too much is more than 80 % of the written cpu of ready
pods, the bridge counted; a pod-minute is one pod's, a cpu-minute is one written request's, so that the bridge is paid
for there.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.e2e.conftest import namespaces
from tests.e2e.test_operator_bridge import cpu, is_ready
from tests.live.running import Running, autoscaler, install_crds, trimtab
from trimtab.kinds.yaml import documents
from trimtab.quantity import parse_quantity
from trimtab.sim.generate import generate, parse_shape
from trimtab.sim.grid import DAY_STEPS, STEP_S

SPEED, STARTUP_S, SERVICE_LEVEL = 12.0, 600.0, 0.8
SYNC_S = 15.0
YOUNG_S = {"cpu-initialization-period": 300.0, "initial-readiness-delay": 30.0}  # as kube-controller-manager has them
REQUEST = 0.1  # cores of one pod
SHAPE = "office,peak=30,days={days},seed=7"
PAST_DAYS = 7
LOOK_EVERY_S, REPORT_EVERY_S = 2.0, 300.0
APP = "web"


@dataclass
class Side:
    """What one of the two has cost so far."""

    over_s: float = 0.0
    pod_minutes: float = 0.0
    cpu_minutes: float = 0.0

    def add(self, pods: list[dict[str, Any]], load: float, seconds: float) -> None:
        ready = sum(cpu(pod) for pod in pods if is_ready(pod))
        self.over_s += seconds * (load > SERVICE_LEVEL * ready)
        self.pod_minutes += seconds / 60 * len(pods)
        self.cpu_minutes += seconds / 60 * sum(cpu(pod) for pod in pods) / REQUEST


def spec(target: int = 70) -> dict[str, Any]:
    metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": target}}
    return {"minReplicas": 2, "maxReplicas": 60, "metrics": [{"type": "Resource", "resource": metric}]}


def tuned(folder: Path) -> dict[str, Any]:
    """What `trimtab tune` makes of the default, by the days before the one that is played."""
    manifest = folder / "default.json"
    manifest.write_text(json.dumps(autoscaler("ours", APP, **spec())))
    load = "generate:" + SHAPE.format(days=PAST_DAYS)
    words = ("--load", load, "--startup", f"{STARTUP_S:.0f}s", "--pod-capacity", "1")
    done = trimtab("tune", "-f", str(manifest), *words)
    if done.returncode:
        raise RuntimeError(done.stderr)
    print("\n".join(line for line in done.stdout.splitlines() if line.startswith("#")))
    found: dict[str, Any] = next(iter(documents(done.stdout))).value["spec"]
    return found


def hastened(full: dict[str, Any]) -> dict[str, Any]:
    """The same spec for a day that is twelve times as short."""
    behavior = full.get("behavior", {})
    down = {"stabilizationWindowSeconds": 300} | behavior.get("scaleDown", {})
    down["stabilizationWindowSeconds"] = round(down["stabilizationWindowSeconds"] / SPEED)
    return full | {"behavior": behavior | {"scaleDown": down}}


def day(hours: float, first_hour: float) -> list[list[float]]:
    """The weekday after the past: seconds of the run, cores."""
    values = generate(parse_shape(SHAPE.format(days=PAST_DAYS + 2)))[PAST_DAYS * DAY_STEPS :]
    first = round(first_hour * 3600 / STEP_S)
    part = values[first : first + round(hours * SPEED * 3600 / STEP_S)]
    return [[index * STEP_S / SPEED, float(value) * REQUEST] for index, value in enumerate(part)]


def hasten(bed: Bed) -> None:
    """What does not stand in a spec: how often the built-in controller looks, and which pods it takes for young."""
    bed.usage_from_prometheus()
    bed.stop_part("controller-manager")
    flags = {"sync-period": SYNC_S} | YOUNG_S
    words = [f"--horizontal-pod-autoscaler-{flag}={seconds(value)}" for flag, value in flags.items()]
    bed.start_part("controller-manager", *words)


def seconds(of_the_day: float) -> str:
    return f"{of_the_day / SPEED:g}s"


def measured(bed: Bed, namespace: str) -> float:
    """Cores of all pods, as autoscalers are told."""
    found = json.loads(bed.kubectl("get", "--raw", f"/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods"))
    return sum(parse_quantity(pod["containers"][0]["usage"]["cpu"]) for pod in found["items"])


def at(points: list[list[float]], elapsed_s: float) -> float:
    """Straight lines, as the bed plays them."""
    return float(np.interp(elapsed_s, [point[0] for point in points], [point[1] for point in points]))


def play(bed: Bed, sides: dict[str, Side], names: dict[str, str], points: list[list[float]]) -> None:
    """The day, looked at every two seconds."""
    for name in names:
        bed.load(name, APP, cores=points)
    started = last = time.monotonic()
    said = 0.0
    while last - started < points[-1][0]:
        found = bed.get("pods", "-A", "-l", f"app={APP}")["items"]
        now = time.monotonic()
        for namespace, side in names.items():
            sides[side].add(_kept(found, namespace), at(points, now - started), now - last)
        if now - started > said + REPORT_EVERY_S:
            said = now - started
            print(f"{said / 60:.0f} min: {sides}", flush=True)
        last = now
        time.sleep(LOOK_EVERY_S)


def _kept(pods: list[dict[str, Any]], namespace: str) -> list[dict[str, Any]]:
    """Of that namespace, without those that are on their way out."""
    own = [pod for pod in pods if pod["metadata"]["namespace"] == namespace]
    return [pod for pod in own if "deletionTimestamp" not in pod["metadata"]]


def run(bed: Bed, points: list[list[float]], folder: Path) -> dict[str, Any]:
    install_crds(bed)
    hasten(bed)
    full = tuned(folder)
    full.pop("scaleTargetRef", None)
    with namespaces(bed, "ahead-hpa", "ahead-ours") as (theirs, ours):
        for namespace in (theirs, ours):
            bed.load(namespace, APP, cores=points[0][1])
            slow = {"ready-after": seconds(STARTUP_S)}
            bed.apply(deployment(namespace, APP, replicas=15, cpu=f"{REQUEST * 1000:.0f}m", annotations=slow))
        for namespace in (theirs, ours):
            eventually(lambda name=namespace: measured(bed, name) > 0.95 * points[0][1], 300)  # type: ignore[misc]
        hpa = autoscaler(theirs, APP, **hastened(spec()))
        bed.apply(hpa | {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"})
        bed.apply(autoscaler(ours, APP, **hastened(full)))
        young = (f"--{flag}={seconds(value)}" for flag, value in YOUNG_S.items())
        with Running(bed, ours, folder, "--tick", seconds(SYNC_S), *young):
            sides = {"hpa": Side(), "trimtab": Side()}
            play(bed, sides, {theirs: "hpa", ours: "trimtab"}, points)
    return {name: vars(side) for name, side in sides.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--from-hour", type=float, default=4.0, help="of the day: the quietest, unless said")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with Bed.start() as bed, tempfile.TemporaryDirectory() as folder:
        found = run(bed, day(given.hours, given.from_hour), Path(folder)) | {"hours": given.hours}
    theirs, ours = found["hpa"], found["trimtab"]
    for word in ("over_s", "pod_minutes", "cpu_minutes"):
        print(f"{word:12} hpa {theirs[word]:9.1f}   trimtab {ours[word]:9.1f}")
    print(json.dumps(found))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
