"""Alerts and dashboards of the chart: their metrics exist, promtool accepts them, a real Prometheus answers them."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.bed import PATIENCE_S, Bed, build, eventually
from tests.bed.manifests import deployment
from tests.bed.ports import free_port
from tests.live.running import Running, autoscaler, install_crds

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "trimtab"
ALERTS = CHART / "files" / "alerts.yaml"
DASHBOARDS = sorted((CHART / "files" / "dashboards").glob("*.json"))
METRIC = re.compile(r"\btrimtab_[a-z_]+")


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    return [panel for file in DASHBOARDS for panel in json.loads(file.read_text())["panels"]]


def expressions() -> list[str]:
    """Of every alert and every panel, for any workload."""
    found = [str(rule["expr"]) for rule in rules()]
    found += [target["expr"] for panel in panels() for target in panel["targets"]]
    return [re.sub(r'="\$(kind|namespace|name)"', '=~".+"', text) for text in found]


def metrics_of_the_code() -> set[str]:
    """Every name of a metric that the operator's code holds as a text."""
    found = set()
    for file in (ROOT / "trimtab" / "live").rglob("*.py"):
        texts = (node.value for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Constant))
        found |= {text for text in texts if isinstance(text, str) and METRIC.fullmatch(text)}
    return found


def test_every_metric_that_is_shown_or_watched_exists() -> None:
    used = {name for text in (*expressions(), *map(Path.read_text, DASHBOARDS)) for name in METRIC.findall(text)}
    assert used <= metrics_of_the_code() and len(used) > 20


def test_every_alert_has_a_runbook_and_a_case_of_promtool() -> None:
    page = (ROOT / "docs" / "runbooks.md").read_text()
    written = dict(re.findall(r"^## (\w+)\n\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    cases = Path(__file__).with_name("alerts.yaml").read_text()
    assert set(written) == {rule["alert"] for rule in rules()}
    for rule in rules():
        name = rule["alert"]
        assert rule["annotations"]["runbook"] == f"docs/runbooks.md#{name.lower()}"
        assert all(word in written[name] for word in ("**Means:**", "**Look:**", "**Do:**")), name
        quiet, loud = f"alertname: {name}, exp_alerts: []", f"alertname: {name}\n    exp_alerts:\n"
        assert quiet in cases and loud in cases, f"{name} is not tried"


def test_panels_have_titles_and_places_of_their_own() -> None:
    for file in DASHBOARDS:
        found = json.loads(file.read_text())["panels"]
        assert len({panel["title"] for panel in found}) == len({panel["id"] for panel in found}) == len(found)
        assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in found}) == len(found)


# --- with the tools of Prometheus and Helm ---------------------------------------------------------------------------

e2e = pytest.mark.e2e


def promtool(*words: str | Path) -> None:
    tool = build.binaries(("promtool",))["promtool"]
    done = subprocess.run([tool, *words], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr


@e2e
@pytest.mark.smoke
def test_promtool_accepts_the_alerts_and_they_fire_when_they_should(tmp_path: Path) -> None:
    promtool("check", "rules", ALERTS)
    cases = tmp_path / "cases.yaml"
    cases.write_text(Path(__file__).with_name("alerts.yaml").read_text().replace("RULES", str(ALERTS)))
    promtool("test", "rules", cases)


@e2e
def test_the_chart_brings_them_where_they_are_wanted(bed: Bed) -> None:
    def made(*more: str) -> dict[tuple[str, str], dict[str, Any]]:
        text = bed.helm("template", "trimtab", str(CHART), "--namespace", "home", *more)
        return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(text) if one}

    switches = [f"monitoring.{name}.enabled=true" for name in ("serviceMonitor", "prometheusRule", "dashboards")]
    wanted = [part for one in (*switches, "monitoring.serviceMonitor.labels.release=mine") for part in ("--set", one)]
    without, found = made(), made(*wanted)
    assert {kind for kind, _ in set(found) - set(without)} == {"ServiceMonitor", "PrometheusRule", "ConfigMap"}
    monitor, service = found["ServiceMonitor", "trimtab"], found["Service", "trimtab"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]} and endpoint["honorLabels"]
    assert monitor["metadata"]["labels"]["release"] == "mine"
    assert found["PrometheusRule", "trimtab"]["spec"] == yaml.safe_load(ALERTS.read_text())
    for file in DASHBOARDS:
        kept = found["ConfigMap", f"trimtab-{file.stem}"]
        assert json.loads(kept["data"][file.name]) == json.loads(file.read_text())
        assert kept["metadata"]["labels"]["grafana_dashboard"] == "1"


