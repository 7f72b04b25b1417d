"""The bridge's contenders against figures made by another program on recorded traces, which are not in this repository.

TRIMTAB_TRACES is the folder of the traces, TRIMTAB_BRIDGE_FIGURES the table of figures.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from trimtab.bench.contenders import rows_of
from trimtab.bench.families import VIEWS
from trimtab.bench.protocol import load_of
from trimtab.bench.traces import traces_in

COLUMNS = {"hpa-default-bridge": "hpa_default_with_bridge_0.70", "hpa-rolling-bridge": "hpa_rolling_with_bridge"}
TRACES = ("svc_ms_ingress1_1min", "web_nasa_http_1min", "batch_surf_hpc_jobs_5min")
STARTUPS_S, LAMBDAS = (30.0, 120.0, 600.0), (8.0, 32.0, 128.0)


def published(trace: str) -> dict[tuple[float, float], dict[str, str]]:
    """Of one trace, by start-up and price."""
    table = os.environ.get("TRIMTAB_BRIDGE_FIGURES")
    if not table or "TRIMTAB_TRACES" not in os.environ:
        pytest.skip("no recorded traces: set TRIMTAB_TRACES and TRIMTAB_BRIDGE_FIGURES")
    rows = csv.DictReader(Path(table).read_text().splitlines())
    return {(float(row["init_s"]), float(row["lambda"])): row for row in rows if row["trace"] == trace}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("trace", TRACES)
def test_figures_agree_to_one_percent(trace: str) -> None:
    figures = published(trace)
    ((name, series),) = traces_in(Path(os.environ["TRIMTAB_TRACES"]), f"{trace}*")
    rows = rows_of(load_of(name, series), list(COLUMNS), STARTUPS_S, LAMBDAS, view=VIEWS["ideal"])
    assert len(rows) == len(COLUMNS) * len(figures) == 18
    for row in rows:
        expected = float(figures[row.init_s, row.lam][COLUMNS[row.policy]])
        assert row.j == pytest.approx(expected, rel=0.01), row
