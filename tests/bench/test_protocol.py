"""The protocol on generated traces, and its figures against an independent program's where those traces are at hand."""

from __future__ import annotations

import csv
import os
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from trimtab.bench.contenders import rows_of
from trimtab.bench.families import VIEWS
from trimtab.bench.protocol import hold, load_of
from trimtab.bench.traces import traces_in
from trimtab.errors import InvalidInput, NotEnoughData, TrimtabError
from trimtab.series import Series
from trimtab.sim.grid import DAY_STEPS, delay_steps

DAY_S = 86400
SHARED = Path(os.environ.get("TRIMTAB_SHARED", Path(__file__).parents[3] / "shared"))
TRACES, FIGURES = SHARED / "traces", SHARED / "reference" / "protocol_figures.csv"
TABLES = {"operator": "view_figures.csv", "fresh": "view_fresh_figures.csv"}
COLUMNS = {
    "hpa-default": "hpa_default",
    "hpa-default-bridge": "hpa_default_with_bridge_0.70",
    "hpa-rolling": "hpa_rolling",
    "hpa-rolling-bridge": "hpa_rolling_with_bridge",
}
LONG = 40  # days: the retuned figures of longer traces, and of all of a fleet, are compared by `make bench-docs`


def test_values_are_held_and_holes_repeat_the_last() -> None:
    trace = Series(np.array([0.0, 30.0, 60.0, 150.0]), np.array([1.0, -5.0, 3.0, 4.0]))
    assert hold(trace).tolist() == [1, 1, 0, 0, 3, 3, 3, 3, 3, 3, 4, 4]


def test_scale_noise_and_whole_days() -> None:
    times = np.arange(0, 8.5 * DAY_S, 300.0)
    values = 100 + 50 * np.sin(times / 9000)
    load = load_of("some/name", Series(times, values))
    assert len(load.values) == 8 * DAY_STEPS
    held = np.repeat(values, 20)
    noise = np.random.default_rng(zlib.crc32(b"some/name")).standard_normal(len(held))
    expected = held * (32 / np.quantile(held, 0.995)) * (1 + 0.03 * noise)
    assert load.values == pytest.approx(expected[: len(load.values)], rel=1e-12)
    assert load.signal[10] == pytest.approx(load.values[7:11].mean())
    assert (load.days, load.warmup_days) == (8, 3)
    assert load.first_pods == int(np.ceil(load.values[0] / 0.7))


def test_four_weeks_warm_up_for_seven_days() -> None:
    times = np.arange(0, 28 * DAY_S, 300.0)
    assert load_of("x", Series(times, np.ones_like(times))).warmup_days == 7


def test_start_up_in_steps() -> None:
    assert [delay_steps(seconds) for seconds in (0, 30, 120, 600, 31)] == [0, 2, 8, 40, 3]


def test_a_trace_of_zeros_has_no_load() -> None:
    times = np.arange(0, 8 * DAY_S, 300.0)
    with pytest.raises(NotEnoughData, match=r"nothing: 99\.5 % of its values are zero"):
        load_of("nothing", Series(times, np.zeros_like(times)))


def write(path: Path, times: list[float], values: list[float], series: list[str] | None = None) -> None:
    columns: dict[str, list[object]] = {"timestamp": [int(at) for at in times], "value": list(values)}
    parquet.write_table(pa.table(columns | ({"series": series} if series else {})), path)


def test_which_traces_of_a_folder_count(tmp_path: Path) -> None:
    times = list(np.arange(0, 8 * DAY_S, 300.0))
    write(tmp_path / "good_5min.parquet", times, [1.0] * len(times))
    write(tmp_path / "coarse_1h.parquet", times[::12], [1.0] * len(times[::12]))
    write(tmp_path / "short_5min.parquet", times[:1000], [1.0] * 1000)
    weeks = list(np.arange(0, 21 * DAY_S, 300.0))
    names = [name for name in "cab" for _ in weeks]
    values = [0.0 if name == "a" else 2.0 for name in names]
    write(tmp_path / "fleet_x_cpu_5min.parquet", weeks * 3, values, names)
    write(tmp_path / "fleet_x_mem_5min.parquet", weeks * 3, values, names)
    found = [name for name, _ in traces_in(tmp_path)]
    assert found == ["fleet_x_cpu_5min/b", "fleet_x_cpu_5min/c", "good_5min"]
    assert [name for name, _ in traces_in(tmp_path, "fleet_*/c")] == ["fleet_x_cpu_5min/c"]
    with pytest.raises(InvalidInput, match=r"--match: 'web_.': .*good_5min"):
        traces_in(tmp_path, "web_*")
    (tmp_path / "broken.parquet").write_bytes(b"no table")
    with pytest.raises(InvalidInput, match=r"broken\.parquet: 'no Parquet'"):
        traces_in(tmp_path)


