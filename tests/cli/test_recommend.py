"""`trimtab recommend` without a cluster: usage from a file, requests from a manifest or from options."""

from __future__ import annotations

import asyncio
import json
from html.parser import HTMLParser
from math import nan
from pathlib import Path

import numpy as np
import pytest
import yaml
from aiohttp import web
from click.testing import CliRunner, Result

from tests.wire.fake import Fake, script
from trimtab.cli import main
from trimtab.cli.recommend_table import sparkline
from trimtab.kinds import read

START = 1_700_006_400  # a midnight
REQUESTS = ("--replicas", "10", "--cpu-request", "2")
CRANE = ("--rules", "crane")
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 10
  template:
    spec:
      containers:
      - {name: app, resources: {requests: {cpu: "2", memory: 1Gi}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
"""


def rows(name: str, night: float, day: float) -> str:
    """Seven days of ten-minute samples, busy from 8 to 20 o'clock."""
    times = np.arange(START, START + 7 * 86400, 600)
    hours = times % 86400 // 3600
    values = np.where((hours >= 8) & (hours < 20), day, night)
    return "".join(f"{at},{value},{name}\n" for at, value in zip(times.tolist(), values.tolist(), strict=True))


@pytest.fixture
def usage(tmp_path: Path) -> str:
    """A shop with a day and a night, a flat one, and a small one."""
    path = tmp_path / "usage.csv"
    text = rows("shop/Deployment/web", 4.0, 16.0) + rows("shop/Deployment/flat", 11.0, 11.0)
    path.write_text("timestamp,value,series\n" + text + rows("shop/StatefulSet/web-db", 0.5, 1.0))
    return str(path)


def run(*args: str) -> Result:
    return CliRunner().invoke(main, ["recommend", *args])


def test_a_table_sorted_by_what_matters(usage: str) -> None:
    done = run("--history", usage, *REQUESTS, *CRANE, "--cpu-price", "0.1")
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.stdout.splitlines()[:4]]
    assert lines[0][:7] == ["NAMESPACE", "KIND", "NAME", "REPLICAS", "MIN", "MAX", "TARGET"]
    # 16 cores over ten pods are 1.6 of 2 requested: 80 %, capped at 75; 4 / 1.5 = 2.67; 16 x 3 / 1.5 = 32, 1 % above
    assert lines[1][:7] == ["shop", "Deployment", "web", "10", "3", "33", "75%"]
    assert [line[-1] for line in lines[2:]] == ["LowFluctuation", "LowUsage"]
    assert "the busiest hour is 1.00 times the quietest, 1.5 is needed" in done.stdout
    assert "the quietest hour needs 4 cores" in done.stdout


@pytest.mark.parametrize("name", ["web", "deploy/web", "Deployment/web", "shop/web", "shop/deployments/web"])
def test_a_series_is_named_as_people_name_workloads(tmp_path: Path, name: str) -> None:
    """What says no namespace is in the only one of the manifests."""
    (tmp_path / "web.yaml").write_text(WEB)
    (tmp_path / "usage.csv").write_text("timestamp,value,series\n" + rows(name, 4.0, 16.0))
    done = run("--history", str(tmp_path / "usage.csv"), "-f", str(tmp_path / "web.yaml"), *CRANE)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[1].split()[:4] == ["shop", "Deployment", "web", "10"]


def test_another_kind_of_the_same_name_is_another_workload(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(WEB)
    (tmp_path / "usage.csv").write_text("timestamp,value,series\n" + rows("sts/web", 4.0, 16.0))
    done = run("--history", str(tmp_path / "usage.csv"), "-f", str(tmp_path / "web.yaml"))
    assert done.exit_code == 2 and "shop/StatefulSet/web" in done.output


def test_a_series_that_does_not_say_its_kind_is_of_the_one_there_is(tmp_path: Path) -> None:
    (tmp_path / "db.yaml").write_text(WEB.replace("kind: Deployment", "kind: StatefulSet"))
    (tmp_path / "usage.csv").write_text("timestamp,value,series\n" + rows("shop/web", 4.0, 16.0))
    done = run("--history", str(tmp_path / "usage.csv"), "-f", str(tmp_path / "db.yaml"), *CRANE)
    assert done.stdout.splitlines()[1].split()[:4] == ["shop", "StatefulSet", "web", "10"], done.output


@pytest.mark.parametrize("head", ["timestamp,value,pod", "timestamp,value,deployment"])
def test_labels_without_a_namespace_are_in_that_of_the_manifests(tmp_path: Path, head: str) -> None:
    names = ["web"] if head.endswith("deployment") else [f"web-7d9f8b6c5d-x2x4{letter}" for letter in "bcdfghjklm"]
    (tmp_path / "web.yaml").write_text(WEB)
    text = "".join(rows(name, 4.0 / len(names), 16.0 / len(names)) for name in names)
    (tmp_path / "usage.csv").write_text(f"{head}\n{text}")
    done = run("--history", str(tmp_path / "usage.csv"), "-f", str(tmp_path / "web.yaml"), *CRANE)
    assert done.stdout.splitlines()[1].split()[:7] == ["shop", "Deployment", "web", "10", "3", "33", "75%"], done.output


def test_a_workload_short_at_times_needs_scaling_not_more(tmp_path: Path) -> None:
    """Five pods of a core under a day of up to 5.5 cores: an HPA has no more on average, but when they are needed."""
    times = np.arange(START, START + 7 * 86400, 600)
    values = 3.0 + 2.5 * np.sin(2 * np.pi * times / 86400)
    text = "".join(f"{at},{value:.4f}\n" for at, value in zip(times.tolist(), values.tolist(), strict=True))
    (tmp_path / "web.csv").write_text("timestamp,value\n" + text)
    done = run("--history", str(tmp_path / "web.csv"), "--replicas", "5", "--cpu-request", "1")
    assert done.stdout.splitlines()[1].split()[-1] == "NeedsScaling", done.output


def test_the_table_ends_with_what_it_comes_to(usage: str) -> None:
    said = run("--history", usage, *REQUESTS, *CRANE, "--cpu-price", "0.1").stdout
    assert "\n3 workloads: 1 could give back 6.00 cores (438 a month), 2 without a recommendation\n" in said


@pytest.mark.parametrize(
    "usage, drawn",
    [
        pytest.param([1.0] * 14 + [2.0] * 14, "▅" * 14 + "█" * 14, id="half as high for the first half"),
        pytest.param([nan] * 14 + [2.0] * 14, "·" * 14 + "█" * 14, id="unknown for the first half"),
        pytest.param([0.0] * 28, "-", id="nothing used"),
        pytest.param([], "-", id="nothing known"),
    ],
)
def test_a_sparkline_shows_the_highest_usage_of_each_part(usage: list[float], drawn: str) -> None:
    assert sparkline(usage) == drawn


def test_json_carries_evidence_and_reasons(usage: str) -> None:
    documented = ("--history", usage, *REQUESTS, *CRANE)
    found = {one["name"]: one for one in json.loads(run(*documented, "-o", "json").stdout)}
    web = found["web"]
    assert web["recommendation"]["minReplicas"] == 3 and web["severity"] == "Saving" and web["against"] == []
    # By night 3 pods, by day ceil(16 / 1.5) = 11: a mean of 7 pods of 2 cores instead of 10
    assert web["saved"]["cores"] == pytest.approx(6.0)
    assert web["evidence"]["hourlyMedians"] == [16.0 if 8 <= hour < 20 else 4.0 for hour in range(24)]
    assert len(web["evidence"]["usage"]) == len(web["evidence"]["forecast"]) == 168
    assert web["evidence"]["thresholds"]["minCpuUsageCores"] == 10.0
    assert [one["reason"] for one in found["web-db"]["against"]] == ["LowUsage"]
    assert yaml.safe_load(run(*documented, "-o", "yaml").stdout) == list(found.values())


def test_requests_come_from_a_manifest(usage: str, tmp_path: Path) -> None:
    manifest = tmp_path / "web.yaml"
    manifest.write_text(WEB)
    done = run("deploy/web", "--history", usage, "-f", str(manifest), "-o", "json")
    (found,) = json.loads(done.stdout)
    assert found["replicas"] == 10 and found["evidence"]["podRequestCores"] == 2.0


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param("containers: [{name: app, resources: {limits: {cpu: 2}}}]", id="only limits"),
        pytest.param(
            "containers: [{name: app, resources: {requests: {cpu: 500m}}}], initContainers: [{name: proxy,"
            " restartPolicy: Always, resources: {requests: {cpu: 1500m}}}, {name: once}]",
            id="a native sidecar",
        ),
        pytest.param("containers: [{name: app}], resources: {requests: {cpu: 2}}", id="of the pod as a whole"),
    ],
)
def test_a_pod_requests_what_a_backtest_says_it_does(usage: str, tmp_path: Path, pod: str) -> None:
    spec = f"spec: {{replicas: 10, selector: {{}}, template: {{spec: {{{pod}}}}}}}"
    head = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\n"
    (tmp_path / "web.yaml").write_text(f"{head}{spec}\n---\n{HPA}")
    files = ("-f", str(tmp_path / "web.yaml"), "-o", "json")
    (found,) = json.loads(run("deploy/web", "--history", usage, *files).stdout)
    assert found["evidence"]["podRequestCores"] == 2.0
    load = ("--load", "generate:office,days=1,peak=9")
    said = json.loads(CliRunner().invoke(main, ["backtest", *files, *load]).stdout)
    assert any("a pod of Deployment/web requests 2 " in note for note in said["load"]["notes"])


