"""The operator on a real control plane: N Autoscalers with a pod each, at rest and when a tenth of the loads double.

Needs the control plane of `make cluster` (it starts one where none runs). The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.live.running import Running, autoscaler, install_crds

TICK_S = 15.0
CORES = 0.05  # half of each pod's request of 100m: exactly at the target
BATCH = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=1000)
    parser.add_argument("--ticks", type=int, default=4, help="how many ticks at rest are measured")
    parser.add_argument("--beside", action="store_true", help="measure the built-in HPA controller with as many, too")
    given = parser.parse_args()
    running = Bed.attach()
    bed = running or Bed.start()
    try:
        print(json.dumps(measure(bed, given.objects, given.ticks, given.beside)))
    finally:
        if running is None:
            bed.stop()


def measure(bed: Bed, objects: int, ticks: int, beside: bool) -> dict[str, Any]:
    install_crds(bed)
    namespace = f"bench-{uuid.uuid4().hex[:6]}"
    bed.kubectl("create", "namespace", namespace)
    try:
        fill(bed, namespace, objects, "Autoscaler")
        result = ours(bed, namespace, objects, ticks)
    finally:
        bed.kubectl("delete", "namespace", namespace, "--wait=false")
    return result | ({"hpa": theirs(bed, objects)} if beside else {})


def fill(bed: Bed, namespace: str, objects: int, kind: str) -> None:
    load = {"load": json.dumps({"cores": CORES})}
    names = [f"web-{index}" for index in range(objects)]
    for start in range(0, objects, BATCH):
        some = names[start : start + BATCH]
        made = [deployment(namespace, name, cpu="100m", annotations=load) for name in some]
        create(bed, made + [scaler(namespace, name, kind) for name in some])
    say(f"{objects} Deployments made, waiting for their pods")
    eventually(lambda: ready(bed, namespace) == objects, 60 + objects / 2, f"{objects} pods", every_s=5)


def scaler(namespace: str, name: str, kind: str) -> dict[str, Any]:
    made = autoscaler(namespace, name)
    if kind == "HorizontalPodAutoscaler":
        made |= {"apiVersion": "autoscaling/v2", "kind": kind}
    return made


def create(bed: Bed, items: list[dict[str, Any]]) -> None:
    bed.kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def ready(bed: Bed, namespace: str) -> int:
    words = ("get", "pods", "-n", namespace, "--field-selector=status.phase=Running", "-o", "name")
    return bed.kubectl(*words).count("\n")


def ours(bed: Bed, namespace: str, objects: int, ticks: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, Running(bed, namespace, Path(folder), "--tick", f"{TICK_S}s") as one:
        eventually(lambda: numbers(one)["trimtab_objects"] == objects, 120, every_s=1)
        settled = [0.0]

        def calm() -> bool:
            """Every status is written: a whole tick without a write."""
            before, settled[0] = settled[0], written(one)
            return before == settled[0] > 0

        eventually(calm, 300, "no more writes", every_s=TICK_S + 1)
        rest = at_rest(one, ticks)
        tenth = [f"web-{index}" for index in range(0, objects, 10)]
        for name in tenth:
            bed.load(namespace, name, cores=2 * CORES)
        doubled = time.monotonic()
        eventually(lambda: scaled(bed, namespace) >= len(tenth), 120, f"{len(tenth)} scaled", every_s=1)
        rest["scaled_tenth_s"] = round(time.monotonic() - doubled, 1)
        rest["objects"] = objects
        return rest


def at_rest(one: Running, ticks: int) -> dict[str, Any]:
    assert one.process is not None
    before, cpu, counted = numbers(one), cpu_s(one.process.pid), requests(one)
    eventually(
        lambda: numbers(one)["trimtab_ticks_total"] >= before["trimtab_ticks_total"] + ticks, 60 * ticks, every_s=0.5
    )
    after, passed = numbers(one), requests(one)
    done = after["trimtab_ticks_total"] - before["trimtab_ticks_total"]
    spent = {key: passed[key] - counted.get(key, 0) for key in passed if passed[key] != counted.get(key, 0)}
    return {
        "cpu_s_a_tick": round((cpu_s(one.process.pid) - cpu) / done, 3),
        "tick_s": round((after["trimtab_tick_seconds_total"] - before["trimtab_tick_seconds_total"]) / done, 3),
        "writes_at_rest": sum(count for key, count in spent.items() if key.startswith(("patch ", "create "))),
        "requests_a_tick": {key: round(count / done, 2) for key, count in spent.items()},
        "rss_mib": round(rss_mib(one.process.pid)),
    }


def theirs(bed: Bed, objects: int) -> dict[str, Any]:
    """The built-in controller: its own CPU, and how long between two syncs of one object, by its own metrics."""
    namespace = f"bench-{uuid.uuid4().hex[:6]}"
    bed.kubectl("create", "namespace", namespace)
    pid = bed.processes.pid("controller-manager")
    assert pid is not None
    try:
        fill(bed, namespace, objects, "HorizontalPodAutoscaler")
        time.sleep(30)
        cpu, started = cpu_s(pid), time.monotonic()
        time.sleep(60)
        return {"controller_manager_cpu_s_in_15_s": round((cpu_s(pid) - cpu) / (time.monotonic() - started) * 15, 2)}
    finally:
        bed.kubectl("delete", "namespace", namespace, "--wait=false")


def scaled(bed: Bed, namespace: str) -> int:
    found = bed.get("deployments", "-n", namespace)["items"]
    return sum(1 for one in found if one["spec"]["replicas"] == 2)


def numbers(one: Running) -> dict[str, float]:
    """The operator's metrics without labels."""
    lines = [line.split() for line in one.get("/metrics").splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in lines if "{" not in name}


def requests(one: Running) -> dict[str, float]:
    found: dict[str, float] = {}
    for line in one.get("/metrics").splitlines():
        if line.startswith("trimtab_api_requests_total{"):
            labels, value = line.split("} ")
            verb, resource = labels.split('"')[1], labels.split('"')[3]
            found[f"{verb} {resource}"] = found.get(f"{verb} {resource}", 0) + float(value)
    return found


def written(one: Running) -> float:
    return sum(count for key, count in requests(one).items() if key.startswith(("patch ", "create ")))


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
