"""python -m tests.fuzz OUT --seconds N: each target for its share of the time, in a process of its own.

What was tried goes to OUT/fuzz.json, what coverage found new to OUT/fuzz/TARGET, a crash to OUT/fuzz/TARGET-crash-*.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import re
import subprocess
import sys
import time
from pathlib import Path

WORKER = "--worker"
if WORKER in sys.argv:
    import atheris

    with atheris.instrument_imports(include=["trimtab"]):
        from tests.fuzz.examples import BEGIN
        from tests.fuzz.targets import TARGETS, feed
else:
    from tests.fuzz.examples import BEGIN
    from tests.fuzz.targets import TARGETS, feed

DONE = re.compile(rb"^(?:Done (\d+) runs in (\d+)|stat::number_of_executed_units: +(\d+))", re.MULTILINE)
LIMITS = ("-timeout=20", "-rss_limit_mb=2000", "-max_len=4096", "-len_control=20")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=int, default=3600, help="for all targets together")
    parser.add_argument("--target", action="append", choices=TARGETS, help="only this one")
    parser.add_argument(WORKER, action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    names = given.target or list(TARGETS)
    if given.worker:
        return _fuzz(names[0], given.out, given.seconds)
    return sum(_watched(name, given.out, given.seconds // len(names)) for name in names) > 0


def _watched(name: str, out: Path, seconds: int) -> bool:
    """In a process that a crash may end; whether it did."""
    command = [sys.executable, "-m", "tests.fuzz", str(out), WORKER, "--target", name, "--seconds", str(seconds)]
    began = time.monotonic()
    ended = subprocess.run(command, stderr=subprocess.PIPE)
    took_s = round(time.monotonic() - began)  # a crash ends it early
    found = DONE.findall(ended.stderr)
    tried = max((int(runs or units) for runs, _, units in found), default=0)
    print(f"{name}: {tried:,} inputs in {took_s} s" + (", CRASHED" if ended.returncode else ""), flush=True)
    if ended.returncode:
        print(ended.stderr[-6000:].decode(errors="replace"), flush=True)
    _note(out / "fuzz.json", name, tried, took_s)
    return ended.returncode != 0


def _note(path: Path, name: str, tried: int, seconds: int) -> None:
    """What all runs have tried together."""
    known = json.loads(path.read_text()) if path.exists() else {}
    before = known.get(name, {"inputs": 0, "seconds": 0})
    known[name] = {"inputs": before["inputs"] + tried, "seconds": before["seconds"] + seconds}
    path.write_text(json.dumps(known, indent=1) + "\n")


def _fuzz(name: str, out: Path, seconds: int) -> int:
    logging.disable(logging.CRITICAL)
    corpus = out / "fuzz" / name
    corpus.mkdir(parents=True, exist_ok=True)
    for data in BEGIN.get(name, []):
        (corpus / hashlib.sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)
    target = TARGETS[name]
    places = [str(corpus), f"-artifact_prefix={corpus}-", f"-max_total_time={seconds}", "-print_final_stats=1", *LIMITS]
    atheris.Setup([sys.argv[0], *places], lambda data: feed(target, data))
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
