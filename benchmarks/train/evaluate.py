"""The learned forecast on sources it was not trained on: every contender on every trace, with the weights of its fold.

    python benchmarks/train/evaluate.py --traces FOLDER --folds FOLDER --json FILE

--folds holds what `train.py --folds` wrote. A file of figures that is there is continued: what it has is not computed
again. Each trace is run as an operator sees it; with fresher metrics and in the idealized view; with the moments
jittered at which coarse sources change, so that nobody can profit from where within an interval a step lies; with the
CPU of pods as the metric; and in three kinds of disturbance. Beside it: how often the 90 % quantile held.
"""

from __future__ import annotations

import argparse
import json
import zlib
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from lessons import fold_of, outcomes

from trimtab.bench.contenders import Runs, rows_from, rows_of
from trimtab.bench.families import CALM, OPERATOR, VIEWS, Disturbance
from trimtab.bench.protocol import Load, load_of
from trimtab.bench.summary import geometric_mean
from trimtab.bench.traces import traces_in
from trimtab.core.forecast.learned.features import logs
from trimtab.core.forecast.learned.model import throughout
from trimtab.core.forecast.learned.net import PROBABILITIES, NetWeights, load_weights
from trimtab.series import Series
from trimtab.sim.grid import DAY_STEPS, MEAN_STEPS, STEP_S, delay_steps
from trimtab.sim.sliding_windows import delayed, trailing_mean

NAMES = ("hpa-default", "hpa-rolling", "hpa-default-bridge", "hpa-rolling-bridge", "trimtab", "trimtab-bridge")
RETUNED = ("hpa-rolling", "hpa-rolling-bridge", "trimtab", "trimtab-bridge")
STARTUPS_S, LAMBDAS, BALANCED = (30.0, 120.0, 600.0), (8.0, 32.0, 128.0), (32.0,)
SCENARIOS = {
    "calm": CALM,
    "jittered": CALM,
    "slow": Disturbance(startup_factor=1.3),
    "late": Disturbance(late_s=60.0),
    "refused": Disturbance(refused=0.1),
    "fresh": CALM,
    "ideal": CALM,
    "cpu": CALM,
}
VIEWED = {"fresh": VIEWS["fresh"], "ideal": VIEWS["ideal"], "cpu": OPERATOR._replace(cpu=True)}
COVERED = PROBABILITIES.tolist().index(0.9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--folds", type=Path, required=True)
    parser.add_argument("--match", default="*")
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--scenarios", default=",".join(SCENARIOS), help="all of them unless written")
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    found: dict[str, dict] = json.loads(args.json.read_text()) if args.json.exists() else {}
    traces = traces_in(args.traces, args.match)
    scenarios = args.scenarios.split(",")
    wanted = [(name, trace, [s for s in scenarios if name not in found.setdefault(s, {})]) for name, trace in traces]
    missing = [each for each in wanted if each[2]]
    with ProcessPoolExecutor(args.processes) as pool:
        answers = pool.map(partial(evaluated, args.folds), missing)
        for (name, _, _), figures in zip(missing, answers, strict=True):
            for scenario, rows in figures.items():
                found[scenario][name] = rows
            args.json.write_text(json.dumps(found))
    for scenario in scenarios:
        for policy in RETUNED:
            print(scenario, policy, *(f"{value:.3f}" for value in _ratios(found[scenario], policy)), flush=True)


def evaluated(folds: Path, wanted: tuple[str, Series, list[str]]) -> dict[str, dict]:
    """The figures of one trace by scenario; what is believed in all of them is simulated once."""
    name, trace, scenarios = wanted
    weights = load_weights(str(folds / f"{fold_of(name)}.npz"))
    load, found, calm = load_of(name, trace), dict[str, dict](), None
    for scenario in scenarios:
        lambdas, names = (LAMBDAS, NAMES) if scenario in ("calm", "fresh", "ideal") else (BALANCED, RETUNED)
        if scenario == "jittered":
            rows = rows_of(load_of(name, jittered(name, trace)), names, STARTUPS_S, lambdas, CALM, weights)
        elif scenario in VIEWED:
            rows = rows_of(load, names, STARTUPS_S, lambdas, CALM, weights, VIEWED[scenario])
        else:
            calm = calm or Runs(load, NAMES, STARTUPS_S, CALM, weights)
            disturbance = SCENARIOS[scenario]
            runs = calm if disturbance == CALM else Runs(load, names, STARTUPS_S, disturbance, weights, calm)
            rows = rows_from(runs, names, STARTUPS_S, lambdas)
        found[scenario] = {"rows": [row.plain() for row in rows]}
    if "calm" in scenarios:
        found["calm"]["coverage"] = coverage(load, weights)
    return found


def coverage(load: Load, weights: NetWeights) -> dict[str, list[float]]:
    """How often the load stayed below its 90 % quantile, in percent, by start-up time."""
    scored = slice(load.warmup_days * DAY_STEPS, len(load.values) - DAY_STEPS // 24)
    shown, found = delayed(trailing_mean(load.values, MEAN_STEPS), 1), dict[str, list[float]](start=[], keep=[])
    times = load.start + STEP_S * np.arange(1, len(shown) + 1, dtype=np.float64)
    for startup_s in STARTUPS_S:
        said = throughout(times, shown, 1.0, startup_s, weights)
        happened = outcomes(load.values, delay_steps(startup_s))[scored]
        for question, (word, quantiles) in enumerate((("start", said.start), ("keep", said.keep))):
            below = logs(quantiles[scored, COVERED]) >= happened[:, question] - 1e-9
            found[word].append(round(100.0 * float(below.mean()), 1))
    return found


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


def _ratios(found: dict[str, dict], policy: str) -> list[float]:
    """To retuned HPA under the same, at the balanced price, for each start-up time."""
    rows = [row for figures in found.values() for row in figures["rows"] if row["lambda"] == 32.0]
    j = {(row["policy"], row["trace"], row["init_s"]): row["j"] for row in rows}
    ratios = [[j[policy, name, s] / j["hpa-rolling", name, s] for name in found] for s in STARTUPS_S]
    return [geometric_mean(np.array(each)) for each in ratios]


if __name__ == "__main__":
    main()
