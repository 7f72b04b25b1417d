"""python -m tests.virtual.chaos --seeds N --first K: seeds per minute, and one command for each that fails."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

from tests.virtual.chaos.checks import CHECKERS
from tests.virtual.chaos.run import Survived, run
from tests.virtual.chaos.scenario import scenario


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.virtual.chaos", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--json", type=Path, help="write what was found to this file")
    given = parser.parse_args()
    began = time.process_time()
    results = [_told(run(seed)) for seed in range(given.first, given.first + given.seeds)]
    minutes = (time.process_time() - began) / 60
    failed = [result for result in results if result.wrong]
    print(f"{len(results) - len(failed)} of {len(results)} seeds survived, {len(results) / minutes:.0f} per minute")
    if given.json is not None:
        given.json.write_text(json.dumps(_summary(results, minutes), indent=1) + "\n")
    return 1 if failed else 0


def _told(result: Survived) -> Survived:
    if result.wrong:
        for fault in scenario(result.seed).faults:
            print(f"  {fault}")
        for text in result.wrong:
            print(f"seed {result.seed}: {text}")
        print(f"replay it: python -m tests.virtual.chaos --seeds 1 --first {result.seed}", flush=True)
    return result


def _summary(results: list[Survived], minutes: float) -> dict[str, object]:
    return {
        "seeds": len(results),
        "first": results[0].seed if results else 0,
        "survived": sum(1 for result in results if not result.wrong),
        "hours": round(sum(result.hours for result in results), 1),
        "seeds_per_minute": round(len(results) / minutes),
        "faults": dict(sorted(Counter(name for result in results for name in result.faults).items())),
        "invariants": {checker.__name__: " ".join((checker.__doc__ or "").split()) for checker in CHECKERS},
    }


if __name__ == "__main__":
    sys.exit(main())
