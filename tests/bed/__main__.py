"""python -m tests.bed build | up | down | status | env | run COMMAND: the control plane of `make cluster`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

from tests.bed import build
from tests.bed.bed import NAMED_BY, SHARED, Bed, beds_dir
from tests.bed.parts import PARTS
from tests.bed.processes import Processes


def build_all() -> int:
    for name, path in build.binaries().items():
        print(f"{name:24} {path}")
    return 0


def up() -> int:
    if Bed.attach() is None:
        down()  # what an interrupted start has left
        _started(SHARED, detached=True)
    return env()


def _started(name: str | None = None, detached: bool = False) -> Bed:
    began = time.monotonic()
    bed = Bed.start(name=name, detached=detached)
    print(f"ready in {time.monotonic() - began:.1f} s", file=sys.stderr)
    return bed


def down() -> int:
    processes = Processes(beds_dir() / SHARED)
    if processes.file.exists():
        Bed(processes).stop()
    return 0


def status() -> int:
    bed = Bed.attach()
    if bed is None:
        print("not running; start it with: make cluster")
        return 1
    for part in PARTS:
        pid = bed.processes.pid(part)
        print(f"{part:20} {f'running ({pid})' if pid else 'stopped':20} {bed.directory / part}.log")
    return 0


def env() -> int:
    """Lines for the shell: eval "$(python -m tests.bed env)"."""
    bed = Bed.attach()
    if bed is None:
        print("not running; start it with: make cluster", file=sys.stderr)
        return 1
    print(f"export KUBECONFIG={bed.kubeconfig}")
    print(f"export BED_API_URL={bed.api_url}")
    print(f"export BED_PROMETHEUS_URL={bed.prometheus_url}")
    print(f"export BED_LOAD_URL={bed.load_url}")
    print(f"export BED_AUDIT_LOG={bed.audit_log}")
    print(f"export PATH={':'.join(dict.fromkeys(str(path.parent) for path in bed.binaries.values()))}:$PATH")
    return 0


def run(command: list[str]) -> int:
    """Runs a command beside the control plane of `make cluster`, else beside one that nobody else has."""
    if Bed.attach() is not None:
        return subprocess.call(command)
    with _started() as bed:
        return subprocess.call(command, env=os.environ | {NAMED_BY: bed.directory.name})


def main() -> int:
    commands = {"build": build_all, "up": up, "down": down, "status": status, "env": env}
    parser = argparse.ArgumentParser(prog="python -m tests.bed", description=__doc__)
    parser.add_argument("command", choices=[*commands, "run"])
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND", help="for run: what to run")
    given = parser.parse_args()
    try:
        return run(given.words) if given.command == "run" else commands[given.command]()
    except (RuntimeError, TimeoutError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