@pytest.mark.parametrize(
    "times, values, said",
    [
        ([0, 60, 60, 120], [1, 2, 3, 4], r"bad.parquet .*row 2.*must increase"),
        ([0, 120, 60, 180], [1, 2, 3, 4], r"bad.parquet .*row 2.*must increase"),
        ([0, 60, 120, 180], [1, 2, float("nan"), 4], r"bad.parquet row 2.*finite"),
    ],
    ids=["duplicate", "unordered", "not finite"],
)
def test_a_bad_trace_names_file_and_row(tmp_path: Path, times: list[float], values: list[float], said: str) -> None:
    write(tmp_path / "bad.parquet", times, values)
    with pytest.raises(InvalidInput, match=said):
        traces_in(tmp_path)


def test_an_empty_folder_and_one_without_long_traces(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="name a folder with Parquet files"):
        traces_in(tmp_path)
    write(tmp_path / "short.parquet", [0, 60, 120], [1, 2, 3])
    with pytest.raises(TrimtabError, match="no trace has steps"):
        traces_in(tmp_path)


@pytest.mark.skipif(not FIGURES.exists(), reason=f"no independent figures at {FIGURES} (TRIMTAB_SHARED)")
@pytest.mark.timeout(600)
def test_default_and_retuned_agree_with_the_independent_figures() -> None:
    with FIGURES.open() as file:
        figures = {(row["trace"], float(row["init_s"]), float(row["lambda"])): row for row in csv.DictReader(file)}
    seen, wrong = set[str](), []
    for name, trace in traces_in(TRACES):
        load = load_of(name, trace)
        family, _, member = name.partition("/")
        tunes = load.days <= LONG and not (member and any(one.startswith(family) for one in seen))
        names = ("hpa-default", "hpa-rolling") if tunes else ("hpa-default",)
        for row in rows_of(load, names, [30.0, 120.0, 600.0], [8.0, 32.0, 128.0], view=VIEWS["ideal"]):
            expected = figures[name, row.init_s, row.lam]
            seen.add(name)
            column = row.policy.replace("-", "_")
            if abs(row.j / float(expected[f"{column}_j"]) - 1) > 0.01:
                wrong.append((row, expected))
            if row.policy == "hpa-default":
                assert row.j_oracle == float(expected["j_oracle_pod_steps"])
                assert row.violations == pytest.approx(
                    float(expected["hpa_default_violations_pct"]), rel=0.01, abs=0.01
                )
    assert not wrong
    assert seen == {name for name, *_ in figures}


@pytest.mark.skipif(not FIGURES.exists(), reason=f"no independent figures at {FIGURES} (TRIMTAB_SHARED)")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("view", ["operator", "fresh"])
@pytest.mark.parametrize("trace", ["svc_ms_ingress1_1min", "cpu_ec2_77c1ca_5min"])
def test_reactive_contenders_agree_with_independent_figures_in_the_operators_view(trace: str, view: str) -> None:
    rows = csv.DictReader((FIGURES.parent / TABLES[view]).read_text().splitlines())
    figures = {(float(row["startup_s"]), float(row["lambda"])): row for row in rows if row["trace"] == trace}
    ((name, series),) = traces_in(TRACES, trace)
    for row in rows_of(
        load_of(name, series), list(COLUMNS), [30.0, 120.0, 600.0], [8.0, 32.0, 128.0], view=VIEWS[view]
    ):
        expected = float(figures[row.init_s, row.lam][COLUMNS[row.policy]])
        assert row.j == pytest.approx(expected, rel=0.01 if "rolling" in row.policy else 1e-4), row
