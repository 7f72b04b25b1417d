"""What an operator did can be computed again from its journal; a core with one other rule computes something else."""

from __future__ import annotations

import json
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bed import PATIENCE_S, Bed, eventually
from tests.bed.manifests import deployment
from tests.live.accounts import chart_account
from tests.live.running import ROOT, TRIMTAB, Running, autoscaler, install_crds, replicas
from trimtab.journal import Journal

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
BEHAVIOR = {
    "scaleUp": {"policies": [{"type": "Pods", "value": 3, "periodSeconds": 4}]},
    "scaleDown": {"stabilizationWindowSeconds": 4},
}
# A rule of the core: its file, what stands there, what might stand there instead.
OTHER_RULES = {
    "rounding": ("propose.py", "else ceil(replicas)", "else int(replicas)"),
    "rate": ("settle/rate.py", "else start + value", "else start + value - 1"),
    "window": ("settle/stabilise.py", "at > down_cutoff", "at > down_cutoff - 60"),
    "bounds": ("bound.py", "min(most, replicas)", "min(most + 1, replicas)"),
}


def replayed(journal: Path, package: Path = ROOT) -> tuple[int, dict[str, Any]]:
    """`trimtab replay` as a process, with the package of that folder."""
    command = [*TRIMTAB, "replay", str(journal), "-o", "json"]
    done = subprocess.run(command, cwd=package, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


def with_another_rule(folder: Path, file: str, is_now: str, instead: str) -> Path:
    """A copy of the package in which one rule is another."""
    shutil.copytree(ROOT / "trimtab", folder / "trimtab", ignore=shutil.ignore_patterns("__pycache__"))
    rule = folder / "trimtab" / "core" / file
    text = rule.read_text()
    assert text.count(is_now) == 1, f"{file} has changed: choose another line"
    rule.write_text(text.replace(is_now, instead))
    return folder


def recorded(path: Path) -> int:
    journal = Journal.read(path)
    try:
        return len(list(journal.acts()))
    finally:
        journal.close()


@pytest.fixture(scope="module")
def journal(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of a run with a rate, a bound, a rounding and a window; the operator was killed in between."""
    install_crds(bed)
    namespace, folder = f"replay-{uuid.uuid4().hex[:8]}", tmp_path_factory.mktemp("operator")
    bed.kubectl("create", "namespace", namespace)
    metric = {"name": "queue_length", "selector": {"matchLabels": {"app": "web"}}}
    target = {"type": "AverageValue", "averageValue": "10"}
    metrics = [{"type": "External", "external": {"metric": metric, "target": target}}]
    bed.load(namespace, "web", queue=90)
    spec: dict[str, Any] = {"metrics": metrics, "maxReplicas": 6, "behavior": BEHAVIOR}
    bed.apply(deployment(namespace, "web"), autoscaler(namespace, **spec))
    options = ("--tick", "2s", "--lease", "4s/3s/1s")
    with Running(bed, namespace, folder, *options, kubeconfig=chart_account(bed, namespace)) as running:
        eventually(lambda: replicas(bed, namespace) == 4, 60, "as many as the rate allows")
        eventually(lambda: recorded(running.journal) == 1, 10)
        running.kill()
        running.start()
        eventually(lambda: replicas(bed, namespace) == 6, 60, "as many as the bounds allow")
        bed.load(namespace, "web", queue=25)
        eventually(lambda: replicas(bed, namespace) == 3, 60, "after the window, rounded up")
    yield running.journal
    bed.kubectl("delete", "namespace", namespace, "--wait=false")


def test_a_run_replays_clean(journal: Path) -> None:
    code, found = replayed(journal)
    assert found["differences"] == [] and code == 0
    assert found["checked"] >= 3, "1 to 4, 4 to 6, 6 to 3"


@pytest.mark.parametrize("rule", OTHER_RULES)
def test_a_core_with_another_rule_is_noticed(journal: Path, tmp_path: Path, rule: str) -> None:
    code, found = replayed(journal, with_another_rule(tmp_path, *OTHER_RULES[rule]))
    assert code == 1
    assert all(one["then"] != one["now"] for one in found["differences"]), found
