"""Answers of Prometheus that people kept in a file."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trimtab.errors import InvalidInput, NotEnoughData
from trimtab.history.files import FileReading
from trimtab.history.read_file import read_file
from trimtab.series import Frame

POD = {"namespace": "shop", "pod": "web-7d9f8b6c5d-x2x4z", "container": "main"}


def answer(*series: tuple[dict[str, str], list[list[Any]]], **more: Any) -> dict[str, Any]:
    result = [{"metric": labels, "values": values} for labels, values in series]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}, **more}


def read(tmp_path: Path, held: Any) -> Frame:
    path = tmp_path / "load.json"
    path.write_text(json.dumps(held))
    return read_file(str(path), FileReading(namespace="home"))


SAMPLES = [[0, "1.5"], [60, "NaN"], [120.0, "2"]]


def test_a_query_without_labels_is_named_after_its_file(tmp_path: Path) -> None:
    frame = read(tmp_path, answer(({}, SAMPLES)))
    assert (frame.names, frame.start) == (("load",), 0)
    np.testing.assert_array_equal(frame.tail(1).values, [[2]])
    assert frame.values[0][0] == 1.5


def test_pods_are_added_up_to_their_workload(tmp_path: Path) -> None:
    other = POD | {"pod": "web-7d9f8b6c5d-bcdfg"}
    frame = read(tmp_path, answer((POD, [[0, "1"], [60, "2"]]), (other, [[0, "3"], [60, "4"]])))
    total = frame.values[frame.names.index("shop/Deployment/web")]
    assert total.tolist() == [4, 6]


def test_promtool_writes_the_series_alone_and_the_standard_input_is_read_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = [{"metric": {"deployment": "web"}, "values": [[0, "1"], [60, "2"]]}]
    assert read(tmp_path, alone).names == ("home/Deployment/web",)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(alone).encode())))
    assert read_file("-", FileReading()).values.tolist() == [[1, 2]]


@pytest.mark.parametrize(
    "held, said",
    [
        pytest.param(answer(({}, SAMPLES), warnings=["store down"]), "store down.*half of the pods", id="warnings"),
        pytest.param(answer(({}, SAMPLES), isPartial=True), "marked as partial", id="partial"),
        pytest.param({"status": "error", "error": "parse error"}, "parse error.*refused", id="an error"),
        pytest.param(
            {"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}, "value": [0, "1"]}]}},
            "a vector.*query_range",
            id="one moment",
        ),
        pytest.param({"MetricDataResults": []}, "write anything else as CSV", id="of somebody else"),
        pytest.param(answer(({}, [[0, "many"]])), "write anything else as CSV", id="no numbers"),
        pytest.param(answer(({}, [[0, "-1"]])), "never negative", id="negative"),
    ],
)
def test_what_is_no_whole_past_is_refused(tmp_path: Path, held: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read(tmp_path, held)


def test_an_answer_without_series_holds_no_samples(tmp_path: Path) -> None:
    with pytest.raises(NotEnoughData, match="no samples"):
        read(tmp_path, answer())


def test_kubectl_top_is_one_moment(tmp_path: Path) -> None:
    path = tmp_path / "top.txt"
    path.write_text("NAME   CPU(cores)   MEMORY(bytes)\nweb-0   250m   120Mi\n")
    with pytest.raises(InvalidInput, match=r"kubectl top.*--recipe"):
        read_file(str(path), FileReading())
