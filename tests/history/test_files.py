"""History from files: what people have in them, and what they are told about mistakes."""

from __future__ import annotations

import asyncio
import builtins
import gzip
import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trimtab.errors import InvalidInput, NotEnoughData
from trimtab.history.files import FileReading, Files, regrid
from trimtab.history.read_file import read_csv, read_file, read_parquet
from trimtab.history.source import Selection, fetch
from trimtab.series import Frame

NAN = np.nan


def csv(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "load.csv"
    path.write_text(text)
    return path


def test_one_series_named_after_its_file(tmp_path: Path) -> None:
    frame = read_csv(csv(tmp_path, "timestamp,value\n60,1\n120,2.5\n240,4\n\n"))
    assert (frame.names, frame.start, frame.step_s) == (("load",), 60, 60)
    np.testing.assert_array_equal(frame.values, [[1, 2.5, NAN, 4]])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('"Time","web"\n60,1\n120,2\n', id="as dashboards export it"),
        pytest.param("timestamp,cpu\n60,1\n120,2\n", id="a value of another name"),
        pytest.param("at,value\n60,1\n120,2\n", id="a time of another name"),
        pytest.param("cpu,timestamp\n1,60\n2,120\n", id="the time last"),
        pytest.param("value,at\n1,60\n2,120\n", id="the value first"),
    ],
)
def test_two_columns_may_have_names_of_their_own(tmp_path: Path, text: str) -> None:
    frame = read_csv(csv(tmp_path, text))
    assert frame.start == 60
    np.testing.assert_array_equal(frame.values, [[1, 2]])


TEXT = "timestamp,value\n0,1\n60,2\n"


def test_packed_wide_and_piped_text_is_read_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, packed, wide = tmp_path / "web.csv", tmp_path / "web.csv.gz", tmp_path / "wide.csv"
    plain.write_text(TEXT)
    packed.write_bytes(gzip.compress(TEXT.encode()))
    wide.write_bytes(TEXT.encode("utf-16"))
    read = {name: read_file(str(name), FileReading()) for name in (plain, packed, wide)}
    assert read[packed].names == read[plain].names == ("web",)
    assert all(frame.values.tolist() == [[1.0, 2.0]] for frame in read.values())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert read_file("-", FileReading()).values.tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(
    "held",
    [
        pytest.param(TEXT.encode(), id="not packed"),
        pytest.param(gzip.compress(TEXT.encode())[:20], id="cut off"),
        pytest.param(gzip.compress(b"")[:-6] + b"broken", id="broken"),
    ],
)
def test_what_is_packed_otherwise_or_broken_is_refused(tmp_path: Path, held: bytes) -> None:
    (tmp_path / "web.csv.gz").write_bytes(held)
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_file(str(tmp_path / "web.csv.gz"), FileReading())


def test_several_series_in_any_order_of_each_other_and_columns_in_any_order(tmp_path: Path) -> None:
    text = "series,value,timestamp\nb,1,60\na,2,60\na,3,120\nb,4,120\n"
    frame = read_csv(csv(tmp_path, text))
    assert frame.names == ("a", "b")
    np.testing.assert_array_equal(frame.values, [[2, 3], [1, 4]])


def test_dates_with_dots_are_day_month_year_and_commas_are_decimal_points(tmp_path: Path) -> None:
    """As a spreadsheet writes them where semicolons separate."""
    frame = read_csv(csv(tmp_path, "Zeit;Wert\n01.02.1970 00:00;1,5\n01.02.1970 00:01:00;2\n"))
    assert (frame.start, frame.values.tolist()) == (31 * 86400.0, [[1.5, 2.0]])


def test_iso_times_with_and_without_a_zone(tmp_path: Path) -> None:
    text = "timestamp,value\n2026-01-01T00:00:00Z,1\n2026-01-01T01:01:00+01:00,2\n2026-01-01 00:02:00,3\n"
    frame = read_csv(csv(tmp_path, text))
    assert frame.start == datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    np.testing.assert_array_equal(frame.values, [[1, 2, 3]])


