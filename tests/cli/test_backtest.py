"""trimtab backtest, tune and bench from the command line: tables, files, limits and exit codes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner, Result

from trimtab.cli import main
from trimtab.cli.output import write_file
from trimtab.cli.policy_files import read_policies
from trimtab.errors import InvalidInput

HPA = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: {name}}}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
  minReplicas: 2
  maxReplicas: 60
  metrics:
  - {{type: External, external: {{metric: {{name: rps}}, target: {{type: AverageValue, averageValue: "{target}"}}}}}}
"""
LOAD = "generate:bursty,days=3,peak=2000"


@pytest.fixture
def policies(tmp_path: Path) -> tuple[str, str]:
    paths = tmp_path / "old.yaml", tmp_path / "new.yaml"
    for path, target in zip(paths, ("50", "35"), strict=True):
        path.write_text(HPA.format(name=path.stem, target=target))
    return str(paths[0]), str(paths[1])


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def test_a_table_with_the_optimum_and_a_plot(policies: tuple[str, str]) -> None:
    done = invoke("backtest", "-f", policies[0], "--load", LOAD)
    assert done.exit_code == 0, done.output
    header, optimum, old = done.stdout.splitlines()[:3]
    assert header.split()[:2] == ["POLICY", "POD"] and "WORST HOUR" in header
    assert optimum.split()[0] == "optimum" and old.split()[0] == "old"
    assert "⣿" in done.stdout, "a plot in braille"


def test_the_same_is_neither_better_nor_worse(policies: tuple[str, str]) -> None:
    done = invoke("backtest", "--compare", policies[0], policies[0], "--load", LOAD, "-o", "markdown")
    assert done.stdout.startswith("**old (2) is as good as old (1): all costs together +0.0 %"), done.output


def test_markdown_for_a_pull_request(policies: tuple[str, str]) -> None:
    done = invoke("backtest", "--compare", *policies, "--load", LOAD, "-o", "markdown", "--fail-if", "violations > 90%")
    assert done.exit_code == 0, done.output
    verdict, _, header, rule, optimum, old, new, *_ = done.stdout.splitlines()
    assert verdict.startswith("**new is better than old: ") and verdict.endswith("**")
    assert (
        header.startswith("| policy | pod hours | cost | violations |") and rule.count("---") == header.count("|") - 1
    )
    assert [line.split("|")[1].strip() for line in (optimum, old, new)] == ["optimum", "old", "new"]
    assert f"- 3.0 days of {LOAD} from day 1" in done.stdout
    done = invoke("backtest", "-f", policies[0], "--load", LOAD, "-o", "markdown", "--json", "-")
    assert done.exit_code == 2 and "-o says what goes to the standard output" in done.stderr


CPU = """apiVersion: trimtab.dev/v1alpha1
kind: Autoscaler
metadata: {{name: web}}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
  minReplicas: 2
  maxReplicas: 60
  metrics: [{{type: Resource, resource: {{name: cpu, target: {{type: Utilization, averageUtilization: 60}}}}}}]
  {bridge}
"""


def test_a_bridge_is_billed_and_its_resizes_are_said(tmp_path: Path) -> None:
    paths = tmp_path / "plain.yaml", tmp_path / "bridged.yaml"
    for path, bridge in zip(paths, ("", "bridge: {}"), strict=True):
        path.write_text(CPU.format(bridge=bridge))
    arguments = ("--load", "generate:bursty,days=1,peak=20", "--pod-capacity", "1", "--fail-if", "resizes > 0.5")
    out = tmp_path / "out.json"
    done = invoke("backtest", "--compare", *map(str, paths), *arguments, "--json", str(out))
    assert done.exit_code == 1 and "over the limit: " in done.output and "the bridge resizes a pod" in done.output
    plain, bridged = json.loads(out.read_text())["policies"]
    assert bridged["violations"] < plain["violations"] and bridged["cost"] > plain["cost"]
    assert plain["resizes"] == 0 < bridged["resizes"]