@pytest.mark.parametrize("shape", ["hpa", "ehpa", "autoscaler"])
def test_manifests_can_be_applied(tmp_path: Path, shape: str) -> None:
    """Of a load that comes and goes slowly: what quadruples at once is better served by the pods that are there."""
    times = np.arange(START, START + 7 * 86400, 600)
    cores = 10 - 6 * np.cos(2 * np.pi * times / 86400)
    lines = (
        f"{at},{value:.3f},shop/Deployment/web\n" for at, value in zip(times.tolist(), cores.tolist(), strict=True)
    )
    (tmp_path / "usage.csv").write_text("timestamp,value,series\n" + "".join(lines))
    history = ("--history", str(tmp_path / "usage.csv"))
    documents = list(yaml.safe_load_all(run(*history, *REQUESTS, "--as", shape).stdout))
    assert [read(one).name for one in documents] == ["web"]


@pytest.mark.parametrize(
    "algorithm, percent",
    [
        pytest.param("crane", 75, id="000, as printed: averageUtilization 75, minReplicas 2, maxReplicas 2"),
        pytest.param("exact", 30, id="000, by its formulas: an idle pod gets min-cpu-target-utilization"),
    ],
)
def test_crane_walk_through(tmp_path: Path, algorithm: str, percent: int) -> None:
    folder = Path(__file__).parents[2] / "examples/000-recommendation"
    config = yaml.safe_load((folder / "analytics-hpa.yaml").read_text())["spec"]["config"]
    config["trimtab.dev/algorithm"] = algorithm
    idle = tmp_path / "idle.csv"
    times = range(1_700_000_000, 1_700_000_000 + 7 * 86400, 300)
    idle.write_text(
        "timestamp,value,series\n" + "".join(f"{t},0.0005,default/Deployment/nginx-deployment\n" for t in times)
    )
    settings = [part for key, value in config.items() for part in ("--set", f"{key}={value}")]
    done = run("--history", str(idle), "-f", str(folder / "nginx-deployment.yaml"), *settings, "--as", "hpa")
    spec = yaml.safe_load(done.stdout)["spec"]
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}}
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 2)
    assert spec["metrics"] == [{"type": "Resource", "resource": cpu}]


