"""python -m tests.bed up | down | status | env: the control plane of `make cluster`."""

from __future__ import annotations

import argparse
import sys
import time

from tests.bed.bed import Bed, beds_dir
from tests.bed.parts import PARTS
from tests.bed.processes import Processes

NAME = "default"


def up() -> int:
    bed = Bed.attach(NAME)
    if bed is None:
        down()  # what an interrupted start has left
        started = time.monotonic()
        bed = Bed.start(name=NAME, detached=True)
        print(f"ready in {time.monotonic() - started:.1f} s", file=sys.stderr)
    return env()


def down() -> int:
    processes = Processes(beds_dir() / NAME)
    if processes.file.exists():
        Bed(processes).stop()
    return 0


def status() -> int:
    bed = Bed.attach(NAME)
    if bed is None:
        print("not running; start it with: make cluster")
        return 1
    for part in PARTS:
        pid = bed.processes.pid(part)
        print(f"{part:20} {f'running ({pid})' if pid else 'stopped':20} {bed.directory / part}.log")
    return 0


def env() -> int:
    """Lines for the shell: eval "$(python -m tests.bed env)"."""
    bed = Bed.attach(NAME)
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


def main() -> int:
    commands = {"up": up, "down": down, "status": status, "env": env}
    parser = argparse.ArgumentParser(prog="python -m tests.bed", description=__doc__)
    parser.add_argument("command", choices=commands)
    try:
        return commands[parser.parse_args().command]()
    except (RuntimeError, TimeoutError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