@pytest.mark.parametrize(
    "text, row, said",
    [
        pytest.param("", "row 1", "timestamp,value", id="empty file"),
        pytest.param("when,load,host\n1,2,a\n", "row 1", "no timestamp", id="wrong columns"),
        pytest.param("1,2\n3,4\n", "row 1", "no timestamp", id="no header"),
        pytest.param("timestamp,value\n60,1\n60,2\n", "row 3", "twice", id="duplicate"),
        pytest.param("Time,a,b\n60,1,2\n120,1,x\n180,1,2\n", "row 3", "as a number", id="text in a wide file"),
        pytest.param("Time,a,b\n60,1,2\n120,1,-3\n", "row 3", "never negative", id="negative in its last column"),
        pytest.param(
            "timestamp,value,series\n60,1,a\n60,1,b\n60,2,a\n", "row 4", "twice", id="duplicate in one series"
        ),
        pytest.param("timestamp,value\n60,1\n120,-2\n", "row 3", "never negative", id="negative"),
        pytest.param("timestamp,value\n60,1\n120,inf\n", "row 3", "leave the row out", id="infinite"),
        pytest.param("timestamp,value\n60,many\n", "row 2", "as a number", id="text"),
        pytest.param("timestamp,value\n60\n", "row 2", "columns timestamp,value", id="too few columns"),
        pytest.param("# a\n\ntimestamp,value\n60,1\n\n# b\n120,x\n", "row 7", "as a number", id="after comments"),
        pytest.param("sep=,\nTime,web\n60,1\n120,1 cores\n", "row 4", "Formatted data", id="after Excel's line"),
        pytest.param("timestamp,value\nyesterday,1\n", "row 2", "ISO 8601", id="no time"),
        pytest.param("timestamp,value\n1e21,1\n", "row 2", "unix seconds", id="no unit of time"),
        pytest.param("timestamp,pod,cpu,mem\n60,a-0,1,2\n", "row 1", "no value", id="two values of a pod"),
        pytest.param(
            "timestamp,value\n60,1\n120,1\n180,1\n99999,1\n", "row 5", "99819 s without a sample", id="mostly missing"
        ),
    ],
)
def test_mistakes_are_named_with_file_and_row(tmp_path: Path, text: str, row: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_csv(csv(tmp_path, text))
    assert f"load.csv {row}:" in str(caught.value)
    assert said in str(caught.value)


def test_a_header_without_samples_and_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotEnoughData, match="no samples"):
        read_csv(csv(tmp_path, "timestamp,value\n"))
    with pytest.raises(InvalidInput, match=r"absent\.csv"):
        read_csv(tmp_path / "absent.csv")


def test_a_huge_hole_is_refused_before_it_costs_memory(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="more than half"):
        read_csv(csv(tmp_path, "timestamp,value\n0.0,1\n0.001,1\n1700000000,1\n"), FileReading(step_s=0.001))


@pytest.fixture
def pyarrow() -> Any:
    return pytest.importorskip("pyarrow", reason="needs trimtab[parquet]")


def parquet(tmp_path: Path, pyarrow: Any, **columns: Any) -> Path:
    path = tmp_path / "load.parquet"
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), path)
    return path


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_parquet_timestamps_of_every_unit(tmp_path: Path, pyarrow: Any, unit: str, zone: str | None) -> None:
    moments = pyarrow.array([60, 120], pyarrow.int64()).cast(pyarrow.timestamp("s")).cast(pyarrow.timestamp(unit))
    times = moments.cast(pyarrow.timestamp(unit, zone)) if zone else moments
    frame = read_parquet(parquet(tmp_path, pyarrow, timestamp=times, value=[1, 2], series=["a", "a"], other=["x", "y"]))
    assert (frame.names, frame.start, frame.step_s) == (("a",), 60, 60)
    np.testing.assert_array_equal(frame.values, [[1, 2]])


@pytest.mark.parametrize("times", [[60, 120], [60.0, 120.0], ["1970-01-01T00:01:00Z", "1970-01-01T00:02:00Z"]])
def test_parquet_numbers_and_texts(tmp_path: Path, pyarrow: Any, times: list[Any]) -> None:
    assert read_parquet(parquet(tmp_path, pyarrow, timestamp=times, value=[1.0, 2.0])).start == 60


