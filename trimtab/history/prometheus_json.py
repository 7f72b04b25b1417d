"""What Prometheus answered to a range query, kept: `curl .../api/v1/query_range`, or `promtool query range -o json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from trimtab.errors import InvalidInput, MetricsUnavailable, NotEnoughData, quoted
from trimtab.history.columns import FileReading
from trimtab.history.files import Rows, to_frame
from trimtab.history.range_json import read_pairs
from trimtab.history.series_names import LABELS, row_name
from trimtab.series import Frame
from trimtab.wire.prometheus import Data, Envelope, RangeSeries

ASK = "JSON is read as Prometheus answers /api/v1/query_range; write anything else as CSV"
_whole = msgspec.json.Decoder(Envelope[Data[list[RangeSeries]]])
_series = msgspec.json.Decoder(list[RangeSeries])


def is_json(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")


def from_json(path: str, text: str, reading: FileReading) -> Frame:
    try:
        found = _series.decode(text) if text.lstrip().startswith("[") else _answer(path, text)
        samples = [read_pairs(bytes(series.values)) for series in found]
    except (msgspec.MsgspecError, MetricsUnavailable) as error:
        raise InvalidInput(path, quoted(str(error)), ASK) from error
    if not found:
        raise NotEnoughData(f"{path}: the file holds no samples")
    names = np.repeat(np.array(_names(path, found, reading.namespace)), [len(pairs) for pairs in samples])
    pairs = np.concatenate(samples)
    return to_frame(path, Rows(pairs[:, 0], pairs[:, 1], names, np.arange(len(pairs)) + 1), reading.step_s)


def _answer(path: str, text: str) -> list[RangeSeries]:
    answer = _whole.decode(text)
    if answer.status != "success" or answer.data is None:
        raise InvalidInput(path, quoted(answer.error) or answer.status, "Prometheus refused this query: mend it")
    if answer.warnings or answer.is_partial:
        said = quoted("; ".join(answer.warnings or ["marked as partial"]))
        raise InvalidInput(path, said, "half of the pods look like half of the load: ask again for a whole answer")
    if answer.data.result_type != "matrix":
        raise InvalidInput(path, f"a {answer.data.result_type}", "this is one moment: ask /api/v1/query_range")
    return answer.data.result


def _names(path: str, found: Sequence[RangeSeries], namespace: str) -> list[str]:
    """The workload or pod that labels name, else the labels; one series without any is named after its file."""
    names = [_name(series.metric, namespace) for series in found]
    return names if any(names) else [Path(path.removesuffix(".gz")).stem] * len(names)


def _name(labels: Mapping[str, str], namespace: str) -> str:
    known = {LABELS[key]: value for key, value in labels.items() if key in LABELS}
    return row_name(known, namespace) or ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
