"""The traces of a folder of Parquet files that the benchmark runs on.

A file holds one series (timestamp, value) or a fleet (series, timestamp, value). Taken are single series with steps of
at most 5 minutes and 7 whole days, and of each fleet of CPU the first 8 series that span 20 days and are not all zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

from trimtab.errors import InvalidInput, NotEnoughData, TrimtabError
from trimtab.series import Series
from trimtab.sim.generate import SHAPES, generate
from trimtab.sim.grid import STEP_S

MAX_STEP_S = 300
MIN_DAYS, FLEET_DAYS = 7, 20
FLEET_SERIES = 8
GENERATED_DAYS, GENERATED_SEEDS = 28, (1, 2)
_DAY_S = 86400


def traces_in(folder: Path, match: str = "*") -> list[tuple[str, Series]]:
    """Every trace of the protocol with its name, files in order of their names; a pattern leaves others out."""
    files = sorted(folder.glob("*.parquet"))
    if not files:
        raise InvalidInput("--traces", str(folder), "name a folder with Parquet files of timestamp and value")
    found = [trace for file in files for trace in _traces_of(file)]
    if not found:
        raise NotEnoughData(f"{folder}: no trace has steps of at most 5 minutes and 7 whole days")
    if chosen := [(name, trace) for name, trace in found if fnmatch(name, match)]:
        return chosen
    raise InvalidInput("--match", match, f"{folder} has {', '.join(name for name, _ in found[:5])} and others")


def generated_traces(match: str = "*") -> list[tuple[str, Series]]:
    """A family of loads that anybody can make again: every shape of `generate:`, from two seeds, four weeks each."""
    named = {
        f"{name}-{seed}": replace(SHAPES[name], days=GENERATED_DAYS, seed=seed)
        for name in SHAPES
        for seed in GENERATED_SEEDS
    }
    chosen = {name: generate(shape) for name, shape in named.items() if fnmatch(name, match)}
    if not chosen:
        raise InvalidInput("--match", match, f"generated are {', '.join(named)}")
    return [
        (name, Series(STEP_S * np.arange(len(values), dtype=np.float64), values)) for name, values in chosen.items()
    ]


def _traces_of(file: Path) -> Iterator[tuple[str, Series]]:
    table = _read(file)
    if "series" not in table.column_names:
        trace = _series(file, table)
        if _step_s(trace) <= MAX_STEP_S and _span_s(trace) >= MIN_DAYS * _DAY_S:
            yield file.stem, trace
    elif file.stem.startswith("fleet_") and "_cpu_" in file.stem:
        yield from _of_fleet(file, table)


def _of_fleet(file: Path, table: Any) -> Iterator[tuple[str, Series]]:
    names = table.column("series").to_numpy(zero_copy_only=False).astype(str)
    taken = 0
    for name in sorted(set(names)):
        trace = _series(file, table.filter(names == name))
        if _span_s(trace) < FLEET_DAYS * _DAY_S or not trace.values.any():
            continue
        yield f"{file.stem}/{name}", trace
        taken += 1
        if taken == FLEET_SERIES:
            return


def _read(file: Path) -> Any:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise TrimtabError("reading Parquet needs pyarrow: pip install 'trimtab[parquet]'") from None
    try:
        table = parquet.read_table(file)
    except (OSError, ValueError) as error:  # pyarrow's own are kinds of these
        raise InvalidInput(str(file), "no Parquet", f"{error}; move it out of the folder") from None
    if missing := {"timestamp", "value"} - set(table.column_names):
        raise InvalidInput(str(file), ", ".join(sorted(missing)), "the file needs the columns timestamp and value")
    return table


def _series(file: Path, table: Any) -> Series:
    times = table.column("timestamp").to_numpy().astype(np.float64)
    values = table.column("value").to_numpy().astype(np.float64)
    if bad := np.flatnonzero(~np.isfinite(values)).tolist():
        raise InvalidInput(f"{file} row {bad[0]}", float(values[bad[0]]), "values must be finite; leave holes out")
    try:
        return Series(times, values)
    except InvalidInput as error:
        raise InvalidInput(f"{file} {error.path}", error.value, error.fix) from None


def _step_s(trace: Series) -> float:
    return float(np.median(np.diff(trace.times))) if len(trace) > 1 else float("inf")


def _span_s(trace: Series) -> float:
    return float(trace.times[-1] - trace.times[0]) + _step_s(trace) if len(trace) > 1 else 0.0