def test_a_patch_for_replicas(usage: str) -> None:
    done = run("web", "--history", usage, *REQUESTS, "--type", "replicas", "--as", "patch")
    assert yaml.safe_load(done.stdout)["spec"] == {"replicas": 16}  # P95 of 16 cores at half of 2 each


def test_the_page_is_self_contained(usage: str) -> None:
    text = run("--history", usage, *REQUESTS, *CRANE, "-o", "html").stdout
    tags: list[str] = []
    links: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            tags.append(tag)
            links.extend(value or "" for name, value in attrs if name in ("src", "href"))

    Reader().feed(text)
    assert tags.count("script") == 2 and all(link == "data:," for link in links)
    report = json.loads(text.split('id="report">')[1].split("</script>")[0])
    assert len(report["advice"]) == 3 and report["verdict"].startswith("3 workloads: 1 could give back 6.00 cores")
    assert sum(bool(advice["usage"]) for advice in report["advice"]) == 3
    assert sum(bool(advice["medians"]) for advice in report["advice"]) == 1  # hours for the one with advice
    assert "min-cpu-usage-threshold" in text and "LowFluctuation" in text


def both_files(tmp_path: Path, pods: tuple[str, ...]) -> tuple[str, ...]:
    """A workload of two pods that use 0.25 and 0.4 cores, 100 and 200 MiB, and one of last week's."""
    header, each = "timestamp,value,series\n", "shop/Deployment/web/app/"
    old = f"{START - 600},9.0,{each}web-1-old\n{START},9.0,{each}web-1-old\n"
    cpu = "".join(rows(each + pod, cores, cores) for pod, cores in zip(pods, (0.25, 0.4), strict=False))
    memory = "".join(rows(each + pod, mib * 2**20, mib * 2**20) for pod, mib in zip(pods, (100, 200), strict=False))
    (tmp_path / "cpu.csv").write_text(header + old + cpu + rows("shop/Deployment/web", 11.0, 33.0))
    (tmp_path / "memory.csv").write_text(header + memory)
    return "--history", str(tmp_path / "cpu.csv"), "--memory-history", str(tmp_path / "memory.csv")