@contextmanager
def prometheus(bed: Bed, folder: Path, target: str) -> Iterator[str]:
    """A Prometheus that scrapes one operator and holds the chart's alerts."""
    port = free_port()
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(ALERTS)],
        "scrape_configs": [{"job_name": "trimtab", "honor_labels": True, "static_configs": [{"targets": [target]}]}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))
    words = (f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data")
    command = [str(bed.binaries["prometheus"]), *words, f"--web.listen-address=127.0.0.1:{port}"]
    with (folder / "prometheus.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def asked(address: str, expression: str) -> list[dict[str, Any]]:
    form = urllib.parse.urlencode({"query": expression}).encode()
    with urllib.request.urlopen(f"{address}/api/v1/query", form, timeout=PATIENCE_S) as response:
        result: list[dict[str, Any]] = json.load(response)["data"]["result"]
    return result


@e2e
@pytest.mark.timeout(300)
def test_a_real_prometheus_answers_every_panel_and_alert(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    bed.load(namespace, "web", cores=0.4)
    bed.load(namespace, "queue", fault="silent")
    bed.apply(deployment(namespace, "web", replicas=2, cpu="250m"), deployment(namespace, "queue"))
    silent = {"metric": {"name": "queue_length", "selector": {"matchLabels": {"app": "queue"}}}}
    external = {"type": "External", "external": silent | {"target": {"type": "AverageValue", "averageValue": "10"}}}
    bed.apply(autoscaler(namespace, bridge={}, minReplicas=2), autoscaler(namespace, "queue", metrics=[external]))
    named, missing = f'namespace="{namespace}", name="web"', f'namespace="{namespace}", name="queue"'
    wanted = [
        *(f"trimtab_{name}{{{named}}}" for name in ("load", "capacity", "ready_replicas", "bridge_factor")),
        f"trimtab_sample_missing{{{missing}}}",
    ]
    with (
        Running(bed, namespace, tmp_path) as running,
        prometheus(bed, tmp_path, f"127.0.0.1:{running.port}") as address,
    ):
        for expression in wanted:
            eventually(lambda expression=expression: asked(address, expression), 90, expression)  # type: ignore[misc]
        for expression in expressions():
            asked(address, expression)  # what cannot be parsed or joined is an error
        assert set(METRIC.findall(running.get("/metrics"))) <= metrics_of_the_code()
        with urllib.request.urlopen(f"{address}/api/v1/rules", timeout=PATIENCE_S) as response:
            groups = json.load(response)["data"]["groups"]
    health = {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}
    assert health == {rule["alert"]: "ok" for rule in rules()}


@e2e
def test_helm_test_asks_whether_it_is_ready(bed: Bed, namespace: str, tmp_path: Path) -> None:
    """The command of the chart's own test, against an operator that is there and against none."""
    text = bed.helm("template", "trimtab", str(CHART), "--show-only", "templates/tests/ready.yaml")
    (container,) = yaml.safe_load(text)["spec"]["containers"]
    assert container["command"][0] == "python"
    command = [sys.executable, *container["command"][1:]]
    install_crds(bed)
    with Running(bed, namespace, tmp_path) as running:
        env = os.environ | {"READY_URLS": f"http://127.0.0.1:{running.port}/readyz"}
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0 and done.stdout.startswith("ok, "), done.stderr
    impatient = [part.replace("+ 90", "+ 0.1") for part in command]
    done = subprocess.run(impatient, env=env, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 1 and "is not ready: " in done.stderr
