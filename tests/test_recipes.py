"""CONTRIBUTING's recipes, followed in a copy of the package: what is added works in every command.

Each recipe adds one thing with the edits that CONTRIBUTING names, in no more source files than it allows.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

import trimtab

PACKAGE = Path(trimtab.__file__).parent
CONTRIBUTING = PACKAGE.parent / "CONTRIBUTING.md"


class Edit(NamedTuple):
    """New text in a source file, before a text that stands there, or at the end of a file (that may be new)."""

    path: str
    text: str
    before: str = ""

    def follow(self, root: Path) -> None:
        path = root / self.path
        source = path.read_text() if path.exists() else ""
        assert source.count(self.before) == 1 or not self.before, f"{self.path}: {self.before!r} stands there once"
        path.write_text(source.replace(self.before, self.text + self.before) if self.before else source + self.text)


class Recipe(NamedTuple):
    """One heading of CONTRIBUTING, followed."""

    title: str
    most_files: int
    edits: tuple[Edit, ...]

    @property
    def section(self) -> str:
        return CONTRIBUTING.read_text().partition(f"## {self.title}")[2].partition("\n## ")[0]


RULE = Recipe(
    "Add a settling rule",
    3,
    (
        Edit(
            "policy.py",
            '''class MaxPods(Record, frozen=True):
    """No step adds or removes more than so many pods."""

    up: float
    down: float


''',
            before="Rule = StabiliseMax",
        ),
        Edit("policy.py", "MaxPods | ", before="StabiliseMax | Stabilise |"),
        Edit("core/settle/stateless.py", "from trimtab.policy import MaxPods\n", before="from trimtab.policy import"),
        Edit(
            "core/settle/stateless.py",
            '''def limit_pods(replicas: float, ratio: float, current: int, up: float, down: float) -> Settled:
    """Limit how many pods one scaling may add or remove."""
    settled = min(max(replicas, current - down), current + up)
    return (replicas, ratio) if settled == replicas else (settled, ratio_to(settled, current))


''',
            before="STATELESS: dict",
        ),
        Edit(
            "core/settle/stateless.py",
            '    MaxPods: StatelessRule(limit_pods, sentence="maxPods"),\n',
            before="    UpLimit: StatelessRule(",
        ),
        Edit("kinds/behavior.py", "from trimtab.policy import MaxPods\n", before="from trimtab.policy import ("),
        Edit(
            "kinds/behavior.py",
            '    max_pods: Count | None = None\n    """No step is larger than so many pods."""\n',
            before="    cooldown_seconds: Annotated",
        ),
        Edit(
            "kinds/behavior.py",
            """        if (up.max_pods, down.max_pods) != (None, None):
            extra.append(MaxPods(up=_or(up.max_pods, _UNCAPPED), down=_or(down.max_pods, _UNCAPPED)))
""",
            before="        return tuple(extra)",
        ),
    ),
)
FORECASTER = Recipe(
    "Add a forecaster",
    2,
    (
        Edit("policy.py", '"twofold", ', before='"linear", "seasonal",'),
        Edit(
            "core/forecast/twofold.py",
            '''"""twofold: twice of what there is now."""

import numpy as np

from trimtab.core.forecast.forecaster import Dates, Forecaster, certain, too_short
from trimtab.policy import Record


class TwofoldOptions(Record, frozen=True):
    """None."""


def forecast(frame, horizon_s, at, options):
    known = [row[np.isfinite(row)] for row in frame.values]
    dates = Dates(made_at=at, expires_at=at + 120.0)
    return [certain("twofold", dates, 2.0 * row[-1]) if len(row) else too_short(0.0, 60.0) for row in known]


FORECASTER = Forecaster(forecast, TwofoldOptions)
''',
        ),
    ),
)
METRIC = Recipe(
    "Add a type of metric",
    4,
    (
        Edit("policy.py", '    GRAPHITE = "Graphite"\n', before='    PROMETHEUS = "Prometheus"\n'),
        Edit(
            "kinds/metric.py",
            '''class GraphiteMetricSource(ManifestPart):
    """A target of Graphite's render API."""

    render: Title
    """What to render."""
    target: ValueTarget
    """How much of it."""