def test_requests_from_two_files(tmp_path: Path) -> None:
    """P99 of all pods' samples is that of the larger one; 15 % on top."""
    files = both_files(tmp_path, ("web-1-a", "web-1-b"))
    requests = ("--replicas", "2", "--cpu-request", "2", "--memory-request", "1Gi")
    done = run(*files, "--type", "resource", *requests, "-o", "json")
    assert done.exit_code == 0, done.output
    (web,) = json.loads(done.stdout)
    assert web["recommendation"]["containers"] == [
        {"containerName": "app", "target": {"cpu": "460m", "memory": "230Mi"}}
    ]


def test_a_file_without_some_of_the_pods_is_half_a_history(tmp_path: Path) -> None:
    files = both_files(tmp_path, ("web-1-a",))
    done = run(*files, "--replicas", "2", "--cpu-request", "2", "-o", "json")
    (web,) = json.loads(done.stdout)
    assert [one["reason"] for one in web["against"]] == ["PartialHistory"]
    assert json.loads(run(*files, "--replicas", "1", "--cpu-request", "20", "-o", "json").stdout)[0]["against"] == []


@pytest.mark.parametrize("name, said", [("export", True), ("web", False)])
def test_one_series_without_a_workload_is_that_of_the_only_manifest(tmp_path: Path, name: str, said: bool) -> None:
    """As `backtest` takes the same two files."""
    manifest, export, labelled = (tmp_path / file for file in ("web.yaml", f"{name}.csv", "labelled.csv"))
    manifest.write_text(WEB)
    text = rows("shop/Deployment/web", 4.0, 16.0)
    labelled.write_text("timestamp,value,series\n" + text)
    export.write_text("Time,cpu\n" + text.replace(",shop/Deployment/web", ""))
    expected, done = (run("--history", str(path), "-f", str(manifest), "-o", "json") for path in (labelled, export))
    assert json.loads(done.stdout) == json.loads(expected.stdout)
    assert ("export is taken for the usage of shop/Deployment/web" in done.stderr) is said


def test_a_shape_that_cannot_hold_the_advice_names_the_one_that_can(tmp_path: Path) -> None:
    manifest, flat = tmp_path / "web.yaml", tmp_path / "flat.csv"
    manifest.write_text(WEB)
    flat.write_text("timestamp,value,series\n" + rows("shop/Deployment/web", 8.0, 8.0))
    done = run("--history", str(flat), "-f", str(manifest), "--as", "hpa")
    assert (done.exit_code, done.stdout) == (0, "") and "--as patch writes them" in done.stderr
    example = Path(__file__).parents[2] / "examples/007-history"
    files = ("--history", str(example / "cpu.csv"), "-f", str(example / "web-deployment.yaml"))
    done = run(*files, "--as", "patch")
    assert (done.exit_code, done.stdout) == (0, "") and "--as hpa, ehpa or autoscaler writes them" in done.stderr


def test_requests_need_memory(usage: str) -> None:
    done = run("--history", usage, *REQUESTS, "--type", "resource")
    assert done.exit_code == 2
    assert "--memory-history FILE" in done.stderr


def test_names_in_the_page_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "usage.csv"
    path.write_text("timestamp,value,series\n" + rows("<b>x</b>", 11.0, 22.0))
    page = run("--history", str(path), *REQUESTS, "-o", "html").stdout
    assert "<b>x</b>" not in page
    assert "1 workload: " in page
    assert "min-cpu-usage-threshold" not in page, "proven advice knows no such gate"


def test_exit_codes_for_ci(usage: str) -> None:
    assert run("--history", usage, *REQUESTS, "--replicas", "40", "--fail-over", "10").exit_code == 1
    assert run("--history", usage, *REQUESTS, "--replicas", "40", "--fail-over", "1000").exit_code == 0