@pytest.mark.parametrize(
    "columns, said",
    [
        ({"timestamp": [1], "load": ["a"], "host": ["b"]}, "no value"),
        ({"timestamp": [60, None], "value": [1.0, 1.0]}, "every row a time"),
        ({"timestamp": [60], "value": ["x"]}, "must hold numbers"),
        ({"timestamp": [60, 60], "value": [1, 2]}, "row 3"),
    ],
    ids=["columns", "null time", "text", "duplicate"],
)
def test_parquet_mistakes(tmp_path: Path, pyarrow: Any, columns: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read_parquet(parquet(tmp_path, pyarrow, **columns))


def test_a_file_that_is_no_parquet(tmp_path: Path, pyarrow: Any) -> None:
    with pytest.raises(InvalidInput, match="cannot be read as Parquet"):
        read_parquet(csv(tmp_path, "timestamp,value\n"))


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(InvalidInput, match=r"trimtab\[parquet\]"):
        read_parquet(tmp_path / "x.parquet")


def files() -> Files:
    names = ("shop/Deployment/web", "shop/Deployment/web/main", "bank/Deployment/api", "mine")
    return Files({"cpu": Frame(names, 0, 60, np.arange(16.0).reshape(4, 4))})


@pytest.mark.parametrize(
    "selection, names",
    [
        (Selection("cpu"), ("shop/Deployment/web", "bank/Deployment/api", "mine")),
        (Selection("cpu", namespaces=("bank",)), ("bank/Deployment/api", "mine")),
        (Selection("cpu", "container"), ("shop/Deployment/web/main",)),
    ],
)
def test_files_are_a_source(selection: Selection, names: tuple[str, ...]) -> None:
    assert asyncio.run(fetch(files(), selection, 0, 240, 60)).names == names


def test_a_source_without_the_metric_says_so() -> None:
    with pytest.raises(NotEnoughData, match="memory"):
        asyncio.run(fetch(files(), Selection("memory"), 0, 240, 60))


def test_a_coarser_grid_is_the_mean_of_what_is_there_and_a_finer_one_is_refused() -> None:
    frame = Frame(("a",), 0, 60, np.array([[1.0, 3.0, NAN, 5.0, NAN, NAN]]))
    coarse = regrid(frame, 0, 480, 120)
    np.testing.assert_array_equal(coarse.values, [[2, 5, NAN, NAN]])
    with pytest.raises(InvalidInput, match="every 60 s"):
        regrid(frame, 0, 480, 30)


@pytest.mark.parametrize(
    "text, names, first",
    [
        pytest.param("Timestamp,Value\n0,1.5\n60,2\n", ("usage",), 1.5, id="names in capitals"),
        pytest.param("timestamp;value\n0;1,5\n60;2\n", ("usage",), 1.5, id="semicolons and decimal commas"),
        pytest.param("Time,a,b\n0,1.5,\n60,2,3\n", ("a", "b"), 1.5, id="a column per series, an empty cell"),
        pytest.param("Time,shop/Deployment/web\n0,1.5\n60,2\n", ("shop/Deployment/web",), 1.5, id="one by name"),
        pytest.param("timestamp,value\n0,1.5\n60,NaN\n120,2\n180,2\n", ("usage",), 1.5, id="NaN is a gap"),
    ],
)
def test_csv_as_dashboards_export_it(tmp_path: Path, text: str, names: tuple[str, ...], first: float) -> None:
    path = tmp_path / "usage.csv"
    path.write_text(text)
    frame = read_csv(path)
    assert frame.names == names and frame.values[0][0] == first
    assert np.isnan(frame.values).sum() == ("NaN" in text) + ("1.5,\n" in text)


CLOUDWATCH = """\
Full label,web cpu,api cpu
Label,web,api
Stat,Average,Average
Period,60,60
2026/11/01 00:00:00,1.5,3
2026/11/01 00:01:00,2,
2026/11/01 00:02:00,2,4
"""
POD = "web-7d9f8b6c5d-x2x4z"


@pytest.mark.parametrize(
    "text, rows",
    [
        pytest.param(CLOUDWATCH, {"web cpu": [1.5, 2, 2], "api cpu": [3, NAN, 4]}, id="CloudWatch's console"),
        pytest.param(
            "Timestamp,Average,Unit\n2026-11-01T00:01:00Z,2,Percent\n2026-11-01T00:00:00Z,1,Percent\n",
            {"usage": [1, 2]},
            id="CloudWatch's statistics, in no order",
        ),
        pytest.param(
            'timestamp,"avg:cpu{kube_namespace:shop,kube_deployment:web}"\n1793491200000,1\n1793491260000,2\n',
            {"shop/Deployment/web": [1, 2]},
            id="Datadog: milliseconds, tags in the name",
        ),
        pytest.param(
            "time,kube_namespace,kube_deployment,value\n0,shop,web,1\n60,shop,web,2\n0,shop,api,5\n60,shop,api,6\n",
            {"shop/Deployment/web": [1, 2], "shop/Deployment/api": [5, 6]},
            id="Datadog: a row per group",
        ),
        pytest.param(
            'sep=,\n"Time","{namespace=""shop"", statefulset=""db""}"\n0,1\n60,2\n',
            {"shop/StatefulSet/db": [1, 2]},
            id="Grafana, for Excel",
        ),
        pytest.param(f"Time,{POD},a\n0,1,2\n60,2,3\n", {"home/Deployment/web": [1, 2], "a": [2, 3]}, id="a pod's name"),
        pytest.param("Time\tcpu\n0\t1\n60\t2\n", {"usage": [1, 2]}, id="tabs"),
        pytest.param(
            "Label,Timestamps,Values\nweb,0,1\nweb,60,2\napi,0,3\napi,60,4\n",
            {"web": [1, 2], "api": [3, 4]},
            id="CloudWatch: a row per sample",
        ),
        pytest.param(
            "#group,false,false,true\n#default,_result,,\n,table,_time,_value\n,0,1970-01-01T00:00:00Z,1\n"
            ",0,1970-01-01T00:01:00Z,2\n\n",
            {"usage": [1, 2]},
            id="InfluxDB, with its notes",
        ),
        pytest.param("# by hand\n\nTime,cpu\n0,250m\n60,1.5\n", {"usage": [0.25, 1.5]}, id="quantities"),
        pytest.param(
            "Time,cpu\n0,1\n60,2\nTime,cpu\n60,2\n120,3\n", {"usage": [1, 2, 3]}, id="two exports that overlap"
        ),
        pytest.param("timestamp,value,label\n0,1,0\n60,2,1\n", {"usage": [1, 2]}, id="a label that is no series"),
        pytest.param(
            "timestamp,namespace,pod,cpu\n0,shop,db-0,1\n60,shop,db-0,2\n60,shop,db-1,3\n120,shop,db-1,4\n",
            {"shop/StatefulSet/db": [1, 5, 4], "shop/StatefulSet/db/app/db-1": [NAN, 3, 4]},
            id="rows of pods are added up",
        ),
    ],
)
def test_csv_as_cloudwatch_datadog_and_grafana_write_it(
    tmp_path: Path, text: str, rows: dict[str, list[float]]
) -> None:
    path = tmp_path / "usage.csv"
    path.write_text(text)
    frame = read_csv(path, FileReading(namespace="home"))
    found = dict(zip(frame.names, frame.values, strict=True))
    assert {name.count("/") for name in found} - {4} == {name.count("/") for name in rows} - {4}
    for name, values in rows.items():
        np.testing.assert_array_equal(found[name], values)
    assert frame.step_s == 60


def test_the_column_of_times_and_the_step_may_be_said(tmp_path: Path) -> None:
    text = "when,load,host\n0,1,a\n60,3,a\n120,4,a\n180,6,a\n"
    frame = read_csv(csv(tmp_path, text), FileReading(step_s=120, time_column="When"))
    np.testing.assert_array_equal(frame.values, [[2, 5]])
    with pytest.raises(InvalidInput, match=r"--time-column: 'then': .*has when, load, host"):
        read_csv(csv(tmp_path, text), FileReading(time_column="then"))


def test_a_total_that_is_there_is_not_made_again(tmp_path: Path) -> None:
    text = "".join(f"{at},{value},{name}\n" for name, value in (("s/D/w", 9), ("s/D/w/app/p", 1)) for at in (0, 60))
    frame = read_csv(csv(tmp_path, "timestamp,value,series\n" + text))
    assert frame.names == ("s/D/w", "s/D/w/app/p")
    np.testing.assert_array_equal(frame.values, [[9, 9], [1, 1]])


def test_a_small_file_that_unpacks_into_a_large_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimtab.history.read_file.TEXT_BYTES", 2**20)
    bomb, fits = tmp_path / "bomb.csv.gz", tmp_path / "fits.csv.gz"
    bomb.write_bytes(gzip.compress(b"timestamp,value\n" + b"0,1\n" * 2**18))
    fits.write_bytes(gzip.compress(TEXT.encode() + b"\n" * (2**20 - len(TEXT.encode()))))
    assert bomb.stat().st_size < 5_000
    with pytest.raises(InvalidInput, match="more than 1 MiB of text"):
        read_file(str(bomb), FileReading())
    assert read_file(str(fits), FileReading()).names


def test_a_parquet_file_that_unpacks_into_a_large_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / "bomb.parquet"
    parquet.write_table(pyarrow.table({"timestamp": list(range(1000)), "value": [1.0] * 1000}), path)
    monkeypatch.setattr("trimtab.history.read_file.PARQUET_CELLS", 1999)
    with pytest.raises(InvalidInput, match="1,000 rows of 2 columns"):
        read_file(str(path), FileReading())
    monkeypatch.setattr("trimtab.history.read_file.PARQUET_CELLS", 2000)
    assert read_file(str(path), FileReading()).values.size == 1000
