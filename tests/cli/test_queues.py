"""backtest and tune of a queue: judged by waiting, beside a policy by length, refused without arrivals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from trimtab.cli import main

LENGTH = 'sum(rabbitmq_queue_messages_ready{queue="mail"})'
ARRIVALS = 'sum(rate(rabbitmq_queue_messages_published_total{queue="mail"}[1m]))'
QUEUE = {
    "name": "mail",
    "arrivals": {"query": ARRIVALS},
    "waiting": {"query": LENGTH},
    "serviceTime": "2s",
    "concurrency": 4,
    "waitBelow": "30s",
}
BY_LENGTH = {"query": LENGTH, "target": {"type": "AverageValue", "averageValue": "20"}}
LOAD = ("--load", "generate:diurnal,days=2,peak=40")


def manifest(name: str, metric: dict[str, Any], **spec: Any) -> str:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "mailer"}
    spec = {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 60, "metrics": [metric], **spec}
    return yaml.safe_dump(
        {"apiVersion": "trimtab.dev/v1alpha1", "kind": "Autoscaler", "metadata": {"name": name}, "spec": spec}
    )


@pytest.fixture
def arrivals(tmp_path: Path) -> str:
    path = tmp_path / "arrivals.yaml"
    limits = {"target": {"min": "70", "max": "80"}, "stabilizationWindowSeconds": {"min": 300, "max": 300}}
    tuning = {"mode": "Advise", "limits": limits}
    path.write_text(manifest("arrivals", {"type": "Backlog", "backlog": QUEUE}, tuning=tuning))
    return str(path)


@pytest.fixture
def length(tmp_path: Path) -> str:
    path = tmp_path / "length.yaml"
    path.write_text(manifest("length", {"type": "Prometheus", "prometheus": BY_LENGTH}))
    return str(path)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def test_a_queue_is_judged_by_how_long_work_waits(arrivals: str) -> None:
    done = invoke("backtest", "-f", arrivals, *LOAD, "-o", "markdown")
    assert done.exit_code == 0, done.output
    assert "work that waits longer than 30s counts as a violation" in done.stdout
    assert "the load is in items per second; one pod finishes 2 at 100 %" in done.stdout


def test_a_policy_that_follows_the_length_is_played_on_the_same_queue(arrivals: str, length: str) -> None:
    done = invoke("backtest", "--compare", length, arrivals, *LOAD, "-o", "markdown")
    assert done.exit_code == 0, done.output
    assert "one pod finishes 2 at 100 %" in done.stdout
    assert "in the unit of each" not in done.stdout


def test_without_arrivals_the_queries_that_would_give_them_are_said(length: str) -> None:
    done = invoke("backtest", "-f", length, *LOAD, "-o", "markdown")
    assert done.exit_code == 0, done.output
    assert "rabbitmq_queue_messages_ready is the length of a queue of RabbitMQ" in done.stdout
    assert f"use type: Backlog with arrivals: {ARRIVALS}" in done.stdout
    refused = invoke("tune", "-f", length, *LOAD)
    assert refused.exit_code == 2
    assert f"use type: Backlog with arrivals: {ARRIVALS}" in refused.output


def test_a_measured_service_time_is_given_for_the_simulation(tmp_path: Path) -> None:
    queue = {key: value for key, value in QUEUE.items() if key != "serviceTime"}
    path = tmp_path / "measured.yaml"
    path.write_text(manifest("m", {"type": "Backlog", "backlog": queue | {"serviceTimeQuery": {"query": "seconds"}}}))
    refused = invoke("backtest", "-f", str(path), *LOAD)
    assert refused.exit_code == 2
    assert "--pod-capacity: 'missing': say how many items one pod finishes per second" in refused.output
    done = invoke("backtest", "-f", str(path), *LOAD, "--pod-capacity", "2", "-o", "markdown")
    assert "work that waits longer than 30s counts as a violation" in done.stdout, done.output


def test_tune_chooses_how_busy_the_pods_of_a_queue_are_meant_to_be(arrivals: str) -> None:
    done = invoke("tune", "-f", arrivals, *LOAD)
    assert done.exit_code == 0, done.output
    queue = yaml.safe_load(done.stdout)["spec"]["metrics"][0]["backlog"]
    assert 70 <= queue.get("targetUtilization", 80) <= 80
    assert "work that waits longer than 30s counts as a violation" in done.stdout
