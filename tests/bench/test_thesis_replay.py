"""The predictive HPA thesis, replayed: published figures beside ours, and a test over seeds."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from trimtab.bench.thesis import PROFILES, duration_s
from trimtab.bench.thesis_replay import LINES, PUBLISHED, replay_pattern
from trimtab.cli import main
from trimtab.kinds.horizontal import LINE


def test_every_published_row_is_replayed_and_every_pattern() -> None:
    assert {pattern for pattern, _ in PUBLISHED} == set(PROFILES)
    first, second = (replay_pattern("step-ladder", "v2", seeds=3) for _ in range(2))
    assert first == second
    assert first.published is not None and first.published.z == 0.482


def test_rows_that_agree_agree_in_size() -> None:
    """Where the published runs spoke for the prediction, ours do by about as much."""
    for pattern in ("step-ladder", "jagged-edge"):
        found = replay_pattern(pattern, "v2", seeds=6)
        assert found.published is not None and found.mean == pytest.approx(found.published.mean, abs=0.25)


def test_the_paired_test_is_sure_where_the_published_z_is_not() -> None:
    few, many = replay_pattern("jagged-edge", "v2", seeds=3), replay_pattern("jagged-edge", "v2", seeds=12)
    assert many.z == pytest.approx(few.z, abs=0.2)
    assert many.z < 1.0, "mean over std says nothing about how sure it is"
    assert many.paired_t > 5.0 and many.paired_p < 0.001


def test_longer_rests_make_prediction_worth_less() -> None:
    """With Kubernetes' own windows both policies act rarely, so they differ less."""
    quick, slow = (replay_pattern("increase-decrease", version, 4, "default") for version in ("v2", "v1"))
    assert abs(slow.mean) < abs(quick.mean)


def test_published_signs_are_counted_row_by_row() -> None:
    done = CliRunner().invoke(main, ["bench", "--thesis", "--seeds", "2"])
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.stdout.splitlines() if line and line.split()[0] in PROFILES]
    assert len(rows) == len(LINES) * len(PUBLISHED)
    for line in LINES:
        of_line = [row for row in rows if row[2] == line]
        same = sum("same" in row for row in of_line)
        told = sum("same" in row or "other" in row for row in of_line)
        assert told == len([row for row in PUBLISHED.values() if row is not None])
        assert f"{line}: {same} of {told} published signs" in done.stdout


def test_the_default_line_is_the_one_of_an_annotated_hpa() -> None:
    """It only adds, and one jump is no slope: a flash crowd costs it less than the document's line."""
    assert LINES["default"] == LINE and not LINE.exact
    document, default = (replay_pattern("flash-crowd-short", "v2", 4, line) for line in LINES)
    assert (document.line, default.line) == ("document", "default")
    assert document.mean != default.mean


def test_the_table_stands_beside_the_published_one() -> None:
    done = CliRunner().invoke(main, ["bench", "--thesis", "--seeds", "2"])
    assert done.exit_code == 0, done.output
    row = next(line for line in done.stdout.splitlines() if line.startswith("flash-crowd-short"))
    assert {"-0.591", "+0.695", "-0.850", "+0.802", "other"} <= set(row.split())
    assert duration_s(PROFILES["flash-crowd-short"]) == 1440
