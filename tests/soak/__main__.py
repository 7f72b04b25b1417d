"""python -m tests.soak OUT.json --minutes 30: two operators and 300 objects on the bed; memory and journal stay flat.

Every few seconds some objects go and others come, and loads change; every minute one of the operators is ended, by
SIGTERM and SIGKILL in turn, and started again. Both are measured at the same age in each of their lives.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.live.accounts import chart_account
from tests.live.running import Running, autoscaler, install_crds

NAMESPACE = "soak"
LIFE_S, CHURN_S = 60.0, 5.0
GONE, BUSY = 3, 10  # objects that go, and loads that change, at each churn
MIB = 2**20
STEEPEST_MIB = 60.0  # of memory per hour, from life to life
JOURNAL_MIB = 200.0  # per hour: a week of it fills no more than the journal may hold before it prunes


class Measured(NamedTuple):
    """One operator at the end of one of its lives."""

    at_s: float
    who: str
    memory_mib: float
    journal_mib: float


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--objects", type=int, default=300)
    given = parser.parse_args()
    bed = Bed.attach()
    assert bed is not None, "start it by `make soak`, which starts a control plane"
    folder = Path(tempfile.mkdtemp())
    try:
        found = soak(bed, folder, 60 * given.minutes, given.objects)
    finally:
        shutil.rmtree(folder)
    summary = summed_up(found, given.minutes, given.objects)
    given.out.write_text(json.dumps(summary, indent=1) + "\n")
    print(json.dumps(summary))
    return 0 if summary["flat"] else 1


def soak(bed: Bed, folder: Path, lasts_s: float, objects: int) -> list[Measured]:
    draw = random.Random(1)
    install_crds(bed)
    bed.kubectl("create", "namespace", NAMESPACE)
    names = [f"web-{number:03d}" for number in range(objects)]
    for name in names:
        bed.load(NAMESPACE, name, cores=0.2)
    bed.apply(*(manifest for name in names for manifest in (deployment(NAMESPACE, name), _object(name))))
    operators = {name: _operator(bed, name, folder) for name in ("north", "south")}
    began = time.monotonic()
    found: list[Measured] = []
    try:
        for running in operators.values():
            running.__enter__()
        while (now_s := time.monotonic() - began) < lasts_s:
            who = list(operators)[len(found) % 2]
            _churn(bed, draw, names, until=time.monotonic() + LIFE_S)
            found.append(_measured(operators[who], who, now_s))
            print(json.dumps(found[-1]._asdict()), flush=True)
            _restart(operators[who], hard=len(found) % 4 > 1)
        eventually(lambda: _all_looked_at(bed, objects), 120, "every object has a status")
    finally:
        for running in operators.values():
            running.stop()
        bed.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
    return found


def summed_up(found: list[Measured], minutes: float, objects: int) -> dict[str, Any]:
    """Slopes per hour, of each operator by itself, the steeper one; the first life is warming up."""
    memory, journal = (
        max(_slope([each for each in found if each.who == who][1:], field) for who in ("north", "south"))
        for field in ("memory_mib", "journal_mib")
    )
    flat = memory < STEEPEST_MIB and journal < JOURNAL_MIB
    return {
        "minutes": minutes,
        "objects": objects,
        "restarts": len(found),
        "largest_memory_mib": round(max(each.memory_mib for each in found), 1),
        "memory_mib_per_hour": round(memory, 2),
        "journal_mib_per_hour": round(journal, 2),
        "flat": bool(flat),
    }


def _slope(found: list[Measured], field: str) -> float:
    hours = [each.at_s / 3600 for each in found]
    return float(np.polyfit(hours, [getattr(each, field) for each in found], 1)[0]) if len(found) > 2 else 0.0


def _operator(bed: Bed, name: str, folder: Path) -> Running:
    own = folder / name
    own.mkdir()
    return Running(bed, NAMESPACE, own, "--tick", "5s", kubeconfig=chart_account(bed, NAMESPACE, name))


def _object(name: str) -> dict[str, Any]:
    return autoscaler(NAMESPACE, name, maxReplicas=3)


def _churn(bed: Bed, draw: random.Random, names: list[str], until: float) -> None:
    while time.monotonic() < until:
        gone = draw.sample(names, GONE)
        bed.kubectl("delete", "autoscaler", "-n", NAMESPACE, "--wait=false", *gone)
        for name in draw.sample(names, BUSY):
            bed.load(NAMESPACE, name, cores=draw.choice([0.1, 0.3, 0.6]))
        bed.apply(*map(_object, gone))
        time.sleep(max(0.0, min(CHURN_S, until - time.monotonic())))


def _measured(running: Running, who: str, at_s: float) -> Measured:
    assert running.process is not None
    status = Path(f"/proc/{running.process.pid}/status").read_text()
    kib = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    files = [Path(f"{running.journal}{suffix}") for suffix in ("", "-wal")]
    size = sum(os.path.getsize(file) for file in files if file.exists())
    return Measured(at_s, who, kib / 1024, size / MIB)


def _restart(running: Running, hard: bool) -> None:
    running.kill() if hard else running.stop()
    running.start()
    eventually(lambda: running.get("/readyz").startswith("ok"), 60, "it is back")


def _all_looked_at(bed: Bed, objects: int) -> bool:
    found = bed.get("autoscaler", "-n", NAMESPACE)["items"]
    return len(found) == objects and all(each.get("status", {}).get("conditions") for each in found)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(str(error.stderr or error))