@pytest.mark.parametrize(
    "args, said",
    [
        pytest.param(("--history", "no.csv"), "'no.csv': cannot be read: No such file", id="no such file"),
        pytest.param(("--history", "no.parquet", *REQUESTS), "'no.parquet': there is no such file", id="nor one"),
        pytest.param((*REQUESTS, "-A"), "leave them out", id="a cluster's words with a file"),
        pytest.param((*REQUESTS, "--as", "hpa", "-o", "html"), "as yaml or json", id="no page of manifests"),
        pytest.param(("--replicas", "1"), "its replicas and requests are not known", id="no request"),
        pytest.param((*REQUESTS, "--set", "fluctuation-treshold=1"), "did you mean", id="a misspelt setting"),
        pytest.param((*REQUESTS, "--set", "fluctuation-threshold"), "write NAME=VALUE", id="a setting without value"),
        pytest.param((*REQUESTS, "--timezone", "Mars/Olympus"), "--timezone", id="no such zone"),
        pytest.param((*REQUESTS, "deploy/nobody"), "there is no such workload", id="no such workload"),
        pytest.param(
            (*REQUESTS, *CRANE, "--as", "patch"), "--as hpa, ehpa or autoscaler", id="a shape that does not fit"
        ),
        pytest.param(("--replicas", "1", "--cpu-request", "two"), "--cpu-request", id="no quantity"),
        pytest.param(("-f", "no.yaml"), "no.yaml", id="no manifest"),
        pytest.param((*REQUESTS, "--rules", "proven", "--type", "hpa"), "belong to crane", id="both rules"),
        pytest.param((*REQUESTS, *CRANE, "-o", "markdown"), "table, json, yaml or html", id="no markdown"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(usage: str, args: tuple[str, ...], said: str) -> None:
    given = args if "--history" in args else ("--history", usage, *args)
    done = run(*given)
    assert done.exit_code == 2 and said in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and "bug" not in done.stderr


def test_without_a_cluster_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    done = run()
    assert done.exit_code == 2 and "kubeconfig" in done.stderr


@pytest.mark.parametrize(
    "answer, said",
    [
        pytest.param(web.Response(status=401, text="no"), "check the user, token or headers", id="401"),
        pytest.param(web.Response(status=404, text="no"), "is this the address of Prometheus?", id="another server"),
        pytest.param(web.Response(status=503, text="busy"), "503", id="busy"),
        pytest.param(
            web.json_response({"status": "success", "data": 1}), "is this the address of Prometheus?", id="nonsense"
        ),
    ],
)
def test_a_metrics_server_that_says_no(tmp_path: Path, answer: web.Response, said: str) -> None:
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "c"}}
    config = {
        "current-context": "c",
        "clusters": [cluster],
        "contexts": [context],
        "users": [{"name": "c", "user": {}}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))

    async def ask() -> Result:
        async with Fake(script(answer)) as server:
            return await asyncio.to_thread(run, "--kubeconfig", str(path), "--prometheus", server.url)

    done = asyncio.run(ask())
    assert done.exit_code == 2 and said in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and "bug" not in done.stderr


def test_parquet_is_read_like_csv(usage: str, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import csv, parquet

    path = tmp_path / "usage.parquet"
    parquet.write_table(csv.read_csv(usage), path)
    assert pyarrow is not None
    same = [run("--history", file, *REQUESTS, "-o", "json").stdout for file in (usage, str(path))]
    assert same[0] == same[1]


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("--replicas", "10", "--cpu-request", "-1"), "--cpu-request: '-1': write a quantity above zero"),
        (("--replicas", "10", "--cpu-request", "0"), "--cpu-request: '0': write a quantity above zero"),
        (("--replicas", "100000000", "--cpu-request", "1"), "not in the range"),
        ((*REQUESTS, "--cpu-price", "nan"), "'nan' is not a number to count with"),
        ((*REQUESTS, "--fail-over", "inf"), "'inf' is not a number to count with"),
    ],
)
def test_numbers_that_cannot_be_meant(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    history = tmp_path / "usage.csv"
    history.write_text("timestamp,value,series\n" + rows("web", 5, 20))
    done = CliRunner().invoke(main, ["recommend", "--history", str(history), *arguments])
    assert done.exit_code == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("{name: web, namespace: shop}", "web", "deployment.yaml:1: 'Deployment': Expected `object`, got `str`"),
        ("replicas: 10", "replicas: -3", "deployment.yaml:1 spec.replicas: -3: write a number from 0"),
        ('cpu: "2"', "cpu: 2Foo", "deployment.yaml:1: '2Foo': write a quantity"),
    ],
)
def test_a_manifest_that_cannot_be_meant_is_named_with_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    history, manifest = tmp_path / "usage.csv", tmp_path / "deployment.yaml"
    history.write_text("timestamp,value,series\n" + rows("web", 5, 20))
    manifest.write_text(WEB.replace(old, new, 1))
    done = CliRunner().invoke(main, ["recommend", "--history", str(history), "-f", str(manifest)])
    assert done.exit_code == 2
    assert said in done.stderr


