"""The learned forecast on sources it was not trained on: every contender on every trace, with the weights of its fold.

    python benchmarks/train/evaluate.py --traces FOLDER --folds FOLDER --json FILE [--jitter]

--folds holds what `train.py --folds` wrote. --jitter moves the moments at which coarse sources change, so that nobody
can profit from where within an interval a step lies.
"""

from __future__ import annotations

import argparse
import json
import zlib
from pathlib import Path

import numpy as np
from lessons import fold_of

from trimtab.bench.contenders import CONTENDERS, NO_BRIDGE, PRICED_BRIDGES, REACTIVE_BRIDGES, priced, rows_of
from trimtab.bench.protocol import load_of
from trimtab.bench.summary import BenchRow, geometric_mean
from trimtab.bench.traces import traces_in
from trimtab.core.forecast.learned.weights import load_weights
from trimtab.series import Series

NAMES = ("hpa-default", "hpa-rolling", "hpa-default-bridge", "hpa-rolling-bridge", "trimtab", "trimtab-bridge")
STARTUPS_S, LAMBDAS = (30.0, 120.0, 600.0), (8.0, 32.0, 128.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--folds", type=Path, required=True)
    parser.add_argument("--match", default="*")
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--jitter", action="store_true")
    args = parser.parse_args()
    rows: list[BenchRow] = []
    for name, trace in traces_in(args.traces, args.match):
        weights = load_weights(str(args.folds / f"{fold_of(name)}.npz"))
        CONTENDERS["trimtab"] = priced(weights, NO_BRIDGE, NO_BRIDGE)
        CONTENDERS["trimtab-bridge"] = priced(weights, REACTIVE_BRIDGES, PRICED_BRIDGES)
        load = load_of(name, jittered(name, trace) if args.jitter else trace)
        rows += rows_of(load, NAMES, STARTUPS_S, LAMBDAS)
        args.json.write_text(json.dumps({"rows": [row.plain() for row in rows]}))
    for policy in NAMES:
        print(policy, *(f"{value:.3f}" for value in _ratios(rows, policy)))


def jittered(name: str, trace: Series) -> Series:
    """Every sample of a coarse source up to half an interval earlier or later."""
    interval_s = float(np.median(np.diff(trace.times)))
    if interval_s <= 60:
        return trace
    draw = np.random.default_rng(zlib.crc32(f"jitter {name}".encode()))
    times = np.sort(trace.times + draw.uniform(-0.5, 0.5, len(trace)) * interval_s)
    times[0], times[-1] = trace.times[0], trace.times[-1]
    kept = np.concatenate([[True], np.diff(times) > 0])
    return Series(times[kept], trace.values[kept])


def _ratios(rows: list[BenchRow], policy: str) -> list[float]:
    """To retuned HPA at the balanced price, for each start-up time."""
    j = {(row.policy, row.trace, row.init_s): row.j for row in rows if row.lam == 32.0}
    traces = sorted({row.trace for row in rows})
    return [
        geometric_mean(np.array([j[policy, trace, s] / j["hpa-rolling", trace, s] for trace in traces]))
        for s in STARTUPS_S
    ]


if __name__ == "__main__":
    main()