def test_figures_as_json_agree_with_the_library(policies: tuple[str, str], tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    done = invoke("backtest", "-f", policies[0], "--load", LOAD, "--pod-capacity", "70", "--json", str(out))
    assert done.exit_code == 0, done.output
    (found,) = json.loads(out.read_text())["policies"]
    assert found["regret"] == pytest.approx(found["j"] - 1)
    assert found["podHours"] == pytest.approx(found["cost"] * found["optimum"])
    assert 0 < found["violations"] < 10


def test_json_to_standard_output_is_nothing_but_json(policies: tuple[str, str]) -> None:
    done = invoke("backtest", "-f", policies[0], "--load", LOAD, "-o", "json")
    assert len(json.loads(done.stdout)["policies"]) == 1


@pytest.mark.parametrize(
    "limit, code",
    [("violations > 50%", 0), ("violations > 0.01%", 1), ("cost > +1%", 1), ("violations > -1%", 0), ("j < 1", 0)],
)
def test_limits_make_it_a_check_of_a_change(policies: tuple[str, str], limit: str, code: int) -> None:
    done = invoke("backtest", "--compare", *policies, "--load", LOAD, "--fail-if", limit)
    assert done.exit_code == code, done.output
    assert ("over the limit: new" in done.stderr) == (code == 1)


WORKLOAD = """apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  selector: {{}}
  template: {{spec: {{containers: [{{name: web, resources: {{requests: {{cpu: "{cores}"}}}}}}]}}}}
"""


def test_a_side_without_exactly_one_policy_is_refused(policies: tuple[str, str], tmp_path: Path) -> None:
    """A gate that finds nothing to judge must not pass, nor take the old policy for the new one."""
    old, new = policies
    workload = tmp_path / "workload.yaml"
    workload.write_text(WORKLOAD.format(cores=1))
    limit = ("--load", LOAD, "--fail-if", "violations > 0%")
    for sides in ((str(workload), new), (old, str(workload), "-f", new)):
        done = invoke("backtest", "--compare", *sides, *limit)
        assert done.exit_code == 2 and f"--compare {workload}: 'no policy'" in done.stderr, done.output
    done = invoke("backtest", "--compare", old, str(tmp_path), *limit)
    assert done.exit_code == 2 and "'2 policies (new, old)': name a file that holds one" in done.stderr


def test_with_compare_other_files_are_read_for_their_workloads_alone(tmp_path: Path) -> None:
    sides, beside = (tmp_path / "a.yaml", tmp_path / "b.yaml"), tmp_path / "beside.yaml"
    for side in sides:
        side.write_text(CPU.format(bridge=""))
    beside.write_text(CPU.format(bridge="") + "---\n" + WORKLOAD.format(cores=2))
    arguments = ("--load", "generate:bursty,days=1,peak=20", "-o", "json")
    found = json.loads(invoke("backtest", "--compare", *map(str, sides), "-f", str(beside), *arguments).stdout)
    assert [policy["name"] for policy in found["policies"]] == ["web (a)", "web (b)"]
    assert any("a pod of Deployment/web requests 2 " in note for note in found["load"]["notes"])
    sides[1].write_text(CPU.format(bridge="") + "---\n" + WORKLOAD.format(cores=4))
    found = json.loads(invoke("backtest", "--compare", *map(str, sides), "-f", str(beside), *arguments).stdout)
    assert "web (b): its pods request otherwise, and are taken for web (a)'s" in found["load"]["notes"]


def test_a_load_in_cores_and_one_in_another_unit_are_not_compared(policies: tuple[str, str], tmp_path: Path) -> None:
    cpu, queue = tmp_path / "cpu.yaml", tmp_path / "queue.yaml"
    cpu.write_text(CPU.format(bridge=""))
    queue.write_text(HPA.format(name="queue", target="50").replace("name: rps", "name: queue_length"))
    done = invoke("backtest", "--compare", policies[0], str(cpu), "--load", LOAD)
    assert done.exit_code == 2 and "'web goes by CPU in cores, old by rps': one load has one unit" in done.stderr
    done = invoke("backtest", "--compare", policies[0], str(cpu), "--load", LOAD, "--pod-capacity", "70", "-o", "json")
    assert done.exit_code == 0, "a share of a capacity that is said has any unit"
    done = invoke("backtest", "--compare", policies[0], str(queue), "--load", LOAD, "-o", "json")
    assert (
        "the load is taken to be in the unit of each of rps, queue_length" in json.loads(done.stdout)["load"]["notes"]
    )


def test_a_limit_that_means_nothing_is_refused(policies: tuple[str, str]) -> None:
    done = invoke("backtest", "-f", policies[0], "--load", LOAD, "--fail-if", "speed > 3")
    assert done.exit_code == 2
    assert "figures are cost, violations" in done.stderr


def test_the_page_is_self_contained(policies: tuple[str, str], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = invoke("backtest", "--compare", *policies, "--load", LOAD, "--html", str(page))
    assert done.exit_code == 0, done.output
    text = page.read_text()
    assert 'src="' not in text and '<link rel="style' not in text, "nothing is loaded"
    data = json.loads(text.split('<script type="application/json" id="report">')[1].split("</script>")[0])
    assert data["verdict"].startswith("new is ") and " than old: all costs together " in data["verdict"]
    (section,) = data["sections"]
    assert [line["name"] for line in section["lines"]] == ["load, in pods at 100 %", "optimum", "old", "new"]
    assert len({len(line["values"]) for line in section["lines"]}) == 1


def test_a_journal_of_the_backtest_can_be_explained(policies: tuple[str, str], tmp_path: Path) -> None:
    journal = str(tmp_path / "run.db")
    for _ in range(2):  # the second takes the place of the first
        done = invoke("backtest", "-f", policies[0], "--load", LOAD, "--days", "0.2", "--journal", journal)
        assert done.exit_code == 0, done.output
    name = Path(policies[0]).stem
    told = invoke("explain", f"default/{name}", "--journal", journal)
    assert "0 pods" not in told.stdout, "a metric of the whole workload needs no look at its pods"
    assert told.exit_code == 0 and "replicas" in told.stdout, told.output
    assert invoke("replay", journal).exit_code == 0


@pytest.mark.parametrize(
    "target, most, said",
    [
        pytest.param("50", 60, [], id="neither"),
        pytest.param("50", 20, ["web: the load needs up to 50 pods, and maxReplicas is 20"], id="too few pods"),
        pytest.param("95", 60, ["web: its target keeps pods at 95% of what they carry"], id="too high a target"),
    ],
)
def test_settings_that_cause_violations_are_named(tmp_path: Path, target: str, most: int, said: list[str]) -> None:
    policy, load = tmp_path / "web.yaml", tmp_path / "load.csv"
    policy.write_text(HPA.format(name="web", target=target).replace("60", str(most)))
    values = [1000 + 3000 * (minute >= 120) for minute in range(600)]
    load.write_text("timestamp,value\n" + "".join(f"{60 * at},{value}\n" for at, value in enumerate(values)))
    done = invoke("backtest", "-f", str(policy), "--load", str(load), "--pod-capacity", "100", "-o", "json")
    notes = [note for note in json.loads(done.stdout)["load"]["notes"] if "web: " in note]
    assert [note[: len(text)] for note, text in zip(notes, said, strict=True)] == said


def test_a_history_from_csv(policies: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "rps.csv"
    values = 500 + 400 * np.sin(np.arange(2000) / 100)
    rows = "".join(f"{1_700_000_000 + 60 * step},{value:.2f}\n" for step, value in enumerate(values))
    path.write_text("timestamp,value\n" + rows)
    journal = str(tmp_path / "run.db")
    done = invoke("backtest", "-f", policies[0], "--load", str(path), "--journal", journal)
    assert done.exit_code == 0, done.output
    assert "2023-11-1" in done.stdout


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--load", "sum(rate(x[2m]))"], "say --prometheus URL"),
        (["--load", "nowhere.csv"], "nowhere.csv"),
        (["--load", "generate:wild"], "known shapes"),
        (["--load", "generate:flat,days=1,peak=0.001"], "in the unit of the target"),
        (["--load", LOAD, "--startup", "soon"], "write a duration"),
        (["--load", LOAD, "--objective", "happiness"], "not a number"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(policies: tuple[str, str], arguments: list[str], said: str) -> None:
    done = invoke("backtest", "-f", policies[0], *arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "Traceback" not in done.output


def test_no_policy_at_all(tmp_path: Path) -> None:
    assert "name policies with -f" in invoke("backtest", "--load", LOAD).stderr
    broken = tmp_path / "broken.yaml"
    broken.write_text("kind: [")
    done = invoke("backtest", "-f", str(broken), "--load", LOAD)
    assert done.exit_code == 2 and "broken.yaml:2" in done.stderr


def test_what_the_lane_does_not_cover_is_run_and_said(tmp_path: Path) -> None:
    zero = tmp_path / "zero.yaml"
    text = HPA.format(name="zero", target="50").replace("autoscaling/v2", "trimtab.dev/v1alpha1")
    zero.write_text(text.replace("HorizontalPodAutoscaler", "Autoscaler").replace("minReplicas: 2", "minReplicas: 0"))
    done = invoke("backtest", "-f", str(zero), "--load", "generate:flat,days=1,peak=2000", "-o", "json")
    assert "zero: run step by step, because its floor is zero" in json.loads(done.stdout)["load"]["notes"]


def test_schedules_hold_on_every_day(tmp_path: Path) -> None:
    night = tmp_path / "night.yaml"
    text = HPA.format(name="night", target="50").replace("autoscaling/v2", "trimtab.dev/v1alpha1")
    text = text.replace("HorizontalPodAutoscaler", "Autoscaler")
    night.write_text(text + '  schedules: [{name: day, start: "0 8 * * *", end: "0 18 * * *", minReplicas: 55}]\n')
    done = invoke("backtest", "-f", str(night), "--load", "generate:diurnal,days=10,peak=2000", "-o", "json")
    (found,) = json.loads(done.stdout)["policies"]
    assert found["podHours"] > 10 * 10 * 55, "every day of the ten, although a kind lays out eight days only"


def test_tune_prints_the_manifest_with_the_evidence(policies: tuple[str, str]) -> None:
    done = invoke("tune", "-f", policies[0], "--load", "generate:bursty,days=7,peak=2000", "--objective", "reliability")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("# Tuned by trimtab on 7 days")
    assert any("of 7 days would have been better" in line for line in lines)
    manifest = yaml.safe_load(done.stdout)
    assert manifest["metadata"]["name"] == "old"
    assert manifest["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] in (0, 60, 300, 900, 1800)
    tuned = Path(policies[0]).with_name("tuned.yaml")
    tuned.write_text(done.stdout)
    again = invoke(
        "backtest",
        "--compare",
        policies[0],
        str(tuned),
        "--load",
        "generate:bursty,days=7,peak=2000",
        "--objective",
        "reliability",
        "--fail-if",
        "j > -10%",
    )
    assert again.exit_code == 0, again.output


def test_what_is_left_out_of_the_beginning_is_said_and_a_part_of_a_day_is_no_day(policies: tuple[str, str]) -> None:
    bursty = ("-f", policies[0], "--load", "generate:bursty,days=4,peak=2000", "-o", "json")
    tuned = json.loads(invoke("tune", *bursty, "--days", "3.25").stdout)
    assert "tuned on the last 3 whole days of 3.25: the first 6h are left out" in tuned["notes"]
    of_three = json.loads(invoke("backtest", *bursty, "--days", "3").stdout)["policies"][0]
    assert tuned["was"]["j"] == pytest.approx(of_three["j"], abs=1e-3)
    of_more = json.loads(invoke("backtest", *bursty, "--days", "3.05").stdout)["policies"][0]
    assert of_more["churn"] == pytest.approx(of_three["churn"], rel=0.1), "72 minutes more are no fourth day"


def test_tune_as_json(policies: tuple[str, str]) -> None:
    done = invoke("tune", "-f", policies[0], "--load", "generate:bursty,days=3,peak=2000", "-o", "json")
    found = json.loads(done.stdout)
    assert found["days"] == 3 and found["changed"]
    assert found["now"]["j"] < found["was"]["j"]
    assert found["manifest"]["kind"] == "HorizontalPodAutoscaler"


def test_bench_writes_a_row_for_each_trace_start_up_and_price(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    times = np.arange(0, 8 * 86400, 300)
    for name in ("one_5min", "two_5min"):
        values = 50 + 40 * np.sin(times / 9000 + len(name))
        parquet.write_table(pa.table({"timestamp": times, "value": values}), tmp_path / f"{name}.parquet")
    out = tmp_path / "out.json"
    done = invoke("bench", "--traces", str(tmp_path), "--init", "30s,2m", "--lambda", "8,32", "--json", str(out))
    assert done.exit_code == 0, done.output
    rows = json.loads(out.read_text())["rows"]
    keys = {(row["trace"], row["init_s"], row["lambda"], row["policy"]) for row in rows}
    assert len(keys) == len(rows) == 2 * 2 * 2 * 2
    assert {"cost", "violations", "churn_per_day", "j", "j_oracle", "regret"} <= set(rows[0])
    assert "hpa-rolling" in done.stdout


def test_bench_makes_its_own_loads_from_seeds(tmp_path: Path) -> None:
    out = tmp_path / "rows.json"
    words = ("--match", "flat-1", "--init", "2m", "--lambda", "32", "--json", str(out))
    assert invoke("bench", "--generated", *words).exit_code == 0
    found = json.loads(out.read_text())
    assert {row["trace"] for row in found["rows"]} == {"flat-1"}
    assert [summary["to_retuned"] for summary in found["summary"] if summary["policy"] == "hpa-rolling"] == [1.0]
    assert "not both" in invoke("bench", "--generated", "--traces", str(tmp_path)).stderr
    assert "generated are flat-1" in invoke("bench", "--generated", "--match", "cosine").stderr


def test_bench_needs_a_folder_and_known_policies(tmp_path: Path) -> None:
    assert "--traces is missing" in invoke("bench").stderr
    assert "hpa-rolling" in invoke("bench", "--list").stdout
    done = invoke("bench", "--traces", str(tmp_path), "--policies", "best")
    assert done.exit_code == 2 and "hpa-default, hpa-default-bridge" in done.stderr


@pytest.mark.parametrize(
    "option, said",
    [
        pytest.param("--pod-capacity=nan", "'nan' is not a number to count with", id="capacity"),
        pytest.param("--days=inf", "'inf' is not a number to count with", id="days"),
        pytest.param("--objective=cheap", "write savings, balanced, reliability or a number", id="objective"),
        pytest.param("--objective=1e308", "is more than 1e+06", id="price"),
        pytest.param("--html=/dev/null/x.html", "may be written to", id="page"),
        pytest.param("--json=/dev/null/x.json", "may be written to", id="figures"),
        pytest.param("--html=-", "name a file", id="page on the standard output"),
        pytest.param("--fail-if=cost > +5%", "needs a second policy", id="a limit that could not fail"),
    ],
)
def test_what_cannot_be_meant_is_said_before_the_work(policies: tuple[str, str], option: str, said: str) -> None:
    done = invoke("backtest", "-f", policies[0], "--load", LOAD, option)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.parametrize("limit", ["J > 0.1", "churn/day > 1", "Pod Hours > 1", "worst hour > 0"])
def test_limits_know_the_words_of_the_table(policies: tuple[str, str], limit: str) -> None:
    done = invoke("backtest", "-f", policies[0], "--load", LOAD, "--fail-if", limit)
    assert done.exit_code == 1, done.output


@pytest.mark.parametrize(
    "change, said",
    [
        ("days=0.5", "write a whole number from 0 on"),
        ("seed=-1", "write a whole number from 0 on"),
        ("peak=nan", "write a number from 0 on"),
        ("noise=inf", "write a number from 0 on"),
        ("steep=-3", "write a number from 0 on"),
    ],
)
def test_a_shape_that_cannot_be_drawn_is_refused(policies: tuple[str, str], change: str, said: str) -> None:
    done = invoke("backtest", "-f", policies[0], "--load", f"generate:office,{change}")
    assert done.exit_code == 2
    assert f"'{change}': {said}" in done.stderr


def test_only_the_last_days_of_a_made_up_load_where_that_is_asked(policies: tuple[str, str]) -> None:
    done = invoke("backtest", "-f", policies[0], "--load", LOAD, "--days", "1", "-o", "json")
    load = json.loads(done.stdout)["load"]
    assert (load["days"], load["start"]) == (1.0, 2 * 86400.0)


def test_a_higher_floor_costs_more_on_one_scale(tmp_path: Path) -> None:
    """Of the same load there is one optimum, whatever a policy holds to be the least."""
    low, high = tmp_path / "low.yaml", tmp_path / "high.yaml"
    low.write_text(HPA.format(name="web", target="50"))
    high.write_text(HPA.format(name="web", target="50").replace("minReplicas: 2", "minReplicas: 30"))
    done = invoke("backtest", "--compare", str(low), str(high), "--load", LOAD, "-o", "json")
    cheap, dear = json.loads(done.stdout)["policies"]
    assert cheap["optimum"] == dear["optimum"]
    assert dear["cost"] / cheap["cost"] == pytest.approx(dear["podHours"] / cheap["podHours"])


@pytest.mark.parametrize(
    "text, said",
    [
        pytest.param("- a\n", "app.yaml:1: document: ['a']: write a manifest", id="a list"),
        pytest.param("just text\n", "app.yaml:1: document: 'just text': write a manifest", id="a sentence"),
        pytest.param(
            HPA.format(name="web", target="x"),
            "app.yaml:9: HorizontalPodAutoscaler/web\n  spec.metrics[0]",
            id="a value",
        ),
        pytest.param(
            HPA.format(name="web", target="5").replace("Autoscaler", "AutoScaler"), "did you mean", id="a kind"
        ),
        pytest.param("apiVersion: v1\nkind: Service\n", "there is no autoscaler in it", id="no autoscaler"),
    ],
)
def test_what_is_wrong_in_a_file_has_its_place(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "app.yaml"
    file.write_text(text.lstrip("\n"))
    for command in ("backtest", "tune"):
        done = invoke(command, "-f", str(file), "--load", LOAD)
        assert done.exit_code == 2
        assert said in done.stderr


def test_the_objects_beside_a_policy_are_left_out_and_twins_named_by_their_files(tmp_path: Path) -> None:
    files = [tmp_path / "old.yaml", tmp_path / "new.yaml"]
    for file in files:
        file.write_text(
            "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n---" + HPA.format(name="web", target="50")
        )
    done = invoke("backtest", "--compare", *map(str, files), "--load", LOAD, "-o", "json")
    assert [one["name"] for one in json.loads(done.stdout)["policies"]] == ["web (old)", "web (new)"]


def test_twins_in_files_of_one_name_are_named_by_their_folders(tmp_path: Path) -> None:
    files = [tmp_path / "a" / "web.yaml", tmp_path / "b" / "web.yaml"]
    for file in files:
        file.parent.mkdir()
        file.write_text(HPA.format(name="web", target="50"))
    named = [policy.name for policy in read_policies(tuple(map(str, files)), 0.0, 86400.0)]
    assert named == [f"web ({tmp_path}/a/web)", f"web ({tmp_path}/b/web)"]


def test_two_files_to_tune_are_one_too_many(policies: tuple[str, str]) -> None:
    done = invoke("tune", "-f", policies[0], "-f", policies[1], "--load", LOAD)
    assert done.exit_code == 2
    assert "holds 2 policies (old, new); give one" in done.stderr


def test_a_file_is_replaced_as_a_whole_and_a_device_is_written_to(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    write_file(file, "old")
    file.chmod(0o600)
    write_file(file, "new")
    write_file(Path(os.devnull), "nothing")
    assert (file.read_text(), [one.name for one in tmp_path.iterdir()]) == ("new", ["x.json"])
    assert not Path(os.devnull).is_file()
    with pytest.raises(InvalidInput, match="No such file or directory"):
        write_file(tmp_path / "none" / "x", "text")


def test_a_bridge_of_pods_that_may_burst_is_not_applied_and_said(tmp_path: Path) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(CPU.format(bridge="bridge: {}") + "---\n" + WORKLOAD.format(cores=1))
    found = json.loads(
        invoke("backtest", "-f", str(path), "--load", "generate:bursty,days=1,peak=20", "-o", "json").stdout
    )
    assert any("web: the bridge is not applied" in note for note in found["load"]["notes"])
    assert found["policies"][0]["resizes"] == 0