def test_nothing_to_apply_is_said(tmp_path: Path) -> None:
    history = tmp_path / "usage.csv"
    history.write_text("timestamp,value,series\n" + rows("web", 20, 20))
    done = CliRunner().invoke(main, ["recommend", "--history", str(history), *REQUESTS, "--as", "hpa"])
    assert (done.exit_code, done.stdout) == (0, "")
    assert "nothing is recommended" in done.stderr


def test_a_reason_is_listed_once(usage: str) -> None:
    done = run("--history", usage, "--replicas", "0", "--cpu-request", "1", "-o", "table")
    line = next(line for line in done.stdout.splitlines() if "flat" in line)
    assert line.count("LowReplicas") == 1, line


def test_a_series_that_nobody_describes_does_not_stop_the_rest(usage: str, tmp_path: Path) -> None:
    manifest = tmp_path / "web.yaml"
    manifest.write_text(WEB)
    done = run("--history", usage, "-f", str(manifest), "-o", "json")
    assert done.exit_code == 0, done.stderr
    assert [one["name"] for one in json.loads(done.stdout)] == ["web"]
    assert "left out" in done.stderr and "shop/Deployment/flat" in done.stderr


@pytest.mark.parametrize("name", ["web", "deploy/web", "deployment/web", "deployments/web", "deployment.apps/web"])
def test_workloads_are_named_as_in_kubectl(usage: str, name: str) -> None:
    found = json.loads(run(name, "--history", usage, *REQUESTS, *CRANE, "-o", "json").stdout)
    assert [one["name"] for one in found] == ["web"]


def test_one_table_of_both_axes(usage: str) -> None:
    done = run("--history", usage, *REQUESTS, "-o", "markdown")
    assert done.exit_code == 0, done.output
    header, _, *lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()[2:]]
    assert header[3:10] == ["REPLICAS", "CPU", "MEMORY", "VIOLATIONS", "COST", "J", "CORES"]
    found = {line[2]: dict(zip(header, line, strict=True)) for line in lines}
    assert set(found) == {"web", "flat", "web-db"}
    assert "→" in found["web-db"]["CPU"] and found["web-db"]["REPLICAS"] == "10"
    assert all(not ("→" in line["REPLICAS"] and "→" in line["CPU"]) for line in found.values())


HPA = """
---
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 30
  targetCPUUtilizationPercentage: 30
"""


