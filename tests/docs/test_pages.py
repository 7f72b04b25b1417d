"""What the pages say can be done: commands exist, YAML is right, recipes hold, the reference is new."""

from __future__ import annotations

import contextlib
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import click
import pytest
from click.testing import CliRunner

from tests.docs.blocks import PAGES, ROOT, blocks, commands
from trimtab.cli import main
from trimtab.cli.kubectl import plugin
from trimtab.kinds import KINDS
from trimtab.kinds.lint import LintSeverity, lint
from trimtab.kinds.yaml import documents
from trimtab.tune.demo_fleet import demo_fleet

NOW = 1_763_000_000.0
RECIPES = blocks(ROOT / "docs/recipes.md", "yaml")
SAID = [(page, words) for page in PAGES for words in commands(page)]


def _site(module: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(module, ROOT / f"docs/site/{module}.py")
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.mark.parametrize("name", sorted(_site("reference").pages()))
def test_the_reference_is_as_the_code_is(name: str) -> None:
    written = ROOT / "docs" / name
    assert written.read_text() == _site("reference").pages()[name], "run `make docs`, then commit it"


def test_every_decision_has_its_number_and_its_status() -> None:
    for path in sorted((ROOT / "docs/decisions").glob("[0-9]*.md")):
        lines = path.read_text().splitlines()
        assert lines[0].startswith(f"# {path.name[:3]}: "), path.name
        assert " since 20" in lines[2], f"{path.name}: its third line says `In force since DATE.`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_yaml_of_a_page_is_right(page: Path) -> None:
    for text in blocks(page, "yaml"):
        found = [document for document in documents(text, str(page)) if _is_ours(document.value)]
        wrong = [finding for finding in lint(found, NOW) if finding.severity is LintSeverity.ERROR]
        assert wrong == []


def _is_ours(value: object) -> bool:
    return isinstance(value, dict) and (value.get("apiVersion"), value.get("kind")) in KINDS


@pytest.mark.parametrize(("page", "words"), SAID, ids=[" ".join(words)[:60] for _, words in SAID])
def test_a_command_of_a_page_can_be_typed(page: Path, words: list[str]) -> None:
    """Its name and its options exist; in the text an option may stand without its value."""
    group, name, arguments = _parts(words)
    context = click.Context(group)
    command = group.get_command(context, name)
    assert command is not None, f"{page}: {name} is no command"
    with contextlib.suppress(click.BadOptionUsage):
        command.make_parser(click.Context(command)).parse_args(list(arguments))


def _parts(words: list[str]) -> tuple[click.Group, str, list[str]]:
    if words[0] == "kubectl":
        return plugin, words[2], words[3:]
    if len(words) == 1 or words[1].startswith("-"):
        return main, "version", []
    return main, words[1], words[2:]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda text: text.split("name: ")[1].split(",")[0])
def test_a_recipe_survives_a_morning(recipe: str, tmp_path: Path) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text(recipe)
    arguments = [
        "backtest",
        "-f",
        str(file),
        "--load",
        "generate:office,days=1,peak=40",
        "--days",
        "0.25",
        "-o",
        "json",
    ]
    if "serviceTimeQuery" in recipe:
        arguments += ["--pod-capacity", "2"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert ("counts as a violation" in done.output) == ("type: Backlog" in recipe)  # played on a simulated queue
    if "type: Backlog" in recipe:
        (policy,) = json.loads(done.stdout)["policies"]
        assert policy["cost"] < 2.5, "arrivals are what is followed, whatever their query is made of"


QUICK_START = ROOT / "docs/quick-start.md"
ON_A_FILE = [words[1:] for words in commands(QUICK_START) if "examples/007-history/cpu.csv" in words]


@pytest.mark.parametrize("words", ON_A_FILE, ids=[words[0] for words in ON_A_FILE])
def test_the_quick_start_on_a_file_works_as_it_is_printed(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "web" in done.stdout


def test_the_quick_start_explains_what_the_demo_has() -> None:
    asked = {words[2] for words in commands(QUICK_START) if words[1] == "explain"}
    assert asked and asked <= {f"demo/{workload.name}" for workload in demo_fleet()}
