"""Histories become demands; what cannot be meant is refused with a sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from tests.sim.policies import LOAD, on_cpu, on_load
from trimtab.errors import InvalidInput, NotEnoughData, TrimtabError
from trimtab.history.read_file import read_csv
from trimtab.policy import Metric, MetricKind, Utilization, Watermark
from trimtab.series import Frame
from trimtab.sim.generate import generate, parse_shape
from trimtab.tune.demand import Demand, check_unit, demand_of, load_signal, memory_note
from trimtab.tune.judge import PodTerms, judged_pod


def frame(values: list[float], step_s: float = 60.0, names: tuple[str, ...] = ("x",)) -> Frame:
    return Frame(names, 1000.0, step_s, np.tile(np.array(values), (len(names), 1)))


def test_samples_are_held_onto_the_grid() -> None:
    found = demand_of(frame([1.0, 2.0] * 40), "file")
    assert found.values[:8].tolist() == [1, 1, 1, 1, 2, 2, 2, 2]
    assert len(found.values) == 320
    assert (found.start, found.notes) == (1000.0, ())


def test_holes_repeat_the_last_value_and_are_told() -> None:
    nan = float("nan")
    found = demand_of(frame([nan, 5.0, nan, nan, 7.0] + [8.0] * 100), "file")
    assert found.start == 1060.0
    assert found.values[:16].tolist() == [5.0] * 12 + [7.0] * 4
    assert found.notes == ("2 of 104 samples (one per 1m) are missing, 2m at the longest; the last value was held",)


def test_coarse_samples_say_what_they_hide() -> None:
    (note,) = demand_of(frame([1.0] * 48, step_s=3600.0), "file").notes
    assert note.startswith("one sample per 1h, held until the next: shorter peaks do not show")
    assert demand_of(frame([1.0] * 62), "file").notes == ()


def test_scrapes_that_come_early_and_late_miss_nothing(tmp_path: Path) -> None:
    """A minute give or take 20 s, and two hours without any sample."""
    draw = np.random.default_rng(4)
    times = 1_700_000_000 + 60 * np.arange(7 * 1440) + draw.integers(-20, 21, 7 * 1440)
    steady, broken = tmp_path / "steady.csv", tmp_path / "broken.csv"
    lines = [f"{at},{at % 50}\n" for at in times.tolist()]
    steady.write_text("timestamp,value\n" + "".join(lines))
    broken.write_text("timestamp,value\n" + "".join(lines[:2000] + lines[2120:]))
    found = demand_of(read_csv(steady), "steady")
    assert found.notes == () and found.days == pytest.approx(7, abs=0.01)
    assert found.values.mean() == pytest.approx(np.mean(times % 50), rel=0.02)
    (note,) = demand_of(read_csv(broken), "broken").notes
    missing = int(note.split()[0])
    assert 118 <= missing <= 122 and "one per 1m" in note


def test_one_of_many_series_has_to_be_named() -> None:
    many = frame([1.0] * 100, names=("a", "b"))
    assert demand_of(many, "file", series="b").name == "b"
    with pytest.raises(InvalidInput, match=r"2 series.*--series: a, b"):
        demand_of(many, "file")
    with pytest.raises(InvalidInput, match="--series: 'c': file has a, b"):
        demand_of(many, "file", series="c")


def test_an_empty_or_short_window_is_refused() -> None:
    with pytest.raises(NotEnoughData, match="no value in the whole window"):
        demand_of(frame([float("nan")] * 100), "file")
    with pytest.raises(NotEnoughData, match="spans 30m; a backtest needs an hour"):
        demand_of(frame([1.0] * 30), "file")


def test_the_last_days_only() -> None:
    found = demand_of(frame(list(np.arange(3000.0))), "file", days=1)
    assert found.values[0] == 3000 - 1440


@pytest.mark.parametrize("peak, said", [(0.001, "0.001 pods"), (1e7, r"1e\+07 pods")])
def test_a_load_in_the_wrong_unit_is_noticed(peak: float, said: str) -> None:
    with pytest.raises(InvalidInput, match=f"{said} busy'.*in the unit of the target"):
        check_unit(Demand("x", np.full(300, peak), 0.0), 1.0, "file")
    check_unit(Demand("x", np.full(300, 5.0), 0.0), 1.0, "file")


def test_a_load_of_zeros_is_no_question_of_units() -> None:
    with pytest.raises(InvalidInput, match="'zero all the time': nothing was asked of it"):
        check_unit(Demand("x", np.zeros(300), 0.0), 1.0, "file")


def test_capacity_is_given_assumed_or_asked_for() -> None:
    ten = PodTerms(capacity=10.0)
    assert judged_pod(on_load(target=35), None, ten).judged.level == 8.0
    pod, note = judged_pod(on_load(target=35), None)
    assert (pod.request, pod.level) == pytest.approx((50, 40)) and "--pod-capacity" in note
    pod, note = judged_pod(on_cpu(), None)
    assert (pod.request, pod.level) == (1.0, 1.0) and "add the manifest of its workload with -f" in note
    watermark = Watermark(metric=LOAD, low=1.0, high=2.0)
    with pytest.raises(InvalidInput, match="how much load one pod carries"):
        judged_pod(replace(on_load(), signals=(watermark,)), None)


def test_the_load_is_in_the_unit_of_the_first_metric_that_follows_it() -> None:
    (cpu,), (load,) = on_cpu().signals, on_load().signals
    memory = Utilization(metric=Metric(kind=MetricKind.RESOURCE, name="memory"), percent=80)
    assert load_signal(replace(on_cpu(), signals=(memory, cpu, load))) == cpu
    assert "a quarter" in memory_note(replace(on_cpu(), signals=(memory, cpu)))
    assert memory_note(on_cpu()) == ""


@pytest.mark.parametrize(
    "rows, said",
    [
        ("0,1\n60,2\n60,3\n", "bad.csv row 4.*twice"),
        ("0,1\n60,-2\n", "bad.csv row 3.*never negative"),
        ("0,1\n60,inf\n", "bad.csv row 3"),
        ("0,1\n60,many\n", "bad.csv row 3.*number"),
        ("", "bad.csv: the file holds no samples"),
    ],
    ids=["duplicate", "negative", "infinite", "text", "empty"],
)
def test_bad_files_name_file_and_row(tmp_path: Path, rows: str, said: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("timestamp,value\n" + rows)
    with pytest.raises(TrimtabError, match=said):
        demand_of(read_csv(path), str(path))


def test_generated_loads_repeat_and_differ_by_seed() -> None:
    same = [generate(parse_shape("bursty,days=2,seed=5")) for _ in range(2)]
    other = generate(parse_shape("bursty,days=2,seed=6"))
    assert (same[0] == same[1]).all()
    assert (same[0] != other).any()
    assert len(other) == 2 * 5760 and other.min() >= 0


def test_shapes_do_what_they_say() -> None:
    shifted = generate(parse_shape("shift,days=4"))
    half = len(shifted) // 2
    assert shifted[half:].mean() == pytest.approx(2.5 * shifted[:half].mean(), rel=0.02)
    weekly = generate(parse_shape("diurnal,days=7,noise=0"))
    assert weekly[5 * 5760 :].mean() == pytest.approx(0.7 * weekly[: 5 * 5760].mean(), rel=0.01)
    assert (
        generate(parse_shape("bursty,days=3,noise=0")).max()
        > generate(parse_shape("bursty,days=3,noise=0,burst=0")).max()
    )


@pytest.mark.parametrize("text", ["nothing", "flat,peek=3", "flat,days=many", "flat,days=0"])
def test_an_unknown_shape_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="generate"):
        parse_shape(text)