def test_an_hpa_among_the_manifests_is_what_there_is_now(usage: str, tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(WEB.replace(", namespace: shop", ""))
    asked = ("web", "--history", usage, "-n", "shop", "-f", str(tmp_path), "-o", "json")
    (plain,) = json.loads(run(*asked).stdout)
    (tmp_path / "hpa.yaml").write_text(HPA)
    (scaled,) = json.loads(run(*asked).stdout)
    # Ten pods of 2 cores that stand; at 30 % 4 cores by night are 7 pods, 16 by day 27
    assert plain["evidence"]["present"]["cores"] == 20.0
    assert 33 < scaled["evidence"]["present"]["cores"] < 35


def test_the_hpa_that_is_there_is_written_anew_and_no_second_one(tmp_path: Path) -> None:
    """Two HPAs of one workload would fight."""
    times = np.arange(START, START + 7 * 86400, 600)
    cores = 10 - 6 * np.cos(2 * np.pi * times / 86400)
    lines = [f"{at},{value:.3f},shop/Deployment/web\n" for at, value in zip(times, cores, strict=True)]
    (tmp_path / "usage.csv").write_text("timestamp,value,series\n" + "".join(lines))
    (tmp_path / "web.yaml").write_text(WEB + HPA.replace("{name: web}", "{name: web-hpa, namespace: shop}"))
    asked = ("--history", str(tmp_path / "usage.csv"), "-f", str(tmp_path / "web.yaml"))
    names = {shape: yaml.safe_load(run(*asked, "--as", shape).stdout)["metadata"]["name"] for shape in ("hpa", "ehpa")}
    assert names == {"hpa": "web-hpa", "ehpa": "web"}


OWN = """
---
apiVersion: %s
kind: %s
metadata: {name: web-scaler, namespace: shop}
spec: {minReplicas: 2, maxReplicas: 30, %s, %s: {apiVersion: apps/v1, kind: Deployment, name: web}}
"""


@pytest.mark.parametrize(
    "own, named",
    [
        (("trimtab.dev/v1alpha1", "Autoscaler", "mode: Auto", "scaleTargetRef"), True),
        (("trimtab.dev/v1alpha1", "Autoscaler", "mode: Shadow", "scaleTargetRef"), False),
        (("autoscaling.k8s.io/v1alpha1", "Hvpa", "x: 1", "targetRef"), True),
    ],
)
def test_a_workload_that_one_of_ours_scales_already_gets_no_hpa_beside_it(
    usage: str, tmp_path: Path, own: tuple[str, ...], named: bool
) -> None:
    (tmp_path / "web.yaml").write_text(WEB + OWN % own)
    for rules in ((), CRANE):
        asked = ("web", "--history", usage, "-f", str(tmp_path / "web.yaml"), *rules, "-o", "json")
        (found,) = json.loads(run(*asked).stdout)
        against = [(one["reason"], f"{own[1]}/web-scaler" in one["message"]) for one in found["against"]]
        assert (("ScaledOtherwise", True) in against) == named, found


SCALED_OBJECT = """
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {name: web}
  minReplicaCount: 2
  maxReplicaCount: 30
  triggers:
  - %s
"""


@pytest.mark.parametrize(
    "trigger, cores",
    [
        pytest.param("{type: cpu, metricType: Utilization, metadata: {value: '30'}}", 34, id="as an HPA on CPU is"),
        pytest.param("{type: mysql, metadata: {query: SELECT 1, queryValue: '5'}}", None, id="by what no usage shows"),
    ],
)
def test_a_scaled_object_among_the_manifests_is_what_there_is_now(
    usage: str, tmp_path: Path, trigger: str, cores: float | None
) -> None:
    (tmp_path / "web.yaml").write_text(WEB)
    (tmp_path / "keda.yaml").write_text(SCALED_OBJECT % trigger)
    asked = ("web", "--history", usage, "-f", str(tmp_path))
    (found,) = json.loads(run(*asked, "-o", "json").stdout)
    if cores is None:
        assert [one["reason"] for one in found["against"]] == ["ScaledOtherwise"]
        advised = yaml.safe_load(run(*asked, *CRANE, "--as", "hpa").stdout)
        assert [metric["type"] for metric in advised["spec"]["metrics"]] == ["Resource"]
    else:
        assert found["evidence"]["present"]["cores"] == pytest.approx(cores, abs=1)


def test_what_is_printed_is_what_backtest_says_of_both_manifests(usage: str, tmp_path: Path) -> None:
    web, now, then = (tmp_path / name for name in ("web.yaml", "now.yaml", "then.yaml"))
    web.write_text(WEB)
    now.write_text(HPA.replace("{name: web}\nspec", "{name: web, namespace: shop}\nspec").replace("s: 2", "s: 9"))
    asked = ("web", "--history", usage, "-f", str(web), "-f", str(now))
    (told,) = json.loads(run(*asked, "-o", "json").stdout)
    then.write_text(run(*asked, "--as", "autoscaler").stdout)
    for manifest, evidence in ((now, told["evidence"]["present"]), (then, told["evidence"]["then"])):
        files = ("-f", str(manifest), "-f", str(web), "--load", usage, "--series", "shop/Deployment/web")
        done = CliRunner().invoke(main, ["backtest", *files, "-o", "json"])
        (found,) = json.loads(done.stdout)["policies"]
        assert {name: found[name] for name in ("violations", "cost", "j")} == pytest.approx(
            {name: evidence[name] for name in ("violations", "cost", "j")}, rel=1e-5
        )


def test_manifests_may_lie_in_several_files_in_a_pipe_and_beside_patches(usage: str, tmp_path: Path) -> None:
    web, hpa = tmp_path / "web.yaml", tmp_path / "hpa.yaml"
    web.write_text(WEB)
    hpa.write_text(HPA.replace("{name: web}\nspec", "{name: web, namespace: shop}\nspec"))
    asked = ("recommend", "web", "--history", usage, "-o", "json")
    both = CliRunner().invoke(main, [*asked, "-f", str(web), "-f", str(hpa)])
    assert 33 < json.loads(both.stdout)[0]["evidence"]["present"]["cores"] < 35
    piped = CliRunner().invoke(main, [*asked, "-f", "-"], input=f"{web.read_text()}---\n{hpa.read_text()}")
    assert piped.stdout == both.stdout
    (tmp_path / "kustomization.yaml").write_text("patches: [{path: more.yaml}]\n")
    (tmp_path / "more.yaml").write_text(WEB.replace('cpu: "2"', 'cpu: "8"'))
    assert run(*asked[1:], "-f", str(tmp_path)).stdout == both.stdout
    (tmp_path / "broken.yaml").write_text("apiVersion: [\n")
    assert f"{tmp_path}/broken.yaml: line 2: " in run(*asked[1:], "-f", str(tmp_path)).stderr


def test_a_namespace_narrows_a_file_and_is_that_of_what_names_none(usage: str) -> None:
    found = json.loads(run("--history", usage, "-n", "shop", *REQUESTS, "-o", "json").stdout)
    assert {one["namespace"] for one in found} == {"shop"} and len(found) == 3
    done = run("--history", usage, "-n", "bank", *REQUESTS)
    assert done.exit_code == 2 and "has shop" in done.stderr


def test_rows_of_pods_are_added_up(tmp_path: Path) -> None:
    path = tmp_path / "pods.csv"
    lines = [line.split(",") for pod in ("web-0", "web-1") for line in rows(pod, 2.0, 8.0).splitlines()]
    path.write_text("Time,pod,cpu\n" + "".join(f"{at},{pod},{value}\n" for at, value, pod in lines))
    (found,) = json.loads(
        run(
            "sts/web", "--history", str(path), "-n", "shop", "--replicas", "2", "--cpu-request", "8", "-o", "json"
        ).stdout
    )
    assert (found["namespace"], found["kind"], found["evidence"]["peakCores"]) == ("shop", "StatefulSet", 16.0)


def test_the_recipe_is_a_query_whose_answer_is_understood(tmp_path: Path) -> None:
    done = run("--recipe", "-n", "shop", "--matchers", 'cluster="a"')
    assert done.exit_code == 0
    query = next(line.strip() for line in done.stdout.splitlines() if "rate(" in line)
    assert query == (
        "sum by (namespace, pod, container) (rate(container_cpu_usage_seconds_total{"
        'container!="",container!="POD",cluster="a",namespace=~"shop"}[180s]))'
    )
    header = '"Time","{container=""app"", namespace=""shop"", pod=""web-7d9f8b6c5d-x2x4z""}"\n'
    values = "".join(line.rpartition(",")[0] + "\n" for line in rows("", 4.0, 16.0).splitlines())
    (tmp_path / "grafana.csv").write_text(header + values)
    (found,) = json.loads(
        run("--history", str(tmp_path / "grafana.csv"), "--replicas", "1", "--cpu-request", "20", "-o", "json").stdout
    )
    assert (found["namespace"], found["name"]) == ("shop", "web")


@pytest.mark.parametrize(
    "ends_on, weekend",
    [
        pytest.param(0, [5, 6], id="two weeks that end with a Sunday"),
        pytest.param(5, [0, 1], id="two weeks that end with a Friday"),
    ],
)
def test_two_weeks_show_that_weekdays_differ(tmp_path: Path, ends_on: int, weekend: list[int]) -> None:
    """Seven days alone would be repeated as their last day was."""
    end = START + (5 + ends_on) * 86400  # a Monday, then days on
    times = np.arange(end - 14 * 86400, end, 600)
    weekday = (times // 86400 + 3) % 7
    peak = np.where(weekday < 5, 297.0, 60.0)
    values = 40 + (peak - 40) * np.exp(-(((times % 86400 / 3600 - 14) / 4) ** 2))
    path = tmp_path / "weekly.csv"
    lines = (f"{at},{value},web\n" for at, value in zip(times.tolist(), values.tolist(), strict=True))
    path.write_text("timestamp,value,series\n" + "".join(lines))
    asked = ("--history", str(path), "--replicas", "100", "--cpu-request", "2")
    (found,) = json.loads(run(*asked, *CRANE, "-o", "json").stdout)
    days = np.array(found["evidence"]["forecast"]).reshape(7, 24).max(axis=1)
    assert np.flatnonzero(days < 100).tolist() == weekend
    assert all(280 < day < 310 for day in days if day >= 100)
    (found,) = json.loads(run(*asked, "-o", "json").stdout)
    assert found["recommendation"]["maxReplicas"] * 2 > 297, "the replay sees both weeks"
