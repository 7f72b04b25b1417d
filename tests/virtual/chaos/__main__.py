"""python -m tests.virtual.chaos --seeds N --first K: seeds per minute, and one command for each that fails."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from itertools import count, islice
from pathlib import Path

from tests.virtual.chaos.checks import CHECKERS
from tests.virtual.chaos.run import Survived, run
from tests.virtual.chaos.scenario import Scenario, names_of, scenario


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.virtual.chaos", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument(
        "--fault", action="append", default=[], help="only seeds that bring this one (or another named)"
    )
    parser.add_argument("--tenant", action="append", default=[], help="only seeds with this hostile object")
    parser.add_argument("--until-failure", action="store_true", help="end with the first seed that fails")
    parser.add_argument("--json", type=Path, help="write what was found to this file")
    given = parser.parse_args()
    began = time.process_time()
    results: list[Survived] = []
    chosen = (seed for seed in count(given.first) if _brings(scenario(seed), given.fault, given.tenant))
    for seed in islice(chosen, given.seeds):
        results.append(_told(run(seed)))
        if given.until_failure and results[-1].wrong:
            break
    minutes = (time.process_time() - began) / 60
    failed = [result for result in results if result.wrong]
    print(f"{len(results) - len(failed)} of {len(results)} seeds survived, {len(results) / minutes:.0f} per minute")
    if given.json is not None:
        given.json.write_text(json.dumps(_summary(results, minutes), indent=1) + "\n")
    return 1 if failed else 0


def _brings(given: Scenario, faults: list[str], tenants: list[str]) -> bool:
    """One of the faults, by its kind or its kind and what it is about; one of the tenants, by its object's name."""
    brought = {name for fault in given.faults for name in names_of(fault)}
    hostile = {found["metadata"]["name"] for found in given.hostile}
    return not (faults and brought.isdisjoint(faults)) and not (tenants and hostile.isdisjoint(tenants))


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