''',
            before="class QuerySource(",
        ),
        Edit("kinds/metric.py", '"Graphite", ', before='"Prometheus", "Backlog"]  #'),
        Edit("kinds/metric.py", "    graphite: GraphiteMetricSource | None = None\n", before="    prometheus: Prom"),
        Edit("kinds/metric.py", '"graphite", ', before='"prometheus", "backlog")'),
        Edit(
            "kinds/metric.py",
            """        if self.graphite is not None:
            metric = Metric(kind=MetricKind.GRAPHITE, name=self.graphite.render)
            return _of_total(metric, self.graphite.target, tolerance)
""",
            before="        if self.prometheus is None:",
        ),
        Edit(
            "live/measure/gather.py",
            "            MetricKind.GRAPHITE: self._graphite,\n",
            before="            MetricKind.PROMETHEUS: self.queries.ask,",
        ),
        Edit(
            "live/measure/gather.py",
            """    async def _graphite(self, question: Question, at: float) -> Answer:
        raise NotImplementedError

""",
            before="    async def _answer(",
        ),
    ),
)
LINT = Recipe(
    "Add a lint rule",
    2,
    (
        Edit(
            "kinds/lint/object_checks.py",
            """def lonely(linted, among):
    if linted.policy and linted.policy.bounds.min_replicas == 1:
        why = "one pod serves alone while another starts"
        yield Diagnostic(LintSeverity.INFO, "lonely", linted.path("minReplicas"), why, "write 2")


""",
            before="CHECKS = (",
        ),
        Edit("kinds/lint/object_checks.py", "    lonely,\n", before="    refused,\n"),
    ),
)
COMMAND = Recipe(
    "Add a command",
    2,
    (
        Edit("cli/__init__.py", '        "hello": "Greet.",\n', before='        "version": "Print the version.",'),
        Edit(
            "cli/hello.py",
            '''"""trimtab hello: greet."""

import click


@click.command(name="hello")
def command() -> None:
    """Greet."""
    click.echo("hello")
''',
        ),
    ),
)
RECIPES = (RULE, FORECASTER, METRIC, LINT, COMMAND)
SPEC = {
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    "minReplicas": 1,
    "maxReplicas": 60,
    "metrics": [
        {
            "type": "Graphite",
            "graphite": {"render": "web.load", "target": {"type": "AverageValue", "averageValue": "1"}},
        }
    ],
    "behavior": {"scaleUp": {"maxPods": 1}},
    "forecast": {"model": "twofold", "horizon": "60s"},
}
MANIFEST = {"apiVersion": "trimtab.dev/v1alpha1", "kind": "Autoscaler", "metadata": {"name": "web"}, "spec": SPEC}
Trimtab = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy in which every recipe was followed, with a manifest that uses all of it and a load with peaks."""
    root = tmp_path_factory.mktemp("recipes")
    shutil.copytree(PACKAGE, root / "trimtab", ignore=shutil.ignore_patterns("__pycache__"))
    for recipe in RECIPES:
        for edit in recipe.edits:
            edit.follow(root / "trimtab")
    (root / "web.yaml").write_text(yaml.safe_dump(MANIFEST))
    without = {key: value for key, value in SPEC.items() if key != "behavior"}
    (root / "without.yaml").write_text(yaml.safe_dump(MANIFEST | {"spec": without}))
    load = [20.0 if 720 <= minute % 1440 < 750 or minute >= 2877 else 2.0 for minute in range(2880)]
    rows = "".join(f"{60 * minute},{value}\n" for minute, value in enumerate(load))
    (root / "load.csv").write_text(f"timestamp,value\n{rows}")
    return root


@pytest.fixture(scope="module")
def run(changed: Path) -> Trimtab:
    def call(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PYTHONPATH": str(changed), "XDG_CACHE_HOME": str(changed / "cache")}
        program = (sys.executable, "-c", "from trimtab.cli import main; main()")
        done = subprocess.run((*program, *words), cwd=changed, env=environment, capture_output=True, text=True)
        assert done.returncode == code, done.stderr + done.stdout
        return done

    return call


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.title)
def test_a_recipe_names_the_few_files_that_it_touches(recipe: Recipe) -> None:
    touched = {edit.path for edit in recipe.edits}
    assert len(touched) <= recipe.most_files
    named = set(re.findall(r"`trimtab/([\w/.]+)`", recipe.section))
    assert {path if (PACKAGE / path).exists() else f"{Path(path).parent}/" for path in touched} <= named


def test_what_was_added_is_read_and_reported(run: Trimtab) -> None:
    assert run("hello").stdout == "hello\n"
    assert "lonely" in run("lint", "web.yaml", code=1).stdout
    schemas = run("crds").stdout
    assert all(word in schemas for word in ("maxPods", "No step is larger than so many pods", "twofold", "graphite"))
    converted = run("convert", "web.yaml", "--to", "hpa", "--force")
    assert "maxPods" not in converted.stdout and "Graphite" not in converted.stdout
    assert all(lost in converted.stderr for lost in ("spec.behavior.scaleUp.maxPods", "spec.metrics[0]", "forecast"))


def test_backtest_tune_and_explain_follow_what_was_added(run: Trimtab) -> None:
    terms = ("--load", "load.csv", "--startup", "30s", "--pod-capacity", "1.4", "-o", "json")

    def backtest(path: str, *more: str) -> dict[str, float]:
        (told,) = json.loads(run("backtest", "-f", path, *terms, *more).stdout)["policies"]
        return dict(told)

    limited, free = backtest("web.yaml", "--journal", "journal.db"), backtest("without.yaml")
    assert limited["violations"] > free["violations"], "one pod at a time is too slow for these peaks"
    tuned = json.loads(run("tune", "-f", "web.yaml", *terms).stdout)
    assert tuned["was"]["j"] == limited["j"]
    assert not any("step by step" in note for note in tuned["notes"]), "the rule runs compiled"
    told = run("explain", "default/web", "--journal", "journal.db").stdout
    assert "maxPods" in told and "web.load" in told and "forecast" in told
